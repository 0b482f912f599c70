#include "textflag.h"

// Kernels for arm64 (NEON); kernels_amd64.h has the scheme. A stripe is 64 bytes
// in memory (W), or 32 that widen to 64 (H); the caller sees to the bytes that are
// left. There is no streaming store that a cache must obey: stream is ignored.
//
// Registers: R0 dst, R1 src, R2 nd, R3 ns, R4 byte offset, R5 end, R6 the current
// place, R7 the buffer's index. V0-V3 hold the stripe, V4-V7 the operand, V8-V11
// are scratch, V16-V19 constants.
//
// Go's assembler has few of the vector instructions, so they are encoded here,
// as in the Arm Architecture Reference Manual (DDI 0487), section C7.2.
#define V3(code, m, n, d) WORD $(code | m<<16 | n<<5 | d)
#define V2(code, n, d) WORD $(code | n<<5 | d)

#define FADD_S 0x4E20D400
#define FADD_D 0x4E60D400
#define FMUL_S 0x6E20DC00
#define FMUL_D 0x6E60DC00
#define FDIV_S 0x6E20FC00
#define FDIV_D 0x6E60FC00
#define FCMGT_S 0x6EA0E400
#define FCMGT_D 0x6EE0E400
#define ADD_B 0x4E208400
#define ADD_S 0x4EA08400
#define ADD_D 0x4EE08400
#define MUL_B 0x4E209C00
#define MUL_S 0x4EA09C00
#define SMIN_B 0x4E206C00
#define SMIN_S 0x4EA06C00
#define UMIN_B 0x6E206C00
#define UMIN_S 0x6EA06C00
#define SMAX_B 0x4E206400
#define SMAX_S 0x4EA06400
#define UMAX_B 0x6E206400
#define UMAX_S 0x6EA06400
#define CMGT_D 0x4EE03400
#define CMHI_D 0x6EE03400
#define AND_V 0x4E201C00
#define BIF_V 0x6EE01C00
#define USHR16_S 0x6F300400
#define FCVTL_H 0x0E217800
#define FCVTL2_H 0x4E217800
#define FCVTN_H 0x0E216800
#define FCVTN2_H 0x4E216800
#define SHLL16_H 0x2E613800
#define SHLL162_H 0x6E613800
#define SHRN16_H 0x0F108400
#define SHRN162_H 0x4F108400

#define BODY(INIT, SIZE, GET, OP, PACK, PUT) \
	MOVD dst+0(FP), R0; \
	MOVD src+8(FP), R1; \
	MOVD nd+16(FP), R2; \
	MOVD ns+24(FP), R3; \
	MOVD from+32(FP), R4; \
	MOVD to+40(FP), R5; \
	INIT; \
	CMP  R5, R4; \
	BGE  out; \
loop: \
	MOVD (R1), R6; \
	ADD  R4, R6; \
	GET; \
	MOVD $1, R7; \
	JMP  more; \
next: \
	MOVD (R1)(R7<<3), R6; \
	ADD  R4, R6; \
	OP; \
	ADD  $1, R7; \
more: \
	CMP  R3, R7; \
	BLT  next; \
	PACK; \
	MOVD $0, R7; \
put: \
	MOVD (R0)(R7<<3), R6; \
	ADD  R4, R6; \
	PUT; \
	ADD  $1, R7; \
	CMP  R2, R7; \
	BLT  put; \
	ADD  $SIZE, R4; \
	CMP  R5, R4; \
	BLT  loop; \
out: \
	RET

#define none

#define GETW VLD1 (R6), [V0.B16, V1.B16, V2.B16, V3.B16]
#define BW VLD1 (R6), [V4.B16, V5.B16, V6.B16, V7.B16]
#define PUTW VST1 [V0.B16, V1.B16, V2.B16, V3.B16], (R6)
#define PUTH VST1 [V4.B16, V5.B16], (R6)

