package ptxvm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"busbw/collectives/reduce"
	"busbw/worker/gpu/gputest"
)

const patience = 1 << 24 // instructions of a launch

func load(t testing.TB, sm int) (string, *Module) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("../kernels/sm_%d.ptx", sm))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(string(b))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("sm_%d", sm); m.Target != want {
		t.Fatalf("target %s, want %s", m.Target, want)
	}
	return string(b), m
}

// pass is struct pass of kernels.h.
func pass(dst, src []uint64, bytes, ranks int) []byte {
	p := binary.LittleEndian.AppendUint64(nil, uint64(bytes))
	for _, n := range []int{len(src), len(dst), ranks, 0} {
		p = binary.LittleEndian.AppendUint32(p, uint32(n))
	}
	for _, list := range [][]uint64{dst, src} {
		for i := range 16 {
			a := uint64(0)
			if i < len(list) {
				a = list[i]
			}
			p = binary.LittleEndian.AppendUint64(p, a)
		}
	}
	return p
}

func words(w ...uint64) (p []byte) {
	for _, x := range w {
		p = binary.LittleEndian.AppendUint64(p, x)
	}
	return p
}

// Every kernel of every target gives the bits of the portable kernels, at any
// alignment, and touches nothing else: what is outside a buffer is an error.
func TestPasses(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, sm := range []int{70, 80, 90} {
		text, m := load(t, sm)
		if len(m.Funcs) != 4*12+2 {
			t.Errorf("sm_%d has %d kernels", sm, len(m.Funcs))
		}
		if strings.Contains(text, ".nc.") || strings.Contains(text, ".ftz") || strings.Contains(text, "fma.") {
			t.Errorf("sm_%d: loads that peers' writes pass by, subnormals flushed, or roundings left out", sm)
		}
		for _, o := range reduce.Ops() {
			for _, d := range reduce.Dtypes() {
				for turn, c := range []struct{ ns, nd, n, shift, grid, block int }{{1, 2, 33, 0, 1, 32}, {2, 1, 300, 0, 2, 33}, {3, 1, 37, 1, 1, 8}, {2, 2, 19, 3, 3, 4}, {4, 1, 5, 0, 1, 1}} {
					size, off := c.n*d.Size(), c.shift*d.Size()
					ranks := 0
					if o == reduce.Avg {
						ranks = []int{1, 3, 300}[turn%3]
					}
					var vm VM
					var in [][]byte
					var src, dst []uint64
					var out []*Buffer
					for j := range c.ns {
						in = append(in, gputest.Random(r, size))
						b := vm.Alloc(append(make([]byte, off+j%2*off), in[j]...)) // alike, or apart
						src = append(src, b.Addr+uint64(len(b.Data)-size))
					}
					for range c.nd {
						b := vm.Alloc(make([]byte, off+size))
						out = append(out, b)
						dst = append(dst, b.Addr+uint64(off))
					}
					name := o.String()
					if o == reduce.Avg {
						name = "sum"
					}
					f := m.Funcs[name+"_"+d.String()]
					if f == nil {
						t.Fatalf("sm_%d has no %s of %s", sm, o, d)
					}
					if err := vm.Launch(f, c.grid, c.block, patience, pass(dst, src, size, ranks)); err != nil {
						t.Fatalf("sm_%d: %v", sm, err)
					}
					want := gputest.Combined(d, o, in, ranks)
					for _, b := range out {
						if i := gputest.Differs(d, b.Data[off:], want); i >= 0 {
							e := func(b []byte) []byte { return b[i*d.Size():][:d.Size()] }
							t.Fatalf("sm_%d %s %s: element %d is %x, want %x (of %x …)", sm, d, o, i, e(b.Data[off:]), e(want), e(in[0]))
						}
					}
				}
			}
		}
	}
}

// All pairs of a 16-bit operand with a random one.
func TestHalfArithmetic(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	_, m := load(t, 80)
	for _, d := range []reduce.Dtype{reduce.Half, reduce.BFloat16} {
		a := make([]byte, 0, 1<<17)
		for i := range 1 << 16 {
			a = binary.LittleEndian.AppendUint16(a, uint16(i))
		}
		b := gputest.Random(r, len(a))
		var vm VM
		x, y, z := vm.Alloc(a), vm.Alloc(b), vm.Alloc(make([]byte, len(a)))
		if err := vm.Launch(m.Funcs["sum_"+d.String()], 4, 64, 1<<40, pass([]uint64{z.Addr}, []uint64{x.Addr, y.Addr}, len(a), 0)); err != nil {
			t.Fatal(err)
		}
		if i := gputest.Differs(d, z.Data, gputest.Combined(d, reduce.Sum, [][]byte{a, b}, 0)); i >= 0 {
			t.Errorf("%s: %x + %x = %x", d, a[2*i:][:2], b[2*i:][:2], z.Data[2*i:][:2])
		}
	}
}

