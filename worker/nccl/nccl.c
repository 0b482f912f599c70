//go:build linux && cgo

#define _GNU_SOURCE
#include "nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct {
#define X(name, params) nccl_result(*name) params;
  NCCL_TABLE(X, X)
#undef X
  const char *(*GetErrorString)(nccl_result);
  const char *(*GetLastError)(ncclComm_t); // 2.13
} api;
static void *library;

int nccl_load(const char *name, char *why, int n) {
  if (library)
    return 0;
  void *h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!h) {
    snprintf(why, n, "%s", dlerror());
    return 1;
  }
#define OPTIONAL(name, params) api.name = (nccl_result(*) params)dlsym(h, "nccl" #name);
#define REQUIRED(name, params)                      \
  OPTIONAL(name, params)                            \
  if (!api.name) {                                  \
    snprintf(why, n, "it has no nccl%s", #name);    \
    dlclose(h);                                     \
    return 2;                                       \
  }
  NCCL_TABLE(REQUIRED, OPTIONAL)
  api.GetErrorString = (const char *(*)(nccl_result))dlsym(h, "ncclGetErrorString");
  api.GetLastError = (const char *(*)(ncclComm_t))dlsym(h, "ncclGetLastError");
  library = h;
  return 0;
}

nccl_result nccl_version(int *v) { return api.GetVersion(v); }
nccl_result nccl_unique_id(char *id) { return api.GetUniqueId((ncclUniqueId *)id); }

nccl_result nccl_init(ncclComm_t *c, int n, const char *id, int rank) {
  ncclUniqueId u;
  memcpy(&u, id, sizeof u);
  if (!api.CommInitRankConfig)
    return api.CommInitRank(c, n, u, rank);
  nccl_config k = {sizeof k, 0xcafebeefu, 21800, 0, INT_MIN, INT_MIN, INT_MIN, NULL, INT_MIN};
  return api.CommInitRankConfig(c, n, u, rank, &k);
}

nccl_result nccl_async(ncclComm_t c, nccl_result *e) { return api.CommGetAsyncError(c, e); }
nccl_result nccl_destroy(ncclComm_t c) { return api.CommDestroy(c); }
nccl_result nccl_abort(ncclComm_t c) { return api.CommAbort(c); }
nccl_result nccl_group(int end) { return end ? api.GroupEnd() : api.GroupStart(); }
nccl_result nccl_all_reduce(const void *s, void *d, size_t n, int t, int op, ncclComm_t c, nccl_stream st) { return api.AllReduce(s, d, n, t, op, c, st); }
nccl_result nccl_reduce(const void *s, void *d, size_t n, int t, int op, int root, ncclComm_t c, nccl_stream st) { return api.Reduce(s, d, n, t, op, root, c, st); }
nccl_result nccl_broadcast(const void *s, void *d, size_t n, int t, int root, ncclComm_t c, nccl_stream st) { return api.Broadcast(s, d, n, t, root, c, st); }
nccl_result nccl_all_gather(const void *s, void *d, size_t n, int t, ncclComm_t c, nccl_stream st) { return api.AllGather(s, d, n, t, c, st); }
nccl_result nccl_reduce_scatter(const void *s, void *d, size_t n, int t, int op, ncclComm_t c, nccl_stream st) { return api.ReduceScatter(s, d, n, t, op, c, st); }
nccl_result nccl_send(const void *s, size_t n, int t, int peer, ncclComm_t c, nccl_stream st) { return api.Send(s, n, t, peer, c, st); }
nccl_result nccl_recv(void *d, size_t n, int t, int peer, ncclComm_t c, nccl_stream st) { return api.Recv(d, n, t, peer, c, st); }
const char *nccl_error_text(nccl_result r) { return api.GetErrorString ? api.GetErrorString(r) : ""; }
const char *nccl_last_error(ncclComm_t c) { return api.GetLastError ? api.GetLastError(c) : ""; }
