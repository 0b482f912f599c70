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
	streams map[string]*stream
	order   []*stream
	nccl    ncclLog
	fails   failures
	tagged  bool
	began   time.Time // of the test, where it is told
	stuck   error     // of the records' receiver: reading ends
	buf     [maxFields][]byte
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
	title   string // the last heading that somebody wrote between tests
	part    []byte // the beginning of a row, to be joined with the next line
	partAt  int
	tests   int // that it has printed
	perf    *perftest
	gloo    *gloo
	table   *pasted
	version map[string]string // of libraries and tests, told before a test
}

func (l *log) stream(tag string) *stream {
	s := l.streams[tag]
	if s == nil {
		if len(l.streams) == maxStreams {
			return l.stream("")
		}
		s = &stream{log: l, tag: tag, cmd: command{min: -1, max: -1}, version: map[string]string{}}
		l.streams[tag] = s
		l.order = append(l.order, s)
	}
	return s
}

// line takes the text's next line.
func (l *log) line(raw []byte) error {
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
	if err := l.stream(tag).line(rest); err != nil {
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
	if len(l.Worlds) == 0 && len(l.Findings) == 0 {
		l.warn(l.Lines, "nothing that busbw knows: want the output of nccl-tests, rccl-tests, perftest or gloo's benchmark, or a results file")
	}
	return nil
}

func (s *stream) end() error {
	if s.part != nil {
		s.warn(s.partAt, "a row is cut off after %d fields and left out", len(fields(s.part, nil)))
		s.open().cut = true
		s.part = nil
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
	return nil
}

// line takes a line of this process, without prefixes and blanks at its ends.
func (s *stream) line(t []byte) error {
	if s.part != nil {
		if done, err := s.join(t); done || err != nil {
			return err
		}
	}
	if taken, err := s.others(t); taken || err != nil {
		return err
	}
	if c := t[0]; c >= '0' && c <= '9' || s.group != nil && s.group.layout.labels() > 0 {
		return s.maybeRow(t)
	}
	if i := bytes.IndexByte(t, '#'); i == 0 || bytes.IndexByte(t, ':') >= 0 || bytes.Contains(t, []byte("nThread")) || bytes.Contains(t, []byte("Rank ")) || bytes.Contains(t, []byte("_perf")) || bytes.Contains(t, []byte("busbw")) || bytes.Contains(t, []byte("Using devices")) {
		if s.heading(t) {
			return nil
		}
	}
	if s.fails.line(s, t) {
		return nil
	}
	f := fields(t, s.buf[:])
	if l, ok := header(f); ok {
		return s.open(onHeader).header(l)
	}
	if s.group != nil && len(s.group.rows) == 0 && s.group.layout.continues(f) {
		return nil
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
	l := noHeader()
	if s.group != nil {
		l = s.group.layout
	}
	r, is := l.row(f)
	switch is {
	case aRow:
		r.line = s.Lines
		return s.add(r)
	case partRow:
		s.part, s.partAt = append(s.part[:0], t...), s.Lines
		return nil
	}
	if h, ok := header(f); ok {
		return s.open(onHeader).header(h)
	}
	s.fails.line(s, t)
	return nil
}

// join tries a row that began on the line before with its rest on this one:
// wrapped at a blank, or in the middle of a number.
func (s *stream) join(t []byte) (done bool, err error) {
	l := noHeader()
	if s.group != nil {
		l = s.group.layout
	}
	for _, between := range []string{" ", ""} {
		whole := append(append(append([]byte(nil), s.part...), between...), t...)
		r, is := l.row(fields(whole, nil))
		if is == aRow && typeAt(fields(t, s.buf[:])) < 0 {
			r.line = s.partAt
			s.part = nil
			return true, s.add(r)
		}
		if is == partRow && len(whole) < 512 && onlyNumbers(fields(t, s.buf[:])) {
			s.part = whole
			return true, nil
		}
	}
	s.warn(s.partAt, "a row is cut off after %d fields and left out", len(fields(s.part, nil)))
	s.open().cut = true
	s.part = nil
	return false, nil
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
