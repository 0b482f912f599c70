package reduce

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// blind says whether the type cannot show anything of an average (see pattern).
func blind(d Dtype, o Op, ranks int) bool {
	return o == Avg && (d == Int8 && ranks > 127 || d == Uint8 && ranks > 255 || d == F8E4M3 && ranks > 1024)
}

// inputs gives every rank's elements first.. of a reduction.
func inputs(d Dtype, o Op, ranks, n int, first int64) [][]byte {
	out := make([][]byte, ranks)
	for r := range out {
		out[r] = make([]byte, n*d.Size())
		Fill(out[r], d, o, ranks, r, first)
	}
	return out
}

// reduceAnyOrder combines the buffers pairwise in a random order, in place.
func reduceAnyOrder(r *rand.Rand, d Dtype, o Op, bufs [][]byte, ranks int) []byte {
	k := For(d, o)
	n := len(bufs[0]) / d.Size()
	for len(bufs) > 1 {
		i, last := r.IntN(len(bufs)-1), len(bufs)-1
		p, q := unsafe.Pointer(&bufs[i][0]), unsafe.Pointer(&bufs[last][0])
		if r.IntN(2) == 0 {
			k.Two(p, p, q, n)
		} else {
			k.Two(p, q, p, n)
		}
		bufs = bufs[:last]
	}
	if o == Avg {
		k.Finish(unsafe.Pointer(&bufs[0][0]), n, ranks)
	}
	return bufs[0]
}

// eachPattern runs f for every type and operator with a few numbers of ranks.
func eachPattern(t *testing.T, counts []int, f func(t *testing.T, r *rand.Rand, d Dtype, o Op, ranks int)) {
	for _, d := range Dtypes() {
		for _, o := range Ops() {
			for _, ranks := range counts {
				t.Run(fmt.Sprintf("%s/%s/%d", d, o, ranks), func(t *testing.T) {
					f(t, rand.New(rand.NewPCG(uint64(d), uint64(o)<<20|uint64(ranks))), d, o, ranks)
				})
			}
		}
	}
}

// TestPatternAnyOrder: every order of combination gives the expected result.
func TestPatternAnyOrder(t *testing.T) {
	eachPattern(t, []int{1, 2, 3, 4, 7, 16, 63, 127, 128, 300}, func(t *testing.T, r *rand.Rand, d Dtype, o Op, ranks int) {
		n, first := 1+r.IntN(600), r.Int64N(1<<40)
		got := reduceAnyOrder(r, d, o, inputs(d, o, ranks, n, first), ranks)
		if wrong, at := Check(got, d, o, ranks, first); wrong != 0 || at != -1 {
			t.Errorf("%d elements from %d on: %d wrong, the first is %d", n, first, wrong, at)
		}
	})
}

// TestAverageOfProducts: an average is right, to the bit, also where every
// contribution is multiplied by the reciprocal of the ranks, rounded to the type,
// before it is added, which is how NCCL averages.
func TestAverageOfProducts(t *testing.T) {
	counts := []int{1, 2, 3, 6, 7, 8, 24, 49, 64, 100, 512}
	if testing.Short() {
		counts = counts[:6]
	}
	for _, d := range []Dtype{Half, Float, Double, BFloat16, F8E4M3, F8E5M2} {
		for _, ranks := range counts {
			const n = minPeriod + 100
			r := rand.New(rand.NewPCG(uint64(d), uint64(ranks)))
			in, part := inputs(d, Avg, ranks, n, 0), make([]byte, n*d.Size())
			p := newPattern(d, Sum, 1) // for its way to write a number
			for i := range n {
				p.write(unsafe.Pointer(&part[i*d.Size()]), 1)
			}
			For(d, Avg).Finish(unsafe.Pointer(&part[0]), n, ranks)
			for _, b := range in {
				q := unsafe.Pointer(&b[0])
				For(d, Prod).Two(q, q, unsafe.Pointer(&part[0]), n)
			}
			if wrong, first := Check(reduceAnyOrder(r, d, Sum, in, ranks), d, Avg, ranks, 0); wrong > 0 {
				t.Errorf("%s, %d ranks: %d wrong elements, the first %d", d, ranks, wrong, first)
			}
		}
	}
}

// TestPatternManyRanks does the same for numbers of ranks beyond minPeriod.
func TestPatternManyRanks(t *testing.T) {
	counts := []int{5000, 65536}
	if testing.Short() {
		counts = counts[:1]
	}
	for _, d := range Dtypes() {
		for _, o := range Ops() {
			for _, ranks := range counts {
				p, first := newPattern(d, o, ranks), int64(12345)
				bufs := make([][]byte, ranks)
				for r := range bufs {
					bufs[r] = make([]byte, 16*d.Size())
					p.build(bufs[r], r, first, p.at) // Fill without the search for the prime
				}
				got := reduceAnyOrder(rand.New(rand.NewPCG(5, uint64(ranks))), d, o, bufs, ranks)
				if wrong, at := Check(got, d, o, ranks, first); wrong != 0 {
					t.Errorf("%s %s, %d ranks: %d wrong, the first is %d", d, o, ranks, wrong, at)
				}
			}
		}
	}
}

