//go:build linux && cgo

package gpu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"busbw/collectives/reduce"
	"busbw/worker/gpu/gputest"
	"busbw/worker/gpu/ptxvm"
)

func kernels(t testing.TB, g *Device) *Kernels {
	t.Helper()
	k, err := g.Kernels()
	ok(t, err)
	t.Cleanup(func() { ok(t, k.Close()) })
	return k
}

// A compiler gives each thread of a kernel as many registers as a block of
// .maxntid threads can have; without it the kernels might not start.
func TestBlocksFit(t *testing.T) {
	for _, sm := range targets {
		text, err := images.ReadFile(fmt.Sprintf("kernels/sm_%d.ptx", sm))
		ok(t, err)
		m, err := ptxvm.Parse(string(text))
		ok(t, err)
		for name, f := range m.Funcs {
			if f.Most != threads {
				t.Errorf("sm_%d %s: at most %d threads a block, started with %d", sm, name, f.Most, threads)
			}
		}
	}
}

// A pass has the bits of the portable kernels for every type and operator, from
// one source or many, at any alignment, and touches nothing else.
func TestPass(t *testing.T) {
	if !onFake(t) {
		return
	}
	g := device(t, 0)
	s, k := stream(t, g), kernels(t, g)
	r := rand.New(rand.NewPCG(1, 2))
	const room = 4096
	all := memory(t, s, make([]byte, 40*room))
	at := 0
	for _, o := range reduce.Ops() {
		for _, d := range reduce.Dtypes() {
			for turn, c := range []struct{ ns, nd, n, shift int }{{1, 1, 1000, 0}, {2, 1, 3, 0}, {2, 2, 257, 0}, {3, 1, 64, 1}, {3, 2, 130, 3}, {5, 3, 401, 0}, {16, 1, 33, 0}, {17, 17, 50, 0}, {19, 1, 9, 1}} {
				size, shift := c.n*d.Size(), c.shift*d.Size()
				ranks := 0
				if o == reduce.Avg {
					ranks = []int{1, 3, 300}[turn%3]
				}
				var src, dst [][]byte
				var in [][]byte
				for j := range c.ns {
					b := gputest.Random(r, size)
					in = append(in, b)
					span := all.Span(int64(j*room+16+shift+j%2*shift), int64(size)) // alike, or one element apart
					put(t, s, span, b)
					src = append(src, span)
				}
				guard := bytes.Repeat([]byte{0xee}, size+32)
				for j := range c.nd {
					off := int64((20+j)*room + shift)
					put(t, s, all.Span(off, int64(len(guard))), guard)
					dst = append(dst, all.Span(off+16, int64(size)))
				}
				want := gputest.Combined(d, o, in, ranks)
				ok(t, k.Combine(s, d, o, gputest.Pointers(dst...), gputest.Pointers(src...), int64(size), ranks))
				for j := range dst {
					got := get(t, s, all.Span(int64((20+j)*room+shift), int64(size)+32))
					if i := gputest.Differs(d, got[16:16+size], want); i >= 0 {
						e := func(b []byte) []byte { return b[i*d.Size():][:d.Size()] }
						t.Fatalf("%s %s of %d sources: element %d of %d is %x, want %x (first sources %x)", d, o, c.ns, i, c.n, e(got[16:]), e(want), e(in[0]))
					}
					if !bytes.Equal(got[:16], guard[:16]) || !bytes.Equal(got[16+size:], guard[:16]) {
						t.Fatalf("%s %s: wrote beyond its destination", d, o)
					}
				}
				at++
			}
		}
	}
	if at != 5*12*9 {
		t.Error(at)
	}
	// In place, also where the sources do not fit into one kernel.
	span := func(j int) []byte { return all.Span(int64(j*room), 64) }
	var src, in [][]byte
	for j := range 17 {
		in, src = append(in, gputest.Random(r, 64)), append(src, span(j))
		put(t, s, span(j), in[j])
	}
	want := gputest.Combined(reduce.Int32, reduce.Sum, in, 0)
	ok(t, k.Combine(s, reduce.Int32, reduce.Sum, gputest.Pointers(src[:1]...), gputest.Pointers(src...), 64, 0))
	if got := get(t, s, span(0)); !bytes.Equal(got, want) {
		t.Errorf("in place: %x, want %x", got, want)
	}
	if err := k.Combine(s, reduce.Int32, reduce.Sum, gputest.Pointers(src[16:]...), gputest.Pointers(src...), 64, 0); err == nil || !strings.Contains(err.Error(), "at most 16") {
		t.Error(err)
	}
}

