#include "textflag.h"
#include "kernels_amd64.h"

// A vector is 64 bytes in memory (W), or 32 that widen to 64 (H). Loops take
// four vectors, then one; the bytes that are left go under a byte mask.

#define W4(M) M(AT(0), Z0, Z0, Z4, Z8); M(AT(64), Z1, Z1, Z5, Z9); M(AT(128), Z2, Z2, Z6, Z10); M(AT(192), Z3, Z3, Z7, Z11)
#define W1(M) M(AT(0), Z0, Z0, Z4, Z8)
#define WMASK(M) VMOVDQU8.Z AT(0), K1, Z12; M(Z12, Z0, Z0, Z4, Z8)
#define WPUT4(I) I Z0, AT(0); I Z1, AT(64); I Z2, AT(128); I Z3, AT(192)
#define WPUT1 VMOVDQU64 Z0, AT(0)
#define WPUTMASK VMOVDQU8 Z0, K1, AT(0)

#define H4(M) M(AT(0), Z0, Y0, Z4, Z8); M(AT(32), Z1, Y1, Z5, Z9); M(AT(64), Z2, Y2, Z6, Z10); M(AT(96), Z3, Y3, Z7, Z11)
#define H1(M) M(AT(0), Z0, Y0, Z4, Z8)
#define HMASK(M) VMOVDQU8.Z AT(0), K1, Y12; M(Y12, Z0, Y0, Z4, Z8)
#define HPUT4(I) I Y0, AT(0); I Y1, AT(32); I Y2, AT(64); I Y3, AT(96)
#define HPUT1 VMOVDQU64 Y0, AT(0)
#define HPUTMASK VMOVDQU8 Y0, K1, AT(0)

#define BODY(INIT, SIZE4, SIZE1, V4, V1, MASK, PUT4, PUT1, PUTMASK, GET, OP, PACK) \
	ENTER; \
	INIT; \
	CMPB stream+56(FP), $0; \
	JEQ  plain; \
	STRIPES(sloop, snext, smore, sput, sdone, SIZE4, V4(GET), V4(OP), V4(PACK), PUT4(VMOVNTDQ)); \
	SFENCE; \
plain: \
	STRIPES(loop, next, more, put, done, SIZE4, V4(GET), V4(OP), V4(PACK), PUT4(VMOVDQU64)); \
	STRIPES(loop1, next1, more1, put1, done1, SIZE1, V1(GET), V1(OP), V1(PACK), PUT1); \
	SUBQ AX, CX; \
	JLE  out; \
	MOVQ $-1, R12; \
	BZHIQ CX, R12, R12; \
	KMOVQ R12, K1; \
	STRIPE(nextm, morem, putm, MASK(GET), MASK(OP), V1(PACK), PUTMASK); \
out: \
	VZEROUPPER; \
	RET

#define WIDE(INIT, OP, PACK) BODY(INIT, 256, 64, W4, W1, WMASK, WPUT4, WPUT1, WPUTMASK, load, OP, PACK)
#define HALF(INIT, GET, OP, PACK) BODY(INIT, 128, 32, H4, H1, HMASK, HPUT4, HPUT1, HPUTMASK, GET, OP, PACK)

#define load(b, v, h, t, s) VMOVDQU64 b, v

#define addps(b, v, h, t, s) VADDPS b, v, v
#define mulps(b, v, h, t, s) VMULPS b, v, v
#define minps(b, v, h, t, s) VMINPS b, v, v
#define maxps(b, v, h, t, s) VMAXPS b, v, v
#define addpd(b, v, h, t, s) VADDPD b, v, v
#define mulpd(b, v, h, t, s) VMULPD b, v, v
#define minpd(b, v, h, t, s) VMINPD b, v, v
#define maxpd(b, v, h, t, s) VMAXPD b, v, v

