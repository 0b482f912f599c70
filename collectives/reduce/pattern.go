package reduce

import (
	"math"
	"unsafe"
)

// The inputs of a reduction whose result is known, to the bit, whatever the order
// in which the ranks are combined.
//
// Rank r's element i is f((r + i·stride) mod period), where f gives small
// positive integers and the period is a prime above the number of ranks. So the
// element of the result is the sum (or the least …) of f over a window as long as
// there are ranks, which slides over the period: the whole of it is known after
// one walk. All ranks have different inputs, of the same values at different
// places: a contribution that is lost, counted twice, taken from another rank or
// from another chunk (unless that is a multiple of the period away, a prime above
// 4000 elements) changes the result.
//
//   - sum, avg: f is at least 1, and no more than lets every rank's worst come to
//     the largest integer up to which the type holds all (f8e5m2 8, f8e4m3 16,
//     int8 127, bfloat16 256, half 2048, float 2^24). Every partial sum is below
//     that, so it is exact. Where there are too many ranks for that f is 0 but
//     for evenly spread places: each rank then counts in some elements only.
//   - prod: the same with powers of two, f being the exponent.
//   - min, max: in every element one rank (at the wrap of the period, two) has an
//     extreme value, the others have values that lie behind all extreme ones.
//     Counting a contribution twice cannot show.
//   - avg: the result is the exact sum, divided and rounded as Kernels.Finish does
//     it. Integer contributions are multiples of the number of ranks, lest the
//     division hide a loss; other sums stay below half of the limit, so that
//     two sums differ by at least one unit in the last place. A number of ranks
//     that is no power of two has no reciprocal without rounding, and NCCL
//     multiplies by that before it adds: then one rank counts in each element
//     (at the wrap of the period, two), with 1, and dividing gives the same
//     bits as multiplying, before or after. What the type
//     cannot hold is 0 and shows nothing: an average of more than 127 int8, 255
//     uint8 or 1024 f8e4m3.
type pattern struct {
	dtype  Dtype
	op     Op
	ranks  int
	period int // elements, prime, > ranks
	stride int
	every  int     // places of f between two that count
	values int     // f has 1..values there
	factor float64 // of every contribution, for avg of integers
}

// minPeriod keeps f longer than what programs cut buffers into by accident.
const minPeriod = 4000

func newPattern(d Dtype, o Op, ranks int) pattern {
	p := pattern{dtype: d, op: o, ranks: ranks, period: primeAbove(max(ranks, minPeriod)), every: 1, factor: 1}
	p.stride = int(float64(p.period) * 0.618) // far from any small fraction
	if o == Min || o == Max {
		p.every, p.values = ranks, 4
		return p
	}
	room := limits[d].sum
	switch {
	case o == Prod:
		room = limits[d].exponent
	case o == Avg && d < Half:
		room, p.factor = room/ranks, float64(ranks)
	case o == Avg && ranks&(ranks-1) != 0:
		p.values, p.every = 1, ranks
		return p
	case o == Avg:
		room /= 2
	}
	if p.values = min(room/ranks, 97); p.values >= 2 {
		return p
	}
	// A window of n places has at most n/every+2 that count: one more than a row
	// of places would, at the wrap of the period.
	if p.values = 1; room >= 6 {
		p.values = 2
	}
	switch count := room / p.values; {
	case room == 0:
		p.values, p.every = 0, p.period
	case count == 1:
		p.every = p.period
	default:
		p.every = max(2, (ranks+count-2)/(count-1)) // 1 would make all inputs the same
	}
	return p
}

// limits are the largest integer up to which a type holds all, at most 2^30
// (more gains nothing), and the largest power of two.
var limits = [len(dtypes)]struct{ sum, exponent int }{
	Int8:     {127, 6},
	Uint8:    {255, 7},
	Int32:    {1 << 30, 30},
	Uint32:   {1 << 30, 31},
	Int64:    {1 << 30, 62},
	Uint64:   {1 << 30, 63},
	Half:     {1 << 11, 15},
	Float:    {1 << 24, 127},
	Double:   {1 << 30, 1023},
	BFloat16: {1 << 8, 127},
	F8E4M3:   {16, 8},
	F8E5M2:   {8, 15},
}

// at is f.
func (p *pattern) at(x int) int {
	h := mix(uint64(x)) >> 32
	counts := p.every == 1 || x%p.every == 0
	switch {
	case p.op == Min && counts, p.op == Max && !counts:
		return 1 + int(h>>30)
	case p.op == Min, p.op == Max:
		return 5 + int(h>>30) // up to 8: f8e5m2 has all integers so far
	case !counts || p.values == 0:
		return 0
	}
	return 1 + int(h*uint64(p.values)>>32)
}

