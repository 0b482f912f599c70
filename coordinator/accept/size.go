package accept

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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
func (z Size) MarshalYAML() ([]byte, error) { return []byte(z.String()), nil }

func (z Size) String() string {
	for i, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if n := int64(1) << (10 * (4 - i)); int64(z) >= n && int64(z)%n == 0 {
			return fmt.Sprintf("%d%s", int64(z)/n, u)
		}
	}
	return strconv.FormatInt(int64(z), 10)
}
