// A stand-in for libnccl.so.2 in the tests. Ranks are threads or processes that
// meet in a file which the unique id names; data lies in memory of the fake
// libcuda, which is reached through its own interface. A call does its work at
// once, after what its stream holds. NCCL_ALGO is read once in a process, as
// NCCL's parameters are. FAKENCCL_WRONG=op: that operation's results have one bit
// wrong; FAKENCCL_HANG=rank: it never arrives; FAKENCCL_VERSION=22304.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../../nccl.h"
#include "../../../gpu/kernels/kernels.h"

__thread u32 host_tid, host_threads, host_block, host_blocks;
u64 host_from, host_size, host_shift;
#include "../../../gpu/kernels/kernels.c"

enum { MOST = 16, CHUNK = 1 << 15, CALLS = 4 * MOST, REMOTE = 6, INVALID = 4, USAGE = 5, CUDA = 1, INTERNAL = 3, SYSTEM = 2 };
struct box { unsigned long sent, taken; char data[CHUNK]; };
struct meeting {
  int joined, aborted;
  unsigned arrived, round; // of the barrier
  char data[MOST][CHUNK];
  struct box box[MOST][MOST]; // from, to
};
struct ncclComm { int magic, n, rank, aborted, error; struct meeting *m; char path[100]; pthread_t thread; };

static __thread char last[256];
static int fail(int code, const char *format, const char *what) {
  snprintf(last, sizeof last, format, what);
  return code;
}

// The device's memory, by the fake driver of this process.
static int (*copy_in)(unsigned long long, const void *, size_t, void *), (*copy_out)(void *, unsigned long long, size_t, void *), (*drain)(void *);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char algorithm[32];
static void begin(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (cuda) {
    copy_in = (int (*)(unsigned long long, const void *, size_t, void *))dlsym(cuda, "cuMemcpyHtoDAsync_v2");
    copy_out = (int (*)(void *, unsigned long long, size_t, void *))dlsym(cuda, "cuMemcpyDtoHAsync_v2");
    drain = (int (*)(void *))dlsym(cuda, "cuStreamSynchronize");
  }
  const char *a = getenv("NCCL_ALGO");
  snprintf(algorithm, sizeof algorithm, "%s", a ? a : "");
}

static void log_line(ncclComm_t c, const char *text) {
  const char *debug = getenv("NCCL_DEBUG"), *file = getenv("NCCL_DEBUG_FILE");
  if (!debug || strcmp(debug, "INFO")) return;
  FILE *f = file ? fopen(file, "a") : stdout;
  if (!f) return;
  fprintf(f, "fakehost:%d:%d [%d] NCCL INFO %s\n", getpid(), gettid(), c ? c->rank : 0, text);
  if (file) fclose(f); else fflush(f);
}

int ncclGetVersion(int *v) {
  const char *s = getenv("FAKENCCL_VERSION");
  *v = s ? atoi(s) : 22304;
  return 0;
}
const char *ncclGetErrorString(int r) {
  static const char *text[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage", "remote process exited or there was a network error", "NCCL operation in progress"};
  return r >= 0 && r < 8 ? text[r] : "unknown result code";
}
const char *ncclGetLastError(ncclComm_t c) { (void)c; return last; }

int ncclGetUniqueId(ncclUniqueId *id) {
  memset(id, 0, sizeof *id);
  strcpy(id->internal, "/dev/shm/fakenccl.XXXXXX");
  int fd = mkstemp(id->internal);
  if (fd < 0 || ftruncate(fd, sizeof(struct meeting))) return fail(SYSTEM, "%s", strerror(errno));
  close(fd);
  for (int i = 64; i < 128; i++) id->internal[i] = (char)(i * 7); // a damaged copy is seen
  return 0;
}

static int gone(ncclComm_t c) { return __atomic_load_n(&c->aborted, __ATOMIC_ACQUIRE) || __atomic_load_n(&c->m->aborted, __ATOMIC_ACQUIRE); }
static int wait_all(ncclComm_t c) {
  unsigned round = __atomic_load_n(&c->m->round, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&c->m->arrived, 1, __ATOMIC_ACQ_REL) == (unsigned)c->n) {
    __atomic_store_n(&c->m->arrived, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&c->m->round, round + 1, __ATOMIC_RELEASE);
    return 0;
  }
  while (__atomic_load_n(&c->m->round, __ATOMIC_ACQUIRE) == round) {
    if (gone(c)) return REMOTE;
    usleep(20);
  }
  return 0;
}

