// The collectives of the fake, done in the stream's turn.
#include "fake.h"

#include <strings.h>

__thread u32 host_tid, host_threads, host_block, host_blocks;
u64 host_from, host_size, host_shift;
#include "../../../gpu/kernels/kernels.c"

static const int widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
typedef void kernel(struct pass);
#define K4(t) {sum_##t, prod_##t, max_##t, min_##t, sum_##t}
static kernel *const kernels[][5] = {K4(int8), K4(uint8), K4(int32), K4(uint32), K4(int64), K4(uint64), K4(half), K4(float), K4(double), K4(bfloat16), K4(f8e4m3), K4(f8e5m2)};

enum { ALLREDUCE, REDUCE, BROADCAST, ALLGATHER, REDUCESCATTER, GROUP };
static const char *const names[] = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter", "Send"}; // as NCCL writes them
static const char *const ours[] = {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "send"};

struct work { int what; char *s, *d; size_t bytes; int t, op, root; ncclComm_t c; struct piece p[PIECES]; int n; };

enum { PROD = 1, AVG = 4, FLOATS = 6 }; // FLOATS: the first type that has fractions

static void apply(int t, int op, struct pass p) {
  host_blocks = host_threads = 1, host_block = host_tid = 0;
  kernels[t][op](p);
}

// scale multiplies a rank's data by 1/n, rounded to the type: an average of
// NCCL's is a sum of that (enqueue.cc, hostToDevRedOp).
static void scale(struct work *w, char *data, size_t bytes) {
  static const u64 one[] = {[6] = 0x3c00, 0x3f800000, 0x3ff0000000000000, 0x3f80, 0x38, 0x3c};
  static char by[CHUNK];
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < bytes; i += widths[w->t]) memcpy(by + i, &one[w->t], widths[w->t]);
  apply(w->t, AVG, (struct pass){.bytes = bytes, .ns = 1, .nd = 1, .ranks = w->c->n, .src = {(u64)by}, .dst = {(u64)by}});
  apply(w->t, PROD, (struct pass){.bytes = bytes, .ns = 2, .nd = 1, .src = {(u64)data, (u64)by}, .dst = {(u64)data}});
  pthread_mutex_unlock(&mutex);
}

static void combine(struct work *w, char (*data)[CHUNK], char *to, size_t bytes) {
  struct pass p = {.bytes = bytes, .ns = w->c->n, .nd = 1, .ranks = w->op == AVG && w->t < FLOATS ? w->c->n : 0, .dst = {(u64)to}};
  for (int r = 0; r < w->c->n; r++) {
    p.src[r] = (u64)data[r];
    if (w->op == AVG && w->t >= FLOATS) scale(w, data[r], bytes);
  }
  apply(w->t, w->op, p);
}

// share has every rank of to send nothing but get the chunk of all: from is this rank's.
static int share(struct work *w, char (*data)[CHUNK], const char *from, size_t k, int to) {
  struct piece p[2 * MOST];
  int n = 0, me = w->c->rank;
  memcpy(data[me], from, k);
  for (int r = 0; r < w->c->n; r++) {
    if (r == me) continue;
    if (to < 0 || to == r) p[n++] = (struct piece){1, r, data[me], k};
    if (to < 0 || to == me) p[n++] = (struct piece){0, r, data[r], k};
  }
  return fake_move(w->c, p, n);
}
static int reduced(struct work *w, const char *s, char *d, size_t bytes, int root, int bad) {
  char(*data)[CHUNK] = malloc((size_t)MOST * CHUNK);
  int r = 0;
  for (size_t o = 0; o < bytes && !r; o += CHUNK) {
    size_t k = bytes - o < CHUNK ? bytes - o : CHUNK;
    r = share(w, data, s + o, k, root);
    if (r || (root >= 0 && root != w->c->rank)) continue;
    combine(w, data, d + o, k);
    d[o] ^= bad;
  }
  free(data);
  return r;
}
static int spread(struct work *w, const char *s, char *d, size_t bytes, int root, int bad) { // root's s becomes d everywhere
  struct piece p[MOST];
  int n = 0, me = w->c->rank, r = 0;
  if (me == root) memmove(d, s, bytes);
  for (int q = 0; q < w->c->n; q++)
    if (q != root && (me == root || me == q)) p[n++] = (struct piece){me == root, me == root ? q : root, d, bytes};
  r = fake_move(w->c, p, n);
  if (bytes) d[0] ^= bad && me != root;
  return r;
}

