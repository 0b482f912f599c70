// Own declarations of the part of the CUDA driver API that busbw uses, from its
// public ABI (the CUDA Driver API reference manual): no toolkit is wanted to
// build, and libcuda.so.1, which comes with the driver, is loaded at run time.
#ifndef BUSBW_CUDA_H
#define BUSBW_CUDA_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct { unsigned char bytes[16]; } CUuuid;

enum { // CUresult
  CU_OK = 0, CU_INVALID_VALUE = 1, CU_OUT_OF_MEMORY = 2, CU_NOT_INITIALIZED = 3, CU_NO_DEVICE = 100, CU_INVALID_DEVICE = 101,
  CU_INVALID_IMAGE = 200, CU_INVALID_CONTEXT = 201, CU_NO_BINARY_FOR_GPU = 209, CU_PEER_ACCESS_UNSUPPORTED = 217, CU_INVALID_PTX = 218,
  CU_UNSUPPORTED_PTX_VERSION = 222, CU_INVALID_HANDLE = 400, CU_NOT_FOUND = 500, CU_NOT_READY = 600, CU_ILLEGAL_ADDRESS = 700, CU_OUT_OF_RESOURCES = 701,
  CU_PEER_ACCESS_ALREADY_ENABLED = 704, CU_MISALIGNED_ADDRESS = 716, CU_LAUNCH_FAILED = 719, CU_NOT_SUPPORTED = 801, CU_CAPTURE_UNSUPPORTED = 900, CU_CAPTURE_INVALIDATED = 901,
  CU_CAPTURE_MERGE = 902, CU_CAPTURE_UNMATCHED = 903, CU_CAPTURE_UNJOINED = 904, CU_CAPTURE_ISOLATION = 905, CU_CAPTURED_EVENT = 907,
};
enum { // CUdevice_attribute
  CU_ATTR_SMS = 16, CU_ATTR_UNIFIED_ADDRESSING = 41, CU_ATTR_CC_MAJOR = 75, CU_ATTR_CC_MINOR = 76, CU_ATTR_GPU_DIRECT_RDMA = 116,
  CU_ATTR_RDMA_FLUSH_OPTIONS = 117, CU_ATTR_RDMA_WRITES_ORDERING = 118, CU_ATTR_DMA_BUF = 124,
};
enum { CU_P2P_PERFORMANCE_RANK = 1, CU_P2P_ACCESS_SUPPORTED = 2, CU_P2P_NATIVE_ATOMIC_SUPPORTED = 3 }; // CUdevice_P2PAttribute
enum { CU_POINTER_MEMORY_TYPE = 2, CU_POINTER_SYNC_MEMOPS = 6 };                                       // CUpointer_attribute
enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DISABLE_TIMING = 2, CU_HOSTALLOC_PORTABLE = 1, CU_HANDLE_DMA_BUF_FD = 1 };
enum { CU_CAPTURE_RELAXED = 2 }; // CUstreamCaptureMode: other threads may do what they like meanwhile
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_SIZE = 6 };
enum { CU_FLUSH_TARGET_CURRENT_CTX = 0, CU_FLUSH_TO_OWNER = 100, CU_FLUSH_BY_HOST = 1 };

// R: required, O: optional; then name, parameters. The library exports each as
// "cu" + name; the suffix _v2 is part of the name where the ABI changed.
#define CU_TABLE(R, O)                                                                                             \
  R(Init, (unsigned flags))                                                                                        \
  R(DriverGetVersion, (int *v))                                                                                    \
  R(GetErrorName, (CUresult r, const char **s))                                                                    \
  R(GetErrorString, (CUresult r, const char **s))                                                                  \
  R(DeviceGetCount, (int *n))                                                                                      \
  R(DeviceGet, (CUdevice *d, int ordinal))                                                                         \
  R(DeviceGetPCIBusId, (char *id, int len, CUdevice d))                                                            \
  R(DeviceGetName, (char *s, int len, CUdevice d))                                                                 \
  O(DeviceGetUuid, (CUuuid *u, CUdevice d)) /* one of the two */                                                   \
  O(DeviceGetUuid_v2, (CUuuid *u, CUdevice d)) /* CUDA 11.4: a MIG instance's own */                               \
  R(DeviceTotalMem_v2, (size_t *n, CUdevice d))                                                                    \
  R(DeviceGetAttribute, (int *v, int attr, CUdevice d))                                                            \
  R(DeviceCanAccessPeer, (int *can, CUdevice d, CUdevice peer))                                                    \
  R(DeviceGetP2PAttribute, (int *v, int attr, CUdevice src, CUdevice dst))                                         \
  R(DevicePrimaryCtxRetain, (CUcontext *c, CUdevice d))                                                            \
  R(DevicePrimaryCtxRelease_v2, (CUdevice d))                                                                      \
  R(CtxSetCurrent, (CUcontext c))                                                                                  \
  R(CtxEnablePeerAccess, (CUcontext peer, unsigned flags))                                                         \
  R(MemAlloc_v2, (CUdeviceptr *p, size_t n))                                                                       \
  R(MemFree_v2, (CUdeviceptr p))                                                                                   \
  R(MemGetInfo_v2, (size_t *left, size_t *total))                                                                  \
  R(MemHostAlloc, (void **p, size_t n, unsigned flags))                                                            \
  R(MemFreeHost, (void *p))                                                                                        \
  R(MemcpyHtoDAsync_v2, (CUdeviceptr d, const void *s, size_t n, CUstream st))                                     \
  R(MemcpyDtoHAsync_v2, (void *d, CUdeviceptr s, size_t n, CUstream st))                                           \
  R(MemcpyDtoDAsync_v2, (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream st))                                     \
  R(MemcpyPeerAsync, (CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream st))            \
  R(MemsetD8Async, (CUdeviceptr d, unsigned char v, size_t n, CUstream st))                                        \
  R(StreamCreate, (CUstream *s, unsigned flags))                                                                   \
  R(StreamDestroy_v2, (CUstream s))                                                                                \
  R(StreamSynchronize, (CUstream s))                                                                               \
  R(StreamQuery, (CUstream s))                                                                                     \
  R(StreamWaitEvent, (CUstream s, CUevent e, unsigned flags))                                                      \
  R(EventCreate, (CUevent *e, unsigned flags))                                                                     \
  R(EventDestroy_v2, (CUevent e))                                                                                  \
  R(EventRecord, (CUevent e, CUstream s))                                                                          \
  R(EventSynchronize, (CUevent e))                                                                                 \
  R(EventElapsedTime, (float *ms, CUevent a, CUevent b))                                                           \
  R(ModuleLoadDataEx, (CUmodule *m, const void *image, unsigned n, int *opts, void **vals))                        \
  R(ModuleUnload, (CUmodule m))                                                                                    \
  R(ModuleGetFunction, (CUfunction *f, CUmodule m, const char *name))                                              \
  R(LaunchKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra)) \
  R(PointerSetAttribute, (const void *in, int attr, CUdeviceptr p))                                                \
  O(MemGetHandleForAddressRange, (void *handle, CUdeviceptr p, size_t n, int type, unsigned long long flags)) /* CUDA 11.7 */ \
  O(FlushGPUDirectRDMAWrites, (int target, int scope)) /* CUDA 11.3 */                                             \
  O(StreamBeginCapture_v2, (CUstream s, int mode))                                                                 \
  O(StreamEndCapture, (CUstream s, CUgraph *g))                                                                    \
  O(GraphInstantiateWithFlags, (CUgraphExec *x, CUgraph g, unsigned long long flags)) /* CUDA 11.4 */              \
  O(GraphLaunch, (CUgraphExec x, CUstream s))                                                                      \
  O(GraphDestroy, (CUgraph g))                                                                                     \
  O(GraphExecDestroy, (CUgraphExec x))

