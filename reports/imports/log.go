package imports

import (
	"bytes"
	"strings"
	"time"
)

// log reads a text line by line: each process's lines by a stream of its own,
// as far as a launcher's tags tell them apart.
type log struct {
	*source
	streams    map[string]*stream
	order      []*stream
	nccl       ncclLog
	fails      failures
	tagged     bool
	began      time.Time // of the test, where it is told
	unfinished bool      // the line has no end: the text is cut off in it
	stuck      error     // of the records' receiver: reading ends
	held       int       // rows and lines in the open groups
	spare      []row     // memory of an ended group's rows, for the next one
	buf        [maxFields][]byte
}

func newLog(s *source) *log {
	l := &log{source: s, streams: map[string]*stream{}}
	l.nccl.init()
	return l
}

// stream is what one process printed.
type stream struct {
	*log
	tag     string
	group   *group // the worlds that print now; nil between tests
	cmd     command
	title   string   // the last heading that somebody wrote between tests
	parts   [][]byte // the beginning of a row, to be joined with the next line
	head    []byte   // the same of a table's header
	rank    []byte   // the same of a rank's line
	partAt  int
	tests   int // that it has printed
	first   int // line
	last    int // line
	perf    *perftest
	gloo    *gloo
	table   *pasted
	csv     *csv
	bare    layout            // of rows that no test is open for
	version map[string]string // of libraries and tests, told before a test
}

func (l *log) stream(tag string) *stream {
	s := l.streams[tag]
	if s == nil {
		if len(l.streams) == maxStreams {
			return l.stream("")
		}
		s = &stream{log: l, tag: tag, first: l.Lines, cmd: command{min: -1, max: -1}, version: map[string]string{}}
		l.streams[tag] = s
		l.order = append(l.order, s)
	}
	return s
}

// line takes the text's next line, which may hold a whole text: what a program
// printed, as one string with its line ends escaped.
func (l *log) line(raw []byte) error {
	if len(raw) > minEscaped && bytes.Count(raw, []byte(`\n`)) > 5 && bytes.Contains(raw, []byte("busbw")) {
		l.unfinished = false
		for piece := range bytes.SplitSeq(raw, []byte(`\n`)) {
			if i := bytes.LastIndex(piece, []byte(`": "`)); i >= 0 {
				piece = piece[i+4:]
			}
			if err := l.one(bytes.ReplaceAll(piece, []byte(`\t`), []byte("\t"))); err != nil {
				return err
			}
		}
		return nil
	}
	return l.one(raw)
}

// minEscaped is less than any text with a table.
const minEscaped = 300

// one takes one line.
func (l *log) one(raw []byte) error {
	// Most of a big log are NCCL's own lines.
	if i := bytes.Index(raw, []byte(" NCCL ")); i >= 0 {
		if before := l.nccl.line(raw, i, l.Lines); len(before) > 0 {
			raw = before
		} else {
			return nil
		}
	}
	tag, rest := strip(raw)
	if len(rest) == 0 {
		return nil
	}
	if tag != "" {
		l.tagged = true
	}
	s := l.stream(tag)
	s.last = l.Lines
	if err := s.line(rest); err != nil {
		return err
	}
	return l.stuck
}

// end says that the text is over.
func (l *log) end() error {
	for _, s := range l.order {
		if err := s.end(); err != nil {
			return err
		}
	}
	l.fails.report(l.source)
	l.nccl.report(l.Text)
	l.separate()
	switch {
	case l.Lines == 0:
		l.warn(0, "it is empty")
	case len(l.Worlds) == 0 && len(l.Findings) == 0:
		l.warn(l.Lines, "nothing that busbw knows: want the output of nccl-tests, rccl-tests, perftest or gloo's benchmark, or a results file")
	}
	return nil
}

func (s *stream) end() error {
	if s.parts != nil {
		if err := s.dropPart(); err != nil {
			return err
		}
	}
	if err := s.finish(); err != nil {
		return err
	}
	return s.endOthers()
}

// endOthers ends the tests that are not nccl-tests'.
func (s *stream) endOthers() error {
	if err := s.perf.finish(s); err != nil {
		return err
	}
	s.perf = nil
	if err := s.gloo.finish(s); err != nil {
		return err
	}
	s.gloo = nil
	if err := s.table.finish(s); err != nil {
		return err
	}
	s.table = nil
	s.csv = nil
	return nil
}