static void hang(ncclComm_t c) {
  while (!fake_gone(c)) usleep(1000);
}
static void run(void *arg) {
  struct work *w = arg;
  ncclComm_t c = w->c;
  const char *wrong = fake_knob("FAKENCCL_WRONG"), *stall = fake_knob("FAKENCCL_STALL"), *async = fake_knob("FAKENCCL_ASYNC");
  size_t name = strlen(ours[w->what]);
  int bad = wrong && !strncmp(wrong, ours[w->what], name) && (!wrong[name] || (wrong[name] == ':' && atoi(wrong + name + 1) == c->rank));
  if (stall && fake_for("FAKENCCL_STALL", c->rank) && (!strchr(stall, ':') || (size_t)atol(strchr(stall, ':') + 1) == w->bytes)) hang(c);
  int r = 0;
  if (fake_gone(c)) r = REMOTE;
  else if (w->what == ALLREDUCE) r = reduced(w, w->s, w->d, w->bytes, -1, bad);
  else if (w->what == REDUCE) r = reduced(w, w->s, w->d, w->bytes, w->root, bad);
  else if (w->what == BROADCAST) r = spread(w, w->s, w->d, w->bytes, w->root, bad);
  else if (w->what == GROUP) r = fake_move(c, w->p, w->n);
  else if (w->what == ALLGATHER)
    for (int o = 0; o < c->n && !r; o++) r = spread(w, w->s, w->d + o * w->bytes, w->bytes, o, bad);
  else // in place a rank's result lies in its input, but in its own block
    for (int o = 0; o < c->n && !r; o++) r = reduced(w, w->s + o * w->bytes, w->d, w->bytes, o, bad);
  if (!r && async && fake_for("FAKENCCL_ASYNC", c->rank)) r = atoi(strchr(async, ':') + 1);
  if (r) {
    __atomic_store_n(&c->error, r, __ATOMIC_RELEASE);
    hang(c); // as a kernel does whose peer is gone
  }
  free(w);
}

// told is the choice that NCCL writes for each collective, as its versions do.
static int told(struct work *w, size_t count) {
  static const char *algos[] = {"TREE", "RING"}, *protos[] = {"LL", "LL128", "SIMPLE"};
  int version, a = count * widths[w->t] < 32768 ? 0 : 1, p = a ? 2 : 0;
  ncclGetVersion(&version);
  if (fake_algorithm[0]) a = !strcasecmp(fake_algorithm, "Ring") ? 1 : !strcasecmp(fake_algorithm, "Tree") ? 0 : -1;
  if (fake_protocol[0]) p = !strcasecmp(fake_protocol, "LL") ? 0 : !strcasecmp(fake_protocol, "LL128") ? 1 : 2;
  if (a < 0) return fake_fail(USAGE, "%s", "no algorithm/protocol available for function"); // 2.24 and later fall back on none
  long bytes = count * widths[w->t];
  if (w->c->rank) return 0;
  if (version >= 22400) fake_log(w->c, "TUNING", "%s: %ld Bytes -> Algo %s proto %s channel{Lo..Hi}={0..%d}", names[w->what], bytes, algos[a], protos[p], a ? 23 : 1);
  else if (version >= 22300) fake_log(w->c, "TUNING", "%s: %ld Bytes -> Algo %d proto %d time %f", names[w->what], bytes, a, p, 12.5);
  else if (version >= 22000) fake_log(w->c, "TUNING", "%ld Bytes -> Algo %d proto %d time %f", bytes, a, p, 12.5);
  return 0;
}

