package pairs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrNoTable is a text that holds no pair table.
var ErrNoTable = errors.New("no pair table: want lines \"NODE NODE VALUE\" or an N×N table with the nodes' names at its head")

// Read reads a pair table that an operator typed or another program printed:
// lines "nodeA nodeB value" (blanks, commas or arrows between), or N×N tables
// with names in the first row and column. Values are GB/s (1e9 B/s) unless a
// unit is written at them or in a heading ("Gb/s" are bits). "#" begins a
// remark; one behind a value marks it. "rail N" on a line of its own names the
// rail of what follows. Notes tell what was passed over and how directions
// were understood.
func Read(in io.Reader) (*Table, []string, error) {
	const most = 1 << 20
	var lines []textLine
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), 1<<20)
	for n := 1; scan.Scan(); n++ {
		if n > most {
			return nil, nil, fmt.Errorf("pair table: more than %d lines", most)
		}
		lines = append(lines, cut(n, scan.Text()))
	}
	if err := scan.Err(); err != nil {
		return nil, nil, fmt.Errorf("pair table: %w", err)
	}
	r := &reader{t: &Table{Rails: 1}, index: map[string]int{}, unit: 1}
	for i := 0; i < len(lines); i++ {
		head := lines[i].head(lines[i+1:])
		if head == nil {
			if err := r.line(lines[i]); err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", lines[i].n, err)
			}
			continue
		}
		r.units(lines[i].text)
		for i++; i < len(lines) && (lines[i].isRow(head) || len(lines[i].fields) == 0); i++ {
			if err := r.row(head, lines[i]); err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", lines[i].n, err)
			}
		}
		i--
	}
	if len(r.t.Bandwidth) == 0 {
		return nil, r.notes, ErrNoTable
	}
	r.directions()
	return r.t, r.notes, r.t.Check()
}

// textLine is a line of a pair table, cut up.
type textLine struct {
	n      int
	text   string
	remark string
	fields []string
	arrow  bool
}

var (
	railLine   = regexp.MustCompile(`(?i)^\W*rail\W*(\d{1,3})\W*$`)
	unitWord   = regexp.MustCompile(`(?i)(?:\b|_)([GMK])(i?)(B|b|bit|bits|byte|bytes)_?(?:/s|ps|/sec)\b`)
	valued     = regexp.MustCompile(`^(\d+(?:\.\d*)?|\.\d+)([A-Za-z/]*)$`)
	hyphened   = regexp.MustCompile(`^([^-]+)-([^-]+)$`)
	timeWord   = regexp.MustCompile(`(?i)\b(?:us|µs|usec|ms|latency)\b`)
	fillers    = regexp.MustCompile(`(?i)^(?:busbw|algbw|bw|bandwidth|avg|average|peak|mean|median|with|and|to|:)$`)
	lastNumber = regexp.MustCompile(`\d+$`)
	between    = strings.NewReplacer(",", " ", ";", " ", "|", " ", "\t", " ", "=", " ", "<->", " ", "->", " ", "→", " ", "↔", " ", "–", " ", "<=>", " ")
)

func cut(n int, text string) textLine {
	body, remark, _ := strings.Cut(text, "#")
	l := textLine{n: n, text: text, remark: strings.TrimSpace(remark)}
	two := strings.Contains(body, "<->") || strings.Contains(body, "<=>") || strings.Contains(body, "↔")
	l.arrow = !two && (strings.Contains(body, "->") || strings.Contains(body, "→"))
	for _, f := range strings.Fields(between.Replace(body)) {
		if f = strings.TrimRight(f, ":"); f != "" {
			l.fields = append(l.fields, f)
		}
	}
	return l
}

// head is the names of a table's columns, if the line is followed by rows of
// it; else nil.
func (l textLine) head(rest []textLine) []string {
	if len(l.fields) < 2 {
		return nil
	}
	// With or without a word in the corner.
	for _, names := range [][]string{l.fields, l.fields[1:]} {
		seen := map[string]bool{}
		for _, f := range names {
			seen[f] = true
		}
		if len(names) >= 2 && len(seen) == len(names) && rowsOf(names, rest) >= min(len(names), 3) {
			return names
		}
	}
	return nil
}

// rowsOf counts the rows, up to three, that follow a table's head.
func rowsOf(head []string, rest []textLine) int {
	var first []string
	for _, l := range rest {
		switch {
		case len(l.fields) == 0:
			continue
		case len(first) == 3 || !l.isRow(head) || slices.Contains(first, l.fields[0]):
			return len(first)
		}
		first = append(first, l.fields[0])
	}
	return len(first)
}

// isRow says whether a line is a row of a table: one of its names, and a cell
// for each.
func (l textLine) isRow(head []string) bool {
	return len(l.fields) == len(head)+1 && slices.Contains(head, l.fields[0]) && slices.ContainsFunc(l.fields[1:], valued.MatchString)
}