func TestFillAndCheck(t *testing.T) {
	for _, sm := range []int{70, 80, 90} {
		_, m := load(t, sm)
		for _, shift := range []uint64{0, 4} {
			const n = 5000
			var vm VM
			want := make([]byte, n)
			reduce.Fill(want, reduce.Int32, reduce.Sum, 5, 2, 9)
			period := vm.Alloc(reduce.Input(reduce.Int32, reduce.Sum, 5, 2, 9, 700*4))
			for i := range want { // a shorter period than the pattern's own
				want[i] = period.Data[i%(700*4)]
			}
			buf := vm.Alloc(make([]byte, n+shift))
			if err := vm.Launch(m.Funcs["fill"], 2, 30, patience, words(buf.Addr+shift, n, period.Addr, 700*4)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(buf.Data[shift:], want) {
				t.Fatalf("sm_%d: the fill differs", sm)
			}
			for _, bad := range [][]uint64{nil, {0}, {n/4 - 1}, {1000, 3}} {
				copy(buf.Data[shift:], want)
				least := ^uint64(0)
				for _, e := range bad {
					buf.Data[shift+4*e+3] ^= 0x80
					least = min(least, e)
				}
				result := vm.Alloc(words(0, ^uint64(0)))
				if err := vm.Launch(m.Funcs["check"], 3, 7, patience, words(buf.Addr+shift, n, period.Addr, 700*4, 4, result.Addr)); err != nil {
					t.Fatal(err)
				}
				if got := words(uint64(len(bad)), least); !bytes.Equal(result.Data, got) {
					t.Errorf("sm_%d %v: %x, want %x", sm, bad, result.Data, got)
				}
			}
		}
	}
}

// The interpreter notices damage: to the text when it is parsed, to what the
// instructions do when they run.
func TestFaultsAreCaught(t *testing.T) {
	text, _ := load(t, 70)
	from := strings.Index(text, ".visible .entry sum_float(")
	head, text := text[:strings.Index(text, ".visible")], text[from:]
	text = head + text[:strings.Index(text, "\n}")+3]
	run := func(s string) error {
		m, err := Parse(s)
		if err != nil {
			return err
		}
		var vm VM
		a, b, c := vm.Alloc(gputest.Random(rand.New(rand.NewPCG(7, 8)), 400)), vm.Alloc(gputest.Random(rand.New(rand.NewPCG(9, 10)), 400)), vm.Alloc(make([]byte, 400))
		if err := vm.Launch(m.Funcs["sum_float"], 2, 8, 1<<16, pass([]uint64{c.Addr}, []uint64{a.Addr, b.Addr}, 396, 0)); err != nil {
			return err
		}
		if i := gputest.Differs(reduce.Float, c.Data, append(gputest.Combined(reduce.Float, reduce.Sum, [][]byte{a.Data[:396], b.Data[:396]}, 0), 0, 0, 0, 0)); i >= 0 {
			return fmt.Errorf("element %d differs", i)
		}
		return nil
	}
	if err := run(text); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"add.rn.f32", "addd.rn.f32", "not known"},
		{"add.rn.f32", "mul.rn.f32", "differs"},
		{"add.rn.f32", "add.rz.f32", "not known"},
		{"bra.uni \t$L__BB", "bra.uni \t$M__BB", "no label"},
		{"ld.global.v4.f32", "ld.global.nc.v4.f32", "not known"},
		{"ld.global.v4.f32", "ld.global.v2.f32", "registers for"},
		{"[sum_float_param_0+8]", "[sum_float_param_1+8]", "no parameter"},
		{".reg .f32", ".reg .b32", "is .b32"},
		{"%tid.x", "%tid.y", "not declared"},
		{"-16;", "-8;", ""},
		{"st.global.v4.f32 \t[%rd", "st.global.v4.f32 \t[%r", ""},
		{"setp.ge.u64", "setp.lt.u64", ""},
		{"shl.b64", "shr.u64", ""},
		{"neg.s64", "add.s64", "operands"},
	} {
		s := strings.Replace(text, c.old, c.new, 1)
		if s == text {
			t.Fatalf("%q is not in the kernel", c.old)
		}
		if err := run(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v; want %q", c.new, c.old, err, c.want)
		}
	}
}
