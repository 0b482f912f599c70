package imports

import (
	"bytes"
	"strings"
)

// half is one of the two figures of a row: out of place or in place.
type half struct {
	there    bool
	time     number      // µs; of the oldest layout, ms
	alg, bus number      // GB/s
	wrong    number      // elements, or the largest difference in old layouts
	each     *iterations // nil: nothing is told of them
}

// iterations is what a half tells of its iterations.
type iterations struct {
	least, most, p99 number    // µs
	samples          []float64 // s, where their times are told
}

// row is one line of a table of nccl-tests.
type row struct {
	line        int
	after       int // footers that had come before it
	label       string
	size, count int64
	dtype       string
	redop       string
	root        int64 // -1: none
	iterations  int64 // 0: as the settings say
	halves      [2]half
}

// layout is what a table's header says of its columns.
type layout struct {
	lead  []string   // names before the first half: "size", "count", "type", "redop", "root", and others' own
	half  [][]string // names of each half's columns
	ms    bool       // times are in ms
	delta bool       // the last column of a half is a difference, not a count
	own   bool       // of no header: rows are read by their tokens

	dtype, redop string // of the last row, whose text the next one shares
}

// headerWords are the names of a header's columns; others may come before them.
var headerWords = map[string]bool{"size": true, "bytes": true, "count": true, "N": true, "type": true, "redop": true, "op": true, "root": true,
	"time": true, "cputime": true, "algbw": true, "busbw": true, "#wrong": true, "wrong": true, "error": true, "res": true,
	"i_min": true, "i_max": true, "i_p99": true, "i_cv%": true, "copybw": true, "timestamp": true}

// header reads the name line of a table; ok is false for any other line.
func header(f [][]byte) (l layout, ok bool) {
	var names []string
	known := 0
	for i, w := range f {
		if string(w) == "#" { // what stands before it is a launcher's
			names, known = names[:0], 0
			continue
		}
		n := strings.TrimSuffix(string(w), ",")
		if i == 0 && n != "#wrong" {
			n = strings.TrimPrefix(n, "#")
		}
		names = append(names, n)
		if headerWords[n] {
			known++
		}
	}
	has := func(w string) bool {
		for _, n := range names {
			if n == w {
				return true
			}
		}
		return false
	}
	if known < 4 || !has("algbw") && !has("time") && !has("cputime") || !has("size") && !has("bytes") {
		return l, false
	}
	l.ms = has("bytes") && has("res")
	l.delta = has("error") || has("res")
	l.add(names)
	return l, true
}

func (l *layout) add(names []string) {
	for _, n := range names {
		switch {
		case n == "time" || n == "cputime":
			l.half = append(l.half, []string{n})
		case strings.HasPrefix(n, "timestamp") || strings.HasPrefix(n, "("):
		case len(l.half) == 0:
			l.lead = append(l.lead, n)
		default:
			l.half[len(l.half)-1] = append(l.half[len(l.half)-1], n)
		}
	}
}

// noHeader reads rows whose header is not in the text.
func noHeader() layout { return layout{own: true} }

// dtypes are the names of nccl-tests and rccl-tests, with the bytes of one element.
var dtypes = map[string]int64{"int8": 1, "char": 1, "uint8": 1, "int32": 4, "int": 4, "uint32": 4, "int64": 8, "uint64": 8, "half": 2, "float16": 2,
	"float": 4, "float32": 4, "double": 8, "float64": 8, "bfloat16": 2, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}

// reading says how a line stands to a table.
type reading int

const (
	notRow  reading = iota
	partRow         // the beginning of a row
	aRow
)

