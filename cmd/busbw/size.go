package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes on the command line: 8, 64K, 1M, 16G, 2T, and
// KiB, MiB, GiB, TiB; all are powers of 1024, as in nccl-tests.
type size int64

var sizeUnits = []struct {
	name string
	n    int64
}{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

func parseSize(s string) (int64, error) {
	t := strings.ToUpper(strings.TrimSpace(s))
	t = strings.TrimSuffix(strings.TrimSuffix(t, "IB"), "B")
	mult := int64(1)
	for _, u := range sizeUnits {
		if strings.HasSuffix(t, u.name) {
			t, mult = strings.TrimSuffix(t, u.name), u.n
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(t), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("size %q: want a whole number of bytes with K, M, G or T behind it, for example 8, 64K, 1MiB", s)
	}
	if n > math.MaxInt64/mult {
		return 0, fmt.Errorf("size %q is too large", s)
	}
	return n * mult, nil
}

func (z *size) Set(s string) error {
	n, err := parseSize(s)
	*z = size(n)
	return err
}

func (z *size) Type() string { return "size" }

func (z *size) String() string {
	for _, u := range sizeUnits {
		if n := int64(*z); n >= u.n && n%u.n == 0 {
			return fmt.Sprintf("%d%s", n/u.n, u.name)
		}
	}
	return strconv.FormatInt(int64(*z), 10)
}

// sweepSizes are the sizes from min to max: by factor where it is above 1,
// else by step, as in nccl-tests.
func sweepSizes(minBytes, maxBytes, step int64, factor int) ([]int64, error) {
	if minBytes > maxBytes {
		return nil, fmt.Errorf("-b %d is more than -e %d", minBytes, maxBytes)
	}
	if factor < 1 {
		return nil, fmt.Errorf("-f %d: want a factor above 1, or 1 to add -i", factor)
	}
	const most = 10000
	var out []int64
	for n := minBytes; ; {
		out = append(out, n)
		if len(out) > most {
			return nil, fmt.Errorf("the sweep from %d to %d has over %d sizes: use a larger step (-i) or a factor (-f 2)", minBytes, maxBytes, most)
		}
		switch {
		case n == maxBytes:
			return out, nil
		case factor > 1 && n == 0:
			n = 1
		case factor > 1 && n > maxBytes/int64(factor):
			return out, nil
		case factor > 1:
			n *= int64(factor)
		case step < 1:
			return nil, fmt.Errorf("give a factor above 1 (-f 2) or a step of at least one byte (-i 1M)")
		case n > maxBytes-step:
			return out, nil
		default:
			n += step
		}
	}
}
