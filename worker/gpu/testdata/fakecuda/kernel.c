// Modules and kernels of the fake: the host build of kernels.c.
#include "fake.h"

__thread u32 host_tid, host_threads, host_block, host_blocks;
#include "../../kernels/kernels.c"

// A few threads show what many do.
enum { BLOCKS = 3, THREADS = 5 };

#define RUN(name, type) static void run_##name(const void *p) { name(*(const struct type *)p); }
#define FOUR(t) RUN(sum_##t, pass) RUN(prod_##t, pass) RUN(min_##t, pass) RUN(max_##t, pass)
FOUR(int8) FOUR(uint8) FOUR(int32) FOUR(uint32) FOUR(int64) FOUR(uint64)
FOUR(half) FOUR(float) FOUR(double) FOUR(bfloat16) FOUR(f8e4m3) FOUR(f8e5m2)
RUN(fill, fill)
RUN(check, check)

#define K(name, type) {#name, sizeof(struct type), run_##name}
#define K4(t) K(sum_##t, pass), K(prod_##t, pass), K(min_##t, pass), K(max_##t, pass)
static const struct kernel all[] = {
  K4(int8), K4(uint8), K4(int32), K4(uint32), K4(int64), K4(uint64), K4(half), K4(float), K4(double), K4(bfloat16), K4(f8e4m3), K4(f8e5m2),
  K(fill, fill), K(check, check),
};

const struct kernel *fake_kernel(const char *name) {
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(all[i].name, name)) return &all[i];
  return NULL;
}

CUresult fake_check(int dev, const struct kernel *k, const void *param) {
  CUresult r = CU_OK;
  if (!strcmp(k->name, "fill")) {
    const struct fill *p = param;
    r = fake_reach(dev, p->dst, p->bytes);
    return r ? r : fake_reach(dev, p->period, p->period_bytes);
  }
  if (!strcmp(k->name, "check")) {
    const struct check *p = param;
    r = fake_reach(dev, p->got, p->bytes);
    if (!r) r = fake_reach(dev, p->want, p->period_bytes);
    return r ? r : fake_reach(dev, p->result, 16);
  }
  const struct pass *p = param;
  if (!p->ns || !p->nd || p->ns > PASS_MOST || p->nd > PASS_MOST) return CU_INVALID_VALUE;
  for (u32 j = 0; j < p->ns && !r; j++) r = fake_reach(dev, p->src[j], p->bytes);
  for (u32 j = 0; j < p->nd && !r; j++) r = fake_reach(dev, p->dst[j], p->bytes);
  return r;
}

void fake_run(const struct kernel *k, const void *param) {
  const char *bad = fake_text("FAKECUDA_BAD");
  if (bad && !strcmp(bad, k->name)) return;
  host_blocks = BLOCKS, host_threads = THREADS;
  for (host_block = 0; host_block < BLOCKS; host_block++)
    for (host_tid = 0; host_tid < THREADS; host_tid++) k->run(param);
}

// Loading checks what a driver would: that the text's version and target are not
// beyond the driver and the device, and each kernel's parameter.
CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, int *opts, void **vals) {
  ENTER;
  char *log = NULL;
  size_t len = 0;
  for (unsigned i = 0; i < n; i++) {
    if (opts[i] == CU_JIT_ERROR_LOG_BUFFER) log = vals[i];
    if (opts[i] == CU_JIT_ERROR_LOG_SIZE) len = (size_t)vals[i];
  }
#define REFUSE(code, ...)                           \
  do {                                              \
    if (log && len) snprintf(log, len, __VA_ARGS__); \
    return code;                                    \
  } while (0)
  const char *ptx = image, *version = strstr(ptx, ".version "), *target = strstr(ptx, ".target sm_");
  int major, minor, sm, driver = fake_env("FAKECUDA_DRIVER", 12080), refuse = fake_env("FAKECUDA_PTX", 0);
  if (!version || !target || sscanf(version, ".version %d.%d", &major, &minor) != 2 || sscanf(target, ".target sm_%d", &sm) != 1) REFUSE(CU_INVALID_IMAGE, "fake: no .version or .target");
  int most = driver >= 12080 ? 87 : driver >= 12000 ? 80 : driver >= 11080 ? 78 : 70; // PTX ISA manual, release notes
  if (10 * major + minor > most) REFUSE(CU_UNSUPPORTED_PTX_VERSION, "fake: PTX %d.%d is newer than the driver", major, minor);
  if (sm > fake_env("FAKECUDA_CC", 90)) REFUSE(CU_NO_BINARY_FOR_GPU, "fake: sm_%d is more than the device", sm);
  if (refuse && sm > 70) REFUSE(refuse, "fake: refused");
  CUmodule m = calloc(1, sizeof *m);
  m->magic = 0x70d, m->dev = fake_current->dev;
  for (const char *e = ptx; (e = strstr(e, ".entry ")) && m->n < KERNELS;) {
    char name[64];
    unsigned align, size;
    e += 7;
    const char *param = strstr(e, ".param ");
    if (sscanf(e, "%63[a-z0-9_]", name) != 1 || !param || sscanf(param, ".param .align %u .b8 %*[a-z0-9_][%u]", &align, &size) != 2) continue;
    const struct kernel *k = fake_kernel(name);
    if (!k || k->param != size) REFUSE(CU_INVALID_PTX, "fake: kernel %s with %u bytes of parameter", name, size);
    unsigned most = 256; // what a compiler left alone fits into the registers of a block: 65536, at most 255 a thread
    const char *body = strchr(e, '{'), *said = strstr(e, ".maxntid ");
    if (said && body && said < body) sscanf(said, ".maxntid %u", &most);
    m->f[m->n++] = (struct CUfunc_st){0xf0, most, m, k};
  }
  if (!m->n) REFUSE(CU_INVALID_PTX, "fake: no kernel");
  *out = m, LIVE(1);
  return CU_OK;
}
CUresult cuModuleUnload(CUmodule m) {
  ENTER;
  if (!m || m->magic != 0x70d) return CU_INVALID_HANDLE;
  m->magic = 0;
  free(m), LIVE(-1);
  return CU_OK;
}
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  ENTER;
  if (!m || m->magic != 0x70d || m->dev != fake_current->dev) return CU_INVALID_HANDLE;
  for (int i = 0; i < m->n; i++)
    if (!strcmp(m->f[i].k->name, name)) return *f = &m->f[i], CU_OK;
  return CU_NOT_FOUND;
}