// Inputs and checks on the device are those of collectives/reduce.
func TestFillAndCheck(t *testing.T) {
	if !onFake(t) {
		return
	}
	g := device(t, 0)
	s, k := stream(t, g), kernels(t, g)
	const size = 70000
	m := memory(t, s, make([]byte, size+64))
	result := memory(t, s, make([]byte, 16))
	for i, d := range reduce.Dtypes() {
		n := size / d.Size() * d.Size()
		buf := m.Span(int64(i%3*d.Size()), int64(n))
		first := int64(i * 1000)
		want := make([]byte, n)
		reduce.Fill(want, d, reduce.Sum, 7, 3, first)
		period := memory(t, s, reduce.Input(d, reduce.Sum, 7, 3, first, n))
		ok(t, k.Fill(s, buf, period.Span(0, period.Size())))
		got := get(t, s, buf)
		if !bytes.Equal(got, want) {
			t.Fatalf("%s: the fill differs", d)
		}
		for _, bad := range [][]int{nil, {0}, {n/d.Size() - 1}, {5, 6000, 700}} {
			broken := bytes.Clone(want)
			for _, e := range bad {
				broken[e*d.Size()+d.Size()-1] ^= 0x40
			}
			put(t, s, buf, broken)
			put(t, s, result.Span(0, 16), append(make([]byte, 8), bytes.Repeat([]byte{0xff}, 8)...))
			ok(t, k.Check(s, buf, period.Span(0, period.Size()), d.Size(), result.Span(0, 16)))
			r := get(t, s, result.Span(0, 16))
			least := ^uint64(0)
			for _, e := range bad {
				least = min(least, uint64(e))
			}
			if count, at := binary.LittleEndian.Uint64(r), binary.LittleEndian.Uint64(r[8:]); count != uint64(len(bad)) || at != least {
				t.Errorf("%s: %d wrong, first %d; want %d, %d", d, count, at, len(bad), least)
			}
		}
	}
}

// A pass reads a peer's memory where that is allowed, and fails where it is not.
func TestPassOverPeers(t *testing.T) {
	if !onFake(t) {
		return
	}
	a, b := device(t, 0), device(t, 1)
	sa, sb := stream(t, a), stream(t, b)
	ma, mb := memory(t, sa, bytes.Repeat([]byte{1}, 100)), memory(t, sb, bytes.Repeat([]byte{2}, 100))
	k := kernels(t, a)
	run := func(s *Stream) error {
		if err := k.Combine(s, reduce.Uint8, reduce.Sum, gputest.Pointers(ma.Span(0, 100)), gputest.Pointers(ma.Span(0, 100), mb.Span(0, 100)), 100, 0); err != nil {
			return err
		}
		return s.Sync()
	}
	ok(t, a.EnablePeer(b))
	ok(t, run(sa))
	if got := get(t, sa, ma.Span(0, 100)); !bytes.Equal(got, bytes.Repeat([]byte{3}, 100)) {
		t.Errorf("%x", got)
	}
	kb := kernels(t, b) // b has no access to a
	if err := kb.Combine(sb, reduce.Uint8, reduce.Sum, gputest.Pointers(mb.Span(0, 100)), gputest.Pointers(ma.Span(0, 100)), 100, 0); err != nil {
		t.Fatal(err)
	}
	if err := sb.Sync(); !errors.Is(err, IllegalAddress) {
		t.Error(err)
	}
}

// The kernels are those of the highest capability that both sides take.
func TestTargets(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want int // 0: an error
		text string
	}{
		{[]string{"FAKECUDA_CC=90"}, 90, ""},
		{[]string{"FAKECUDA_CC=100"}, 90, ""},
		{[]string{"FAKECUDA_CC=86"}, 80, ""},
		{[]string{"FAKECUDA_CC=75"}, 70, ""},
		{[]string{"FAKECUDA_CC=90", "FAKECUDA_DRIVER=11040"}, 80, ""}, // PTX 7.8 is too new for it
		{[]string{"FAKECUDA_PTX=209"}, 70, ""},
		{[]string{"FAKECUDA_PTX=218"}, 70, ""},
		{[]string{"FAKECUDA_PTX=2"}, 0, "sm_90: GPU 0 (Fake GPU, 0000:18:00.0): load kernels"},
		{[]string{"FAKECUDA_CC=61"}, 0, "capability 6.1 is below 7.0"},
	} {
		t.Run(fmt.Sprint(c.env), func(t *testing.T) {
			if !onFake(t, c.env...) {
				return
			}
			k, err := device(t, 0).Kernels()
			switch {
			case c.want > 0 && (err != nil || k.Target != c.want):
				t.Errorf("%v %v", k, err)
			case c.want == 0 && (err == nil || !strings.Contains(err.Error(), c.text)):
				t.Error(err)
			}
		})
	}
}

// A pass is queued without an allocation.
func TestPassAllocatesNothing(t *testing.T) {
	if !onFake(t) {
		return
	}
	g := device(t, 0)
	s, k := stream(t, g), kernels(t, g)
	m := memory(t, s, make([]byte, 64))
	dst, src := gputest.Pointers(m.Span(0, 16)), gputest.Pointers(m.Span(16, 16), m.Span(32, 16))
	if n := testing.AllocsPerRun(20, func() { ok(t, k.Combine(s, reduce.Float, reduce.Sum, dst, src, 16, 0)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	ok(t, s.Sync())
}
