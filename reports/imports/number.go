package imports

import (
	"math"
	"strconv"
)

// number is a printed number: its value and half of its last digit's unit,
// within which the true value was rounded. A number that is not there (N/A,
// nan, inf) is not ok.
type number struct {
	v, slack float64
	ok       bool
}

func (n number) low() float64  { return math.Max(n.v-n.slack, 0) }
func (n number) high() float64 { return n.v + n.slack }

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
		unit := 1.0
		if dot >= 0 {
			unit = powers[len(tok)-1-dot]
		}
		return number{float64(value) / unit, 0.5 / unit, true}, true
	}
	if absentWord(tok) {
		return n, true
	}
	v, err := strconv.ParseFloat(string(tok), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return n, false
	}
	if v != 0 && (math.Abs(v) < 1e-30 || math.Abs(v) > 1e30) {
		return n, true // no measurement
	}
	return number{v, exponentSlack(tok, v), true}, true
}

var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// exponentSlack is half a unit of the last digit before the exponent.
func exponentSlack(tok []byte, v float64) float64 {
	decimals, dot := 0, false
	for _, c := range tok {
		switch {
		case c == '.':
			dot = true
		case c == 'e' || c == 'E':
			exp := math.Floor(math.Log10(math.Abs(v)))
			if v == 0 {
				return 0
			}
			return 0.5 * math.Pow(10, exp-float64(decimals))
		case dot:
			decimals++
		}
	}
	return 0.5 * math.Pow(10, -float64(decimals))
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
	start := -1
	for i, c := range line {
		if c == ' ' || c == '\t' {
			if start >= 0 {
				out = append(out, line[start:i])
				if start = -1; len(out) == maxFields {
					return out
				}
			}
		} else if start < 0 {
			start = i
		}
	}
	if start >= 0 {
		out = append(out, line[start:])
	}
	return out
}

const maxFields = 64