// row reads a line's tokens. Text before the size is passed over, where the
// header has no column for it. missing is how many tokens a partial row lacks
// at least.
func (l *layout) row(f [][]byte) (r row, is reading) {
	at := typeAt(f)
	if at < 2 {
		if at < 0 && len(f) >= 1 && len(f) <= 2 && !l.own { // cut within its first columns
			if _, ok := integer(f[0]); ok && len(f) == 2 {
				if _, ok := integer(f[1]); ok {
					return r, partRow
				}
			}
		}
		return r, notRow
	}
	var ok1, ok2 bool
	r.size, ok1 = integer(f[at-2])
	r.count, ok2 = integer(f[at-1])
	if !ok1 || !ok2 || r.size < 0 || r.count < 0 {
		return r, notRow
	}
	if own := l.labels(); own > 0 && at-2 >= own {
		r.label = string(bytes.Join(f[at-2-own:at-2], []byte(" ")))
	}
	r.dtype, r.root = textOf(f[at], l.dtype), -1
	rest := dropStamp(f[at+1:])
	if len(rest) > 0 && isWord(rest[0]) {
		r.redop = textOf(rest[0], l.redop)
		rest = rest[1:]
	}
	width, rooted, fits := l.shape(len(rest))
	if !fits {
		if len(rest) > l.most() {
			return r, notRow
		}
		return r, partRow
	}
	if rooted {
		root, ok := integer(rest[0])
		if !ok {
			return r, notRow
		}
		if root >= 0 {
			r.root = root
		}
		rest = rest[1:]
	}
	l.dtype, l.redop = r.dtype, r.redop
	for h := 0; h*width < len(rest); h++ {
		place := h
		if len(rest) == width {
			place = l.only()
		}
		if !r.halves[place].read(rest[h*width:(h+1)*width], l.names(h)) {
			return r, notRow
		}
	}
	return r, aRow
}

// textOf is a token's text, the last one's where they are equal.
func textOf(tok []byte, last string) string {
	if string(tok) == last {
		return last
	}
	return string(tok)
}

// typeAt is the place of the element type's name among the tokens, -1 for none.
func typeAt(f [][]byte) int {
	for i := 0; i < len(f) && i < 40; i++ {
		if c := f[i][0]; c >= 'a' && c <= 'z' {
			if _, ok := dtypes[string(f[i])]; ok {
				return i
			}
		}
	}
	return -1
}

func isWord(tok []byte) bool {
	c := tok[0]
	return (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') && !absentWord(tok)
}

// labels is how many columns of its own a table has before the size.
func (l *layout) labels() int {
	for i, n := range l.lead {
		if n == "size" || n == "bytes" {
			return i
		}
	}
	return 0
}

// shape tells from the number of tokens behind type and redop how many columns
// a half has, and whether a root stands before them.
func (l *layout) shape(n int) (width int, rooted, ok bool) {
	if len(l.half) > 0 {
		width = len(l.half[0])
		halves := min(len(l.half), 2)
		hasRoot := len(l.lead) > 0 && l.lead[len(l.lead)-1] == "root"
		if hasRoot {
			n--
		}
		return width, hasRoot, width > 0 && (n == halves*width || n == width) // one half only: in place
	}
	switch n {
	case 4, 8:
		return 4, false, true
	case 5, 9:
		return 4, true, true
	case 16:
		return 8, false, true
	case 17:
		return 8, true, true
	}
	return 0, false, false
}

// oneHalf says that a row has one half only although its table has two.
func (l *layout) oneHalf(r *row) bool {
	return len(l.half) == 2 && (!r.halves[0].there || !r.halves[1].there)
}

// most is how many tokens can stand behind type and redop.
func (l *layout) most() int {
	n := 1
	for _, h := range l.half {
		n += len(h)
	}
	if len(l.half) == 0 {
		n = 17
	}
	return n
}

// only is the place of a row's only half: rccl-tests and trace replays print
// the one in place.
func (l *layout) only() int { return 1 }

func (l *layout) names(h int) []string {
	if h < len(l.half) {
		return l.half[h]
	}
	return []string{"time", "algbw", "busbw", "#wrong", "i_min", "i_max", "i_p99", "i_cv%"}
}

// dropStamp takes the time stamp off a row's end: a date and a time of day.
func dropStamp(f [][]byte) [][]byte {
	if n := len(f); n > 2 && len(f[n-1]) >= 8 && f[n-1][2] == ':' && len(f[n-2]) >= 8 && bytes.IndexByte(f[n-2], '-') > 0 {
		return f[:n-2]
	}
	return f
}

func (h *half) read(f [][]byte, names []string) bool {
	h.there = true
	for i, tok := range f {
		n, ok := parse(bytes.TrimSuffix(tok, []byte("*"))) // rccl-tests' mark of a bad value
		if !ok {
			return false
		}
		if i >= len(names) {
			continue
		}
		switch names[i] {
		case "time", "cputime":
			if n.v < 0 {
				return false
			}
			h.time = n
		case "algbw":
			h.alg = n
		case "busbw":
			h.bus = n
		case "#wrong", "wrong", "error", "res":
			h.wrong = n
		case "i_min", "i_max", "i_p99":
			if h.each == nil {
				h.each = &iterations{}
			}
			*map[string]*number{"i_min": &h.each.least, "i_max": &h.each.most, "i_p99": &h.each.p99}[names[i]] = n
		}
	}
	return true
}
