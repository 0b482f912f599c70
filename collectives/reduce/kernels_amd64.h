// The loops that every amd64 kernel is made of; kernels_*_amd64.s has the kernels.
//
// Every kernel has the signature of kernel in kernels.go:
//
//	func(dst, src *unsafe.Pointer, nd, ns, from, to, ranks int, stream bool)
//
// and walks the bytes from..to in stripes. It loads a stripe of source 0,
// combines sources 1..ns-1 into it and stores it to every destination. So a
// stripe has been read in full before any of it is written, and a destination
// may be one of the sources.
//
// Registers: DI dst, SI src, R8 nd, R9 ns, AX byte offset, CX end, R10 the
// current buffer, R11 its index, R12 the end of the stripe. Vector registers 0-3
// hold the stripe, 4-11 are scratch, 12 and above hold the tail and constants.
//
// Four macros make a kernel. INIT sets constants. The others take
// (b, v, h, t, s): b is the operand in memory form (an address or a register), v
// the stripe register, h the same register at the width of the memory form, t
// and s scratch registers. GET turns b into v, OP combines b into v, PACK turns
// v into memory form in h.

#define AT(n) n(R10)(AX*1)
#define none
#define keep(b, v, h, t, s)

#define ENTER \
	MOVQ dst+0(FP), DI; \
	MOVQ src+8(FP), SI; \
	MOVQ nd+16(FP), R8; \
	MOVQ ns+24(FP), R9; \
	MOVQ from+32(FP), AX; \
	MOVQ to+40(FP), CX

#define STRIPE(next, more, put, GET, OP, PACK, PUT) \
	MOVQ (SI), R10; \
	GET; \
	MOVL $1, R11; \
	JMP  more; \
next: \
	MOVQ (SI)(R11*8), R10; \
	OP; \
	INCQ R11; \
more: \
	CMPQ R11, R9; \
	JLT  next; \
	PACK; \
	XORL R11, R11; \
put: \
	MOVQ (DI)(R11*8), R10; \
	PUT; \
	INCQ R11; \
	CMPQ R11, R8; \
	JLT  put

#define STRIPES(loop, next, more, put, done, SIZE, GET, OP, PACK, PUT) \
loop: \
	LEAQ SIZE(AX), R12; \
	CMPQ R12, CX; \
	JGT  done; \
	STRIPE(next, more, put, GET, OP, PACK, PUT); \
	MOVQ R12, AX; \
	JMP  loop; \
done:
