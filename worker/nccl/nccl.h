// The part of NCCL's interface that busbw uses, in own words: RCCL has the same
// names and layouts. The library is found when the program runs.
#ifndef BUSBW_NCCL_H
#define BUSBW_NCCL_H
#include <limits.h>
#include <stddef.h>

typedef struct ncclComm *ncclComm_t;
typedef void *nccl_stream;                            // a CUstream
typedef struct { char internal[128]; } ncclUniqueId; // passed by value
typedef int nccl_result, nccl_dtype, nccl_redop;      // enums, the size of int

enum { NCCL_OK = 0, NCCL_IN_PROGRESS = 7 };

// The 2.18 prefix of ncclConfig_t: a library reads as many fields as the size
// says and fills the rest by version (nccl.h, NCCL_CONFIG_INITIALIZER).
typedef struct {
  size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char *net_name;
  int split_share;
} nccl_config;

// R: must be there; O: later than 2.8.
#define NCCL_TABLE(R, O)                                                                                        \
  R(GetVersion, (int *))                                                                                        \
  R(GetUniqueId, (ncclUniqueId *))                                                                              \
  R(CommInitRank, (ncclComm_t *, int, ncclUniqueId, int))                                                       \
  O(CommInitRankConfig, (ncclComm_t *, int, ncclUniqueId, int, nccl_config *)) /* 2.14 */                       \
  R(CommDestroy, (ncclComm_t))                                                                                  \
  R(CommAbort, (ncclComm_t))                                                                                    \
  R(CommGetAsyncError, (ncclComm_t, nccl_result *))                                                             \
  R(GroupStart, (void))                                                                                         \
  R(GroupEnd, (void))                                                                                           \
  R(AllReduce, (const void *, void *, size_t, nccl_dtype, nccl_redop, ncclComm_t, nccl_stream))                 \
  R(Reduce, (const void *, void *, size_t, nccl_dtype, nccl_redop, int, ncclComm_t, nccl_stream))               \
  R(Broadcast, (const void *, void *, size_t, nccl_dtype, int, ncclComm_t, nccl_stream))                        \
  R(AllGather, (const void *, void *, size_t, nccl_dtype, ncclComm_t, nccl_stream))                             \
  R(ReduceScatter, (const void *, void *, size_t, nccl_dtype, nccl_redop, ncclComm_t, nccl_stream))             \
  R(Send, (const void *, size_t, nccl_dtype, int, ncclComm_t, nccl_stream))                                     \
  R(Recv, (void *, size_t, nccl_dtype, int, ncclComm_t, nccl_stream))

// nccl_load opens a library: 0, 1 (not there) or 2 (a symbol is missing), with why.
int nccl_load(const char *name, char *why, int n);
nccl_result nccl_version(int *v);
nccl_result nccl_unique_id(char *id);
// nccl_init begins to join; NCCL_IN_PROGRESS where the library can do so without blocking.
nccl_result nccl_init(ncclComm_t *c, int n, const char *id, int rank);
nccl_result nccl_async(ncclComm_t c, nccl_result *e);
nccl_result nccl_destroy(ncclComm_t c);
nccl_result nccl_abort(ncclComm_t c);
nccl_result nccl_group(int end);
nccl_result nccl_all_reduce(const void *s, void *d, size_t n, int t, int op, ncclComm_t c, nccl_stream st);
nccl_result nccl_reduce(const void *s, void *d, size_t n, int t, int op, int root, ncclComm_t c, nccl_stream st);
nccl_result nccl_broadcast(const void *s, void *d, size_t n, int t, int root, ncclComm_t c, nccl_stream st);
nccl_result nccl_all_gather(const void *s, void *d, size_t n, int t, ncclComm_t c, nccl_stream st);
nccl_result nccl_reduce_scatter(const void *s, void *d, size_t n, int t, int op, ncclComm_t c, nccl_stream st);
nccl_result nccl_send(const void *s, size_t n, int t, int peer, ncclComm_t c, nccl_stream st);
nccl_result nccl_recv(void *d, size_t n, int t, int peer, ncclComm_t c, nccl_stream st);
const char *nccl_error_text(nccl_result r);
const char *nccl_last_error(ncclComm_t c);
#endif
