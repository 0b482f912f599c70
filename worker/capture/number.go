package capture

import "strconv"

// whole and decimal read digits that a pattern found; what is too large to be a
// figure of a machine is read as 0, which means "not told" here.
func whole(s string) int {
	n, err := strconv.ParseInt(s, 10, 48)
	if err != nil {
		return 0
	}
	return int(n)
}

func decimal(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f < 1e12) {
		return 0
	}
	return f
}
