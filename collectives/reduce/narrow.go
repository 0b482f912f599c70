package reduce

import (
	"math"
	"unsafe"
)

// The types that widen to float: half (IEEE 754 binary16), bfloat16 (the upper
// half of a float), f8e4m3 and f8e5m2 (OCP 8-bit Floating Point Specification,
// revision 1.0, table 1). Widening is exact; narrowing rounds to nearest even.

// widen reads len(dst) elements at src.
func widen(d Dtype, dst []float32, src unsafe.Pointer) {
	switch d {
	case Half:
		for i, x := range unsafe.Slice((*uint16)(src), len(dst)) {
			dst[i] = fromHalf(x)
		}
	case BFloat16:
		for i, x := range unsafe.Slice((*uint16)(src), len(dst)) {
			dst[i] = math.Float32frombits(uint32(x) << 16)
		}
	case F8E4M3:
		for i, x := range unsafe.Slice((*uint8)(src), len(dst)) {
			dst[i] = fromE4M3(x)
		}
	case F8E5M2:
		for i, x := range unsafe.Slice((*uint8)(src), len(dst)) {
			dst[i] = fromHalf(uint16(x) << 8)
		}
	}
}

// narrow writes len(src) elements to dst.
func narrow(d Dtype, dst unsafe.Pointer, src []float32) {
	switch d {
	case Half:
		out := unsafe.Slice((*uint16)(dst), len(src))
		for i, x := range src {
			out[i] = toHalf(x)
		}
	case BFloat16:
		out := unsafe.Slice((*uint16)(dst), len(src))
		for i, x := range src {
			out[i] = toBFloat16(x)
		}
	case F8E4M3:
		out := unsafe.Slice((*uint8)(dst), len(src))
		for i, x := range src {
			out[i] = toE4M3(x)
		}
	case F8E5M2:
		out := unsafe.Slice((*uint8)(dst), len(src))
		for i, x := range src {
			out[i] = toE5M2(x)
		}
	}
}

// round gives x the values that it would have after narrow and widen.
func round(d Dtype, x []float32) {
	var block [blockElems]uint16
	narrow(d, unsafe.Pointer(&block), x)
	widen(d, x, unsafe.Pointer(&block))
}

// fromHalf shifts exponent and mantissa into place and corrects the exponent's
// bias, 127 instead of 15.
func fromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	bits := uint32(h&0x7fff) << 13
	switch h & 0x7c00 {
	case 0: // zero or subnormal
		bits = math.Float32bits(float32(h&0x3ff) * 0x1p-24)
	case 0x7c00: // infinity or NaN
		bits |= 0x7f800000
	default:
		bits += (127 - 15) << 23
	}
	return math.Float32frombits(sign | bits)
}

func toHalf(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 0x7fffffff
	if bits > 0x7f800000 { // NaN: made quiet
		return sign | 0x7e00 | uint16(bits>>13&0x3ff)
	}
	return sign | uint16(min(roundBits(bits, 15, 10), 0x7c00))
}

func toBFloat16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 { // NaN: made quiet
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func fromE4M3(x uint8) float32 {
	sign := uint32(x&0x80) << 24
	bits := uint32(x&0x7f) << 20
	switch {
	case x&0x7f == 0x7f:
		bits = 0x7fc00000
	case x&0x78 == 0:
		bits = math.Float32bits(float32(x&7) * 0x1p-9)
	default:
		bits += (127 - 7) << 23
	}
	return math.Float32frombits(sign | bits)
}

func toE4M3(f float32) uint8 {
	bits := math.Float32bits(f)
	sign := uint8(bits >> 24 & 0x80)
	bits &= 0x7fffffff
	if bits > 0x7f800000 {
		return sign | 0x7f
	}
	return sign | uint8(min(roundBits(bits, 7, 3), 0x7e)) // 0x7e is 448
}

func toE5M2(f float32) uint8 {
	bits := math.Float32bits(f)
	sign := uint8(bits >> 24 & 0x80)
	bits &= 0x7fffffff
	if bits > 0x7f800000 {
		return sign | 0x7e
	}
	return sign | uint8(min(roundBits(bits, 15, 2), 0x7c)) // 0x7c is infinity
}

// roundBits rounds the non-negative float with these bits to nearest even in a
// format with the given exponent bias and mantissa bits, and gives its exponent
// and mantissa fields as if the exponent had no end: the caller caps them.
func roundBits(bits uint32, bias, mantissa int) uint32 {
	exponent := int(bits>>23) - 127 + bias
	drop := 23 - mantissa // mantissa bits that go
	if exponent <= 0 {    // subnormal: the hidden bit shows and the value moves right
		if bits>>23 == 0 {
			return 0 // a subnormal float is far below half the smallest value
		}
		drop += 1 - exponent
		if drop > 24 {
			return 0 // below half the smallest value
		}
		bits = bits&0x7fffff | 0x800000
	} else {
		bits = bits&0x7fffff | uint32(exponent)<<23
	}
	return (bits + 1<<(drop-1) - 1 + bits>>drop&1) >> drop
}
