// What the kernels need of their target. There are two: a GPU (nvptx64, clang
// makes PTX of it) and a host processor, for the tests.
#ifndef BUSBW_KERNELS_H
#define BUSBW_KERNELS_H
typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
typedef u32 v4u __attribute__((vector_size(16)));

// Parameters of the kernels. worker/gpu/pass.go has the same structs.
enum { PASS_MOST = 16 };
struct pass { // dst[j] = src[0] op src[1] op …, for every j
  u64 bytes;
  u32 ns, nd;
  u32 ranks; // divide the result by so many; 0: do not
  u32 pad;
  u64 dst[PASS_MOST], src[PASS_MOST];
};
struct fill { u64 dst, bytes, period, period_bytes; }; // the period's bytes, again and again
struct check {                                         // elements that differ from that
  u64 got, bytes, want, period_bytes;
  u32 elem, pad;  // bytes of one
  u64 result;     // two u64: += how many, = min(the first one's number)
};

#if defined(__NVPTX__)
#define KERNEL __attribute__((nvptx_kernel)) void
#define GLOBAL __attribute__((address_space(1)))
static inline u32 tid(void) { return __nvvm_read_ptx_sreg_tid_x(); }
static inline u32 threads(void) { return __nvvm_read_ptx_sreg_ntid_x(); }
static inline u32 block(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }
static inline u32 blocks(void) { return __nvvm_read_ptx_sreg_nctaid_x(); }
static inline void add_u64(GLOBAL u64 *p, u64 v) { __nvvm_atom_add_gen_ll((long long *)p, (long long)v); }
static inline void min_u64(GLOBAL u64 *p, u64 v) { __nvvm_atom_min_gen_ull((u64 *)p, v); }
#define AT(T, a) ((GLOBAL T *)(a))
#else
#define KERNEL void
#define GLOBAL
extern __thread u32 host_tid, host_threads, host_block, host_blocks;
extern u64 host_from, host_size, host_shift; // device addresses, and where their bytes are
static inline u32 tid(void) { return host_tid; }
static inline u32 threads(void) { return host_threads; }
static inline u32 block(void) { return host_block; }
static inline u32 blocks(void) { return host_blocks; }
static inline void add_u64(u64 *p, u64 v) { __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
static inline void min_u64(u64 *p, u64 v) {
  u64 have = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (v < have && !__atomic_compare_exchange_n(p, &have, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
static inline void *host_at(u64 a) { return (void *)(a - host_from < host_size ? a + host_shift : a); }
#define AT(T, a) ((T *)host_at(a))
#endif

static inline u64 thread_number(void) { return (u64)block() * threads() + tid(); }
static inline u64 thread_count(void) { return (u64)blocks() * threads(); }
#endif
