// Communicators, versions, logs and planted faults of the fake.
#include "fake.h"

#include <stdarg.h>
#include <time.h>

char fake_algorithm[32], fake_protocol[32];
int (*fake_call)(void *, void (*)(void *), void *);
void *(*fake_memory)(void *, uint64_t, uint64_t);
static const char *(*text)(const char *);
static char last[256]; // of any thread, as NCCL's
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
int (*fake_on)(void *), (*fake_device)(void);

int fake_fail(int code, const char *format, const char *what) {
  pthread_mutex_lock(&last_lock);
  snprintf(last, sizeof last, format, what);
  pthread_mutex_unlock(&last_lock);
  return code;
}
void fake_begin(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (cuda) {
    fake_call = (int (*)(void *, void (*)(void *), void *))dlsym(cuda, "fake_call");
    fake_memory = (void *(*)(void *, uint64_t, uint64_t))dlsym(cuda, "fake_memory");
    fake_on = (int (*)(void *))dlsym(cuda, "fake_on");
    fake_device = (int (*)(void))dlsym(cuda, "fake_device");
    text = (const char *(*)(const char *))dlsym(cuda, "fake_text");
  }
  const char *a = getenv("NCCL_ALGO"), *p = getenv("NCCL_PROTO");
  snprintf(fake_algorithm, sizeof fake_algorithm, "%s", a ? a : "");
  snprintf(fake_protocol, sizeof fake_protocol, "%s", p ? p : "");
}
static pthread_once_t once = PTHREAD_ONCE_INIT;
const char *fake_knob(const char *name) {
  pthread_once(&once, fake_begin);
  return text ? text(name) : getenv(name);
}
int fake_for(const char *knob, int rank) {
  const char *s = fake_knob(knob);
  return s && *s && atoi(s) == rank;
}
int fake_refused(const char *function) {
  const char *s = fake_knob("FAKENCCL_FAIL");
  size_t n = strlen(function);
  if (!s || strncmp(s, function, n) || s[n] != ':') return 0;
  return fake_fail(atoi(s + n + 1), "%s was told to fail", function);
}

// A line as NCCL's debug file has them. Subsystems are those that are asked for.
void fake_log(ncclComm_t c, const char *subsystem, const char *format, ...) {
  const char *debug = getenv("NCCL_DEBUG"), *file = getenv("NCCL_DEBUG_FILE"), *asked = getenv("NCCL_DEBUG_SUBSYS");
  if (!debug || strcmp(debug, "INFO") || !strstr(asked ? asked : "INIT,ENV", subsystem)) return;
  static FILE *f;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock); // opened once and kept, as NCCL does
  if (!f) f = file ? fopen(file, "w") : stdout;
  pthread_mutex_unlock(&lock);
  if (!f) return;
  char line[512], all[700];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  snprintf(all, sizeof all, "fakehost:%d:%d [%d] NCCL INFO %s\n", getpid(), gettid(), c->rank, line);
  fputs(all, f);
  fflush(f);
}

int ncclGetVersion(int *v) {
  const char *s = fake_knob("FAKENCCL_VERSION");
  *v = s ? atoi(s) : 22304;
  return fake_refused("GetVersion");
}
const char *ncclGetErrorString(int r) {
  static const char *all[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage", "remote process exited or there was a network error", "NCCL operation in progress"};
  return r >= 0 && r < 8 ? all[r] : "unknown result code";
}
const char *ncclGetLastError(ncclComm_t c) { (void)c; return last; }

int ncclGetUniqueId(ncclUniqueId *id) {
  int refused = fake_refused("GetUniqueId"), port;
  if (refused) return refused;
  memset(id, 0, sizeof *id);
  uint64_t cookie = (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)id ^ (uint64_t)time(NULL) << 20;
  if ((port = fake_offer(cookie)) < 0) return fake_fail(SYSTEM, "%s", strerror(errno));
  memcpy(id->internal, &port, sizeof port);
  memcpy(id->internal + 8, &cookie, sizeof cookie);
  for (int i = 64; i < 128; i++) id->internal[i] = (char)(i * 7); // a damaged copy is seen
  return 0;
}

int ncclCommInitRankConfig(ncclComm_t *out, int n, ncclUniqueId id, int rank, nccl_config *k) {
  int refused = fake_refused("CommInitRank"), port;
  pthread_once(&once, fake_begin);
  if (refused) return refused;
  if (n < 1 || n > MOST || rank < 0 || rank >= n) return fake_fail(INVALID, "%s", "rank out of range");
  for (int i = 64; i < 128; i++) if (id.internal[i] != (char)(i * 7)) return fake_fail(INVALID, "%s", "unique id damaged");
  if (k && (k->magic != 0xcafebeefu || k->size != sizeof *k)) return fake_fail(INVALID, "%s", "ncclConfig_t argument not initialized");
  if (!fake_call || !fake_memory || !fake_on || !fake_device) return fake_fail(CUDA, "%s", "no CUDA driver is loaded");
  if (fake_device() < 0) return fake_fail(CUDA, "%s", "this thread has no GPU's context");
  ncclComm_t c = calloc(1, sizeof *c);
  memcpy(&port, id.internal, sizeof port);
  memcpy(&c->cookie, id.internal + 8, sizeof c->cookie);
  c->magic = 0x4cc1, c->n = n, c->rank = rank, c->device = fake_device(), c->error = NCCL_IN_PROGRESS, c->port = port;
  memset(c->sockets, -1, sizeof c->sockets);
  *out = c;
  if (pthread_create(&c->thread, 0, fake_join, c)) return fake_fail(SYSTEM, "%s", "no thread");
  return NCCL_IN_PROGRESS;
}
int ncclCommInitRank(ncclComm_t *out, int n, ncclUniqueId id, int rank) { return ncclCommInitRankConfig(out, n, id, rank, NULL); }
int ncclCommGetAsyncError(ncclComm_t c, int *e) {
  if (!c || c->magic != 0x4cc1) return fake_fail(INVALID, "%s", "no communicator");
  *e = __atomic_load_n(&c->error, __ATOMIC_ACQUIRE);
  return 0;
}
static int leave(ncclComm_t c) {
  if (!c || c->magic != 0x4cc1) return fake_fail(INVALID, "%s", "no communicator");
  pthread_join(c->thread, 0);
  c->magic = 0;
  for (int p = 0; p < c->n; p++)
    if (c->sockets[p] >= 0) close(c->sockets[p]);
  return 0; // the rest stays: work in a stream may still look at it
}
int ncclCommDestroy(ncclComm_t c) { return leave(c); }
int ncclCommAbort(ncclComm_t c) {
  if (!c || c->magic != 0x4cc1) return fake_fail(INVALID, "%s", "no communicator");
  __atomic_store_n(&c->aborted, 1, __ATOMIC_RELEASE);
  const char *told = fake_knob("FAKENCCL_ABORTED"); // a file that counts them
  FILE *f = told ? fopen(told, "a") : NULL;
  if (f) fprintf(f, "%d\n", c->rank), fclose(f);
  return leave(c);
}
