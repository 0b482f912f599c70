// Devices, contexts and memory of the fake.
#include "fake.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int fake_devices;
struct CUctx_st fake_ctx[DEVICES];
__thread CUcontext fake_current;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
u64 host_from, host_size, host_shift;
static struct range *ranges;
static u64 memory; // bytes of a device
static u64 drop(u64 at, int host);
static int backing = -1, ready;

// Processes with an environment of their own find the knobs in a file.
static char conf[4096];
static void read_conf(void) {
  Dl_info me;
  char path[4096];
  if (!dladdr((void *)read_conf, &me)) return;
  snprintf(path, sizeof path, "%.*s/fakecuda.conf", (int)(strrchr(me.dli_fname, '/') - me.dli_fname), me.dli_fname);
  FILE *f = fopen(path, "r");
  if (!f) return;
  conf[fread(conf, 1, sizeof conf - 1, f)] = 0;
  fclose(f);
  for (char *s = conf; *s; s++)
    if (*s == '\n') *s = 0;
}
const char *fake_text(const char *name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_conf);
  const char *s = getenv(name);
  size_t n = strlen(name);
  if (s) return s;
  for (s = conf; *s; s += strlen(s) + 1)
    if (!strncmp(s, name, n) && s[n] == '=') return s + n + 1;
  return NULL;
}

int fake_env(const char *name, int otherwise) {
  const char *s = fake_text(name);
  return s && *s ? atoi(s) : otherwise;
}

static long calls; // of the driver, so far
long fake_live;    // streams, events, modules, recordings and ranges of memory, and contexts held
CUresult fake_enter(const char *function) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  static struct { char name[48]; int calls; } seen[96];
  const char *s = fake_text("FAKECUDA_FAIL");
  if (s) {
    pthread_mutex_lock(&fake_lock);
    int i = 0;
    while (i < 95 && seen[i].name[0] && strcmp(seen[i].name, function)) i++;
    snprintf(seen[i].name, sizeof seen[i].name, "%s", function);
    int call = ++seen[i].calls;
    pthread_mutex_unlock(&fake_lock);
    char name[48];
    int at, code;
    for (; s && *s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
      if (sscanf(s, "%47[^:]:%d:%d", name, &at, &code) == 3 && !strcmp(name, function) && at == call) return code;
  }
  return ready || !strcmp(function, "cuInit") ? CU_OK : CU_NOT_INITIALIZED;
}

