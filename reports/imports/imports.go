// Package imports reads what other benchmarks print (nccl-tests and rccl-tests
// of every version, perftest, gloo's benchmark) into results. What a text does
// not say is absent from its records, never zero.
package imports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"busbw/reports"
)

// Text is what a log held, apart from its records.
type Text struct {
	Name     string
	Lines    int
	Records  int
	Own      bool    // busbw's records, not a log
	Worlds   []World // one for each communicator that ran a test, in order
	More     int     // worlds beyond maxWorlds, which are not listed
	Findings []reports.Finding
	Around   reports.Around // of busbw check, topo and accept: what is no log
	Warnings []string       // "name:line: what": what was passed over or is doubtful
}

// World is one communicator's test: what one call of a test program prints.
type World struct {
	Run       string // of its records
	Tool      string // "nccl-tests", "rccl-tests", "perftest", "gloo benchmark"
	Op        string // "" where the text does not tell
	OpFrom    string // how it is known
	Ranks     [2]int // least and most; 0, 0: not known
	RanksFrom string // how they are known
	Groups    int    // that ran at once (a split communicator); 1 usually
	Hosts     []string
	Rows      int
	Line      int      // where it begins
	State     string   // Complete, …
	Error     string   // why there is no row, where State is Hang or Failed
	Beside    int      // how many worlds ran at the same time in this text, itself included
	Average   *float64 // GB/s, as printed
	Computed  *float64 // GB/s, the mean of the busbw of its rows
	Wrong     *int64   // as printed
	Failed    bool     // the tool says FAILED
	Low       bool     // it says so of the bandwidth
	Notes     []string // what is to be known of its rows
	pasted    bool     // a row of a table that people made from several runs
}

// What can be said of a world as a whole.
const (
	Complete  = "complete"
	Summary   = "summary only: no row"
	Partial   = "rows are missing"
	NoSummary = "no summary: cut off or still running"
	Hang      = "no result: hung or killed before the first row"
	Failed    = "failed"
)

// Bad says that a world has no result, or a wrong one.
func (w *World) Bad() bool {
	return w.Failed || w.Low || w.State == Hang || w.State == Failed || w.Rows == 0 && w.State == NoSummary
}

// Bounds on what a text can make the reader hold, whatever its length.
const (
	maxWorlds   = 1000
	maxWarnings = 40
	maxLine     = 64 << 10 // longer lines are cut
	maxRows     = 1 << 16  // of one world
	maxRanks    = 1 << 18  // listed, of one world
	maxHeld     = 1 << 18  // rows and lines that tests keep until they end, together
	maxStreams  = 4096     // launcher tags told apart
	maxJSON     = 64 << 20 // of perftest
)

// Loaded is what a file holds.
type Loaded struct {
	Results  []reports.Result
	Around   reports.Around // findings in a log, or of busbw check; topologies
	Warnings []string
}

