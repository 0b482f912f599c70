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

//go:noescape
func sumFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func prodFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func avgFloatNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func sumDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func prodDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func avgDoubleNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func sumInt32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func prodInt32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minInt32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxInt32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minUint32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxUint32NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func sumInt64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minInt64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxInt64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minUint64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxUint64NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func sumInt8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func prodInt8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minInt8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxInt8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minUint8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxUint8NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func sumHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func prodHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func avgHalfNEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func sumBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func prodBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func minBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func maxBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)

//go:noescape
func avgBFloat16NEON(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
