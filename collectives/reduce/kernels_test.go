package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func noise(r *rand.Rand, b []byte) {
	var word [8]byte
	for at := 0; at < len(b); at += 8 {
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(b[at:], word[:])
	}
}

// specials are zeros of both signs, infinities, NaNs, subnormals, the largest and
// the smallest of each type.
var specials = map[Dtype][]uint64{
	Float:    {0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc01234, 1, 0x807fffff, 0x7f7fffff, 0x3f800000},
	Double:   {0, 1 << 63, 0x7ff << 52, 0xfff << 52, 0x7ff8 << 48, 1, 0x7fefffffffffffff, 0x3ff << 52},
	Half:     {0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 1, 0x83ff, 0x7bff, 0x3c00},
	BFloat16: {0, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7fff, 1, 0x807f, 0x7f7f, 0x3f80},
	F8E4M3:   {0, 0x80, 0x7f, 0xff, 0x7e, 0xfe, 1, 0x38},
	F8E5M2:   {0, 0x80, 0x7c, 0xfc, 0x7e, 0xff, 1, 0x7b, 0x3c},
}

// random fills b with elements of d, a third of them specials.
func random(r *rand.Rand, d Dtype, b []byte) {
	noise(r, b)
	special := specials[d]

	for at := 0; at < len(b) && special != nil; at += d.Size() {
		if r.IntN(3) == 0 {
			x := special[r.IntN(len(special))]
			copy(b[at:at+d.Size()], unsafe.Slice((*byte)(unsafe.Pointer(&x)), d.Size()))
		}
	}
}

// isNaN says whether the element at p is a NaN.
func isNaN(d Dtype, p unsafe.Pointer) bool {
	switch d {
	case Float:
		return *(*float32)(p) != *(*float32)(p)
	case Double:
		return *(*float64)(p) != *(*float64)(p)
	case Half, BFloat16, F8E4M3, F8E5M2:
		var x [1]float32
		widen(d, x[:], p)
		return x[0] != x[0]
	}
	return false
}

// differ gives the first element at which a and b differ, or -1. Two NaNs are equal.
func differ(d Dtype, a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for at := 0; at < len(a); at += d.Size() {
		if !bytes.Equal(a[at:at+d.Size()], b[at:at+d.Size()]) && !(isNaN(d, unsafe.Pointer(&a[at])) && isNaN(d, unsafe.Pointer(&b[at]))) {
			return at / d.Size()
		}
	}
	return -1
}

func pointers(b [][]byte) []unsafe.Pointer {
	out := make([]unsafe.Pointer, len(b))
	for i := range b {
		out[i] = unsafe.Pointer(unsafe.SliceData(b[i]))
	}
	return out
}

// guard is what cut leaves after a slice, to see what is written past its end.
const guard = 64

// cut gives size bytes of noise that start offset bytes after a cache line.
func cut(r *rand.Rand, size, offset int) []byte {
	b := make([]byte, size+offset+2*guard)
	at := int(-uintptr(unsafe.Pointer(&b[0]))&63) + offset
	noise(r, b)
	return b[at : at+size : at+size+guard/2]
}

// TestVariantsEqualPortable compares every kernel with the portable one, to the
// bit, for every length up to several stripes, any alignment, one to five sources
// and destinations, in place and out, streaming and not.
func TestVariantsEqualPortable(t *testing.T) {
	for _, isa := range ISAs()[:len(ISAs())-1] {
		for _, d := range Dtypes() {
			for _, o := range Ops() {
				k := ForISA(d, o, isa)
				if k == nil {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", isa, d, o), func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, uint64(d)<<8|uint64(o)))
					for n := range 700 / d.Size() {
						compare(t, r, k, n, n%7 == 0)
					}
					for range 4 {
						compare(t, r, k, r.IntN(20000), false)
					}
				})
			}
		}
	}
}