// avg divides the sums by Z20 before it stores.
#define ranksps VCVTSI2SSQ ranks+48(FP), X15, X15; VBROADCASTSS X15, Z20
#define rankspd VCVTSI2SDQ ranks+48(FP), X15, X15; VBROADCASTSD X15, Z20
#define divps(b, v, h, t, s) VDIVPS Z20, v, v
#define divpd(b, v, h, t, s) VDIVPD Z20, v, v

#define addd(b, v, h, t, s) VPADDD b, v, v
#define muld(b, v, h, t, s) VPMULLD b, v, v
#define minsd(b, v, h, t, s) VPMINSD b, v, v
#define maxsd(b, v, h, t, s) VPMAXSD b, v, v
#define minud(b, v, h, t, s) VPMINUD b, v, v
#define maxud(b, v, h, t, s) VPMAXUD b, v, v
#define addq(b, v, h, t, s) VPADDQ b, v, v
#define mulq(b, v, h, t, s) VPMULLQ b, v, v
#define minsq(b, v, h, t, s) VPMINSQ b, v, v
#define maxsq(b, v, h, t, s) VPMAXSQ b, v, v
#define minuq(b, v, h, t, s) VPMINUQ b, v, v
#define maxuq(b, v, h, t, s) VPMAXUQ b, v, v
#define addb(b, v, h, t, s) VPADDB b, v, v
#define minsb(b, v, h, t, s) VPMINSB b, v, v
#define maxsb(b, v, h, t, s) VPMAXSB b, v, v
#define minub(b, v, h, t, s) VPMINUB b, v, v
#define maxub(b, v, h, t, s) VPMAXUB b, v, v

// There is no product of bytes: odd and even bytes are multiplied as words. Z16
// keeps the even ones.
#define evenbytes MOVL $0x00ff00ff, R12; VPBROADCASTD R12, Z16
#define mulb(b, v, h, t, s) \
	VMOVDQU64 b, t; \
	VPMULLW t, v, s; \
	VPSRLW $8, t, t; \
	VPSRLW $8, v, v; \
	VPMULLW t, v, v; \
	VPSLLW $8, v, v; \
	VPANDD Z16, s, s; \
	VPORD  s, v, v

// half: the conversion instructions do the rounding.
#define gethalf(b, v, h, t, s) VCVTPH2PS b, v
#define packhalf(b, v, h, t, s) VCVTPS2PH $0, v, h
#define addhalf(b, v, h, t, s) VCVTPH2PS b, t; VADDPS t, v, v; VCVTPS2PH $0, v, h; VCVTPH2PS h, v
#define mulhalf(b, v, h, t, s) VCVTPH2PS b, t; VMULPS t, v, v; VCVTPS2PH $0, v, h; VCVTPH2PS h, v
#define minhalf(b, v, h, t, s) VCVTPH2PS b, t; VMINPS t, v, v
#define maxhalf(b, v, h, t, s) VCVTPH2PS b, t; VMAXPS t, v, v
#define divhalf(b, v, h, t, s) VDIVPS Z20, v, v; packhalf(b, v, h, t, s)

// bfloat16 is the upper half of a float. Rounding adds half a unit, less one
// when the unit is even, and cuts. A NaN needs no care: the lower half of one that
// comes from bfloat16 operands is zero, so nothing carries. VCVTNEPS2BF16 is not
// used: it drops subnormals.
#define consts16 \
	MOVL $0x7fff, R12; \
	VPBROADCASTD R12, Z17; \
	MOVL $0xffff0000, R12; \
	VPBROADCASTD R12, Z19
#define round16(v, t) \
	VPSLLD $15, v, t; \
	VPSRLD $31, t, t; \
	VPADDD Z17, t, t; \
	VPADDD t, v, v; \
	VPANDD Z19, v, v
#define get16(b, v, h, t, s) VPMOVZXWD b, v; VPSLLD $16, v, v
#define pack16(b, v, h, t, s) VPSRLD $16, v, v; VPMOVDW v, h
#define add16(b, v, h, t, s) get16(b, t, h, t, s); VADDPS t, v, v; round16(v, t)
#define mul16(b, v, h, t, s) get16(b, t, h, t, s); VMULPS t, v, v; round16(v, t)
#define div16(b, v, h, t, s) VDIVPS Z20, v, v; round16(v, t); pack16(b, v, h, t, s)
#define avg16 consts16; ranksps
#define min16(b, v, h, t, s) get16(b, t, h, t, s); VMINPS t, v, v
#define max16(b, v, h, t, s) get16(b, t, h, t, s); VMAXPS t, v, v