static void *join(void *x) {
  ncclComm_t c = x;
  const char *hang = getenv("FAKENCCL_HANG");
  if (!(hang && atoi(hang) == c->rank)) __atomic_add_fetch(&c->m->joined, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&c->m->joined, __ATOMIC_ACQUIRE) < c->n) {
    if (gone(c)) return NULL;
    usleep(100);
  }
  if (c->rank == 0) unlink(c->path);
  log_line(c, "NCCL version 2.23.4+cuda12.6");
  if (algorithm[0]) { char t[80]; snprintf(t, sizeof t, "NCCL_ALGO set by environment to %s", algorithm); log_line(c, t); }
  log_line(c, "Using network Socket");
  log_line(c, "Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer");
  __atomic_store_n(&c->error, 0, __ATOMIC_RELEASE);
  return NULL;
}
int ncclCommInitRankConfig(ncclComm_t *out, int n, ncclUniqueId id, int rank, nccl_config *k) {
  pthread_once(&once, begin);
  if (n < 1 || n > MOST || rank < 0 || rank >= n) return fail(INVALID, "%s", "rank out of range");
  for (int i = 64; i < 128; i++) if (id.internal[i] != (char)(i * 7)) return fail(INVALID, "%s", "unique id damaged");
  if (k && (k->magic != 0xcafebeefu || k->size != sizeof *k)) return fail(INVALID, "%s", "ncclConfig_t argument not initialized");
  if (!copy_in || !copy_out || !drain) return fail(CUDA, "%s", "no CUDA driver is loaded");
  ncclComm_t c = calloc(1, sizeof *c);
  snprintf(c->path, sizeof c->path, "%.60s", id.internal);
  int fd = open(c->path, O_RDWR);
  if (fd < 0) { free(c); return fail(REMOTE, "%s", strerror(errno)); }
  c->m = mmap(0, sizeof *c->m, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  c->magic = 0x4cc1, c->n = n, c->rank = rank, c->error = NCCL_IN_PROGRESS;
  *out = c;
  pthread_create(&c->thread, 0, join, c);
  return NCCL_IN_PROGRESS;
}
int ncclCommInitRank(ncclComm_t *out, int n, ncclUniqueId id, int rank) { return ncclCommInitRankConfig(out, n, id, rank, NULL); }
int ncclCommGetAsyncError(ncclComm_t c, int *e) { *e = __atomic_load_n(&c->error, __ATOMIC_ACQUIRE); return 0; }
static int leave(ncclComm_t c) {
  if (!c || c->magic != 0x4cc1) return fail(INVALID, "%s", "no communicator");
  pthread_join(c->thread, 0);
  c->magic = 0; // the meeting stays mapped: another thread may be waiting in it
  return 0;
}
int ncclCommDestroy(ncclComm_t c) { return leave(c); }
int ncclCommAbort(ncclComm_t c) {
  __atomic_store_n(&c->aborted, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&c->m->aborted, 1, __ATOMIC_RELEASE);
  return leave(c);
}

static const int widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
typedef void kernel(struct pass);
#define K4(t) {sum_##t, prod_##t, max_##t, min_##t, sum_##t}
static kernel *const kernels[][5] = {K4(int8), K4(uint8), K4(int32), K4(uint32), K4(int64), K4(uint64), K4(half), K4(float), K4(double), K4(bfloat16), K4(f8e4m3), K4(f8e5m2)};

static void combine(ncclComm_t c, char *to, size_t from, size_t bytes, int t, int op) {
  struct pass p = {.bytes = bytes, .ns = c->n, .nd = 1, .ranks = op == 4 ? c->n : 0, .dst = {(u64)to}};
  for (int r = 0; r < c->n; r++) p.src[r] = (u64)(c->m->data[r] + from);
  host_blocks = host_threads = 1, host_block = host_tid = 0;
  kernels[t][op](p);
}

static __thread void *stream_now;
#define STREAM stream_now
static int enter(ncclComm_t c, void *stream, const char *name) {
  const char *wrong = getenv("FAKENCCL_WRONG");
  if (!c || c->magic != 0x4cc1) return fail(INVALID, "%s", "no communicator") << 8;
  if (c->error) return fail(USAGE, "%s", "the communicator is not ready") << 8;
  stream_now = stream;
  if (drain(stream)) return fail(CUDA, "%s", "stream") << 8;
  return wrong && !strcmp(wrong, name);
}
#define ENTER(name) int bad = enter(c, st, name); if (bad > 1) return bad >> 8
#define TRY(x) do { int r_ = (x); if (r_) return r_; } while (0)
#define IN(d, s, n) TRY(copy_in((u64)(d), s, n, STREAM) || drain(STREAM) ? fail(CUDA, "%s", "copy in") : 0)
#define OUT(d, s, n) TRY(copy_out(d, (u64)(s), n, STREAM) || drain(STREAM) ? fail(CUDA, "%s", "copy out") : 0)

// all walks over the elements in chunks: publish, meet, take, meet.
static int reduced(const void *s, void *d, size_t n, int t, int op, int root, ncclComm_t c, int bad) {
  static __thread char result[CHUNK];
  size_t step = CHUNK / widths[t];
  for (size_t o = 0; o < n; o += step) {
    size_t k = (n - o < step ? n - o : step) * widths[t], at = o * widths[t];
    OUT(c->m->data[c->rank], (const char *)s + at, k);
    TRY(wait_all(c));
    if (root < 0 || root == c->rank) {
      combine(c, result, 0, k, t, op);
      result[0] ^= bad;
      IN((char *)d + at, result, k);
    }
    TRY(wait_all(c));
  }
  return 0;
}
int ncclAllReduce(const void *s, void *d, size_t n, int t, int op, ncclComm_t c, void *st) { ENTER("all_reduce"); return reduced(s, d, n, t, op, -1, c, bad); }
int ncclReduce(const void *s, void *d, size_t n, int t, int op, int root, ncclComm_t c, void *st) { ENTER("reduce"); return reduced(s, d, n, t, op, root, c, bad); }
int ncclBroadcast(const void *s, void *d, size_t n, int t, int root, ncclComm_t c, void *st) {
  ENTER("broadcast");
  size_t bytes = n * widths[t];
  for (size_t o = 0; o < bytes; o += CHUNK) {
    size_t k = bytes - o < CHUNK ? bytes - o : CHUNK;
    if (c->rank == root) OUT(c->m->data[root], (const char *)s + o, k);
    TRY(wait_all(c));
    if (bad) c->m->data[root][0] ^= 1;
    IN((char *)d + o, c->m->data[root], k);
    TRY(wait_all(c));
  }
  return 0;
}
int ncclAllGather(const void *s, void *d, size_t n, int t, ncclComm_t c, void *st) {
  ENTER("all_gather");
  size_t bytes = n * widths[t];
  for (size_t o = 0; o < bytes; o += CHUNK) {
    size_t k = bytes - o < CHUNK ? bytes - o : CHUNK;
    OUT(c->m->data[c->rank], (const char *)s + o, k);
    TRY(wait_all(c));
    for (int r = 0; r < c->n; r++) IN((char *)d + r * bytes + o, c->m->data[r], k);
    TRY(wait_all(c));
  }
  return 0 * bad;
}
int ncclReduceScatter(const void *s, void *d, size_t n, int t, int op, ncclComm_t c, void *st) {
  ENTER("reduce_scatter");
  static __thread char result[CHUNK];
  size_t step = CHUNK / widths[t];
  // In place a rank's result lies in its input: every block is combined before its owner writes.
  for (int owner = 0; owner < c->n; owner++)
    for (size_t o = 0; o < n; o += step) {
      size_t k = (n - o < step ? n - o : step) * widths[t], at = o * widths[t];
      OUT(c->m->data[c->rank], (const char *)s + owner * n * widths[t] + at, k);
      TRY(wait_all(c));
      if (owner == c->rank) {
        combine(c, result, 0, k, t, op);
        result[0] ^= bad;
        IN((char *)d + at, result, k);
      }
      TRY(wait_all(c));
    }
  return 0;
}

// Sends and receives of a group move on together.
struct call { int send, peer; char *at; size_t left; };
static __thread struct call calls[CALLS];
static __thread int ncalls, depth;
static __thread ncclComm_t group;
int ncclGroupStart(void) { depth++; return 0; }
int ncclGroupEnd(void) {
  if (--depth) return 0;
  int open = ncalls, n = ncalls;
  ncalls = 0;
  ncclComm_t c = group;
  while (open) {
    open = 0;
    for (int i = 0; i < n; i++) {
      struct call *x = &calls[i];
      if (!x->left) continue;
      open = 1;
      size_t k = x->left < CHUNK ? x->left : CHUNK;
      struct box *b = x->send ? &c->m->box[c->rank][x->peer] : &c->m->box[x->peer][c->rank];
      unsigned long sent = __atomic_load_n(&b->sent, __ATOMIC_ACQUIRE), taken = __atomic_load_n(&b->taken, __ATOMIC_ACQUIRE);
      if (x->send ? sent != taken : sent == taken) continue;
      if (x->send) {
        OUT(b->data, x->at, k);
        __atomic_store_n(&b->sent, sent + 1, __ATOMIC_RELEASE);
      } else {
        IN(x->at, b->data, k);
        __atomic_store_n(&b->taken, taken + 1, __ATOMIC_RELEASE);
      }
      x->at += k, x->left -= k;
    }
    if (open) {
      if (gone(c)) return REMOTE;
      usleep(5);
    }
  }
  return 0;
}
static int queued(int send, void *at, size_t n, int t, int peer, ncclComm_t c, void *st) {
  ENTER("send");
  (void)bad;
  if (!depth || ncalls == CALLS || peer < 0 || peer >= c->n) return fail(USAGE, "%s", "send or receive");
  group = c;
  calls[ncalls++] = (struct call){send, peer, at, n * widths[t]};
  return 0;
}
int ncclSend(const void *s, size_t n, int t, int peer, ncclComm_t c, void *st) { return queued(1, (void *)s, n, t, peer, c, st); }
int ncclRecv(void *d, size_t n, int t, int peer, ncclComm_t c, void *st) { return queued(0, d, n, t, peer, c, st); }
