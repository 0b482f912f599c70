#include "textflag.h"
#include "kernels_amd64.h"

// A vector is 32 bytes in memory (W), or 16 that widen to 32 (H). Loops take four
// vectors, then one; the caller sees to the bytes that are left.

#define W4(M) M(AT(0), Y0, Y0, Y4, Y8); M(AT(32), Y1, Y1, Y5, Y9); M(AT(64), Y2, Y2, Y6, Y10); M(AT(96), Y3, Y3, Y7, Y11)
#define W1(M) M(AT(0), Y0, Y0, Y4, Y8)
#define WPUT4(I) I Y0, AT(0); I Y1, AT(32); I Y2, AT(64); I Y3, AT(96)
#define WPUT1 VMOVDQU Y0, AT(0)

#define H4(M) M(AT(0), Y0, X0, Y4, Y8); M(AT(16), Y1, X1, Y5, Y9); M(AT(32), Y2, X2, Y6, Y10); M(AT(48), Y3, X3, Y7, Y11)
#define H1(M) M(AT(0), Y0, X0, Y4, Y8)
#define HPUT4(I) I X0, AT(0); I X1, AT(16); I X2, AT(32); I X3, AT(48)
#define HPUT1 VMOVDQU X0, AT(0)

#define BODY(INIT, SIZE4, SIZE1, V4, V1, PUT4, PUT1, GET, OP, PACK) \
	ENTER; \
	INIT; \
	CMPB stream+56(FP), $0; \
	JEQ  plain; \
	STRIPES(sloop, snext, smore, sput, sdone, SIZE4, V4(GET), V4(OP), V4(PACK), PUT4(VMOVNTDQ)); \
	SFENCE; \
plain: \
	STRIPES(loop, next, more, put, done, SIZE4, V4(GET), V4(OP), V4(PACK), PUT4(VMOVDQU)); \
	STRIPES(loop1, next1, more1, put1, done1, SIZE1, V1(GET), V1(OP), V1(PACK), PUT1); \
	VZEROUPPER; \
	RET

#define WIDE(INIT, OP, PACK) BODY(INIT, 128, 32, W4, W1, WPUT4, WPUT1, load, OP, PACK)
#define HALF(INIT, GET, OP, PACK) BODY(INIT, 64, 16, H4, H1, HPUT4, HPUT1, GET, OP, PACK)

#define load(b, v, h, t, s) VMOVDQU b, v

#define addps(b, v, h, t, s) VADDPS b, v, v
#define mulps(b, v, h, t, s) VMULPS b, v, v
#define minps(b, v, h, t, s) VMINPS b, v, v
#define maxps(b, v, h, t, s) VMAXPS b, v, v
#define addpd(b, v, h, t, s) VADDPD b, v, v
#define mulpd(b, v, h, t, s) VMULPD b, v, v
#define minpd(b, v, h, t, s) VMINPD b, v, v
#define maxpd(b, v, h, t, s) VMAXPD b, v, v

// avg divides the sums by Y12 before it stores.
#define ranksps VCVTSI2SSQ ranks+48(FP), X12, X12; VBROADCASTSS X12, Y12
#define rankspd VCVTSI2SDQ ranks+48(FP), X12, X12; VBROADCASTSD X12, Y12
#define divps(b, v, h, t, s) VDIVPS Y12, v, v
#define divpd(b, v, h, t, s) VDIVPD Y12, v, v

#define addd(b, v, h, t, s) VPADDD b, v, v
#define muld(b, v, h, t, s) VPMULLD b, v, v
#define minsd(b, v, h, t, s) VPMINSD b, v, v
#define maxsd(b, v, h, t, s) VPMAXSD b, v, v
#define minud(b, v, h, t, s) VPMINUD b, v, v
#define maxud(b, v, h, t, s) VPMAXUD b, v, v
#define addb(b, v, h, t, s) VPADDB b, v, v
#define minsb(b, v, h, t, s) VPMINSB b, v, v
#define maxsb(b, v, h, t, s) VPMAXSB b, v, v
#define minub(b, v, h, t, s) VPMINUB b, v, v
#define maxub(b, v, h, t, s) VPMAXUB b, v, v