TEXT ·sumFloatAVX512(SB), NOSPLIT, $0-57
	WIDE(none, addps, keep)

TEXT ·prodFloatAVX512(SB), NOSPLIT, $0-57
	WIDE(none, mulps, keep)

TEXT ·minFloatAVX512(SB), NOSPLIT, $0-57
	WIDE(none, minps, keep)

TEXT ·maxFloatAVX512(SB), NOSPLIT, $0-57
	WIDE(none, maxps, keep)

TEXT ·avgFloatAVX512(SB), NOSPLIT, $0-57
	WIDE(ranksps, addps, divps)

TEXT ·sumDoubleAVX512(SB), NOSPLIT, $0-57
	WIDE(none, addpd, keep)

TEXT ·prodDoubleAVX512(SB), NOSPLIT, $0-57
	WIDE(none, mulpd, keep)

TEXT ·minDoubleAVX512(SB), NOSPLIT, $0-57
	WIDE(none, minpd, keep)

TEXT ·maxDoubleAVX512(SB), NOSPLIT, $0-57
	WIDE(none, maxpd, keep)

TEXT ·avgDoubleAVX512(SB), NOSPLIT, $0-57
	WIDE(rankspd, addpd, divpd)

TEXT ·sumInt32AVX512(SB), NOSPLIT, $0-57
	WIDE(none, addd, keep)

TEXT ·prodInt32AVX512(SB), NOSPLIT, $0-57
	WIDE(none, muld, keep)

TEXT ·minInt32AVX512(SB), NOSPLIT, $0-57
	WIDE(none, minsd, keep)

TEXT ·minUint32AVX512(SB), NOSPLIT, $0-57
	WIDE(none, minud, keep)

TEXT ·maxInt32AVX512(SB), NOSPLIT, $0-57
	WIDE(none, maxsd, keep)

TEXT ·maxUint32AVX512(SB), NOSPLIT, $0-57
	WIDE(none, maxud, keep)

TEXT ·sumInt64AVX512(SB), NOSPLIT, $0-57
	WIDE(none, addq, keep)

TEXT ·prodInt64AVX512(SB), NOSPLIT, $0-57
	WIDE(none, mulq, keep)

TEXT ·minInt64AVX512(SB), NOSPLIT, $0-57
	WIDE(none, minsq, keep)

TEXT ·minUint64AVX512(SB), NOSPLIT, $0-57
	WIDE(none, minuq, keep)

TEXT ·maxInt64AVX512(SB), NOSPLIT, $0-57
	WIDE(none, maxsq, keep)

TEXT ·maxUint64AVX512(SB), NOSPLIT, $0-57
	WIDE(none, maxuq, keep)

TEXT ·sumInt8AVX512(SB), NOSPLIT, $0-57
	WIDE(none, addb, keep)

TEXT ·prodInt8AVX512(SB), NOSPLIT, $0-57
	WIDE(evenbytes, mulb, keep)

TEXT ·minInt8AVX512(SB), NOSPLIT, $0-57
	WIDE(none, minsb, keep)

TEXT ·minUint8AVX512(SB), NOSPLIT, $0-57
	WIDE(none, minub, keep)

TEXT ·maxInt8AVX512(SB), NOSPLIT, $0-57
	WIDE(none, maxsb, keep)

TEXT ·maxUint8AVX512(SB), NOSPLIT, $0-57
	WIDE(none, maxub, keep)

TEXT ·sumHalfAVX512(SB), NOSPLIT, $0-57
	HALF(none, gethalf, addhalf, packhalf)