// TestPatternStaysExact: no result, and so no partial result (all contributions are
// positive), leaves the range in which the type holds every integer.
func TestPatternStaysExact(t *testing.T) {
	eachPattern(t, []int{1, 2, 5, 8, 9, 16, 100, 127, 128, 1000, 4001, 30000, 65536}, func(t *testing.T, _ *rand.Rand, d Dtype, o Op, ranks int) {
		p := newPattern(d, o, ranks)
		limit := map[Op]int{Sum: limits[d].sum, Avg: limits[d].sum, Prod: limits[d].exponent, Min: 8, Max: 8}[o]
		var counted bool
		for x, w := range p.windows() {
			if float64(w)*p.factor > float64(limit) {
				t.Fatalf("the window at %d comes to %v, above %d", x, float64(w)*p.factor, limit)
			}
			counted = counted || w != 0
		}
		if !counted && !blind(d, o, ranks) {
			t.Error("every rank's contribution is neutral everywhere")
		}
		if p.period <= ranks {
			t.Errorf("period %d does not exceed %d ranks", p.period, ranks)
		}
	})
}

// TestPatternFindsFaults: what a wrong schedule or link does shows.
func TestPatternFindsFaults(t *testing.T) {
	counts := []int{2, 3, 8, 64}
	if testing.Short() {
		counts = counts[:2]
	}
	eachPattern(t, counts, func(t *testing.T, r *rand.Rand, d Dtype, o Op, ranks int) {
		if blind(d, o, ranks) {
			return
		}
		const n, first = 2 * minPeriod, 777
		find := func(fault string, change func(in [][]byte) [][]byte) {
			in := change(inputs(d, o, ranks, n, first))
			if wrong, _ := Check(reduceAnyOrder(r, d, o, in, ranks), d, o, ranks, first); wrong == 0 {
				t.Errorf("not found: %s", fault)
			}
		}
		a := r.IntN(ranks)
		b := (a + 1 + r.IntN(ranks-1)) % ranks
		chunk := 16 * (1 + r.IntN(200))
		find("a lost contribution", func(in [][]byte) [][]byte { in[a] = in[0]; return in[1:] })
		find("a contribution in another's place", func(in [][]byte) [][]byte { copy(in[a], in[b]); return in })
		find("a contribution one chunk off", func(in [][]byte) [][]byte {
			Fill(in[a], d, o, ranks, a, first+int64(chunk))
			return in
		})
		find("the whole one chunk off", func([][]byte) [][]byte { return inputs(d, o, ranks, n, first+int64(chunk)) })
		if o != Min && o != Max {
			find("a doubled contribution", func(in [][]byte) [][]byte { return append(in, append([]byte(nil), in[a]...)) })
		}
		if d.Size()*n > 4096 {
			find("a page that was not written", func(in [][]byte) [][]byte { clear(in[a][:4096]); clear(in[b][:4096]); return in })
		}
	})
}

// TestIntegerAverageShowsEveryLoss: the division hides nothing, in no element.
func TestIntegerAverageShowsEveryLoss(t *testing.T) {
	for _, d := range []Dtype{Int32, Uint32, Int64, Uint64} {
		const ranks, n = 500, 64
		in := inputs(d, Avg, ranks, n, 0)
		got := reduceAnyOrder(rand.New(rand.NewPCG(1, 2)), d, Avg, in[1:], ranks)
		if wrong, _ := Check(got, d, Avg, ranks, 0); wrong != n {
			t.Errorf("%s: a lost contribution shows in %d of %d elements", d, wrong, n)
		}
	}
}

// TestCheckCounts: the number of wrong elements and the first one, also in the
// second period, are reported in the collective's numbering.
func TestCheckCounts(t *testing.T) {
	buf := make([]byte, 4*3*minPeriod)
	const first = 1 << 33
	Fill(buf, Float, Sum, 1, 0, first)
	buf[4*9000] ^= 1
	buf[4*9001+3] ^= 1
	if wrong, at := Check(buf, Float, Sum, 1, first); wrong != 2 || at != first+9000 {
		t.Errorf("%d wrong, the first is %d", wrong, at)
	}
	FillSource(buf, Float, 3, first)
	buf[4*8500+1] ^= 4
	if wrong, at := CheckSource(buf, Float, 3, first); wrong != 1 || at != first+8500 {
		t.Errorf("source: %d wrong, the first is %d", wrong, at)
	}
	if wrong, at := Check(nil, Float, Sum, 2, 0); wrong != 0 || at != -1 {
		t.Errorf("empty buffer: %d wrong, the first is %d", wrong, at)
	}
}

// TestFillInParts: a buffer filled piece by piece is the buffer filled at once.
func TestFillInParts(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, d := range Dtypes() {
		whole := make([]byte, 20000*d.Size())
		parts, moved := make([]byte, len(whole)), make([]byte, len(whole))
		Fill(whole, d, Sum, 5, 2, 0)
		for at := 0; at < 20000; {
			n := min(1+r.IntN(9000), 20000-at)
			Fill(parts[at*d.Size():(at+n)*d.Size()], d, Sum, 5, 2, int64(at))
			FillSource(moved[at*d.Size():(at+n)*d.Size()], d, 7, int64(at))
			at += n
		}
		if string(parts) != string(whole) {
			t.Errorf("%s: Fill in parts differs", d)
		}
		if wrong, at := CheckSource(moved, d, 7, 0); wrong != 0 {
			t.Errorf("%s: FillSource in parts: %d wrong, the first is %d", d, wrong, at)
		}
	}
}

// TestSourceFindsFaults: another rank's data, and data from elsewhere, differ nearly everywhere.
func TestSourceFindsFaults(t *testing.T) {
	buf := make([]byte, 64<<10)
	for _, c := range []struct {
		source int
		first  int64
	}{{4, 0}, {3, 16}, {3, 1 << 20}, {65535, 0}} {
		FillSource(buf, Float, c.source, c.first)
		if wrong, _ := CheckSource(buf, Float, 3, 0); wrong < 16300 {
			t.Errorf("source %d from %d on: only %d of 16384 are found wrong", c.source, c.first, wrong)
		}
	}
}