// 64-bit integers have a sum and a signed comparison only.
#define addq(b, v, h, t, s) VPADDQ b, v, v
#define minsq(b, v, h, t, s) VMOVDQU b, t; VPCMPGTQ v, t, s; VBLENDVPD s, v, t, v
#define maxsq(b, v, h, t, s) VMOVDQU b, t; VPCMPGTQ v, t, s; VBLENDVPD s, t, v, v

// There is no product of bytes: odd and even bytes are multiplied as words. Y12
// keeps the even ones.
#define evenbytes MOVL $0x00ff00ff, R12; MOVQ R12, X12; VPBROADCASTD X12, Y12
#define mulb(b, v, h, t, s) \
	VMOVDQU b, t; \
	VPMULLW t, v, s; \
	VPSRLW $8, t, t; \
	VPSRLW $8, v, v; \
	VPMULLW t, v, v; \
	VPSLLW $8, v, v; \
	VPAND  Y12, s, s; \
	VPOR   s, v, v

// half: the conversion instructions (F16C) do the rounding.
#define gethalf(b, v, h, t, s) VCVTPH2PS b, v
#define packhalf(b, v, h, t, s) VCVTPS2PH $0, v, h
#define addhalf(b, v, h, t, s) VCVTPH2PS b, t; VADDPS t, v, v; VCVTPS2PH $0, v, h; VCVTPH2PS h, v
#define mulhalf(b, v, h, t, s) VCVTPH2PS b, t; VMULPS t, v, v; VCVTPS2PH $0, v, h; VCVTPH2PS h, v
#define minhalf(b, v, h, t, s) VCVTPH2PS b, t; VMINPS t, v, v
#define maxhalf(b, v, h, t, s) VCVTPH2PS b, t; VMAXPS t, v, v
#define divhalf(b, v, h, t, s) VDIVPS Y12, v, v; packhalf(b, v, h, t, s)

// bfloat16: as in kernels_avx512_amd64.s.
#define consts16 \
	MOVL $0x7fff, R12; \
	MOVQ R12, X13; \
	VPBROADCASTD X13, Y13; \
	MOVL $0xffff0000, R12; \
	MOVQ R12, X15; \
	VPBROADCASTD X15, Y15
#define round16(v, t) \
	VPSLLD $15, v, t; \
	VPSRLD $31, t, t; \
	VPADDD Y13, t, t; \
	VPADDD t, v, v; \
	VPAND  Y15, v, v
#define get16(b, v, h, t, s) VPMOVZXWD b, v; VPSLLD $16, v, v
#define pack16(b, v, h, t, s) VPSRLD $16, v, v; VPACKUSDW v, v, v; VPERMQ $8, v, v
#define add16(b, v, h, t, s) get16(b, t, h, t, s); VADDPS t, v, v; round16(v, t)
#define mul16(b, v, h, t, s) get16(b, t, h, t, s); VMULPS t, v, v; round16(v, t)
#define div16(b, v, h, t, s) VDIVPS Y12, v, v; round16(v, t); pack16(b, v, h, t, s)
#define avg16 consts16; ranksps
#define min16(b, v, h, t, s) get16(b, t, h, t, s); VMINPS t, v, v
#define max16(b, v, h, t, s) get16(b, t, h, t, s); VMAXPS t, v, v

TEXT ·sumFloatAVX2(SB), NOSPLIT, $0-57
	WIDE(none, addps, keep)

TEXT ·prodFloatAVX2(SB), NOSPLIT, $0-57
	WIDE(none, mulps, keep)

TEXT ·minFloatAVX2(SB), NOSPLIT, $0-57
	WIDE(none, minps, keep)

TEXT ·maxFloatAVX2(SB), NOSPLIT, $0-57
	WIDE(none, maxps, keep)

