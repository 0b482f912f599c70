package reduce

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// variants lists the kernels that this processor can run, best first.
func variants() []variant {
	var out []variant
	// The names of cpu.X86 include that the system saves the registers.
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasBMI2 {
		out = append(out, variant{"avx512", 1, &avx512})
	}
	if x.HasAVX2 && x.HasF16C {
		out = append(out, variant{"avx2", 32, &avx2})
	}
	return out
}

// avx512 has the sums, products, minima, maxima and averages; nil: portable.
var avx512 = table{
	Int8:     {sumInt8AVX512, prodInt8AVX512, minInt8AVX512, maxInt8AVX512},
	Uint8:    {sumInt8AVX512, prodInt8AVX512, minUint8AVX512, maxUint8AVX512},
	Int32:    {sumInt32AVX512, prodInt32AVX512, minInt32AVX512, maxInt32AVX512},
	Uint32:   {sumInt32AVX512, prodInt32AVX512, minUint32AVX512, maxUint32AVX512},
	Int64:    {sumInt64AVX512, prodInt64AVX512, minInt64AVX512, maxInt64AVX512},
	Uint64:   {sumInt64AVX512, prodInt64AVX512, minUint64AVX512, maxUint64AVX512},
	Half:     {sumHalfAVX512, prodHalfAVX512, minHalfAVX512, maxHalfAVX512, avgHalfAVX512},
	Float:    {sumFloatAVX512, prodFloatAVX512, minFloatAVX512, maxFloatAVX512, avgFloatAVX512},
	Double:   {sumDoubleAVX512, prodDoubleAVX512, minDoubleAVX512, maxDoubleAVX512, avgDoubleAVX512},
	BFloat16: {sumBFloat16AVX512, prodBFloat16AVX512, minBFloat16AVX512, maxBFloat16AVX512, avgBFloat16AVX512},
	F8E4M3:   {sumF8E4M3AVX512, prodF8E4M3AVX512, minF8E4M3AVX512, maxF8E4M3AVX512, avgF8E4M3AVX512},
	F8E5M2:   {sumF8E5M2AVX512, prodF8E5M2AVX512, minF8E5M2AVX512, maxF8E5M2AVX512, avgF8E5M2AVX512},
}

// avx2 has the sums, products, minima, maxima and averages; nil: portable.
var avx2 = table{
	Int8:     {sumInt8AVX2, prodInt8AVX2, minInt8AVX2, maxInt8AVX2},
	Uint8:    {sumInt8AVX2, prodInt8AVX2, minUint8AVX2, maxUint8AVX2},
	Int32:    {sumInt32AVX2, prodInt32AVX2, minInt32AVX2, maxInt32AVX2},
	Uint32:   {sumInt32AVX2, prodInt32AVX2, minUint32AVX2, maxUint32AVX2},
	Int64:    {sumInt64AVX2, nil, minInt64AVX2, maxInt64AVX2},
	Uint64:   {sumInt64AVX2, nil, nil, nil},
	Half:     {sumHalfAVX2, prodHalfAVX2, minHalfAVX2, maxHalfAVX2, avgHalfAVX2},
	Float:    {sumFloatAVX2, prodFloatAVX2, minFloatAVX2, maxFloatAVX2, avgFloatAVX2},
	Double:   {sumDoubleAVX2, prodDoubleAVX2, minDoubleAVX2, maxDoubleAVX2, avgDoubleAVX2},
	BFloat16: {sumBFloat16AVX2, prodBFloat16AVX2, minBFloat16AVX2, maxBFloat16AVX2, avgBFloat16AVX2},
}

// In the .s files. They keep none of their arguments, but are called through
// variables only, so that it would be in vain to tell the compiler (see local).
func sumFloatAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodFloatAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minFloatAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxFloatAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgFloatAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumDoubleAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodDoubleAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minDoubleAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxDoubleAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgDoubleAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumInt32AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodInt32AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minInt32AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minUint32AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxInt32AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxUint32AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumInt64AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodInt64AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minInt64AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minUint64AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxInt64AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxUint64AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumInt8AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodInt8AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minInt8AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minUint8AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxInt8AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxUint8AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumHalfAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodHalfAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minHalfAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxHalfAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgHalfAVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumBFloat16AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodBFloat16AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minBFloat16AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxBFloat16AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgBFloat16AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumF8E4M3AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodF8E4M3AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minF8E4M3AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxF8E4M3AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgF8E4M3AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumF8E5M2AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodF8E5M2AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minF8E5M2AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxF8E5M2AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgF8E5M2AVX512(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumFloatAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodFloatAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minFloatAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxFloatAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgFloatAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumDoubleAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodDoubleAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minDoubleAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxDoubleAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgDoubleAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumInt32AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodInt32AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minInt32AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minUint32AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxInt32AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxUint32AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumInt64AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minInt64AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxInt64AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumInt8AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodInt8AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minInt8AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minUint8AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxInt8AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxUint8AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumHalfAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodHalfAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minHalfAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxHalfAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgHalfAVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumBFloat16AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodBFloat16AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minBFloat16AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxBFloat16AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgBFloat16AVX2(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
