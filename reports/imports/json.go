package imports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// json reads the JSON reports of nccl-tests (-J), rccl-tests (-Z json) and
// perftest (--out_json); several may follow each other.
func (s *source) json(in *bufio.Reader) error {
	if head, _ := in.Peek(4096); bytes.Contains(head, []byte("test_info")) {
		text, err := io.ReadAll(io.LimitReader(in, maxJSON+1))
		switch {
		case len(text) > maxJSON:
			return fmt.Errorf("%s: more than %d MiB of perftest's JSON", s.Name, maxJSON>>20)
		case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		s.Lines = bytes.Count(text, []byte("\n")) + 1
		return s.perfJSON(text)
	}
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		in.Discard(3)
	}
	r := &jsonReader{source: s, in: in, lines: 1, table: &table{source: s}, names: map[string]string{}, keys: map[string]string{}}
	r.d = jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err := r.all()
	s.Lines = r.line()
	if cut := r.end(err != nil); cut != nil {
		return cut
	}
	if err != nil && r.stuck != nil {
		return err
	}
	if err != nil { // what was whole before is read
		s.warn(r.line(), "not whole JSON: %v", err)
	}
	if len(s.Worlds) == 0 {
		s.warn(1, "JSON without a result that busbw knows: want nccl-tests' -J, rccl-tests' -Z json or perftest's --out_json")
	}
	return nil
}

// jsonReader walks JSON of any shape and takes what is a report, a row, or a
// part of one, wherever it is. It holds one value without structure at a time.
type jsonReader struct {
	*source
	in      *bufio.Reader
	d       *jsontext.Decoder
	read    int64
	lines   int           // line ends of what was read, 1 more
	reports []*ncclReport // open, outermost first
	table   *table
	names   map[string]string // of members, by how they are written
	keys    map[string]string // the same, as keys
	part    object            // of a row, for the next one
	stuck   error             // of the records' receiver
}

const (
	maxDepth   = 32
	maxNames   = 1024     // of members that are kept
	maxMembers = 64       // of an object that are neither objects nor lists
	maxValue   = 64 << 20 // bytes of one value that is taken as a whole
)

// Read gives the decoder the stream, unless it would have to hold too much.
func (r *jsonReader) Read(p []byte) (int, error) {
	if r.d != nil && r.read-r.d.InputOffset() > maxValue {
		return 0, fmt.Errorf("one value has more than %d MiB", maxValue>>20)
	}
	n, err := r.in.Read(p)
	r.read += int64(n)
	r.lines += bytes.Count(p[:n], []byte("\n"))
	return n, err
}

// line is where the decoder is.
func (r *jsonReader) line() int { return r.lines - bytes.Count(r.d.UnreadBuffer(), []byte("\n")) }

func (r *jsonReader) all() error {
	for {
		if err := r.value(0); err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && r.d.StackDepth() == 0 {
				return nil
			}
			return err
		}
	}
}

// end gives the records of what is still open.
func (r *jsonReader) end(cut bool) error {
	for i := len(r.reports) - 1; i >= 0; i-- {
		if err := r.reports[i].records(r.source, cut); err != nil {
			return err
		}
	}
	return nil
}

// value walks the next value.
func (r *jsonReader) value(depth int) error {
	switch r.d.PeekKind() {
	case '{':
		if depth < maxDepth {
			return r.object(depth)
		}
	case '[':
		if depth < maxDepth {
			return r.list(func() error { return r.value(depth + 1) })
		}
	}
	return r.d.SkipValue()
}