CUresult cuInit(unsigned flags) {
  FREE_ENTER;
  if (flags) return CU_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  if (!ready) {
    fake_devices = fake_env("FAKECUDA_DEVICES", 2);
    if (fake_devices > DEVICES) fake_devices = DEVICES;
    memory = (u64)fake_env("FAKECUDA_MEM", 256) << 20;
    host_size = memory * fake_devices;
    backing = memfd_create("fakecuda", MFD_CLOEXEC);
    void *to = MAP_FAILED, *from = MAP_FAILED;
    if (host_size && !ftruncate(backing, host_size)) {
      to = mmap(NULL, host_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, backing, 0);
      from = fake_env("FAKECUDA_PEERMEM", 0) ? mmap(NULL, host_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, backing, 0)
                                             : mmap(NULL, host_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (to == MAP_FAILED || from == MAP_FAILED) perror("fakecuda"), abort();
    }
    host_from = (u64)from, host_shift = (u64)to - (u64)from;
    for (int i = 0; i < fake_devices; i++) fake_ctx[i].dev = i;
    ready = fake_devices > 0;
  }
  pthread_mutex_unlock(&fake_lock);
  return ready ? CU_OK : CU_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *v) { return *v = fake_env("FAKECUDA_DRIVER", 12080), CU_OK; }
CUresult cuGetErrorName(CUresult r, const char **s) {
  static __thread char name[40];
  const char *known = r == CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : r == CU_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
  snprintf(name, sizeof name, "CUDA_ERROR_FAKE_%d", r);
  if (r == -1 || r == -2) snprintf(name, sizeof name, "%ld", __atomic_load_n(r == -1 ? &calls : &fake_live, __ATOMIC_RELAXED)); // for tests that count
  *s = known ? known : name;
  return CU_OK;
}
CUresult cuGetErrorString(CUresult r, const char **s) {
  *s = r == CU_OUT_OF_MEMORY ? "out of memory" : "the fake driver says so";
  return CU_OK;
}

#define DEVICE(d) if ((d) < 0 || (d) >= fake_devices) return CU_INVALID_DEVICE
CUresult cuDeviceGetCount(int *n) { FREE_ENTER; *n = fake_devices; return CU_OK; }
CUresult cuDeviceGet(CUdevice *d, int i) { FREE_ENTER; DEVICE(i); *d = i; return CU_OK; }
CUresult cuDeviceGetName(char *s, int n, CUdevice d) { FREE_ENTER; DEVICE(d); snprintf(s, n, "Fake GPU"); return CU_OK; }
CUresult cuDeviceGetPCIBusId(char *s, int n, CUdevice d) { FREE_ENTER; DEVICE(d); snprintf(s, n, "0000:%02X:00.0", 0x18 + 16 * d); return CU_OK; }
CUresult cuDeviceGetUuid(CUuuid *u, CUdevice d) { FREE_ENTER; DEVICE(d); memset(u, 0, 16); u->bytes[15] = d; return CU_OK; }
CUresult cuDeviceGetUuid_v2(CUuuid *u, CUdevice d) { return cuDeviceGetUuid(u, d); }
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { FREE_ENTER; DEVICE(d); *n = memory; return CU_OK; }
CUresult cuDeviceGetAttribute(int *v, int attr, CUdevice d) {
  FREE_ENTER; DEVICE(d);
  int cc = fake_env("FAKECUDA_CC", 90);
  switch (attr) {
  case CU_ATTR_SMS: *v = 4; break;
  case CU_ATTR_UNIFIED_ADDRESSING: *v = 1; break;
  case CU_ATTR_CC_MAJOR: *v = cc / 10; break;
  case CU_ATTR_CC_MINOR: *v = cc % 10; break;
  case CU_ATTR_RDMA_FLUSH_OPTIONS: *v = fake_env("FAKECUDA_FLUSH", CU_FLUSH_BY_HOST); break;
  case CU_ATTR_RDMA_WRITES_ORDERING: *v = 0; break;
  case CU_ATTR_GPU_DIRECT_RDMA: case CU_ATTR_DMA_BUF: *v = fake_env("FAKECUDA_DMABUF", 0); break;
  default: return CU_INVALID_VALUE;
  }
  return CU_OK;
}

static int peers(int a, int b) {
  const char *s = fake_text("FAKECUDA_P2P");
  if (a == b || (s && !strcmp(s, "none"))) return 0;
  return !(s && !strcmp(s, "pairs")) || a / 2 == b / 2;
}
CUresult cuDeviceCanAccessPeer(int *can, CUdevice d, CUdevice p) { FREE_ENTER; DEVICE(d); DEVICE(p); *can = peers(d, p); return CU_OK; }
CUresult cuDeviceGetP2PAttribute(int *v, int attr, CUdevice s, CUdevice d) {
  FREE_ENTER; DEVICE(s); DEVICE(d);
  if (s == d) return CU_INVALID_DEVICE;
  *v = attr == CU_P2P_PERFORMANCE_RANK ? 0 : peers(s, d);
  return CU_OK;
}
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  ENTER;
  if (flags || !peer || !peer->refs) return CU_INVALID_VALUE;
  if (!peers(fake_current->dev, peer->dev)) return CU_PEER_ACCESS_UNSUPPORTED;
  pthread_mutex_lock(&fake_lock);
  int had = fake_current->peers >> peer->dev & 1;
  fake_current->peers |= 1u << peer->dev;
  pthread_mutex_unlock(&fake_lock);
  return had ? CU_PEER_ACCESS_ALREADY_ENABLED : CU_OK;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
  FREE_ENTER; DEVICE(d);
  pthread_mutex_lock(&fake_lock);
  fake_ctx[d].refs++, LIVE(1);
  pthread_mutex_unlock(&fake_lock);
  *c = &fake_ctx[d];
  return CU_OK;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
  FREE_ENTER; DEVICE(d);
  pthread_mutex_lock(&fake_lock);
  int held = fake_ctx[d].refs > 0;
  fake_ctx[d].refs -= held, LIVE(-held);
  if (held && !fake_ctx[d].refs) { // the context ends, and what was made in it
    fake_ctx[d].peers = 0;
    for (struct range *r = ranges, *next; r; r = next) {
      next = r->next;
      if (r->dev == d) drop(r->at, r->host);
    }
  }
  pthread_mutex_unlock(&fake_lock);
  return held ? CU_OK : CU_INVALID_CONTEXT;
}
CUresult cuCtxSetCurrent(CUcontext c) {
  FREE_ENTER;
  if (c && (c < fake_ctx || c >= fake_ctx + DEVICES || !c->refs)) return CU_INVALID_CONTEXT;
  fake_current = c;
  return CU_OK;
}

