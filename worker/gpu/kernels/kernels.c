// The kernels of busbw's device memory. make ptx compiles them for GPUs; the
// tests compile them for the host too, and compare.
#include "kernels.h"
#include "narrow.h"

// A 16-byte vector's lanes, as the type that they are computed in.
#define LANE1(v, i) ((v)[(i) / 4] >> ((i) % 4 * 8) & 0xff)
#define LANE2(v, i) ((v)[(i) / 2] >> ((i) % 2 * 16) & 0xffff)
#define LANE4(v, i) ((v)[i])
#define LANE8(v, i) ((u64)(v)[2 * (i) + 1] << 32 | (v)[2 * (i)])
#define PACK1(v, i, x) ((v)[(i) / 4] |= (u32)(u8)(x) << ((i) % 4 * 8))
#define PACK2(v, i, x) ((v)[(i) / 2] |= (u32)(u16)(x) << ((i) % 2 * 16))
#define PACK4(v, i, x) ((v)[i] = (u32)(x))
#define PACK8(v, i, x) ((v)[2 * (i)] = (u32)(x), (v)[2 * (i) + 1] = (u32)((u64)(x) >> 32))

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define UNROLL
#define ROLLED
#endif

// PASS makes one kernel. W is what it computes in; IN widens the bits of an
// element of SIZE bytes (type E) to W, OUT makes bits of a W; ROUND is what
// an element would be after OUT and IN; OP combines, DIV divides by the ranks.
// Each thread takes 16 bytes at a time where all addresses lie alike, the
// elements before and after that one by one; else all of them.
#define PASS(NAME, E, SIZE, W, IN, OUT, ROUND, OP, DIV)                                       \
  static inline void one_##NAME(const struct pass *p, u64 at) {                               \
    W a = IN(*AT(E, p->src[0] + at));                                                         \
    ROLLED for (u32 j = 1; j < p->ns; j++) a = ROUND(OP(a, IN(*AT(E, p->src[j] + at))));             \
    if (p->ranks) a = DIV(a, p->ranks);                                                       \
    ROLLED for (u32 j = 0; j < p->nd; j++) *AT(E, p->dst[j] + at) = (E)OUT(a);                       \
  }                                                                                           \
  static inline void sixteen_##NAME(const struct pass *p, u64 at) {                           \
    enum { N = 16 / SIZE };                                                                   \
    W a[N];                                                                                   \
    v4u v = *AT(v4u, p->src[0] + at), r = {0, 0, 0, 0};                                       \
    UNROLL for (int i = 0; i < N; i++) a[i] = IN(LANE##SIZE(v, i));                           \
    ROLLED for (u32 j = 1; j < p->ns; j++) {                                                         \
      v = *AT(v4u, p->src[j] + at);                                                           \
      UNROLL for (int i = 0; i < N; i++) a[i] = ROUND(OP(a[i], IN(LANE##SIZE(v, i))));        \
    }                                                                                         \
    if (p->ranks) UNROLL for (int i = 0; i < N; i++) a[i] = DIV(a[i], p->ranks);              \
    UNROLL for (int i = 0; i < N; i++) PACK##SIZE(r, i, OUT(a[i]));                           \
    ROLLED for (u32 j = 0; j < p->nd; j++) *AT(v4u, p->dst[j] + at) = r;                             \
  }                                                                                           \
  KERNEL NAME(struct pass p) {                                                                \
    u64 t = thread_number(), n = thread_count(), head = aligned(&p);                          \
    u64 end = head + ((p.bytes - head) & ~15ull), rest = head + p.bytes - end;                \
    ROLLED for (u64 at = head + 16 * t; at < end; at += 16 * n) sixteen_##NAME(&p, at);       \
    ROLLED for (u64 at = SIZE * t; at < rest; at += SIZE * n) one_##NAME(&p, at < head ? at : end + at - head); \
  }

// How many bytes it is to where all addresses are multiples of 16; all bytes if
// they never are at once.
static inline u64 aligned(const struct pass *p) {
  u64 differ = 0;
  ROLLED for (u32 j = 1; j < p->ns; j++) differ |= p->src[0] ^ p->src[j];
  ROLLED for (u32 j = 0; j < p->nd; j++) differ |= p->src[0] ^ p->dst[j];
  u64 head = -p->src[0] & 15;
  return differ & 15 || head > p->bytes ? p->bytes : head;
}

#define SAME(x) (x)
#define SUM(a, b) ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define DIV_INT(a, n) ((a) / (i32)(n))
#define DIV_UINT(a, n) ((a) / (n))
#define DIV_LONG(a, n) ((a) / (i64)(n))
#define DIV_ULONG(a, n) ((a) / (u64)(n))
#define DIV_FLOAT(a, n) ((a) / (float)(n))
#define DIV_DOUBLE(a, n) ((a) / (double)(n))
#define NO_DIV(a, n) (a) // only sums become averages
#define TO_I8(x) ((i32)(i8)(x))
#define TO_U8(x) ((u32)(u8)(x))
#define TO_I32(x) ((i32)(x))
#define TO_I64(x) ((i64)(x))
// Signed sums and products wrap, which C leaves to unsigned types.
#define SUM_INT(a, b) ((i32)((u32)(a) + (u32)(b)))
#define PROD_INT(a, b) ((i32)((u32)(a) * (u32)(b)))
#define SUM_LONG(a, b) ((i64)((u64)(a) + (u64)(b)))
#define PROD_LONG(a, b) ((i64)((u64)(a) * (u64)(b)))

#define TYPE(NAME, E, SIZE, W, IN, OUT, ROUND, ADD, MUL, DIV)  \
  PASS(sum_##NAME, E, SIZE, W, IN, OUT, ROUND, ADD, DIV)       \
  PASS(prod_##NAME, E, SIZE, W, IN, OUT, ROUND, MUL, NO_DIV)   \
  PASS(min_##NAME, E, SIZE, W, IN, OUT, SAME, MIN, NO_DIV)     \
  PASS(max_##NAME, E, SIZE, W, IN, OUT, SAME, MAX, NO_DIV)

#define ROUND_HALF(x) from_half(to_half(x))
#define ROUND_BFLOAT16(x) from_bfloat16(to_bfloat16(x))
#define ROUND_F8E4M3(x) from_f8e4m3(to_f8e4m3(x))
#define ROUND_F8E5M2(x) from_f8e5m2(to_f8e5m2(x))

TYPE(int8, u8, 1, i32, TO_I8, SAME, TO_I8, SUM_INT, PROD_INT, DIV_INT)
TYPE(uint8, u8, 1, u32, TO_U8, SAME, TO_U8, SUM, PROD, DIV_UINT)
TYPE(int32, u32, 4, i32, TO_I32, SAME, SAME, SUM_INT, PROD_INT, DIV_INT)
TYPE(uint32, u32, 4, u32, SAME, SAME, SAME, SUM, PROD, DIV_UINT)
TYPE(int64, u64, 8, i64, TO_I64, SAME, SAME, SUM_LONG, PROD_LONG, DIV_LONG)
TYPE(uint64, u64, 8, u64, SAME, SAME, SAME, SUM, PROD, DIV_ULONG)
TYPE(float, u32, 4, float, as_float, as_bits, SAME, SUM, PROD, DIV_FLOAT)
TYPE(double, u64, 8, double, as_double, as_bits64, SAME, SUM, PROD, DIV_DOUBLE)
TYPE(half, u16, 2, float, from_half, to_half, ROUND_HALF, SUM, PROD, DIV_FLOAT)
TYPE(bfloat16, u16, 2, float, from_bfloat16, to_bfloat16, ROUND_BFLOAT16, SUM, PROD, DIV_FLOAT)
TYPE(f8e4m3, u8, 1, float, from_f8e4m3, to_f8e4m3, ROUND_F8E4M3, SUM, PROD, DIV_FLOAT)
TYPE(f8e5m2, u8, 1, float, from_f8e5m2, to_f8e5m2, ROUND_F8E5M2, SUM, PROD, DIV_FLOAT)

// fill repeats the period over dst, 16 bytes a thread.
KERNEL fill(struct fill p) {
  u64 n = thread_count() * 16;
  for (u64 at = thread_number() * 16; at < p.bytes; at += n) {
    u64 in = at % p.period_bytes;
    if (at + 16 <= p.bytes && in + 16 <= p.period_bytes && !((p.dst + at) & 15) && !((p.period + in) & 15)) {
      *AT(v4u, p.dst + at) = *AT(v4u, p.period + in);
      continue;
    }
    for (u64 i = at; i < at + 16 && i < p.bytes; i++, in = in + 1 == p.period_bytes ? 0 : in + 1) *AT(u8, p.dst + i) = *AT(u8, p.period + in);
  }
}

// check counts the elements of got that differ from the repeated period, and
// finds the first. The period holds whole elements.
KERNEL check(struct check p) {
  u64 wrong = 0, first = ~0ull, count = p.bytes / p.elem, n = thread_count();
  u64 period = p.period_bytes / p.elem;
  for (u64 i = thread_number(); i < count; i += n) {
    u64 got = p.got + i * p.elem, want = p.want + i % period * p.elem;
    u32 differ = 0;
    for (u32 b = 0; b < p.elem; b++) differ |= *AT(u8, got + b) ^ *AT(u8, want + b);
    if (differ) {
      wrong++;
      if (i < first) first = i;
    }
  }
  if (wrong) {
    add_u64(AT(u64, p.result), wrong);
    min_u64(AT(u64, p.result + 8), first);
  }
}