// v0 = v0 op v4, …
#define OP4(code) V3(code, 4, 0, 0); V3(code, 5, 1, 1); V3(code, 6, 2, 2); V3(code, 7, 3, 3)
// Where a comparison does not hold, the operand takes the stripe's place. FMIN
// and FMAX are not used: they order zeros and let NaNs win.
#define OPERAND4 V3(BIF_V, 8, 4, 0); V3(BIF_V, 9, 5, 1); V3(BIF_V, 10, 6, 2); V3(BIF_V, 11, 7, 3)
#define LEAST4(code) V3(code, 0, 4, 8); V3(code, 1, 5, 9); V3(code, 2, 6, 10); V3(code, 3, 7, 11); OPERAND4
#define MOST4(code) V3(code, 4, 0, 8); V3(code, 5, 1, 9); V3(code, 6, 2, 10); V3(code, 7, 3, 11); OPERAND4

#define WIDE(OP) BODY(none, 64, GETW, BW; OP, none, PUTW)

// avg divides the sums by V22 before it stores.
#define RANKS_S MOVD ranks+48(FP), R8; SCVTFS R8, F22; VDUP V22.S[0], V22.S4
#define RANKS_D MOVD ranks+48(FP), R8; SCVTFD R8, F22; VDUP V22.D[0], V22.D2
#define DIV4(code) V3(code, 22, 0, 0); V3(code, 22, 1, 1); V3(code, 22, 2, 2); V3(code, 22, 3, 3)

// half: the conversion instructions do the rounding.
#define GETHALF(v0, v1, v2, v3) \
	VLD1 (R6), [V20.B16, V21.B16]; \
	V2(FCVTL_H, 20, v0); \
	V2(FCVTL2_H, 20, v1); \
	V2(FCVTL_H, 21, v2); \
	V2(FCVTL2_H, 21, v3)
#define PACKHALF(d0, d1) V2(FCVTN_H, 0, d0); V2(FCVTN2_H, 1, d0); V2(FCVTN_H, 2, d1); V2(FCVTN2_H, 3, d1)
#define ROUNDHALF PACKHALF(8, 9); V2(FCVTL_H, 8, 0); V2(FCVTL2_H, 8, 1); V2(FCVTL_H, 9, 2); V2(FCVTL2_H, 9, 3)
#define HALF(OP) BODY(none, 32, GETHALF(0, 1, 2, 3), GETHALF(4, 5, 6, 7); OP, PACKHALF(4, 5), PUTH)

// bfloat16: as in kernels_avx512_amd64.s.
#define CONSTS \
	MOVD $1, R8; \
	VDUP R8, V16.S4; \
	MOVD $0x7fff, R8; \
	VDUP R8, V17.S4; \
	MOVD $0xffff0000, R8; \
	VDUP R8, V19.S4
#define GET16(v0, v1, v2, v3) \
	VLD1 (R6), [V20.B16, V21.B16]; \
	V2(SHLL16_H, 20, v0); \
	V2(SHLL162_H, 20, v1); \
	V2(SHLL16_H, 21, v2); \
	V2(SHLL162_H, 21, v3)
#define PACK16 V2(SHRN16_H, 0, 4); V2(SHRN162_H, 1, 4); V2(SHRN16_H, 2, 5); V2(SHRN162_H, 3, 5)
#define ROUND16V(v) \
	V2(USHR16_S, v, 9); \
	V3(AND_V, 16, 9, 9); \
	V3(ADD_S, 17, 9, 9); \
	V3(ADD_S, 9, v, v); \
	V3(AND_V, 19, v, v)
#define ROUND16 ROUND16V(0); ROUND16V(1); ROUND16V(2); ROUND16V(3)
#define BFLOAT16(OP) BODY(CONSTS, 32, GET16(0, 1, 2, 3), GET16(4, 5, 6, 7); OP, PACK16, PUTH)

TEXT ·sumFloatNEON(SB), NOSPLIT, $0-57
	WIDE(OP4(FADD_S))

TEXT ·prodFloatNEON(SB), NOSPLIT, $0-57
	WIDE(OP4(FMUL_S))

TEXT ·minFloatNEON(SB), NOSPLIT, $0-57
	WIDE(LEAST4(FCMGT_S))

TEXT ·maxFloatNEON(SB), NOSPLIT, $0-57
	WIDE(MOST4(FCMGT_S))

TEXT ·avgFloatNEON(SB), NOSPLIT, $0-57
	BODY(RANKS_S, 64, GETW, BW; OP4(FADD_S), DIV4(FDIV_S), PUTW)

TEXT ·sumDoubleNEON(SB), NOSPLIT, $0-57
	WIDE(OP4(FADD_D))

TEXT ·prodDoubleNEON(SB), NOSPLIT, $0-57
	WIDE(OP4(FMUL_D))

TEXT ·minDoubleNEON(SB), NOSPLIT, $0-57
	WIDE(LEAST4(FCMGT_D))

TEXT ·maxDoubleNEON(SB), NOSPLIT, $0-57
	WIDE(MOST4(FCMGT_D))

TEXT ·avgDoubleNEON(SB), NOSPLIT, $0-57
	BODY(RANKS_D, 64, GETW, BW; OP4(FADD_D), DIV4(FDIV_D), PUTW)

TEXT ·sumInt32NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(ADD_S))

TEXT ·prodInt32NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(MUL_S))

TEXT ·minInt32NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(SMIN_S))

TEXT ·maxInt32NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(SMAX_S))

TEXT ·minUint32NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(UMIN_S))

TEXT ·maxUint32NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(UMAX_S))

TEXT ·sumInt64NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(ADD_D))

TEXT ·minInt64NEON(SB), NOSPLIT, $0-57
	WIDE(LEAST4(CMGT_D))

TEXT ·maxInt64NEON(SB), NOSPLIT, $0-57
	WIDE(MOST4(CMGT_D))

TEXT ·minUint64NEON(SB), NOSPLIT, $0-57
	WIDE(LEAST4(CMHI_D))

TEXT ·maxUint64NEON(SB), NOSPLIT, $0-57
	WIDE(MOST4(CMHI_D))

TEXT ·sumInt8NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(ADD_B))

TEXT ·prodInt8NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(MUL_B))

TEXT ·minInt8NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(SMIN_B))

TEXT ·maxInt8NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(SMAX_B))

TEXT ·minUint8NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(UMIN_B))

TEXT ·maxUint8NEON(SB), NOSPLIT, $0-57
	WIDE(OP4(UMAX_B))

TEXT ·sumHalfNEON(SB), NOSPLIT, $0-57
	HALF(OP4(FADD_S); ROUNDHALF)

TEXT ·prodHalfNEON(SB), NOSPLIT, $0-57
	HALF(OP4(FMUL_S); ROUNDHALF)

TEXT ·minHalfNEON(SB), NOSPLIT, $0-57
	HALF(LEAST4(FCMGT_S))

TEXT ·maxHalfNEON(SB), NOSPLIT, $0-57
	HALF(MOST4(FCMGT_S))

TEXT ·avgHalfNEON(SB), NOSPLIT, $0-57
	BODY(RANKS_S, 32, GETHALF(0, 1, 2, 3), GETHALF(4, 5, 6, 7); OP4(FADD_S); ROUNDHALF, DIV4(FDIV_S); PACKHALF(4, 5), PUTH)

TEXT ·sumBFloat16NEON(SB), NOSPLIT, $0-57
	BFLOAT16(OP4(FADD_S); ROUND16)

TEXT ·prodBFloat16NEON(SB), NOSPLIT, $0-57
	BFLOAT16(OP4(FMUL_S); ROUND16)

TEXT ·minBFloat16NEON(SB), NOSPLIT, $0-57
	BFLOAT16(LEAST4(FCMGT_S))

TEXT ·maxBFloat16NEON(SB), NOSPLIT, $0-57
	BFLOAT16(MOST4(FCMGT_S))

TEXT ·avgBFloat16NEON(SB), NOSPLIT, $0-57
	BODY(CONSTS; RANKS_S, 32, GET16(0, 1, 2, 3), GET16(4, 5, 6, 7); OP4(FADD_S); ROUND16, DIV4(FDIV_S); ROUND16; PACK16, PUTH)