TEXT ·prodHalfAVX512(SB), NOSPLIT, $0-57
	HALF(none, gethalf, mulhalf, packhalf)

TEXT ·minHalfAVX512(SB), NOSPLIT, $0-57
	HALF(none, gethalf, minhalf, packhalf)

TEXT ·maxHalfAVX512(SB), NOSPLIT, $0-57
	HALF(none, gethalf, maxhalf, packhalf)

TEXT ·avgHalfAVX512(SB), NOSPLIT, $0-57
	HALF(ranksps, gethalf, addhalf, divhalf)

TEXT ·sumBFloat16AVX512(SB), NOSPLIT, $0-57
	HALF(consts16, get16, add16, pack16)

TEXT ·prodBFloat16AVX512(SB), NOSPLIT, $0-57
	HALF(consts16, get16, mul16, pack16)

TEXT ·minBFloat16AVX512(SB), NOSPLIT, $0-57
	HALF(consts16, get16, min16, pack16)

TEXT ·maxBFloat16AVX512(SB), NOSPLIT, $0-57
	HALF(consts16, get16, max16, pack16)

TEXT ·avgBFloat16AVX512(SB), NOSPLIT, $0-57
	HALF(avg16, get16, add16, div16)

// The 8-bit floats: 16 bytes in memory widen to 64. Their macros take y and w,
// the lower halves of t and v, beside the others.
#define Q4(M) M(AT(0), Z0, X0, Z4, Z8, Y4, Y0); M(AT(16), Z1, X1, Z5, Z9, Y5, Y1); M(AT(32), Z2, X2, Z6, Z10, Y6, Y2); M(AT(48), Z3, X3, Z7, Z11, Y7, Y3)
#define Q1(M) M(AT(0), Z0, X0, Z4, Z8, Y4, Y0)
#define QMASK(M) VMOVDQU8.Z AT(0), K1, X12; M(X12, Z0, X0, Z4, Z8, Y4, Y0)
#define QPUT4(I) I X0, AT(0); I X1, AT(16); I X2, AT(32); I X3, AT(48)
#define QPUT1 VMOVDQU64 X0, AT(0)
#define QPUTMASK VMOVDQU8 X0, K1, AT(0)
#define EIGHT(INIT, GET, OP, PACK) BODY(INIT, 64, 16, Q4, Q1, QMASK, QPUT4, QPUT1, QPUTMASK, GET, OP, PACK)

// round8 rounds the magnitude t of v into s, as round16 does, the lowest bit that
// stays being 31-low; below the smallest normal number (Z23) the unit is fixed, and
// adding and taking off a number with that unit (Z24) rounds to it.
#define const(x, z) MOVL $x, R12; VPBROADCASTD R12, z
#define round8(low, v, t, s) \
	VPANDD Z19, v, t; \
	VPSLLD $low, t, s; \
	VPSRLD $31, s, s; \
	VPADDD Z21, s, s; \
	VPADDD t, s, s; \
	VPANDD Z22, s, s; \
	VCMPPS $1, Z23, t, K2; \
	VADDPS Z24, t, K2, s; \
	VSUBPS Z24, s, K2, s
#define signed8(v, s) VPANDD Z26, v, v; VPORD s, v, v
#define consts8 const(0x7fffffff, Z19); const(0x80000000, Z26)

// f8e5m2 is the upper half of a half. 2^-14 is its smallest normal number, 2^-16
// its unit below, which is the unit of 2^7. Passing through half gives infinity.
#define consts52 consts8; const(0xfffff, Z21); const(0xffe00000, Z22); const(0x38800000, Z23); const(0x43000000, Z24)
#define get52(b, v, h, t, s, y, w) VPMOVZXBW b, w; VPSLLW $8, w, w; VCVTPH2PS w, v
#define with52(b, t, y) VPMOVZXBW b, y; VPSLLW $8, y, y; VCVTPH2PS y, t
#define round52(v, t, s, w) round8(10, v, t, s); signed8(v, s); VCVTPS2PH $0, v, w; VCVTPH2PS w, v
#define pack52(b, v, h, t, s, y, w) VCVTPS2PH $0, v, w; VPSRLW $8, w, w; VPMOVWB w, h
#define add52(b, v, h, t, s, y, w) with52(b, t, y); VADDPS t, v, v; round52(v, t, s, w)
#define mul52(b, v, h, t, s, y, w) with52(b, t, y); VMULPS t, v, v; round52(v, t, s, w)
#define min52(b, v, h, t, s, y, w) with52(b, t, y); VMINPS t, v, v
#define max52(b, v, h, t, s, y, w) with52(b, t, y); VMAXPS t, v, v
#define avg52(b, v, h, t, s, y, w) VDIVPS Z20, v, v; round52(v, t, s, w); pack52(b, v, h, t, s, y, w)

