// A stand-in for libcuda.so.1 in the tests. A device's memory is memory of this
// process that only the fake reads: at the addresses that it hands out nothing
// can be read, so that a program which touches device memory dies, as it should.
// A stream is a thread with a queue, a kernel is the host build of kernels.c. It
// is strict: a wrong context, a foreign handle, a range beyond its allocation or
// on a peer without access is an error.
//
//   FAKECUDA_DEVICES=2  FAKECUDA_CC=90  FAKECUDA_DRIVER=12080  FAKECUDA_MEM=256 (MiB a device)
//   FAKECUDA_P2P=all|none|pairs  FAKECUDA_DMABUF=0  FAKECUDA_FLUSH=1 (0: a flush of RDMA writes is refused)
//   FAKECUDA_PEERMEM=1: its addresses can be read, so that an RDMA device registers them, as with nvidia_peermem
//   FAKECUDA_JITTER=us: a random pause before what a stream does, now and then
//   FAKECUDA_LAZY=1: a stream does nothing before somebody waits for it, and a graph's nodes go in any order that
//     their dependencies allow: what no event declares does not hold
//   FAKECUDA_GRAPH=801: no stream begins to capture
//   FAKECUDA_FAIL=cuMemAlloc_v2:3:2[,…]: the third call of it returns 2
//   FAKECUDA_PTX=222: no module loads whose target is above sm_70; FAKECUDA_BAD=name: that kernel writes nothing
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "../../cuda.h"
#include "../../kernels/kernels.h"

enum { DEVICES = 16, KERNELS = 64 };
struct CUctx_st { int dev, refs; unsigned peers; };
struct range { u64 at, size; int dev, host; struct range *next; };
enum { COPY, SET, RECORD, WAIT, KERNEL_RUN, CALL, GRAPH };
enum { NODES = 4096 };
typedef struct { u64 bit[NODES / 64]; } set; // of nodes of a graph
struct CUevent_st { int magic, dev; unsigned flags; u64 recorded, fired; struct timespec when; CUstream stream; u64 at; CUgraph graph; set after; };
struct task {
  int what;
  u64 to, from, n, gen;
  unsigned char byte;
  CUevent event;
  const struct kernel *k;
  void (*call)(void *);
  void *arg;
  char param[512];
  struct task *next;
};
struct CUstream_st {
  int magic, dev, quit;
  pthread_t thread;
  pthread_cond_t more, less; // tasks were added, were done
  struct task *head, **tail;
  u64 put, done, wanted;
  CUresult error; // sticky, as a context's is
  CUgraph graph;  // what is queued is kept there
  set after;      // nodes that the next one comes after
};
struct CUfunc_st { int magic; unsigned most; struct CUmod_st *mod; const struct kernel *k; }; // most threads of a block
struct CUmod_st { int magic, dev, n; struct CUfunc_st f[KERNELS]; };
struct kernel { const char *name; size_t param; void (*run)(const void *); };

extern int fake_devices;
extern long fake_live;
#define LIVE(n) __atomic_add_fetch(&fake_live, n, __ATOMIC_RELAXED)
extern struct CUctx_st fake_ctx[DEVICES];
extern __thread CUcontext fake_current;
extern pthread_mutex_t fake_lock;

const char *fake_text(const char *name); // of the environment, else of fakecuda.conf beside the library; NULL: not set
int fake_env(const char *name, int otherwise);
CUresult fake_enter(const char *function);
struct range *fake_find(u64 at, u64 size);
CUresult fake_reach(int dev, u64 at, u64 size); // may code on dev touch this range?
const struct kernel *fake_kernel(const char *name);
CUresult fake_check(int dev, const struct kernel *k, const void *param); // its ranges
void fake_run(const struct kernel *k, const void *param);
void *fake_at(u64 a); // where this process finds a device's memory
void fake_do(struct task *t);
void fake_play(void *graph);
CUresult fake_queue(CUstream s, struct task t);
// These with stream_lock held; fake_invalid gives it back.
extern pthread_mutex_t stream_lock;
CUresult fake_keep(CUstream s, const struct task *t);
CUresult fake_depend(CUstream s, CUevent e);
CUresult fake_invalid(CUstream s);

#define FREE_ENTER                             \
  do {                                         \
    CUresult e_ = fake_enter(__func__);        \
    if (e_) return e_;                         \
  } while (0)
#define ENTER                                                                         \
  do {                                                                                \
    FREE_ENTER;                                                                       \
    if (!fake_current || !fake_current->refs) return CU_INVALID_CONTEXT;              \
  } while (0)