static int start(struct work w, void *stream, size_t in, size_t out) {
  int refused = fake_refused(names[w.what]), error = w.c ? __atomic_load_n(&w.c->error, __ATOMIC_ACQUIRE) : 0;
  if (refused) return refused;
  if (!w.c || w.c->magic != 0x4cc1) return fake_fail(INVALID, "%s", "no communicator");
  if (error) return fake_fail(error == NCCL_IN_PROGRESS ? USAGE : error, "%s", "the communicator is not ready");
  if (in && !(w.s = fake_memory(stream, (u64)w.s, in))) return fake_fail(INVALID, "%s", "the source is no memory of this GPU");
  if (out && !(w.d = fake_memory(stream, (u64)w.d, out))) return fake_fail(INVALID, "%s", "the result is no memory of this GPU");
  if (fake_on(stream) != w.c->device) return fake_fail(INVALID, "%s", "the stream is on another GPU than the communicator");
  const char *cc = fake_knob("FAKECUDA_CC");
  if (cc && atoi(cc) < 90 && w.t >= 10 && (w.what == ALLREDUCE || w.what == REDUCE || w.what == REDUCESCATTER))
    return fake_fail(INVALID, "%s", "FP8 reduction support begins with sm90 capable devices.");
  const char *block = fake_knob("FAKENCCL_BLOCK");
  if (block && fake_for("FAKENCCL_BLOCK", w.c->rank) && (!strchr(block, ':') || (size_t)atol(strchr(block, ':') + 1) == w.bytes)) hang(w.c);
  struct work *q = malloc(sizeof *q);
  *q = w;
  return fake_call(stream, run, q) ? fake_fail(CUDA, "%s", "stream") : 0;
}
#define TOLD(w) do { struct work w_ = (w); int r_ = c && c->magic == 0x4cc1 ? told(&w_, n) : 0; if (r_) return r_; } while (0)
#define WORK(what_, bytes_, root_, op_) struct work w = {.what = what_, .s = (char *)s, .d = d, .bytes = bytes_, .t = t, .op = op_, .root = root_, .c = c}; TOLD(w)

int ncclAllReduce(const void *s, void *d, size_t n, int t, int op, ncclComm_t c, void *st) {
  WORK(ALLREDUCE, n * widths[t], -1, op);
  return start(w, st, w.bytes, w.bytes);
}
int ncclReduce(const void *s, void *d, size_t n, int t, int op, int root, ncclComm_t c, void *st) {
  WORK(REDUCE, n * widths[t], root, op);
  return start(w, st, w.bytes, c && c->rank == root ? w.bytes : 0);
}
int ncclBroadcast(const void *s, void *d, size_t n, int t, int root, ncclComm_t c, void *st) {
  WORK(BROADCAST, n * widths[t], root, 0);
  return start(w, st, c && c->rank == root ? w.bytes : 0, w.bytes);
}
int ncclAllGather(const void *s, void *d, size_t n, int t, ncclComm_t c, void *st) {
  WORK(ALLGATHER, n * widths[t], -1, 0);
  return start(w, st, w.bytes, c ? c->n * w.bytes : 0);
}
int ncclReduceScatter(const void *s, void *d, size_t n, int t, int op, ncclComm_t c, void *st) {
  WORK(REDUCESCATTER, n * widths[t], -1, op);
  return start(w, st, c ? c->n * w.bytes : 0, w.bytes);
}

#ifndef WITHOUT_SEND
// Sends and receives of a group move on together.
static __thread struct work group;
static __thread int depth;
static __thread void *group_stream;
int ncclGroupStart(void) { depth++; return 0; }
int ncclGroupEnd(void) {
  if (--depth || !group.n) return 0;
  struct work w = group;
  group.n = 0;
  return start(w, group_stream, 0, 0);
}
static int queued(int send, void *at, size_t n, int t, int peer, ncclComm_t c, void *st) {
  if (!depth || group.n == PIECES || !c || peer < 0 || peer >= c->n) return fake_fail(USAGE, "%s", "send or receive");
  char *here = fake_memory(st, (u64)at, n * widths[t]);
  if (n && !here) return fake_fail(INVALID, "%s", "what is sent or received is no memory of this GPU");
  group.what = GROUP, group.c = c, group.t = t, group.bytes = n * widths[t], group_stream = st;
  group.p[group.n++] = (struct piece){send, peer, here, n * widths[t]};
  return 0;
}
int ncclSend(const void *s, size_t n, int t, int peer, ncclComm_t c, void *st) { return queued(1, (void *)s, n, t, peer, c, st); }
int ncclRecv(void *d, size_t n, int t, int peer, ncclComm_t c, void *st) { return queued(0, d, n, t, peer, c, st); }
#endif
