package reduce

import "unsafe"

// The kernels in Go. They work through a block on the stack, small enough to
// stay in the first-level cache and to be cheap to clear for a short tail.
const blockElems = 64

type number interface {
	int8 | uint8 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// portableKernel gives the twin of any vector kernel.
func portableKernel(d Dtype, o Op) kernel {
	switch d {
	case Int8:
		return plainKernel[int8](o)
	case Uint8:
		return plainKernel[uint8](o)
	case Int32:
		return plainKernel[int32](o)
	case Uint32:
		return plainKernel[uint32](o)
	case Int64:
		return plainKernel[int64](o)
	case Uint64:
		return plainKernel[uint64](o)
	case Float:
		return plainKernel[float32](o)
	case Double:
		return plainKernel[float64](o)
	default:
		return narrowKernel(d, o)
	}
}

// plainKernel is for the types that Go computes with.
func plainKernel[T number](o Op) kernel {
	return func(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, _ bool) {
		var acc [blockElems]T
		size := int(unsafe.Sizeof(acc[0]))
		for at := from; at < to; at += blockElems * size {
			a := acc[:min(blockElems, (to-at)/size)]
			for j, p := range unsafe.Slice(src, ns) {
				b := unsafe.Slice((*T)(unsafe.Add(p, at)), len(a))
				if j == 0 {
					copy(a, b)
				} else {
					combine(o, a, b)
				}
			}
			if o == Avg {
				divide(a, ranks)
			}
			for _, p := range unsafe.Slice(dst, nd) {
				copy(unsafe.Slice((*T)(unsafe.Add(p, at)), len(a)), a)
			}
		}
	}
}

// narrowKernel is for the types that widen to float.
func narrowKernel(d Dtype, o Op) kernel {
	return func(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, _ bool) {
		var acc, next [blockElems]float32
		size := d.Size()
		for at := from; at < to; at += blockElems * size {
			n := min(blockElems, (to-at)/size)
			for j, p := range unsafe.Slice(src, ns) {
				if j == 0 {
					widen(d, acc[:n], unsafe.Add(p, at))
					continue
				}
				widen(d, next[:n], unsafe.Add(p, at))
				combine(o, acc[:n], next[:n])
				if o != Min && o != Max { // these give one of the operands
					round(d, acc[:n])
				}
			}
			if o == Avg {
				divide(acc[:n], ranks)
			}
			for _, p := range unsafe.Slice(dst, nd) {
				narrow(d, unsafe.Add(p, at), acc[:n])
			}
		}
	}
}

// combine does a[i] = a[i] op b[i]; avg adds.
func combine[T number](o Op, a, b []T) {
	b = b[:len(a)]
	switch o {
	case Sum, Avg:
		for i, x := range b {
			a[i] += x
		}
	case Prod:
		for i, x := range b {
			a[i] *= x
		}
	case Min:
		for i, x := range b {
			if !(a[i] < x) { // not ">=": a NaN in b must win
				a[i] = x
			}
		}
	case Max:
		for i, x := range b {
			if !(a[i] > x) {
				a[i] = x
			}
		}
	}
}

// divide divides by ranks, in 64 bits if ranks exceeds what T holds.
func divide[T number](a []T, ranks int) {
	if n := T(ranks); int(n) == ranks {
		for i := range a {
			a[i] /= n
		}
		return
	}
	for i, x := range a {
		a[i] = T(int64(x) / int64(ranks))
	}
}