// windows gives, for every start x, f combined over the ranks' places x, x+1, ….
func (p *pattern) windows() []int {
	f, w := make([]int, p.period), make([]int, p.period)
	for x := range f {
		f[x] = p.at(x)
	}
	if p.op == Min || p.op == Max {
		for x := range w {
			w[x] = p.extreme(f, x)
		}
		return w
	}
	for x := range p.ranks {
		w[0] += f[x]
	}
	for x, next := 0, p.ranks; x < p.period-1; x++ {
		w[x+1] = w[x] - f[x] + f[next]
		if next++; next == p.period {
			next = 0
		}
	}
	return w
}

// extreme looks at the places that count in the window at x: the next multiple
// of every, if that comes before the period's end, and 0 if the window wraps.
func (p *pattern) extreme(f []int, x int) int {
	next, wraps := (x+p.every-1)/p.every*p.every, x+p.ranks > p.period
	switch {
	case next >= p.period:
		return f[0]
	case !wraps:
		return f[next]
	case p.op == Min:
		return min(f[0], f[next])
	}
	return max(f[0], f[next])
}

// write puts the element for f's value v at q.
func (p *pattern) write(q unsafe.Pointer, v int) {
	x := float64(v) * p.factor
	if p.op == Prod {
		x = math.Ldexp(1, v)
	}
	switch p.dtype {
	case Int8:
		*(*int8)(q) = int8(x)
	case Uint8:
		*(*uint8)(q) = uint8(x)
	case Int32:
		*(*int32)(q) = int32(x)
	case Uint32:
		*(*uint32)(q) = uint32(x)
	case Int64:
		*(*int64)(q) = int64(x)
	case Uint64:
		*(*uint64)(q) = uint64(x)
	case Float:
		*(*float32)(q) = float32(x)
	case Double:
		*(*float64)(q) = x
	default:
		narrow(p.dtype, q, []float32{float32(x)})
	}
}

// build writes the elements first, first+1, … for f's values at place x of f or w.
func (p *pattern) build(buf []byte, start int, first int64, value func(x int) int) {
	x := (start + int(first%int64(p.period))*p.stride) % p.period
	size := p.dtype.Size()
	for at := 0; at < len(buf); at += size {
		p.write(unsafe.Pointer(&buf[at]), value(x))
		if x += p.stride; x >= p.period {
			x -= p.period
		}
	}
}

// Input is one period of what Fill writes from element first on, or its first
// most bytes if that is less.
func Input(d Dtype, o Op, ranks, rank int, first int64, most int) []byte {
	p := newPattern(d, o, ranks)
	out := make([]byte, min(p.period*d.Size(), most))
	p.build(out, rank, first, p.at)
	return out
}

// Fill writes rank's input of a reduction over ranks: the elements first,
// first+1, … of it. Only the first period is computed, the rest is copied.
func Fill(buf []byte, d Dtype, o Op, ranks, rank int, first int64) {
	repeat(buf, copy(buf, Input(d, o, ranks, rank, first, len(buf))))
}

// Result is one period of what Fill's inputs come to from element first on, or
// its first most bytes if that is less.
func Result(d Dtype, o Op, ranks int, first int64, most int) []byte {
	p := newPattern(d, o, ranks)
	want := make([]byte, min(p.period*d.Size(), most))
	w := p.windows()
	p.build(want, 0, first, func(x int) int { return w[x] })
	if o == Avg && len(want) > 0 {
		For(d, Avg).Finish(unsafe.Pointer(&want[0]), len(want)/d.Size(), ranks)
	}
	return want
}

// Check compares the result of a reduction over ranks, from element first on,
// with what Fill's inputs come to. It gives the number of wrong elements and the
// first of them, counted like first; -1 if all are right.
func Check(buf []byte, d Dtype, o Op, ranks int, first int64) (wrong, firstWrong int64) {
	return mismatches(buf, Result(d, o, ranks, first, len(buf)), d.Size(), first)
}

// primeAbove gives the smallest prime above n.
func primeAbove(n int) int {
	for c := n + 1; ; c++ {
		prime := c > 1
		for q := 2; q*q <= c && prime; q++ {
			prime = c%q != 0
		}
		if prime {
			return c
		}
	}
}

// mix spreads x over all bits of the result: the finalizer of SplitMix64
// (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
