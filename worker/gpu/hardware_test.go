//go:build linux && cgo

package gpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/collectives/linktest"
	"busbw/collectives/reduce"
	"busbw/worker/gpu/gputest"
)

// TestHardware is make test-gpu: what no stand-in can show, on the GPUs of this
// machine. It prints rows for docs/verified.md.
func TestHardware(t *testing.T) {
	if os.Getenv("BUSBW_GPU") == "" {
		t.Skip("make test-gpu runs it")
	}
	if _, err := Open(); err != nil {
		fmt.Printf("no GPU to test: %v\n0 run\n", err)
		return
	}
	n := hardware(t, os.Stdout, 64<<20, 256<<20)
	for _, how := range []string{"through locked host memory", "over TCP between processes of four"} {
		passed := t.Run(how, func(t *testing.T) { stagedKit(strings.HasPrefix(how, "over"), false).Apart(t) }) // on a stand-in: TestStagedConformance
		fmt.Printf("| ranks without peer access, %s | %s |\n", how, outcome(passed))
		n++
	}
	fmt.Printf("%d run\n", n)
}

// The suite itself runs on the stand-in, where its rates mean nothing.
func TestHardwareSuite(t *testing.T) {
	if !onFake(t, "FAKECUDA_DEVICES=2") {
		return
	}
	var out bytes.Buffer
	if n := hardware(t, &out, 100_000); n < 8 || bytes.Count(out.Bytes(), []byte("\n")) != n+2 {
		t.Errorf("%d run:\n%s", n, out.String())
	}
}

// hardware runs everything for buffers of these sizes and prints a table; it
// gives the number of its rows.
func hardware(t *testing.T, out io.Writer, sizes ...int64) (rows int) {
	d := open(t)
	all, err := d.Devices()
	ok(t, err)
	row := func(what, result string, args ...any) {
		rows++
		fmt.Fprintf(out, "| %s | %s |\n", what, fmt.Sprintf(result, args...))
	}
	fmt.Fprintf(out, "| %d × %s, driver for CUDA %s | result |\n|---|---|\n", len(all), all[0].Name, Version(d.Version))
	var devices []*Device
	for i := range all {
		devices = append(devices, device(t, i))
	}
	g := devices[0]
	s, began := stream(t, g), time.Now()
	k := kernels(t, g)
	first, began := time.Since(began), time.Now()
	kernels(t, g)
	row("kernels loaded", "made for sm_%d, on compute capability %d.%d, in %.0f ms, once more in %.0f ms", k.Target, g.Major, g.Minor, first.Seconds()*1e3, time.Since(began).Seconds()*1e3)
	count, worst := kernelsAreRight(t, s, k)
	row("kernels on random inputs, every type and operator", "%d passes with the bits of the portable kernels; sums within %.2g of a unit in the last place of float64", count, worst)
	fillIsRight(t, s, k)
	row("fill and check", "as collectives/reduce")
	row("GPU memory for network devices", "%s", exported(t, g))
	for _, n := range sizes {
		rates(t, g, s, k, n, row)
	}
	for _, p := range devices[1:] {
		peers(t, g, p, sizes[len(sizes)-1], row)
	}
	conformance := func(name string, ranks, recordings int, on []*Device) {
		done := t.Run(name, func(t *testing.T) {
			linktest.Kit{Stores: func(t testing.TB, ranks int) (out []linktest.Store) {
				for r := range ranks {
					q, err := on[r%len(on)].Seat()
					ok(t, err)
					t.Cleanup(func() { ok(t, q.Close()) })
					for _, o := range on {
						if yes, why, err := q.Reach(o); !yes || err != nil {
							t.Fatalf("no peer access: %s %v", why, err)
						}
					}
					out = append(out, &recorder{&store{q, map[*byte]*Memory{}}, recordings})
				}
				return out
			}}.Ranks(t, ranks)
		})
		row(name, "%s", outcome(done))
	}
	n := len(devices)
	for recordings, how := range []string{"", ", as graphs"} {
		conformance("2 ranks on one GPU"+how, 2, 2*recordings, devices[:1])
		if n > 1 && reachable(t, devices) {
			conformance(fmt.Sprintf("%d ranks on %d GPUs%s", n, n, how), n, 2*recordings, devices)
		}
	}
	if ranks := max(n, 2); n == 1 || reachable(t, devices) {
		row(fmt.Sprintf("AllReduce of 20 kB by a ring of %d ranks", ranks), "%s each pass by itself, %s as a graph", quickest(t, ranks, 0), quickest(t, ranks, 1))
	}
	return rows
}

func outcome(passed bool) string {
	return map[bool]string{true: "every operation by every algorithm, 0 wrong", false: "FAILED"}[passed]
}

