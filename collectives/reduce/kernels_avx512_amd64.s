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
	CMPB stream+48(FP), $0; \
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

#define WIDE(INIT, OP) BODY(INIT, 256, 64, W4, W1, WMASK, WPUT4, WPUT1, WPUTMASK, load, OP, keep)
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

// bfloat16 is the upper half of a float. Rounding adds half a unit, less one
// when the unit is even, and cuts; a NaN is made quiet instead, lest the carry
// turn it into a zero. VCVTNEPS2BF16 is not used: it drops subnormals.
#define consts16 \
	MOVL $1, R12; \
	VPBROADCASTD R12, Z16; \
	MOVL $0x7fff, R12; \
	VPBROADCASTD R12, Z17; \
	MOVL $0x00400000, R12; \
	VPBROADCASTD R12, Z18; \
	MOVL $0xffff0000, R12; \
	VPBROADCASTD R12, Z19
#define round16(v, t, s) \
	VCMPPS $3, v, v, K2; \
	VPSRLD $16, v, t; \
	VPANDD Z16, t, t; \
	VPADDD Z17, t, t; \
	VPADDD v, t, t; \
	VPORD  Z18, v, K2, t; \
	VPANDD Z19, t, v
#define get16(b, v, h, t, s) VPMOVZXWD b, v; VPSLLD $16, v, v
#define pack16(b, v, h, t, s) VPSRLD $16, v, v; VPMOVDW v, h
#define add16(b, v, h, t, s) get16(b, t, h, t, s); VADDPS t, v, v; round16(v, t, s)
#define mul16(b, v, h, t, s) get16(b, t, h, t, s); VMULPS t, v, v; round16(v, t, s)
#define min16(b, v, h, t, s) get16(b, t, h, t, s); VMINPS t, v, v
#define max16(b, v, h, t, s) get16(b, t, h, t, s); VMAXPS t, v, v

TEXT ·sumFloatAVX512(SB), NOSPLIT, $0-49
	WIDE(none, addps)

TEXT ·prodFloatAVX512(SB), NOSPLIT, $0-49
	WIDE(none, mulps)

TEXT ·minFloatAVX512(SB), NOSPLIT, $0-49
	WIDE(none, minps)

TEXT ·maxFloatAVX512(SB), NOSPLIT, $0-49
	WIDE(none, maxps)

TEXT ·sumDoubleAVX512(SB), NOSPLIT, $0-49
	WIDE(none, addpd)

TEXT ·prodDoubleAVX512(SB), NOSPLIT, $0-49
	WIDE(none, mulpd)

TEXT ·minDoubleAVX512(SB), NOSPLIT, $0-49
	WIDE(none, minpd)

TEXT ·maxDoubleAVX512(SB), NOSPLIT, $0-49
	WIDE(none, maxpd)

TEXT ·sumInt32AVX512(SB), NOSPLIT, $0-49
	WIDE(none, addd)

TEXT ·prodInt32AVX512(SB), NOSPLIT, $0-49
	WIDE(none, muld)

TEXT ·minInt32AVX512(SB), NOSPLIT, $0-49
	WIDE(none, minsd)

TEXT ·minUint32AVX512(SB), NOSPLIT, $0-49
	WIDE(none, minud)

TEXT ·maxInt32AVX512(SB), NOSPLIT, $0-49
	WIDE(none, maxsd)

TEXT ·maxUint32AVX512(SB), NOSPLIT, $0-49
	WIDE(none, maxud)

TEXT ·sumInt64AVX512(SB), NOSPLIT, $0-49
	WIDE(none, addq)

TEXT ·prodInt64AVX512(SB), NOSPLIT, $0-49
	WIDE(none, mulq)

TEXT ·minInt64AVX512(SB), NOSPLIT, $0-49
	WIDE(none, minsq)

TEXT ·minUint64AVX512(SB), NOSPLIT, $0-49
	WIDE(none, minuq)

TEXT ·maxInt64AVX512(SB), NOSPLIT, $0-49
	WIDE(none, maxsq)

TEXT ·maxUint64AVX512(SB), NOSPLIT, $0-49
	WIDE(none, maxuq)

TEXT ·sumInt8AVX512(SB), NOSPLIT, $0-49
	WIDE(none, addb)

TEXT ·prodInt8AVX512(SB), NOSPLIT, $0-49
	WIDE(evenbytes, mulb)

TEXT ·minInt8AVX512(SB), NOSPLIT, $0-49
	WIDE(none, minsb)

TEXT ·minUint8AVX512(SB), NOSPLIT, $0-49
	WIDE(none, minub)

TEXT ·maxInt8AVX512(SB), NOSPLIT, $0-49
	WIDE(none, maxsb)

TEXT ·maxUint8AVX512(SB), NOSPLIT, $0-49
	WIDE(none, maxub)

TEXT ·sumHalfAVX512(SB), NOSPLIT, $0-49
	HALF(none, gethalf, addhalf, packhalf)

TEXT ·prodHalfAVX512(SB), NOSPLIT, $0-49
	HALF(none, gethalf, mulhalf, packhalf)

TEXT ·minHalfAVX512(SB), NOSPLIT, $0-49
	HALF(none, gethalf, minhalf, packhalf)

TEXT ·maxHalfAVX512(SB), NOSPLIT, $0-49
	HALF(none, gethalf, maxhalf, packhalf)

TEXT ·sumBFloat16AVX512(SB), NOSPLIT, $0-49
	HALF(consts16, get16, add16, pack16)

TEXT ·prodBFloat16AVX512(SB), NOSPLIT, $0-49
	HALF(consts16, get16, mul16, pack16)

TEXT ·minBFloat16AVX512(SB), NOSPLIT, $0-49
	HALF(consts16, get16, min16, pack16)

TEXT ·maxBFloat16AVX512(SB), NOSPLIT, $0-49
	HALF(consts16, get16, max16, pack16)