// list reads an array, whose elements each reads one of.
func (r *jsonReader) list(each func() error) error {
	if _, err := r.d.ReadToken(); err != nil {
		return err
	}
	for k := r.d.PeekKind(); k != ']'; k = r.d.PeekKind() {
		if k == 0 {
			_, err := r.d.ReadToken()
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	_, err := r.d.ReadToken()
	return err
}

// object reads an object: a report, a row of one, a row as rccl-tests has it,
// or something that may hold these.
func (r *jsonReader) object(depth int) error {
	o := object{line: r.line(), members: make([]member, 0, 16)}
	if err := r.members(func(name string) error {
		switch k := r.d.PeekKind(); {
		case k == '{' && (name == "out_of_place" || name == "in_place"):
			return r.half(&o, name == "in_place")
		case k == '{' && (name == "out_of_place_per_iter" || name == "in_place_per_iter"):
			return r.iterations(&o, name == "in_place_per_iter")
		case (k == '{' || k == '[') && reportPart(name):
			if o.report == nil {
				o.report = &ncclReport{line: o.line}
				r.reports = append(r.reports, o.report)
			}
			if name == "results" {
				return r.value(depth + 1)
			}
			v, err := r.d.ReadValue()
			if err != nil {
				return err
			}
			o.report.part(name, v)
			return nil
		case k == '{' || k == '[':
			return r.value(depth + 1)
		}
		return r.member(&o, name)
	}); err != nil {
		return err
	}
	switch {
	case o.report != nil:
		r.reports = r.reports[:len(r.reports)-1]
		o.report.finish(&o)
		r.stuck = o.report.records(r.source, false)
	case o.halves[0].there || o.halves[1].there:
		if len(r.reports) == 0 { // a row on its own
			r.reports = append(r.reports, &ncclReport{line: o.line})
		}
		r.stuck = r.reports[len(r.reports)-1].add(r.source, &o)
	default:
		r.stuck = r.table.object(&o)
	}
	return r.stuck
}

// members reads an object; take reads the value of the member of each name.
func (r *jsonReader) members(take func(name string) error) error {
	if _, err := r.d.ReadToken(); err != nil {
		return err
	}
	for k := r.d.PeekKind(); k != '}'; k = r.d.PeekKind() {
		v, err := r.d.ReadValue()
		if err != nil {
			return err
		}
		name, known := r.names[string(v)]
		if !known {
			text, _ := jsontext.AppendUnquote(nil, v)
			if name = string(text); len(r.names) < maxNames && len(v) <= 66 {
				r.names[string(v)] = name
				r.keys[name] = plainKey(name)
			}
		}
		if err := take(name); err != nil {
			return err
		}
	}
	_, err := r.d.ReadToken()
	return err
}

// member keeps a value that is neither object nor list.
func (r *jsonReader) member(o *object, name string) error {
	v, err := r.d.ReadValue()
	if err != nil {
		return err
	}
	if len(o.members) == maxMembers || len(v) > 4096 || len(name) > 64 {
		return nil
	}
	m := member{key: r.keys[name]}
	if m.key == "" {
		m.key = plainKey(name)
	}
	switch v.Kind() {
	case '"':
		word, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return nil
		}
		m.word = string(word)
		m.number, _ = parse(bytes.TrimSpace(word))
	case '0':
		m.number, _ = parse(v)
	case 't', 'f':
		m.number = number{ok: true}
		if v.Kind() == 't' {
			m.v = 1
		}
	case 'n':
		return nil
	}
	o.members = append(o.members, m)
	return nil
}

// object is what an object's members tell.
type object struct {
	line    int
	members []member
	halves  [2]half
	report  *ncclReport
}

// member is a value that is neither object nor list. Its key has letters and
// digits in lower case only.
type member struct {
	key  string
	word string
	number
}

// num is the number of the first of these members that has one.
func (o *object) num(names ...string) number {
	for _, n := range names {
		for i := range o.members {
			if m := &o.members[i]; m.key == n && m.ok {
				return m.number
			}
		}
	}
	return number{}
}

// word is the text of a member.
func (o *object) word(name string) string {
	for i := range o.members {
		if o.members[i].key == name {
			return o.members[i].word
		}
	}
	return ""
}

// plainKey is a key's letters and digits in lower case.
func plainKey(k string) string {
	var b [64]byte
	n := 0
	for i := 0; i < len(k) && n < len(b); i++ {
		switch c := k[i]; {
		case c >= 'A' && c <= 'Z':
			b[n] = c + 'a' - 'A'
			n++
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b[n] = c
			n++
		}
	}
	return string(b[:n])
}
