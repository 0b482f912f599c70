package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// none stands for what does not apply or is not known. It is never 0.
const none = "—"

// sizeText is a size in the largest binary unit that divides it: "64 KiB",
// "1000 B". Nothing is rounded, so that different sizes read differently.
func sizeText(n int64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB"}
	u := 0
	for n != 0 && n%1024 == 0 && u < len(units)-1 {
		n /= 1024
		u++
	}
	return fmt.Sprintf("%d %s", n, units[u])
}

// timeText is a time with four significant digits, in the unit that fits.
func timeText(seconds float64) string {
	for _, u := range [...]struct {
		name string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}} {
		if v := seconds / u.size; v >= 0.99995 || u.name == "ns" { // 0.99995 rounds to 1.000
			return digits(v) + " " + u.name
		}
	}
	return none
}

// digits is v with four significant digits and no exponent from 1 to 9999.
func digits(v float64) string {
	switch {
	case v < 9.9995:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case v < 99.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 999.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// rateText is a bandwidth in GB/s (1e9 bytes): two decimals as in nccl-tests,
// but at least two significant digits, for a small one is not none.
func rateText(gbps float64, ok bool) string {
	switch {
	case !ok:
		return none
	case gbps >= 99.995:
		return strconv.FormatFloat(gbps, 'f', 1, 64)
	case gbps >= 0.0995:
		return strconv.FormatFloat(gbps, 'f', 2, 64)
	}
	return strconv.FormatFloat(gbps, 'g', 2, 64)
}

// shareText is a ratio in per cent: whole from 10 up, else to a tenth.
func shareText(ratio float64, ok bool) string {
	switch p := 100 * ratio; {
	case !ok:
		return none
	case p >= 9.95:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	case p >= 0.05 || p == 0:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return "<0.1 %"
}

// clean makes a text from a file or from another node fit to be printed: one
// line, no control characters (a terminal obeys them), at most limit runes.
func clean(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, c := range s {
		if n++; n > limit {
			b.WriteRune('…')
			break
		}
		switch {
		case unicode.IsSpace(c):
			c = ' '
		case c == utf8.RuneError || !unicode.IsPrint(c):
			c = '?'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// name and prose are clean for a cell and for a sentence.
func name(s string) string  { return clean(s, 40) }
func prose(s string) string { return clean(s, 1000) }

// printable is clean for what is shown whole.
func printable(s string) string { return clean(s, math.MaxInt) }
