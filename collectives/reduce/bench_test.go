package reduce

import (
	"fmt"
	"testing"
	"unsafe"
)

// bytesOf allocates n bytes that start on a cache line and sets every element of
// any type to a normal number.
func bytesOf(n int) unsafe.Pointer {
	b := make([]byte, n+64)
	for i := range b {
		b[i] = 0x3c
	}
	p := unsafe.Pointer(&b[0])
	return unsafe.Add(p, int(-uintptr(p)&63))
}

var benchSizes = []int{8, 4 << 10, 64 << 10, 1 << 20, 64 << 20}

// BenchmarkTwo: the bytes that count are those of one source.
func BenchmarkTwo(b *testing.B) {
	for _, isa := range ISAs() {
		for _, d := range []Dtype{Float, BFloat16, Half, Int8, F8E4M3} {
			k := ForISA(d, Sum, isa)
			if k == nil {
				continue
			}
			for _, size := range []int{8, 64 << 10} {
				dst, x, y := bytesOf(size), bytesOf(size), bytesOf(size)
				b.Run(fmt.Sprintf("%s/%s/%d", isa, d, size), func(b *testing.B) {
					b.SetBytes(int64(size))
					for b.Loop() {
						k.Two(dst, x, y, size/d.Size())
					}
				})
			}
		}
	}
}

// BenchmarkCombine is the inner step of a direct AllReduce: n sources into n
// destinations, float sums.
func BenchmarkCombine(b *testing.B) {
	for _, isa := range ISAs() {
		k := ForISA(Float, Sum, isa)
		for _, c := range []struct{ ns, nd int }{{2, 1}, {2, 2}, {4, 4}, {8, 8}} {
			for _, size := range benchSizes {
				dst, src := make([]unsafe.Pointer, c.nd), make([]unsafe.Pointer, c.ns)
				for i := range dst {
					dst[i] = bytesOf(size / c.nd)
				}
				for i := range src {
					src[i] = bytesOf(size / c.nd)
				}
				for _, stream := range []bool{false, true} {
					if stream && size < 1<<20 {
						continue
					}
					b.Run(fmt.Sprintf("%s/%dto%d/%d/stream=%v", isa, c.ns, c.nd, size, stream), func(b *testing.B) {
						b.SetBytes(int64(size / c.nd * (c.ns + c.nd))) // memory traffic
						for b.Loop() {
							k.Combine(dst, src, size/c.nd/4, stream)
						}
					})
				}
			}
		}
	}
}

// BenchmarkAverage is BenchmarkCombine's 2 to 2 with the division.
func BenchmarkAverage(b *testing.B) {
	for _, isa := range ISAs() {
		for _, d := range []Dtype{Float, Int32} {
			k := ForISA(d, Avg, isa)
			for _, size := range benchSizes {
				dst := []unsafe.Pointer{bytesOf(size / 2), bytesOf(size / 2)}
				src := []unsafe.Pointer{bytesOf(size / 2), bytesOf(size / 2)}
				b.Run(fmt.Sprintf("%s/%s/%d", isa, d, size), func(b *testing.B) {
					b.SetBytes(int64(2 * size))
					for b.Loop() {
						k.CombineAll(dst, src, size/2/d.Size(), 2, size >= 1<<20)
					}
				})
			}
		}
	}
}

func BenchmarkCopy(b *testing.B) {
	for _, size := range append([]int{64}, benchSizes...) {
		dst, src := bytesOf(size), bytesOf(size)
		for _, stream := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/stream=%v", size, stream), func(b *testing.B) {
				b.SetBytes(int64(2 * size))
				for b.Loop() {
					Copy(dst, src, size, stream)
				}
			})
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, size := range benchSizes {
		buf := make([]byte, size)
		Fill(buf, Float, Sum, 1, 0, 0)
		b.Run(fmt.Sprintf("check/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if wrong, _ := Check(buf, Float, Sum, 1, 0); wrong != 0 {
					b.Fatal("wrong")
				}
			}
		})
		b.Run(fmt.Sprintf("fill/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				Fill(buf, Float, Sum, 1, 0, 0)
			}
		})
	}
}