func compare(t *testing.T, r *rand.Rand, k *Kernels, n int, inPlace bool) {
	t.Helper()
	size := k.Dtype.Size()
	stream, ranks := !inPlace && n%2 == 0, 1+r.IntN(1<<(1+n%17))
	offset := r.IntN(64/size) * size
	src := make([][]byte, 1+r.IntN(5))
	for i := range src {
		src[i] = cut(r, n*size, r.IntN(64/size)*size)
		random(r, k.Dtype, src[i])
	}
	want := cut(r, n*size, 0)
	ForISA(k.Dtype, k.Op, portable).CombineAll([]unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(want))}, pointers(src), n, ranks, false)
	dst := make([][]byte, 1+r.IntN(5))
	guards := make([][]byte, len(dst))
	for i := range dst {
		if r.IntN(4) == 0 {
			offset = r.IntN(64/size) * size
		}
		dst[i] = cut(r, n*size, offset)
		guards[i] = append([]byte(nil), dst[i][n*size:cap(dst[i])]...)
	}
	if inPlace {
		i := r.IntN(len(src))
		dst[0], guards[0] = src[i], append([]byte(nil), src[i][n*size:cap(src[i])]...)
	}
	k.CombineAll(pointers(dst), pointers(src), n, ranks, stream)
	for i := range dst {
		if at := differ(k.Dtype, dst[i], want); at >= 0 {
			t.Fatalf("n %d, ranks %d, sources %d, destination %d of %d, in place %v, stream %v: element %d is %x, portable has %x",
				n, ranks, len(src), i, len(dst), inPlace, stream, at, dst[i][at*size:at*size+size], want[at*size:at*size+size])
		}
		if !bytes.Equal(guards[i], dst[i][n*size:cap(dst[i])]) {
			t.Fatalf("n %d, sources %d, destination %d: wrote past its end", n, len(src), i)
		}
	}
}

// TestFinish divides as the doc comment says, also by more ranks than the type holds.
func TestFinish(t *testing.T) {
	i8 := []int8{-7, 7, 127, -128}
	For(Int8, Avg).Finish(unsafe.Pointer(&i8[0]), 4, 2)
	if fmt.Sprint(i8) != "[-3 3 63 -64]" {
		t.Errorf("int8 / 2 = %v", i8)
	}
	For(Int8, Avg).Finish(unsafe.Pointer(&i8[0]), 4, 300)
	if fmt.Sprint(i8) != "[0 0 0 0]" {
		t.Errorf("int8 / 300 = %v", i8)
	}
	u64 := []uint64{math.MaxUint64}
	For(Uint64, Avg).Finish(unsafe.Pointer(&u64[0]), 1, 5)
	if u64[0] != math.MaxUint64/5 {
		t.Errorf("uint64 max / 5 = %d", u64[0])
	}
	f := []float32{1, 10}
	For(Float, Avg).Finish(unsafe.Pointer(&f[0]), 2, 3)
	if f[0] != float32(1.0/3) || f[1] != float32(10.0/3) {
		t.Errorf("float / 3 = %v", f)
	}
	e4 := []uint8{0x50} // 8
	For(F8E4M3, Avg).Finish(unsafe.Pointer(&e4[0]), 1, 3)
	if e4[0] != 0x43 { // 2.667 is between 2.5 (0x42) and 2.75 (0x43)
		t.Errorf("f8e4m3 8/3 = %#x", e4[0])
	}
	if For(Float, Sum).Finish != nil {
		t.Error("sum has a Finish")
	}
}

// TestNoAllocation: the data path must not allocate.
func TestNoAllocation(t *testing.T) {
	var a, b, c [4096]byte
	pa, pb, pc := unsafe.Pointer(&a), unsafe.Pointer(&b), unsafe.Pointer(&c)
	for _, isa := range ISAs() {
		for _, d := range []Dtype{Float, Half, F8E4M3} {
			k := ForISA(d, Avg, isa)
			if k == nil {
				continue
			}
			got := testing.AllocsPerRun(20, func() {
				n := 4001 / d.Size()
				k.Two(pc, pa, pb, n)
				k.Stream(pc, pa, pb, n)
				dst, src := [2]unsafe.Pointer{pb, pc}, [3]unsafe.Pointer{pa, pb, pc}
				k.CombineAll(dst[:], src[:], n, 3, true)
				Copy(pc, pa, n, true)
				CopyAll(dst[:], pa, n, true)
			})
			if got != 0 {
				t.Errorf("%s %s: %v allocations", isa, d, got)
			}
		}
	}
}

func TestCopy(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 1200 {
		src := cut(r, n, r.IntN(64))
		dst := [][]byte{cut(r, n, 5), cut(r, n, 5), cut(r, n, r.IntN(64))}
		many := 1 + n%3
		after := dst[0][n : n+8]
		past := string(after)
		if many == 1 {
			Copy(unsafe.Pointer(unsafe.SliceData(dst[0])), unsafe.Pointer(unsafe.SliceData(src)), n, n%2 == 0)
		} else {
			CopyAll(pointers(dst[:many]), unsafe.Pointer(unsafe.SliceData(src)), n, n%2 == 0)
		}
		for _, d := range dst[:many] {
			if !bytes.Equal(d, src) {
				t.Fatalf("%d bytes to %d destinations: not copied", n, many)
			}
		}
		if string(after) != past {
			t.Fatalf("%d bytes: wrote past the end", n)
		}
	}
}
