//go:build linux && cgo

#define _GNU_SOURCE
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
#define X(name, params) CUresult(*name) params;
  CU_TABLE(X, X)
#undef X
} cu;
static void *lib;

int gpu_load(const char *path, char *err, int n) {
  if (lib) return 0;
  void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!h) return snprintf(err, n, "%s", dlerror()), 1;
#define R(name, params)                                                   \
  if (!(cu.name = (CUresult(*) params)dlsym(h, "cu" #name))) {            \
    snprintf(err, n, "it has no cu" #name);                               \
    dlclose(h);                                                           \
    return 2;                                                             \
  }
#define O(name, params) cu.name = (CUresult(*) params)dlsym(h, "cu" #name);
  CU_TABLE(R, O)
#undef R
#undef O
  lib = h;
  return 0;
}

CUresult gpu_init(int *version) {
  CUresult r = cu.DriverGetVersion(version);
  return r ? r : cu.Init(0);
}

const char *gpu_error_name(CUresult r) {
  const char *s = NULL;
  return cu.GetErrorName && !cu.GetErrorName(r, &s) && s ? s : "unknown error";
}

const char *gpu_error_text(CUresult r) {
  const char *s = NULL;
  return cu.GetErrorString && !cu.GetErrorString(r, &s) && s ? s : "no description";
}

CUresult gpu_count(int *n) { return cu.DeviceGetCount(n); }
CUresult gpu_attribute(int *v, int attr, CUdevice d) { return cu.DeviceGetAttribute(v, attr, d); }

CUresult gpu_describe(int ordinal, char *name, int name_len, char *pci, int pci_len, CUuuid *uuid, size_t *memory) {
  CUdevice d;
  CUresult r = cu.DeviceGet(&d, ordinal);
  if (!r) r = cu.DeviceGetName(name, name_len, d);
  if (!r) r = cu.DeviceGetPCIBusId(pci, pci_len, d);
  if (!r && cu.DeviceGetUuid_v2) r = cu.DeviceGetUuid_v2(uuid, d);
  else if (!r) r = cu.DeviceGetUuid ? cu.DeviceGetUuid(uuid, d) : CU_NOT_SUPPORTED;
  return r ? r : cu.DeviceTotalMem_v2(memory, d);
}

CUresult gpu_can_access(int *can, int *rank, CUdevice d, CUdevice peer) {
  CUresult r = cu.DeviceCanAccessPeer(can, d, peer);
  *rank = -1;
  if (!r && *can && cu.DeviceGetP2PAttribute(rank, CU_P2P_PERFORMANCE_RANK, d, peer)) *rank = -1;
  return r;
}

CUresult gpu_retain(int ordinal, CUdevice *d, CUcontext *c) {
  CUresult r = cu.DeviceGet(d, ordinal);
  return r ? r : cu.DevicePrimaryCtxRetain(c, *d);
}
CUresult gpu_release(CUdevice d) { return cu.DevicePrimaryCtxRelease_v2(d); }

static CUdeviceptr at(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

CUresult gpu_current(CUcontext c) { return cu.CtxSetCurrent(c); }

// IN does the rest of the function in context c.
#define IN(c, call)                    \
  do {                                 \
    CUresult in = cu.CtxSetCurrent(c); \
    return in ? in : (call);           \
  } while (0)

CUresult gpu_enable_peer(CUcontext c, CUcontext peer) {
  CUresult r = cu.CtxSetCurrent(c);
  if (!r) r = cu.CtxEnablePeerAccess(peer, 0);
  return r == CU_PEER_ACCESS_ALREADY_ENABLED ? CU_OK : r;
}
CUresult gpu_alloc(CUcontext c, void **p, size_t n) {
  CUdeviceptr d = 0;
  CUresult r = cu.CtxSetCurrent(c);
  if (!r) r = cu.MemAlloc_v2(&d, n);
  *p = (void *)(uintptr_t)d;
  return r;
}
CUresult gpu_free(CUcontext c, void *p) { IN(c, cu.MemFree_v2(at(p))); }
CUresult gpu_free_memory(CUcontext c, size_t *left, size_t *total) { IN(c, cu.MemGetInfo_v2(left, total)); }
CUresult gpu_alloc_host(CUcontext c, void **p, size_t n) { IN(c, cu.MemHostAlloc(p, n, CU_HOSTALLOC_PORTABLE)); }
CUresult gpu_free_host(CUcontext c, void *p) { IN(c, cu.MemFreeHost(p)); }
CUresult gpu_sync_memops(CUcontext c, void *p) {
  unsigned yes = 1;
  IN(c, cu.PointerSetAttribute(&yes, CU_POINTER_SYNC_MEMOPS, at(p)));
}

// The driver exports whole pages: off is how far into them p is.
CUresult gpu_dma_buf(CUcontext c, void *p, size_t n, int *fd, uint64_t *off) {
  if (!cu.MemGetHandleForAddressRange) return CU_NOT_SUPPORTED;
  uint64_t page = sysconf(_SC_PAGESIZE), from = at(p) & ~(page - 1), to = (at(p) + n + page - 1) & ~(page - 1);
  *off = at(p) - from;
  IN(c, cu.MemGetHandleForAddressRange(fd, from, to - from, CU_HANDLE_DMA_BUF_FD, 0));
}

CUresult gpu_flush_rdma(CUcontext c) {
  if (!cu.FlushGPUDirectRDMAWrites) return CU_NOT_SUPPORTED;
  IN(c, cu.FlushGPUDirectRDMAWrites(CU_FLUSH_TARGET_CURRENT_CTX, CU_FLUSH_TO_OWNER));
}

CUresult gpu_stream(CUcontext c, CUstream *s) { IN(c, cu.StreamCreate(s, CU_STREAM_NON_BLOCKING)); }
CUresult gpu_stream_destroy(CUcontext c, CUstream s) { IN(c, cu.StreamDestroy_v2(s)); }
CUresult gpu_stream_sync(CUcontext c, CUstream s) { IN(c, cu.StreamSynchronize(s)); }
CUresult gpu_stream_query(CUcontext c, CUstream s) { IN(c, cu.StreamQuery(s)); }
CUresult gpu_stream_wait(CUcontext c, CUstream s, CUevent e) { IN(c, cu.StreamWaitEvent(s, e, 0)); }
CUresult gpu_event(CUcontext c, CUevent *e, unsigned flags) { IN(c, cu.EventCreate(e, flags)); }
CUresult gpu_event_destroy(CUcontext c, CUevent e) { IN(c, cu.EventDestroy_v2(e)); }
CUresult gpu_event_record(CUcontext c, CUevent e, CUstream s) { IN(c, cu.EventRecord(e, s)); }
CUresult gpu_event_sync(CUcontext c, CUevent e) { IN(c, cu.EventSynchronize(e)); }
CUresult gpu_event_elapsed(CUcontext c, float *ms, CUevent a, CUevent b) { IN(c, cu.EventElapsedTime(ms, a, b)); }
CUresult gpu_copy_in(CUcontext c, void *dst, const void *src, size_t n, CUstream s) { IN(c, cu.MemcpyHtoDAsync_v2(at(dst), src, n, s)); }
CUresult gpu_copy_out(CUcontext c, void *dst, const void *src, size_t n, CUstream s) { IN(c, cu.MemcpyDtoHAsync_v2(dst, at(src), n, s)); }
CUresult gpu_copy(CUcontext c, void *dst, const void *src, size_t n, CUstream s) { IN(c, cu.MemcpyDtoDAsync_v2(at(dst), at(src), n, s)); }
CUresult gpu_copy_peer(CUcontext c, CUcontext dst_c, void *dst, CUcontext src_c, const void *src, size_t n, CUstream s) { IN(c, cu.MemcpyPeerAsync(at(dst), dst_c, at(src), src_c, n, s)); }
CUresult gpu_set(CUcontext c, void *p, unsigned char v, size_t n, CUstream s) { IN(c, cu.MemsetD8Async(at(p), v, n, s)); }

CUresult gpu_module(CUcontext c, CUmodule *m, const void *image, char *log, size_t log_len) {
  int opts[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_SIZE};
  void *vals[] = {log, (void *)(uintptr_t)log_len};
  IN(c, cu.ModuleLoadDataEx(m, image, 2, opts, vals));
}
CUresult gpu_module_unload(CUcontext c, CUmodule m) { IN(c, cu.ModuleUnload(m)); }
CUresult gpu_function(CUcontext c, CUfunction *f, CUmodule m, const char *name) { IN(c, cu.ModuleGetFunction(f, m, name)); }
CUresult gpu_launch(CUcontext c, CUfunction f, unsigned grid, unsigned block, CUstream s, const void *param) {
  void *params[] = {(void *)param};
  IN(c, cu.LaunchKernel(f, grid, 1, 1, block, 1, 1, 0, s, params, NULL));
}

CUresult gpu_capture_begin(CUcontext c, CUstream s) {
  if (!cu.StreamBeginCapture_v2 || !cu.StreamEndCapture || !cu.GraphInstantiateWithFlags || !cu.GraphLaunch || !cu.GraphDestroy || !cu.GraphExecDestroy) return CU_NOT_SUPPORTED;
  IN(c, cu.StreamBeginCapture_v2(s, CU_CAPTURE_RELAXED));
}
CUresult gpu_capture_end(CUcontext c, CUstream s, CUgraphExec *x) {
  CUgraph g = NULL;
  CUresult r = cu.CtxSetCurrent(c);
  if (!r) r = cu.StreamEndCapture(s, &g);
  if (!r) r = cu.GraphInstantiateWithFlags(x, g, 0);
  if (g) cu.GraphDestroy(g); // the instance needs it no more
  return r;
}
CUresult gpu_graph_launch(CUcontext c, CUgraphExec x, CUstream s) { IN(c, cu.GraphLaunch(x, s)); }
CUresult gpu_graph_destroy(CUcontext c, CUgraphExec x) { IN(c, cu.GraphExecDestroy(x)); }
