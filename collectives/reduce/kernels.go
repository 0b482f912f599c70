package reduce

import "unsafe"

// Kernels are the functions for one element type and operator on this
// processor. Counts are of elements; pointers need only the element's alignment;
// a dst may equal a source but must not overlap one otherwise. A Kernels is
// never written after For made it, so that ranks may share it.
//
// What an element of the result is, to the bit, on every processor:
//
//   - Integers wrap, as in Go.
//   - float and double: one IEEE 754 operation for each source, rounded to
//     nearest even, subnormals kept.
//   - half, bfloat16, f8e4m3 and f8e5m2: the operands widen to float, which is
//     exact, the operation is done in float, and its result is rounded to nearest
//     even, once per source. half, bfloat16 and f8e5m2 overflow to infinity;
//     f8e4m3 has none (OCP E4M3FN) and saturates at ±448.
//   - min is "a < b ? a : b", max is "a > b ? a : b", a being what has been
//     combined so far: of -0 and +0, and of a number and a NaN, b wins.
//   - Where a result is a NaN it is a NaN everywhere, but its sign and payload
//     may differ from one processor to another.
type Kernels struct {
	Dtype Dtype
	Op    Op
	ISA   string // one of ISAs

	// Finish divides n sums by ranks, in place, once a chunk holds every
	// rank's contribution; nil unless Op is Avg. Integers are divided as in
	// Go, towards zero; the others in their float form, rounded once more.
	Finish func(dst unsafe.Pointer, n, ranks int)

	partial, final pass // they differ for Avg only: final divides
	grain          int  // vector kernels take multiples of this many bytes
}

// pass is one way over the buffers: vector, where there is one, and its portable
// twin, which takes any number of elements.
type pass struct{ vector, twin kernel }

// kernel combines the bytes from..to of ns sources into nd destinations. It
// reads each part of all sources before it writes that part of any destination.
// Those of avg divide by ranks in between, the others ignore ranks.
// With stream, the destinations are aligned to lineBytes at from and the stores
// bypass the caches where they can.
type kernel func(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

// table has a kernel for each type and operator. Avg's adds and divides.
type table [len(dtypes)][Avg + 1]kernel

// variant is one instruction set's kernels.
type variant struct {
	isa     string
	grain   int // bytes, a power of two
	kernels *table
}

// portable is the name of the kernels in Go, which every processor has.
const portable = "portable"

// lineBytes is what streaming stores are aligned to: a cache line.
const lineBytes = 64

// ISAs lists the instruction sets that there are kernels for and that this
// processor has, best first; the last is "portable".
func ISAs() []string {
	var out []string
	for _, v := range variants() {
		out = append(out, v.isa)
	}
	return append(out, portable)
}

// For gives the best kernels of this processor.
func For(d Dtype, o Op) *Kernels {
	for _, isa := range ISAs() {
		if k := ForISA(d, o, isa); k != nil {
			return k
		}
	}
	return nil // not reached: portable has everything
}

// ForISA gives the kernels of one of ISAs, or nil if it has none for this type
// and operator.
func ForISA(d Dtype, o Op, isa string) *Kernels {
	var vectors [Avg + 1]kernel
	grain := 0
	for _, v := range variants() {
		if v.isa == isa {
			vectors, grain = v.kernels[d], v.grain
		}
	}
	sum := o
	if o == Avg {
		sum = Sum
	}
	if isa != portable && vectors[sum] == nil {
		return nil
	}
	k := &Kernels{Dtype: d, Op: o, ISA: isa, grain: grain}
	k.partial = pass{vectors[sum], portableKernel(d, sum)}
	k.final = pass{vectors[o], portableKernel(d, o)}
	if o == Avg {
		k.Finish = func(dst unsafe.Pointer, n, ranks int) {
			k.run(&k.final, local(&dst), local(&dst), 1, 1, n*d.Size(), ranks, false)
		}
	}
	return k
}

// Two does dst[i] = a[i] op b[i] (avg adds; Finish divides).
func (k *Kernels) Two(dst, a, b unsafe.Pointer, n int) {
	src := [2]unsafe.Pointer{a, b}
	k.run(&k.partial, local(&dst), local(&src[0]), 1, 2, n*k.Dtype.Size(), 0, false)
}

// Stream is Two with stores that bypass the caches, for a dst that nobody
// reads soon; dst must differ from a and b.
func (k *Kernels) Stream(dst, a, b unsafe.Pointer, n int) {
	src := [2]unsafe.Pointer{a, b}
	k.run(&k.partial, local(&dst), local(&src[0]), 1, 2, n*k.Dtype.Size(), 0, true)
}

// Combine does dst[j][i] = src[0][i] op src[1][i] op … in that order, for every
// j, in one pass: each source is read once and each dst written once. A dst may
// equal a source. With stream the stores bypass the caches, which pays when dst
// is much larger than they are and no dst is a source. avg adds; see CombineAll.
func (k *Kernels) Combine(dst, src []unsafe.Pointer, n int, stream bool) {
	if len(dst) > 0 && len(src) > 0 {
		k.run(&k.partial, local(&dst[0]), local(&src[0]), len(dst), len(src), n*k.Dtype.Size(), 0, stream)
	}
}

// CombineAll is Combine for sources that make up every rank's contribution: the
// result is final, so avg divides it by ranks, in the same pass.
func (k *Kernels) CombineAll(dst, src []unsafe.Pointer, n, ranks int, stream bool) {
	if len(dst) > 0 && len(src) > 0 {
		k.run(&k.final, local(&dst[0]), local(&src[0]), len(dst), len(src), n*k.Dtype.Size(), ranks, stream)
	}
}

// run combines the first total bytes: by vectors, streaming where it was asked
// for and all destinations are aligned alike, and the rest by the portable twin.
func (k *Kernels) run(p *pass, dst, src *unsafe.Pointer, nd, ns, total, ranks int, stream bool) {
	if p.vector == nil {
		p.twin(dst, src, nd, ns, 0, total, ranks, false)
		return
	}
	from := 0
	if stream && total >= 2*lineBytes {
		if head, ok := toLine(unsafe.Slice(dst, nd)); ok {
			k.plain(p, dst, src, nd, ns, 0, head, ranks)
			from = head + (total-head)&^(k.grain-1)
			p.vector(dst, src, nd, ns, head, from, ranks, true)
		}
	}
	k.plain(p, dst, src, nd, ns, from, total, ranks)
}

func (k *Kernels) plain(p *pass, dst, src *unsafe.Pointer, nd, ns, from, to, ranks int) {
	if to-from >= k.grain {
		end := from + (to-from)&^(k.grain-1)
		p.vector(dst, src, nd, ns, from, end, ranks, false)
		from = end
	}
	if from < to {
		p.twin(dst, src, nd, ns, from, to, ranks, false)
	}
}

// toLine is how many bytes it is from every pointer to the next cache line;
// not ok if they differ.
func toLine(p []unsafe.Pointer) (n int, ok bool) {
	n = int(-uintptr(p[0]) & (lineBytes - 1))
	for _, q := range p[1:] {
		if (uintptr(p[0])^uintptr(q))&(lineBytes-1) != 0 {
			return 0, false
		}
	}
	return n, true
}

// local hides p from the compiler's escape analysis: a kernel is called through
// a variable, so that it is taken to keep its arguments, but none does, and p may
// stay on the stack. Otherwise every call would allocate.
//
//go:nosplit
//go:nocheckptr
func local(p *unsafe.Pointer) *unsafe.Pointer {
	x := uintptr(unsafe.Pointer(p))
	return *(**unsafe.Pointer)(unsafe.Pointer(&x))
}
