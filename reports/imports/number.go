package imports

import (
	"bytes"
	"math"
	"strconv"
)

// number is a printed number: its value, and the power of ten of its last
// digit's unit, within half of which the true value was rounded. A number that
// is not there (N/A, nan, inf) is not ok.
type number struct {
	v   float64
	exp int8
	ok  bool
}

// slack is half of the last digit's unit.
func (n number) slack() float64 { return 0.5 * math.Pow10(int(n.exp)) }
func (n number) low() float64   { return math.Max(n.v-n.slack(), 0) }
func (n number) high() float64  { return n.v + n.slack() }

// pointer is the value where there is one.
func (n number) pointer() *float64 {
	if !n.ok {
		return nil
	}
	return &n.v
}

// absentWord says that a token stands for a number that is not there.
func absentWord(tok []byte) bool {
	switch string(tok) {
	case "N/A", "n/a", "NA", "nan", "-nan", "NaN", "inf", "-inf", "Inf", "-":
		return true
	}
	return false
}

// parse reads a token; isNumber is also true for a word that stands for an
// absent one.
func parse(tok []byte) (n number, isNumber bool) {
	if len(tok) == 0 || len(tok) > 40 {
		return n, false
	}
	digits, dot, at := 0, -1, 0
	value := int64(0)
	for ; at < len(tok); at++ {
		c := tok[at]
		if c >= '0' && c <= '9' {
			if digits++; digits > 17 {
				break
			}
			value = value*10 + int64(c-'0')
		} else if (c == '.' || c == ',') && dot < 0 && at > 0 {
			dot = at
		} else {
			break
		}
	}
	if at == len(tok) && digits > 0 {
		decimals := 0
		if dot >= 0 {
			decimals = len(tok) - 1 - dot
		}
		return number{float64(value) / powers[decimals], int8(-decimals), true}, true
	}
	if absentWord(tok) {
		return n, true
	}
	if c := tok[0]; (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' {
		return n, false
	}
	v, err := strconv.ParseFloat(string(tok), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return n, false
	}
	if v != 0 && (math.Abs(v) < 1e-30 || math.Abs(v) > 1e30) {
		return n, true // no measurement
	}
	return number{v, lastPlace(tok), true}, true
}

var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// lastPlace is the power of ten of the last digit before a number's exponent.
func lastPlace(tok []byte) int8 {
	digits, power := tok, int64(0)
	if e := bytes.IndexAny(tok, "eE"); e >= 0 {
		digits = tok[:e]
		power, _ = integer(bytes.TrimPrefix(tok[e+1:], []byte("+")))
	}
	if dot := bytes.IndexByte(digits, '.'); dot >= 0 {
		power -= int64(len(digits) - 1 - dot)
	}
	return int8(max(min(power, 60), -60))
}

// integer reads a token of digits, with a sign where signed.
func integer(tok []byte) (int64, bool) {
	if len(tok) == 0 || len(tok) > 19 {
		return 0, false
	}
	i, negative := 0, false
	if tok[0] == '-' && len(tok) > 1 {
		i, negative = 1, true
	}
	n := int64(0)
	for ; i < len(tok); i++ {
		c := tok[i]
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// fields splits at blanks into out, which it reuses; more than maxFields are
// not needed by any table.
func fields(line []byte, out [][]byte) [][]byte {
	out = out[:0]
	for i := 0; len(out) < maxFields; {
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		start := i
		for i < len(line) && line[i] != ' ' && line[i] != '\t' {
			i++
		}
		if start == i {
			break
		}
		out = append(out, line[start:i])
	}
	return out
}

const maxFields = 64