static struct range *find(u64 at, u64 size) {
  for (struct range *r = ranges; r; r = r->next)
    if (at >= r->at && at - r->at <= r->size && size <= r->size - (at - r->at)) return r;
  return NULL;
}
struct range *fake_find(u64 at, u64 size) {
  pthread_mutex_lock(&fake_lock);
  struct range *r = find(at, size);
  pthread_mutex_unlock(&fake_lock);
  return r;
}
CUresult fake_reach(int dev, u64 at, u64 size) {
  if (!size) return CU_OK;
  struct range *r = fake_find(at, size);
  if (!r) return CU_ILLEGAL_ADDRESS;
  return r->host || r->dev == dev || fake_ctx[dev].peers >> r->dev & 1 ? CU_OK : CU_ILLEGAL_ADDRESS;
}

static void add(u64 at, u64 size, int dev, int host) {
  struct range *r = malloc(sizeof *r);
  *r = (struct range){at, size, dev, host, ranges};
  ranges = r, LIVE(1);
}
static u64 drop(u64 at, int host) {
  for (struct range **r = &ranges; *r; r = &(*r)->next)
    if ((*r)->at == at && (*r)->host == host) {
      struct range *gone = *r;
      u64 size = gone->size;
      *r = gone->next;
      free(gone), LIVE(-1);
      return size;
    }
  return 0;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  ENTER;
  if (!n) return CU_INVALID_VALUE;
  u64 from = host_from + memory * fake_current->dev, to = from + memory, at = from;
  pthread_mutex_lock(&fake_lock);
  for (struct range *r = ranges; r;) { // the first gap, with some of it left free behind
    if (!r->host && at < r->at + r->size + 512 && r->at < at + n + 512) at = (r->at + r->size + 1023) & ~511ull, r = ranges;
    else r = r->next;
  }
  int fits = n <= to - from && at <= to - n;
  if (fits) add(at, n, fake_current->dev, 0), memset((void *)(at + host_shift), 0xdb, n);
  pthread_mutex_unlock(&fake_lock);
  *p = at;
  return fits ? CU_OK : CU_OUT_OF_MEMORY;
}
CUresult cuMemFree_v2(CUdeviceptr p) {
  ENTER;
  pthread_mutex_lock(&fake_lock);
  u64 size = drop(p, 0);
  pthread_mutex_unlock(&fake_lock);
  return size || !p ? CU_OK : CU_INVALID_VALUE;
}
CUresult cuMemGetInfo_v2(size_t *left, size_t *total) {
  ENTER;
  *left = *total = memory;
  pthread_mutex_lock(&fake_lock);
  for (struct range *r = ranges; r; r = r->next)
    if (!r->host && r->dev == fake_current->dev) *left -= r->size;
  pthread_mutex_unlock(&fake_lock);
  return CU_OK;
}
CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) {
  ENTER;
  (void)flags;
  void *q = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (q == MAP_FAILED) return CU_OUT_OF_MEMORY;
  pthread_mutex_lock(&fake_lock);
  add((u64)q, n, fake_current->dev, 1);
  pthread_mutex_unlock(&fake_lock);
  *p = q;
  return CU_OK;
}
CUresult cuMemFreeHost(void *p) {
  ENTER;
  pthread_mutex_lock(&fake_lock);
  u64 size = drop((u64)p, 1);
  pthread_mutex_unlock(&fake_lock);
  return size && !munmap(p, size) ? CU_OK : CU_INVALID_VALUE;
}
CUresult cuPointerSetAttribute(const void *v, int attr, CUdeviceptr p) {
  ENTER;
  struct range *r = fake_find(p, 1);
  return r && !r->host && attr == CU_POINTER_SYNC_MEMOPS && *(const unsigned *)v == 1 ? CU_OK : CU_INVALID_VALUE;
}
CUresult cuMemGetHandleForAddressRange(void *h, CUdeviceptr p, size_t n, int type, unsigned long long flags) {
  ENTER;
  if (type != CU_HANDLE_DMA_BUF_FD || flags || (p | n) & 4095 || p - host_from >= host_size) return CU_INVALID_VALUE;
  if (!fake_env("FAKECUDA_DMABUF", 0)) return CU_NOT_SUPPORTED;
  *(int *)h = fcntl(backing, F_DUPFD_CLOEXEC, 0);
  return CU_OK;
}
CUresult cuFlushGPUDirectRDMAWrites(int target, int scope) {
  ENTER;
  int can = fake_env("FAKECUDA_FLUSH", CU_FLUSH_BY_HOST) & CU_FLUSH_BY_HOST;
  return can && target == CU_FLUSH_TARGET_CURRENT_CTX && scope == CU_FLUSH_TO_OWNER ? CU_OK : CU_INVALID_VALUE;
}
