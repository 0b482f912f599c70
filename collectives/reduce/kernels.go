package reduce

import "unsafe"

// Kernels are the functions for one element type and operator on this
// processor. n counts elements; pointers need only the element's alignment;
// dst may equal a or b but must not overlap them otherwise.
type Kernels struct {
	Dtype Dtype
	Op    Op
	ISA   string // "avx512", "avx2", "neon", "portable"

	// Two does dst[i] = a[i] op b[i] (avg adds; Finish divides).
	Two func(dst, a, b unsafe.Pointer, n int)
	// Stream is Two with stores that bypass the caches, for a dst that nobody
	// reads soon; dst must differ from a and b.
	Stream func(dst, a, b unsafe.Pointer, n int)
	// Finish divides n sums by ranks, in place, once a chunk holds every
	// rank's contribution; nil unless Op is Avg.
	Finish func(dst unsafe.Pointer, n, ranks int)
}
