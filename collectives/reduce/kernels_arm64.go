package reduce

import "unsafe"

// variants lists the kernels that this processor can run: NEON is part of arm64.
func variants() []variant { return []variant{{"neon", 64, &neon}} }

// neon has the sums, products, minima, maxima and averages; nil: portable.
var neon = table{
	Int8:     {sumInt8NEON, prodInt8NEON, minInt8NEON, maxInt8NEON},
	Uint8:    {sumInt8NEON, prodInt8NEON, minUint8NEON, maxUint8NEON},
	Int32:    {sumInt32NEON, prodInt32NEON, minInt32NEON, maxInt32NEON},
	Uint32:   {sumInt32NEON, prodInt32NEON, minUint32NEON, maxUint32NEON},
	Int64:    {sumInt64NEON, nil, minInt64NEON, maxInt64NEON},
	Uint64:   {sumInt64NEON, nil, minUint64NEON, maxUint64NEON},
	Half:     {sumHalfNEON, prodHalfNEON, minHalfNEON, maxHalfNEON, avgHalfNEON},
	Float:    {sumFloatNEON, prodFloatNEON, minFloatNEON, maxFloatNEON, avgFloatNEON},
	Double:   {sumDoubleNEON, prodDoubleNEON, minDoubleNEON, maxDoubleNEON, avgDoubleNEON},
	BFloat16: {sumBFloat16NEON, prodBFloat16NEON, minBFloat16NEON, maxBFloat16NEON, avgBFloat16NEON},
}

// In the .s files. They keep none of their arguments, but are called through
// variables only, so that it would be in vain to tell the compiler (see local).
func sumFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumInt32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodInt32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minInt32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxInt32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minUint32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxUint32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumInt64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minInt64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxInt64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minUint64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxUint64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumInt8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodInt8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minInt8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxInt8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minUint8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxUint8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func sumBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func prodBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func minBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func maxBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
func avgBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
