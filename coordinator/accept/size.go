package accept

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"busbw/reports"
)

// Size is a number of bytes in a profile: 8, 64K, 1MiB, 16G; units are powers
// of 1024.
type Size int64

// UnmarshalYAML reads a size.
func (z *Size) UnmarshalYAML(text []byte) error {
	s := strings.Trim(strings.TrimSpace(string(text)), `"'`)
	t := strings.ToUpper(s)
	t = strings.TrimSuffix(strings.TrimSuffix(t, "IB"), "B")
	n := int64(1)
	for i, u := range []string{"K", "M", "G", "T"} {
		if strings.HasSuffix(t, u) {
			t, n = strings.TrimSuffix(t, u), int64(1)<<(10*(i+1))
		}
	}
	v, err := strconv.ParseInt(strings.TrimSpace(t), 10, 64)
	if err != nil || v < 0 || v > math.MaxInt64/n {
		return fmt.Errorf("size %q: want a whole number of bytes with K, M, G or T behind it, for example 16GiB", s)
	}
	*z = Size(v * n)
	return nil
}

// MarshalYAML writes it in the largest unit that divides it.
func (z Size) MarshalYAML() ([]byte, error) {
	return []byte(strings.ReplaceAll(strings.TrimSuffix(z.String(), " B"), " ", "")), nil
}

// String is the size as reports write it: "1 MiB".
func (z Size) String() string { return reports.SizeText(int64(z)) }