// exported says how memory that starts within a page is given to network devices.
func exported(t *testing.T, g *Device) string {
	odd, err := g.Alloc(100) // so that the next does not start a page
	ok(t, err)
	defer odd.Free()
	m, err := g.Alloc(10_000)
	ok(t, err)
	defer m.Free()
	ok(t, g.FlushRDMA())
	flush := map[bool]string{true: "flushed by a call", false: "no flush needed, or none offered"}[g.flushes]
	if !g.DMABuf {
		return "the driver exports no dma-buf; " + flush
	}
	fd, off, err := m.Export()
	ok(t, err)
	ok(t, syscall.Close(fd))
	return fmt.Sprintf("dma-buf, %d bytes into its first page; %s", off, flush)
}

// quickest is the shortest of some runs of a small AllReduce.
func quickest(t *testing.T, ranks, recordings int) time.Duration {
	m := newTeam(t, ranks, recordings)
	least := time.Duration(math.MaxInt64)
	for turn := range 50 {
		_, err := m.run(turn % ranks)
		ok(t, err)
		least = min(least, m.took)
	}
	ok(t, m.each(func(i int) error { return m.ranks[i].Forget() }))
	return least.Round(100 * time.Nanosecond)
}

func reachable(t *testing.T, devices []*Device) bool {
	return !slices.ContainsFunc(devices, func(a *Device) bool {
		return slices.ContainsFunc(devices, func(b *Device) bool {
			can, _, err := a.CanAccess(b)
			ok(t, err)
			return a != b && !can
		})
	})
}

// kernelsAreRight compares every kernel with the portable one, bit by bit, and
// sums with float64: worst is the largest error in units in the last place.
func kernelsAreRight(t *testing.T, s *Stream, k *Kernels) (count int, worst float64) {
	r := rand.New(rand.NewPCG(11, 12))
	const n = 30_011
	m := memory(t, s, make([]byte, 3*(n*8+64)))
	for _, d := range reduce.Dtypes() {
		size := int64(n * d.Size())
		for shift := range int64(2) { // aligned, and every source one element on
			var spans, in [][]byte
			for j := range int64(3) {
				spans = append(spans, m.Span(j*(n*8+64)/16*16+shift*int64(d.Size()), size))
			}
			in = [][]byte{gputest.Random(r, int(size)), gputest.Random(r, int(size))}
			put(t, s, spans[0], in[0])
			put(t, s, spans[1], in[1])
			for _, o := range reduce.Ops() {
				ranks := 0
				if o == reduce.Avg {
					ranks = 7
				}
				ok(t, k.Combine(s, d, o, gputest.Pointers(spans[2]), gputest.Pointers(spans[0], spans[1]), size, ranks))
				got := get(t, s, spans[2])
				if i := gputest.Differs(d, got, gputest.Combined(d, o, in, ranks)); i >= 0 {
					t.Fatalf("%s %s: element %d is %x", d, o, i, got[i*d.Size():][:d.Size()])
				}
				if o == reduce.Sum && (d == reduce.Float || d == reduce.Half || d == reduce.BFloat16) {
					worst = max(worst, unitsOff(d, got, in[0], in[1]))
				}
				count++
			}
		}
	}
	if worst > 0.5 {
		t.Errorf("a sum is %v units in the last place off", worst)
	}
	return count, worst
}

// unitsOff is how far sums are from those of float64, at worst.
func unitsOff(d reduce.Dtype, sum, a, b []byte) (worst float64) {
	mantissa := map[reduce.Dtype]int{reduce.Float: 23, reduce.Half: 10, reduce.BFloat16: 7}[d]
	least := map[reduce.Dtype]int{reduce.Float: -126, reduce.Half: -14, reduce.BFloat16: -126}[d]
	value := func(p []byte) float64 {
		var w [8]byte
		copy(w[:], p[:d.Size()])
		bits := binary.LittleEndian.Uint64(w[:])
		width := 8*d.Size() - 1 - mantissa
		e, m := int(bits>>mantissa)&(1<<width-1), float64(bits&(1<<mantissa-1))
		v := math.Ldexp(m, least-mantissa)
		switch {
		case e == 1<<width-1:
			return math.NaN() // infinities too: there is nothing to measure
		case e > 0:
			v = math.Ldexp(m+float64(int(1)<<mantissa), e-1+least-mantissa)
		}
		if bits>>(8*d.Size()-1) != 0 {
			return -v
		}
		return v
	}
	for i := 0; i < len(sum); i += d.Size() {
		got, want := value(sum[i:]), value(a[i:])+value(b[i:])
		if diff := math.Abs(got - want); diff > 0 { // false for NaN
			worst = max(worst, diff/math.Ldexp(1, max(math.Ilogb(got), least)-mantissa))
		}
	}
	return worst
}