int gpu_load(const char *path, char *err, int n); // 0; 1: no library; 2: a symbol is missing
CUresult gpu_init(int *version);
const char *gpu_error_name(CUresult r);
const char *gpu_error_text(CUresult r);
CUresult gpu_count(int *n);
CUresult gpu_describe(int ordinal, char *name, int name_len, char *pci, int pci_len, CUuuid *uuid, size_t *memory);
CUresult gpu_attribute(int *v, int attr, CUdevice d);
CUresult gpu_can_access(int *can, int *rank, CUdevice d, CUdevice peer);
CUresult gpu_retain(int ordinal, CUdevice *d, CUcontext *c);
CUresult gpu_release(CUdevice d);

// Contexts belong to threads, and Go may make each call on another one: every
// function sets its context first.
CUresult gpu_current(CUcontext c);
CUresult gpu_enable_peer(CUcontext c, CUcontext peer);
CUresult gpu_alloc(CUcontext c, void **p, size_t n);
CUresult gpu_free(CUcontext c, void *p);
CUresult gpu_free_memory(CUcontext c, size_t *left, size_t *total);
CUresult gpu_alloc_host(CUcontext c, void **p, size_t n);
CUresult gpu_free_host(CUcontext c, void *p);
CUresult gpu_sync_memops(CUcontext c, void *p);
CUresult gpu_dma_buf(CUcontext c, void *p, size_t n, int *fd, uint64_t *off);
CUresult gpu_flush_rdma(CUcontext c);
CUresult gpu_stream(CUcontext c, CUstream *s);
CUresult gpu_stream_destroy(CUcontext c, CUstream s);
CUresult gpu_stream_sync(CUcontext c, CUstream s);
CUresult gpu_stream_query(CUcontext c, CUstream s);
CUresult gpu_stream_wait(CUcontext c, CUstream s, CUevent e);
CUresult gpu_event(CUcontext c, CUevent *e, unsigned flags);
CUresult gpu_event_destroy(CUcontext c, CUevent e);
CUresult gpu_event_record(CUcontext c, CUevent e, CUstream s);
CUresult gpu_event_sync(CUcontext c, CUevent e);
CUresult gpu_event_elapsed(CUcontext c, float *ms, CUevent a, CUevent b);
CUresult gpu_copy_in(CUcontext c, void *dst, const void *src, size_t n, CUstream s);
CUresult gpu_copy_out(CUcontext c, void *dst, const void *src, size_t n, CUstream s);
CUresult gpu_copy(CUcontext c, void *dst, const void *src, size_t n, CUstream s);
CUresult gpu_copy_peer(CUcontext c, CUcontext dst_c, void *dst, CUcontext src_c, const void *src, size_t n, CUstream s);
CUresult gpu_set(CUcontext c, void *p, unsigned char v, size_t n, CUstream s);
CUresult gpu_module(CUcontext c, CUmodule *m, const void *image, char *log, size_t log_len);
CUresult gpu_module_unload(CUcontext c, CUmodule m);
CUresult gpu_function(CUcontext c, CUfunction *f, CUmodule m, const char *name);
// A kernel here takes one parameter, a struct, which is copied before this returns.
CUresult gpu_launch(CUcontext c, CUfunction f, unsigned grid, unsigned block, CUstream s, const void *param);

// Between begin and end a stream's work is kept instead of done, with that of
// the streams that wait for its events. CU_NOT_SUPPORTED by a driver too old.
CUresult gpu_capture_begin(CUcontext c, CUstream s);
CUresult gpu_capture_end(CUcontext c, CUstream s, CUgraphExec *x);
CUresult gpu_graph_launch(CUcontext c, CUgraphExec x, CUstream s);
CUresult gpu_graph_destroy(CUcontext c, CUgraphExec x);
#endif
