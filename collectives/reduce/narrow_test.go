package reduce

import (
	"bytes"
	"math"
	"testing"
	"unsafe"
)

// TestPairs checks every pair of 8-bit floats against the definition: the exact
// result, rounded by a search among the type's values.
func TestPairs(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, d := range []Dtype{F8E4M3, F8E5M2} {
		values, all := make([]float32, 256), make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		widen(d, values, unsafe.Pointer(&all[0]))
		for _, o := range []Op{Sum, Prod, Min, Max} {
			for a := 0; a < 256; a += step {
				var want [256]float64
				for b := range want {
					want[b] = nearest(values, exact(o, float64(values[a]), float64(values[b])), d == F8E4M3)
				}
				left, got := bytes.Repeat([]byte{byte(a)}, 256), make([]byte, 256)
				for _, isa := range ISAs() {
					k := ForISA(d, o, isa)
					if k == nil {
						continue
					}
					k.Two(unsafe.Pointer(&got[0]), unsafe.Pointer(&left[0]), unsafe.Pointer(&all[0]), 256)
					for b, w := range want {
						g := float64(values[got[b]])
						if math.Float64bits(g) != math.Float64bits(w) && !(g != g && w != w) {
							t.Fatalf("%s %s %s of %v and %v is %v, want %v", isa, d, o, values[a], values[b], g, w)
						}
					}
				}
			}
		}
	}
}

func exact(o Op, a, b float64) float64 {
	switch {
	case o == Sum:
		return a + b
	case o == Prod:
		return a * b
	case o == Min && a < b, o == Max && a > b:
		return a
	}
	return b
}

// nearest finds x's neighbour among the values by search; of two as near, the one
// with an even code.
func nearest(values []float32, x float64, saturate bool) float64 {
	if x != x || (math.IsInf(x, 0) && !saturate) {
		return x
	}
	largest, best, even := 0.0, math.Inf(1), false
	result := 0.0
	for code, v := range values[:128] {
		f := float64(v)
		if f != f || math.IsInf(f, 0) {
			continue
		}
		largest = max(largest, f)
		gap := math.Abs(f - math.Abs(x))
		if gap < best || gap == best && !even {
			best, even, result = gap, code%2 == 0, f
		}
	}
	unit := largest - float64(values[codeOf(values, largest)-1])
	if !saturate && math.Abs(x) >= largest+unit/2 {
		result = math.Inf(1)
	}
	return math.Copysign(result, x)
}

func codeOf(values []float32, x float64) int {
	for i, v := range values {
		if float64(v) == x {
			return i
		}
	}
	return 0
}

// TestNarrowRoundTrip checks that every value of a narrow type survives, and that
// rounding is to nearest even at every midpoint between neighbours.
func TestNarrowRoundTrip(t *testing.T) {
	for _, d := range []Dtype{Half, BFloat16, F8E4M3, F8E5M2} {
		codes := 1 << (8 * d.Size())
		at := func(code int) float32 {
			var x [1]float32
			c := uint16(code)
			widen(d, x[:], unsafe.Pointer(&c))
			return x[0]
		}
		back := func(f float32) int {
			c := uint16(0)
			narrow(d, unsafe.Pointer(&c), []float32{f})
			return int(c)
		}
		for code := range codes {
			f := at(code)
			if f != f {
				if g := at(back(f)); g == g {
					t.Fatalf("%s: NaN %#x became %v", d, code, g)
				}
				continue
			}
			if back(f) != code {
				t.Fatalf("%s: %#x is %v, which narrows to %#x", d, code, f, back(f))
			}
			next := float64(at(code + 1))
			if code+1 >= codes/2 || next != next || math.IsInf(next, 0) {
				continue
			}
			mid := (float64(f) + next) / 2
			if float64(float32(mid)) != mid {
				continue // bfloat16's smallest neighbours have no midpoint in float
			}
			for _, c := range []struct {
				f    float32
				want int
			}{{float32(mid), code + code&1}, {math.Nextafter32(float32(mid), 0), code}, {math.Nextafter32(float32(mid), float32(math.Inf(1))), code + 1}} {
				if got := back(c.f); got != c.want {
					t.Fatalf("%s: %v narrows to %#x, want %#x", d, c.f, got, c.want)
				}
			}
		}
	}
}