func fillIsRight(t *testing.T, s *Stream, k *Kernels) {
	period := reduce.Input(reduce.Float, reduce.Sum, 8, 3, 0, 1<<20)
	want := make([]byte, 1<<20)
	reduce.Fill(want, reduce.Float, reduce.Sum, 8, 3, 0)
	m, p, result := memory(t, s, make([]byte, len(want))), memory(t, s, period), memory(t, s, append(make([]byte, 8), bytes.Repeat([]byte{0xff}, 8)...))
	ok(t, k.Fill(s, m.Span(0, m.Size()), p.Span(0, p.Size())))
	if !bytes.Equal(get(t, s, m.Span(0, m.Size())), want) {
		t.Error("the fill differs")
	}
	put(t, s, m.Span(400, 4), []byte{1, 2, 3, 4})
	ok(t, k.Check(s, m.Span(0, m.Size()), p.Span(0, p.Size()), 4, result.Span(0, 16)))
	if r := get(t, s, result.Span(0, 16)); binary.LittleEndian.Uint64(r) != 1 || binary.LittleEndian.Uint64(r[8:]) != 100 {
		t.Errorf("one wrong element: the check says %x", r)
	}
}

// best is the shortest of some runs of what do queues, in seconds.
func best(t *testing.T, g *Device, s *Stream, do func() error) float64 {
	t.Helper()
	from, err := g.Event(true)
	ok(t, err)
	to, err := g.Event(true)
	ok(t, err)
	least := time.Duration(math.MaxInt64)
	for range 20 {
		ok(t, s.Record(from))
		ok(t, do())
		ok(t, s.Record(to))
		ok(t, s.Sync())
		d, err := to.Since(from)
		ok(t, err)
		least = min(least, d)
	}
	ok(t, from.Close())
	ok(t, to.Close())
	return max(least.Seconds(), 1e-9)
}

// rates measures bytes read plus bytes written.
func rates(t *testing.T, g *Device, s *Stream, k *Kernels, n int64, row func(string, string, ...any)) {
	m, err := g.Alloc(3 * n)
	ok(t, err)
	defer m.Free()
	a, b, c := m.Span(0, n), m.Span(n, n), m.Span(2*n, n)
	ok(t, s.Set(m.Span(0, 3*n), 1))
	copied := 2 * float64(n) / best(t, g, s, func() error { return s.Copy(b, a) }) / 1e9
	summed := 3 * float64(n) / best(t, g, s, func() error {
		return k.Combine(s, reduce.Float, reduce.Sum, gputest.Pointers(c), gputest.Pointers(a, b), n, 0)
	}) / 1e9
	half := 3 * float64(n) / best(t, g, s, func() error {
		return k.Combine(s, reduce.BFloat16, reduce.Sum, gputest.Pointers(c), gputest.Pointers(a, b), n, 0)
	}) / 1e9
	size := fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	row("copy engine, "+size, "%.0f GB/s", copied)
	row("sum of 2 × float, "+size, "%.0f GB/s, %.2f of the copy", summed, summed/copied)
	row("sum of 2 × bfloat16, "+size, "%.0f GB/s, %.2f of the copy", half, half/copied)
}

// peers measures what crosses from one GPU to the other.
func peers(t *testing.T, a, b *Device, n int64, row func(string, string, ...any)) {
	name := fmt.Sprintf("GPU %d from GPU %d, %.4g MiB", a.Ordinal, b.Ordinal, float64(n)/(1<<20))
	can, rank, err := a.CanAccess(b)
	ok(t, err)
	if !can {
		row(name, "no peer access")
		return
	}
	ok(t, a.EnablePeer(b))
	s, k := stream(t, a), kernels(t, a)
	own, err := a.Alloc(2 * n)
	ok(t, err)
	defer own.Free()
	far, err := b.Alloc(n)
	ok(t, err)
	defer far.Free()
	from, to, with := far.Span(0, n), own.Span(0, n), own.Span(n, n)
	copied := float64(n) / best(t, a, s, func() error { return s.Copy(to, from) }) / 1e9
	summed := float64(n) / best(t, a, s, func() error {
		return k.Combine(s, reduce.Float, reduce.Sum, gputest.Pointers(to), gputest.Pointers(with, from), n, 0)
	}) / 1e9
	row(name, "copy %.0f GB/s, sum that reads the peer %.0f GB/s; the driver ranks the path %d", copied, summed, rank)
}

var _ collectives.Device = (*Seat)(nil)