TEXT ·avgFloatAVX2(SB), NOSPLIT, $0-57
	WIDE(ranksps, addps, divps)

TEXT ·sumDoubleAVX2(SB), NOSPLIT, $0-57
	WIDE(none, addpd, keep)

TEXT ·prodDoubleAVX2(SB), NOSPLIT, $0-57
	WIDE(none, mulpd, keep)

TEXT ·minDoubleAVX2(SB), NOSPLIT, $0-57
	WIDE(none, minpd, keep)

TEXT ·maxDoubleAVX2(SB), NOSPLIT, $0-57
	WIDE(none, maxpd, keep)

TEXT ·avgDoubleAVX2(SB), NOSPLIT, $0-57
	WIDE(rankspd, addpd, divpd)

TEXT ·sumInt32AVX2(SB), NOSPLIT, $0-57
	WIDE(none, addd, keep)

TEXT ·prodInt32AVX2(SB), NOSPLIT, $0-57
	WIDE(none, muld, keep)

TEXT ·minInt32AVX2(SB), NOSPLIT, $0-57
	WIDE(none, minsd, keep)

TEXT ·minUint32AVX2(SB), NOSPLIT, $0-57
	WIDE(none, minud, keep)

TEXT ·maxInt32AVX2(SB), NOSPLIT, $0-57
	WIDE(none, maxsd, keep)

TEXT ·maxUint32AVX2(SB), NOSPLIT, $0-57
	WIDE(none, maxud, keep)

TEXT ·sumInt64AVX2(SB), NOSPLIT, $0-57
	WIDE(none, addq, keep)

TEXT ·minInt64AVX2(SB), NOSPLIT, $0-57
	WIDE(none, minsq, keep)

TEXT ·maxInt64AVX2(SB), NOSPLIT, $0-57
	WIDE(none, maxsq, keep)

TEXT ·sumInt8AVX2(SB), NOSPLIT, $0-57
	WIDE(none, addb, keep)

TEXT ·prodInt8AVX2(SB), NOSPLIT, $0-57
	WIDE(evenbytes, mulb, keep)

TEXT ·minInt8AVX2(SB), NOSPLIT, $0-57
	WIDE(none, minsb, keep)

TEXT ·minUint8AVX2(SB), NOSPLIT, $0-57
	WIDE(none, minub, keep)

TEXT ·maxInt8AVX2(SB), NOSPLIT, $0-57
	WIDE(none, maxsb, keep)

TEXT ·maxUint8AVX2(SB), NOSPLIT, $0-57
	WIDE(none, maxub, keep)

TEXT ·sumHalfAVX2(SB), NOSPLIT, $0-57
	HALF(none, gethalf, addhalf, packhalf)

TEXT ·prodHalfAVX2(SB), NOSPLIT, $0-57
	HALF(none, gethalf, mulhalf, packhalf)

TEXT ·minHalfAVX2(SB), NOSPLIT, $0-57
	HALF(none, gethalf, minhalf, packhalf)

TEXT ·maxHalfAVX2(SB), NOSPLIT, $0-57
	HALF(none, gethalf, maxhalf, packhalf)

TEXT ·avgHalfAVX2(SB), NOSPLIT, $0-57
	HALF(ranksps, gethalf, addhalf, divhalf)

TEXT ·sumBFloat16AVX2(SB), NOSPLIT, $0-57
	HALF(consts16, get16, add16, pack16)

TEXT ·prodBFloat16AVX2(SB), NOSPLIT, $0-57
	HALF(consts16, get16, mul16, pack16)

TEXT ·minBFloat16AVX2(SB), NOSPLIT, $0-57
	HALF(consts16, get16, min16, pack16)

TEXT ·maxBFloat16AVX2(SB), NOSPLIT, $0-57
	HALF(consts16, get16, max16, pack16)

TEXT ·avgBFloat16AVX2(SB), NOSPLIT, $0-57
	HALF(avg16, get16, add16, div16)