type reader struct {
	t       *Table
	index   map[string]int
	unit    float64 // GB/s of a value without one
	rail    int
	times   bool     // values are times
	arrow   int      // lines with an arrow
	columns *columns // of a heading; nil: "a b value"
	notes   []string
}

func (r *reader) node(name string) (int, error) {
	if i, ok := r.index[name]; ok {
		return i, nil
	}
	if len(r.t.Nodes) == MaxNodes {
		return 0, fmt.Errorf("more than %d nodes", MaxNodes)
	}
	r.index[name] = len(r.t.Nodes)
	r.t.Nodes = append(r.t.Nodes, name)
	return r.index[name], nil
}

// line is a line outside of tables.
func (r *reader) line(l textLine) error {
	if m := railLine.FindStringSubmatch(l.text); m != nil {
		n, _ := strconv.Atoi(m[1]) // three digits
		if n >= MaxRails {
			return fmt.Errorf("rail %d: want at most %d", n, MaxRails-1)
		}
		r.rail = n
		return nil
	}
	if len(l.fields) == 0 {
		r.units(l.remark)
		return nil
	}
	if r.head(l) {
		return nil
	}
	var names, values []string
	is := func(i int) bool {
		if i >= len(l.fields) {
			return false
		}
		_, ok := r.value(l.fields[i])
		return ok
	}
	if r.columns == nil && len(l.fields) > 3 { // "a with b: busbw 48"
		l.fields = append(l.fields[:1:1], slices.DeleteFunc(slices.Clone(l.fields[1:]), fillers.MatchString)...)
	}
	rail := r.rail
	if c := r.columns; c != nil && len(l.fields) >= c.width && is(c.value) {
		names, values = []string{l.fields[c.a], l.fields[c.b]}, l.fields[c.value:]
		if c.rail >= 0 {
			m := lastNumber.FindString(l.fields[c.rail])
			n, err := strconv.Atoi(m)
			if err != nil || n >= MaxRails {
				return fmt.Errorf("rail %q: want a number up to %d", l.fields[c.rail], MaxRails-1)
			}
			r.rail = n
		}
	} else if m := hyphened.FindStringSubmatch(l.fields[0]); is(2) {
		names, values = l.fields[:2], l.fields[2:]
	} else if m != nil && is(1) { // "1-2 25"
		names, values = m[1:], l.fields[1:]
	}
	switch {
	case values == nil && r.units(l.text):
		return nil
	case values == nil || len(names) != 2:
		r.pass(l, "not two nodes and a value")
		return nil
	}
	unit := r.unit
	if f, ok := unitOf("x " + strings.Join(values[1:], " ")); ok {
		r.unit = f // "25 GB/s": for this line
	}
	v, _ := r.value(values[0])
	r.unit = unit
	err := r.add(l, names[0], names[1], v)
	r.rail = rail
	return err
}

func (r *reader) pass(l textLine, why string) {
	if len(r.notes) < 20 {
		r.notes = append(r.notes, fmt.Sprintf("line %d was passed over (%s): %.80q", l.n, why, l.text))
	}
}

func (r *reader) add(l textLine, from, to string, v float64) error {
	a, err := r.node(from)
	if err != nil {
		return err
	}
	b, err := r.node(to)
	switch {
	case err != nil:
		return err
	case a == b, r.times:
		return nil // the diagonal
	case v <= 0:
		r.pass(l, "a value that is no bandwidth")
		return nil
	case len(r.t.Bandwidth) == MaxSamples:
		return fmt.Errorf("more than %d values", MaxSamples)
	}
	if l.arrow {
		r.arrow++
	}
	r.t.Rails = max(r.t.Rails, r.rail+1)
	r.t.Bandwidth = append(r.t.Bandwidth, Sample{A: a, B: b, Rail: r.rail, Way: Both, Value: v, Mark: l.remark})
	return nil
}

// row is a row of an N×N table: the node that sends, and a cell for each that
// receives. Cells without a number were not measured.
func (r *reader) row(head []string, l textLine) error {
	if len(l.fields) == 0 {
		return nil
	}
	for i, to := range head {
		if v, ok := r.value(l.fields[i+1]); ok && v > 0 {
			if err := r.add(l, l.fields[0], to, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// directions decides whether values are of one direction: those with arrows
// are, and so are pairs with a figure for each order that differ.
func (r *reader) directions() {
	seen := map[[3]int]float64{}
	twice, differ := 0, 0
	for _, s := range r.t.Bandwidth {
		seen[[3]int{s.A, s.B, s.Rail}] = s.Value
		if v, ok := seen[[3]int{s.B, s.A, s.Rail}]; ok {
			if twice++; v != s.Value {
				differ++
			}
		}
	}
	if r.arrow == 0 && (2*twice < len(r.t.Bandwidth)*9/10 || differ == 0) {
		r.notes = append(r.notes, "read as one value for each pair, with no direction")
		return
	}
	for i := range r.t.Bandwidth {
		r.t.Bandwidth[i].Way = OneWay
	}
	r.notes = append(r.notes, "read as one value for each direction: from the first node (the row) to the second (the column)")
}