// Load reads a file of results whatever wrote it: our own records, or another
// benchmark's text or JSON, plain or zstd; "-" is standard input. It takes what
// busbw check, topo and accept write as JSON too.
func Load(name string) (l Loaded, err error) {
	var held reports.Held
	text, err := File(name, func(r reports.Result) error {
		if err := held.Add(&r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		l.Results = append(l.Results, r)
		return nil
	})
	if text != nil {
		l.Around, l.Warnings = text.Around, text.Warnings
		l.Around.Findings = append(l.Around.Findings, text.Findings...)
		for _, w := range text.Worlds {
			for _, n := range w.Notes {
				l.Warnings = append(l.Warnings, w.Run+": "+n)
			}
		}
	}
	return l, err
}

// File is Read for a file, or for standard input where name is "-".
func File(name string, emit func(reports.Result) error) (*Text, error) {
	if name == "-" {
		return Read(os.Stdin, "stdin", emit)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; give the files in it", name)
	}
	return Read(f, name, emit)
}

// Read gives emit a record for each size that the stream tells of, as it comes,
// and returns what else there is to know. It holds a bounded part of the text.
// name stands for the stream in messages and in the records' run.
func Read(r io.Reader, name string, emit func(reports.Result) error) (*Text, error) {
	in, done, err := reports.Unpack(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer done()
	if mark, _ := in.Peek(2); len(mark) == 2 && (mark[0] == 0xff && mark[1] == 0xfe || mark[0] == 0xfe && mark[1] == 0xff) {
		in = bufio.NewReaderSize(&utf16Reader{in: in, big: mark[0] == 0xfe}, 256<<10) // as PowerShell redirects
	}
	text := &Text{Name: name}
	s := &source{Text: text, emit: emit, short: strings.ToValidUTF8(name, "?")}
	head, _ := in.Peek(4096)
	switch kind(head) {
	case "records":
		err = s.records(in)
	case "around":
		s.Own = true
		text.Around, err = reports.ReadAround(in, name)
	case "json":
		err = s.json(in)
	default:
		err = s.lines(in)
	}
	return text, err
}

// kind tells our records, JSON and other text apart by their beginning.
func kind(head []byte) string {
	t := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	line, _, _ := bytes.Cut(t, []byte("\n"))
	switch {
	case bytes.Contains(t, []byte(`{"format":`)):
		return "records"
	case reports.IsAround(t):
		return "around"
	case collected(bytes.TrimRight(line, "\r")):
		return "text"
	case len(t) > 0 && t[0] == '{', len(t) > 1 && t[0] == '[' && (t[1] == '{' || len(bytes.TrimSpace(line)) == 1):
		return "json"
	}
	return "text"
}

// source is one text on its way into records.
type source struct {
	*Text
	emit    func(reports.Result) error
	short   string // the name, as runs have it
	skipped int    // warnings beyond maxWarnings
}

func (s *source) warn(line int, format string, args ...any) {
	if len(s.Warnings) == maxWarnings {
		s.skipped++
		s.Warnings[maxWarnings-1] = fmt.Sprintf("%s: %d more warnings", s.Name, s.skipped+1)
		return
	}
	at := s.Name
	if line > 0 {
		at = fmt.Sprintf("%s:%d", s.Name, line)
	}
	s.Warnings = append(s.Warnings, at+": "+fmt.Sprintf(format, args...))
}

// give passes a record on; one that the record's own rules refuse is left out.
func (s *source) give(line int, r *reports.Result) error {
	r.Format = reports.Format
	if err := r.Check(); err != nil {
		s.warn(line, "left out: %v", err)
		return nil
	}
	s.Records++
	return s.emit(*r)
}

// run names the next world's records.
func (s *source) run() string { return fmt.Sprintf("%s#%d", s.short, len(s.Worlds)+s.More+1) }

func (s *source) world(w World) {
	if len(s.Worlds) == maxWorlds {
		s.More++
		return
	}
	s.Worlds = append(s.Worlds, w)
}

// records passes our own records on.
func (s *source) records(in io.Reader) error {
	s.Own = true
	results, warnings, err := reports.Read(in, s.Name)
	s.Warnings = warnings
	for _, r := range results {
		if err := s.give(0, &r); err != nil {
			return err
		}
	}
	return err
}

// lines reads a text, line by line.
func (s *source) lines(in *bufio.Reader) error {
	l := newLog(s)
	for {
		line, err := readLine(in)
		l.unfinished = err != nil
		if len(line) > 0 || err == nil {
			s.Lines++
			if err := l.line(line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return l.end()
		case errors.Is(err, io.ErrUnexpectedEOF):
			s.warn(s.Lines, "the compressed text is cut off here")
			return l.end()
		case err != nil:
			return errors.Join(l.end(), fmt.Errorf("%s:%d: %w", s.Name, s.Lines, err))
		}
	}
}

// readLine is the next line without its end, valid until the next call; of a
// line over maxLine the rest is thrown away.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
	}
	return bytes.TrimRight(line, "\r\n"), err
}