// f8e4m3, with an exponent bit put in, is a half of 2^-8 times the value; what
// would be 480 is NaN. 2^-6 is its smallest normal number, 2^-9 its unit below,
// which is the unit of 2^14; 448 is the largest.
#define consts43 \
	consts8; \
	const(0x7ffff, Z21); \
	const(0xfff00000, Z22); \
	const(0x3c800000, Z23); \
	const(0x46800000, Z24); \
	const(0x43800000, Z16); \
	const(0x3b800000, Z17); \
	const(0x43f00000, Z18); \
	const(0x7fc00000, Z25); \
	const(0x43e00000, Z27); \
	const(0xbf80bf80, Z28); \
	const(0x007f007f, Z29)
#define wide43(b, z, s, y) \
	VPMOVZXBW b, y; \
	VPSLLW $8, y, y; \
	VPSRAW $1, y, y; \
	VPANDD Y28, y, y; \
	VCVTPH2PS y, z; \
	VMULPS Z16, z, z; \
	VPANDD Z19, z, s; \
	VCMPPS $0, Z18, s, K2; \
	VPORD  Z25, z, K2, z
#define get43(b, v, h, t, s, y, w) wide43(b, v, s, w)
#define round43(v, t, s) round8(11, v, t, s); VMINPS s, Z27, s; signed8(v, s)
#define pack43(b, v, h, t, s, y, w) \
	VMULPS Z17, v, v; \
	VCVTPS2PH $0, v, w; \
	VPSLLW $1, w, y; \
	VPSRLW $8, y, y; \
	VPMINUW Y29, y, y; \
	VPSRLW $15, w, w; \
	VPSLLW $7, w, w; \
	VPORD  y, w, w; \
	VPMOVWB w, h
#define add43(b, v, h, t, s, y, w) wide43(b, t, s, y); VADDPS t, v, v; round43(v, t, s)
#define mul43(b, v, h, t, s, y, w) wide43(b, t, s, y); VMULPS t, v, v; round43(v, t, s)
#define min43(b, v, h, t, s, y, w) wide43(b, t, s, y); VMINPS t, v, v
#define max43(b, v, h, t, s, y, w) wide43(b, t, s, y); VMAXPS t, v, v
#define avg43(b, v, h, t, s, y, w) VDIVPS Z20, v, v; round43(v, t, s); pack43(b, v, h, t, s, y, w)

TEXT ·sumF8E4M3AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts43, get43, add43, pack43)

TEXT ·prodF8E4M3AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts43, get43, mul43, pack43)

TEXT ·minF8E4M3AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts43, get43, min43, pack43)

TEXT ·maxF8E4M3AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts43, get43, max43, pack43)

TEXT ·avgF8E4M3AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts43; ranksps, get43, add43, avg43)

TEXT ·sumF8E5M2AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts52, get52, add52, pack52)

TEXT ·prodF8E5M2AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts52, get52, mul52, pack52)

TEXT ·minF8E5M2AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts52, get52, min52, pack52)

TEXT ·maxF8E5M2AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts52, get52, max52, pack52)

TEXT ·avgF8E5M2AVX512(SB), NOSPLIT, $0-57
	EIGHT(consts52; ranksps, get52, add52, avg52)
