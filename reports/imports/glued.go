package imports

import (
	"bytes"
	"math"
)

// Rows whose numbers touch, because a value was wider than its column.

// glued reads a row in which numbers stand together without a blank: they have
// two decimals, the first perhaps none, and algbw is size over time.
func (l *layout) glued(f [][]byte) (r row, ok bool) {
	at := typeAt(f)
	if at < 2 {
		return r, false
	}
	size, isSize := integer(f[at-2])
	if !isSize || size <= 0 {
		return r, false
	}
	var out [][]byte
	any := false
	for i, tok := range f {
		if i <= at || bytes.Count(tok, []byte(".")) < 2 {
			out = append(out, tok)
			continue
		}
		pieces := cutDecimals(tok)
		if pieces == nil {
			return r, false
		}
		any = true
		if len(pieces) == 2 {
			pieces = cutTime(pieces, size)
		}
		out = append(out, pieces...)
	}
	if !any {
		return r, false
	}
	r, is := l.row(out)
	return r, is == aRow && r.consistent()
}

// cutDecimals cuts behind the second decimal of each number; nil where the
// text is not made of such numbers.
func cutDecimals(tok []byte) (pieces [][]byte) {
	for len(tok) > 0 {
		dot := bytes.IndexByte(tok, '.')
		if dot <= 0 || len(tok) < dot+3 {
			return nil
		}
		if _, ok := parse(tok[:dot+3]); !ok {
			return nil
		}
		pieces = append(pieces, tok[:dot+3])
		tok = tok[dot+3:]
	}
	return pieces
}

// cutTime cuts a time in µs without decimals off the first number, where size
// over time is the rate that is left.
func cutTime(pieces [][]byte, size int64) [][]byte {
	first := pieces[0]
	best, off := 0, 0.02
	for i := 1; i < bytes.IndexByte(first, '.'); i++ {
		us, _ := parse(first[:i])
		rate, _ := parse(first[i:])
		if first[i] == '0' || us.v <= 0 || rate.v <= 0 {
			continue
		}
		if d := math.Abs(float64(size)/(us.v*1e3)/rate.v - 1); d < off {
			best, off = i, d
		}
	}
	if best == 0 {
		return pieces
	}
	return append([][]byte{first[:best], first[best:]}, pieces[1:]...)
}

// likeRow says that a line has what a row has: an element type behind two
// words that begin with digits, and numbers behind it.
func likeRow(f [][]byte) bool {
	at := typeAt(f)
	if at < 2 || len(f) < at+4 {
		return false
	}
	for _, tok := range f[at-2 : at] {
		if tok[0] < '0' || tok[0] > '9' {
			return false
		}
	}
	_, number := parse(f[len(f)-1])
	return number
}