// line takes a line of this process, without prefixes and blanks at its ends.
func (s *stream) line(t []byte) error {
	if s.parts != nil {
		if done, err := s.join(t); done || err != nil {
			return err
		}
	}
	if s.head != nil && s.joinHeader(t) {
		return s.stuck
	}
	if s.rank != nil {
		t = s.joinRank(t)
	}
	if taken, err := s.others(t); taken || err != nil {
		return err
	}
	if c := t[0]; c >= '0' && c <= '9' || s.group != nil && s.group.layout.labels() > 0 {
		return s.maybeRow(t)
	}
	if i := bytes.IndexByte(t, '#'); i == 0 || bytes.IndexByte(t, ':') >= 0 || bytes.Contains(t, []byte("version")) || bytes.Contains(t, []byte("nThread")) || bytes.Contains(t, []byte("Rank ")) || bytes.Contains(t, []byte("_perf")) || bytes.Contains(t, []byte("busbw")) || bytes.Contains(t, []byte("Using devices")) {
		if s.heading(t) {
			return nil
		}
	}
	if s.fails.line(s, t) {
		return nil
	}
	f := fields(t, s.buf[:])
	if s.header(f, t) {
		return s.stuck
	}
	if typeAt(f) >= 2 { // behind a prefix that we do not know
		return s.maybeRow(t)
	}
	if t[0] == '#' {
		s.title = strings.TrimSpace(strings.TrimLeft(string(t[:min(len(t), 200)]), "# "))
	}
	return nil
}

// maybeRow takes a line that may be a row.
func (s *stream) maybeRow(t []byte) error {
	f := fields(t, s.buf[:])
	if s.bare.dtype == "" {
		s.bare = noHeader()
	}
	l := &s.bare
	if s.group != nil {
		l = &s.group.layout
	}
	r, is := l.row(f)
	switch is {
	case aRow:
		r.line = s.Lines
		if l.oneHalf(&r) { // or a row that a terminal cut between its halves
			s.parts, s.partAt = [][]byte{bytes.Clone(t)}, s.Lines
			return nil
		}
		return s.add(r)
	case partRow:
		if r, ok := l.glued(f); ok {
			r.line = s.Lines
			return s.add(r)
		}
		s.parts, s.partAt = [][]byte{bytes.Clone(t)}, s.Lines
		return nil
	}
	if s.header(f, t) {
		return s.stuck
	}
	if r, ok := l.glued(f); ok {
		r.line = s.Lines
		return s.add(r)
	}
	if !s.fails.line(s, t) && likeRow(f) {
		s.warn(s.Lines, "a row that cannot be read is left out: %.120q", t)
	}
	return s.stuck
}

// maxPieces bounds the lines that a row is spread over.
const maxPieces = 5

// join tries a row that began on the lines before with its rest on this one.
// A terminal wraps at a blank or inside a number: of all ways to put the pieces
// together, that one counts in which size over time is the rate.
func (s *stream) join(t []byte) (done bool, err error) {
	if typeAt(fields(t, s.buf[:])) >= 0 || len(s.parts) == maxPieces || !onlyNumbers(fields(tail(t, s.parts[len(s.parts)-1]), nil)) {
		return false, s.dropPart()
	}
	l := noHeader()
	if s.group != nil {
		l = s.group.layout
	}
	pieces := append(s.parts, bytes.Clone(t))
	open := false
	for ways := range 1 << (len(pieces) - 1) {
		whole := bytes.Clone(pieces[0])
		for i, p := range pieces[1:] {
			if ways>>i&1 == 0 {
				whole = append(whole, ' ')
			}
			whole = append(whole, p...)
		}
		r, is := l.row(fields(whole, nil))
		if is == aRow && !l.oneHalf(&r) && r.consistent() {
			r.line = s.partAt
			s.parts = nil
			return true, s.add(r)
		}
		open = open || is == partRow || is == aRow && l.oneHalf(&r)
	}
	if !open {
		return false, s.dropPart()
	}
	s.parts = pieces
	return true, nil
}

// consistent says that algbw is size over time, as far as these tell.
func (r *row) consistent() bool {
	for _, h := range r.halves {
		if !h.time.ok || !h.alg.ok || h.time.v <= 0 {
			continue
		}
		rate := float64(r.size) / (h.time.v * 1e3)
		if rate < 1 && h.alg.v < 1 {
			continue // too few digits
		}
		q := rate / h.alg.v
		if !(q > 0.9 && q < 2.2 || q > 900 && q < 1100) { // the factor of all_gather, and ms
			return false
		}
	}
	return true
}

// dropPart gives up waiting for the rest of a row. A row of one half is whole.
func (s *stream) dropPart() error {
	parts := s.parts
	s.parts = nil
	if s.group != nil && len(parts) == 1 {
		if r, is := s.group.layout.row(fields(parts[0], nil)); is == aRow {
			r.line = s.partAt
			return s.add(r)
		}
	}
	s.warn(s.partAt, "a row is cut off after %d fields and left out", len(fields(bytes.Join(parts, []byte(" ")), nil)))
	s.open().cut = true
	return nil
}

// tail is a line that goes on with a row: all but what ends the word before it.
func tail(t, part []byte) []byte {
	if c := part[len(part)-1]; c >= 'a' && c <= 'z' { // inside or behind redop
		if i := bytes.IndexByte(t, ' '); i > 0 && (t[0] >= 'a' && t[0] <= 'z') {
			return t[i:]
		}
	}
	return t
}

func onlyNumbers(f [][]byte) bool {
	for _, tok := range f {
		if _, ok := parse(tok); !ok {
			if _, ok := integer(tok); !ok {
				return false
			}
		}
	}
	return len(f) > 0
}
