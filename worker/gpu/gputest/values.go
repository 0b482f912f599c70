package gputest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"unsafe"

	"busbw/collectives/reduce"
)

// Random is bytes of every kind of value: NaN, infinities and subnormals too.
func Random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// isNaN says whether the bits of an element are those of a NaN.
func isNaN(d reduce.Dtype, b []byte) bool {
	switch d {
	case reduce.Half:
		return binary.LittleEndian.Uint16(b)&0x7fff > 0x7c00
	case reduce.BFloat16:
		return binary.LittleEndian.Uint16(b)&0x7fff > 0x7f80
	case reduce.Float:
		return binary.LittleEndian.Uint32(b)&0x7fffffff > 0x7f800000
	case reduce.Double:
		return binary.LittleEndian.Uint64(b)&(1<<63-1) > 0x7ff<<52
	case reduce.F8E4M3:
		return b[0]&0x7f == 0x7f
	case reduce.F8E5M2:
		return b[0]&0x7f > 0x7c
	}
	return false
}

// Differs is the first element in which a and b differ, NaNs being alike; −1: none.
func Differs(d reduce.Dtype, a, b []byte) int {
	for i := 0; i < len(a); i += d.Size() {
		x, y := a[i:i+d.Size()], b[i:i+d.Size()]
		if !bytes.Equal(x, y) && !(isNaN(d, x) && isNaN(d, y)) {
			return i / d.Size()
		}
	}
	return -1
}

// Pointers is where the spans are.
func Pointers(spans ...[]byte) (p []unsafe.Pointer) {
	for _, s := range spans {
		p = append(p, unsafe.Pointer(unsafe.SliceData(s)))
	}
	return p
}

// Combined is what a pass must make of its sources, by the kernels in Go.
func Combined(d reduce.Dtype, o reduce.Op, src [][]byte, ranks int) []byte {
	out := make([]byte, len(src[0]))
	k := reduce.ForISA(d, o, "portable")
	if n := len(out) / d.Size(); ranks > 0 {
		k.CombineAll(Pointers(out), Pointers(src...), n, ranks, false)
	} else if n > 0 {
		k.Combine(Pointers(out), Pointers(src...), n, false)
	}
	return out
}
