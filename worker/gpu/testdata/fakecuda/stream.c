// Streams and events of the fake, under one lock.
#include "fake.h"

#include <time.h>
#include <unistd.h>

pthread_mutex_t stream_lock = PTHREAD_MUTEX_INITIALIZER;
#define lock stream_lock
static pthread_cond_t fired = PTHREAD_COND_INITIALIZER;

void *fake_at(u64 a) { return (void *)(a - host_from < host_size ? a + host_shift : a); }

void fake_do(struct task *t) {
  if (t->what == COPY) memmove(fake_at(t->to), fake_at(t->from), t->n);
  if (t->what == SET) memset(fake_at(t->to), t->byte, t->n);
  if (t->what == KERNEL_RUN) fake_run(t->k, t->param);
  if (t->what == CALL) t->call(t->arg);
  if (t->what == GRAPH) fake_play(t->arg);
}

// want has a stream work up to its n-th task; lock is held.
static void want(CUstream s, u64 n) {
  if (s->wanted < n) s->wanted = n, pthread_cond_signal(&s->more);
}

static void *work(void *arg) {
  CUstream s = arg;
  int jitter = fake_env("FAKECUDA_JITTER", 0), lazy = fake_env("FAKECUDA_LAZY", 0);
  unsigned seed = (unsigned)(u64)s;
  pthread_mutex_lock(&lock);
  for (;;) {
    while ((!s->head || (lazy && s->done >= s->wanted)) && !s->quit) pthread_cond_wait(&s->more, &lock);
    struct task *t = s->head;
    if (!t) break;
    if (t->what == WAIT && t->event->fired < t->gen) {
      if (t->event->stream) want(t->event->stream, t->event->at);
      pthread_cond_wait(&fired, &lock);
      continue;
    }
    pthread_mutex_unlock(&lock);
    if (jitter && rand_r(&seed) % 4 == 0) usleep(rand_r(&seed) % jitter);
    fake_do(t);
    pthread_mutex_lock(&lock);
    if (t->what == RECORD) {
      t->event->fired = t->gen;
      clock_gettime(CLOCK_MONOTONIC, &t->event->when);
      pthread_cond_broadcast(&fired);
    }
    if (!(s->head = t->next)) s->tail = &s->head;
    s->done++;
    free(t);
    if (!s->head) pthread_cond_broadcast(&s->less);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

#define STREAM(s) if (!(s) || (s)->magic != 0x57ea || (s)->dev != fake_current->dev) return CU_INVALID_HANDLE
#define EVENT(e) if (!(e) || (e)->magic != 0xe7e7) return CU_INVALID_HANDLE
static CUresult push(CUstream s, const struct task *t) { // lock is held
  struct task *q = malloc(sizeof *q);
  *q = *t;
  q->next = NULL;
  *s->tail = q;
  s->tail = &q->next;
  s->put++;
  pthread_cond_signal(&s->more);
  return CU_OK;
}
CUresult fake_queue(CUstream s, struct task t) {
  pthread_mutex_lock(&lock);
  CUresult r = s->graph ? fake_keep(s, &t) : push(s, &t);
  pthread_mutex_unlock(&lock);
  return r;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
  ENTER;
  if (flags != CU_STREAM_NON_BLOCKING) return CU_INVALID_VALUE;
  CUstream s = calloc(1, sizeof *s);
  s->magic = 0x57ea, s->dev = fake_current->dev, s->tail = &s->head;
  pthread_cond_init(&s->more, NULL);
  pthread_cond_init(&s->less, NULL);
  if (pthread_create(&s->thread, NULL, work, s)) return CU_OUT_OF_MEMORY;
  *out = s, LIVE(1);
  return CU_OK;
}
CUresult cuStreamDestroy_v2(CUstream s) {
  ENTER; STREAM(s);
  pthread_mutex_lock(&lock);
  s->quit = 1;
  pthread_cond_signal(&s->more);
  pthread_mutex_unlock(&lock);
  pthread_join(s->thread, NULL);
  s->magic = 0;
  free(s), LIVE(-1);
  return CU_OK;
}
CUresult cuStreamSynchronize(CUstream s) {
  ENTER; STREAM(s);
  pthread_mutex_lock(&lock);
  if (s->graph) return fake_invalid(s);
  want(s, s->put);
  while (s->done < s->put) pthread_cond_wait(&s->less, &lock); // a stream has one user here
  CUresult r = s->error;
  pthread_mutex_unlock(&lock);
  return r;
}
CUresult cuStreamQuery(CUstream s) {
  ENTER; STREAM(s);
  pthread_mutex_lock(&lock);
  if (s->graph) return fake_invalid(s);
  want(s, s->put);
  CUresult r = s->error ? s->error : s->done < s->put ? CU_NOT_READY : CU_OK;
  pthread_mutex_unlock(&lock);
  return r;
}
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
  ENTER; STREAM(s); EVENT(e);
  if (flags) return CU_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  CUresult r = s->graph || e->graph ? fake_depend(s, e) : push(s, &(struct task){.what = WAIT, .event = e, .gen = e->recorded});
  pthread_mutex_unlock(&lock);
  return r;
}

CUresult cuEventCreate(CUevent *out, unsigned flags) {
  ENTER;
  CUevent e = calloc(1, sizeof *e);
  e->magic = 0xe7e7, e->dev = fake_current->dev, e->flags = flags;
  *out = e, LIVE(1);
  return CU_OK;
}
CUresult cuEventDestroy_v2(CUevent e) { ENTER; EVENT(e); e->magic = 0; free(e), LIVE(-1); return CU_OK; }
CUresult cuEventRecord(CUevent e, CUstream s) {
  ENTER; EVENT(e); STREAM(s);
  if (e->dev != s->dev) return CU_INVALID_HANDLE;
  pthread_mutex_lock(&lock);
  CUresult r = CU_OK;
  e->graph = s->graph, e->stream = s, e->at = s->put + 1;
  if (s->graph) e->after = s->after;
  else r = push(s, &(struct task){.what = RECORD, .event = e, .gen = ++e->recorded});
  pthread_mutex_unlock(&lock);
  return r;
}
CUresult cuEventSynchronize(CUevent e) {
  ENTER; EVENT(e);
  pthread_mutex_lock(&lock);
  if (e->graph) { pthread_mutex_unlock(&lock); return CU_CAPTURED_EVENT; }
  if (e->stream) want(e->stream, e->at);
  while (e->fired < e->recorded) pthread_cond_wait(&fired, &lock);
  pthread_mutex_unlock(&lock);
  return CU_OK;
}
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) {
  ENTER; EVENT(a); EVENT(b);
  if ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING || !a->recorded || !b->recorded) return CU_INVALID_HANDLE;
  if (a->fired < a->recorded || b->fired < b->recorded) return CU_NOT_READY;
  *ms = (b->when.tv_sec - a->when.tv_sec) * 1e3f + (b->when.tv_nsec - a->when.tv_nsec) / 1e6f;
  return CU_OK;
}

static CUresult copy(CUstream s, int dev, u64 to, int to_device, u64 from, int from_device, u64 n) {
  if ((to_device && fake_reach(dev, to, n)) || (from_device && fake_reach(dev, from, n))) return CU_INVALID_VALUE;
  return fake_queue(s, (struct task){.what = COPY, .to = to, .from = from, .n = n});
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *p, size_t n, CUstream s) { ENTER; STREAM(s); return copy(s, s->dev, d, 1, (u64)p, 0, n); }
CUresult cuMemcpyDtoHAsync_v2(void *p, CUdeviceptr d, size_t n, CUstream s) { ENTER; STREAM(s); return copy(s, s->dev, (u64)p, 0, d, 1, n); }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr p, size_t n, CUstream s) { ENTER; STREAM(s); return copy(s, s->dev, d, 1, p, 1, n); }
CUresult cuMemcpyPeerAsync(CUdeviceptr d, CUcontext dc, CUdeviceptr p, CUcontext pc, size_t n, CUstream s) {
  ENTER; STREAM(s); // this one needs no peer access
  struct range *to = fake_find(d, n), *from = fake_find(p, n);
  if (!to || !from || to->host || from->host || &fake_ctx[to->dev] != dc || &fake_ctx[from->dev] != pc) return CU_INVALID_VALUE;
  return fake_queue(s, (struct task){.what = COPY, .to = d, .from = p, .n = n});
}
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream s) {
  ENTER; STREAM(s);
  CUresult r = fake_reach(s->dev, d, n);
  return r ? r : fake_queue(s, (struct task){.what = SET, .to = d, .byte = v, .n = n});
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra) {
  ENTER; STREAM(s);
  if (!f || f->magic != 0xf0 || f->mod->dev != s->dev) return CU_INVALID_HANDLE;
  if (!gx || !bx || bx > 1024 || gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || extra) return CU_INVALID_VALUE;
  if (bx > f->most) return CU_OUT_OF_RESOURCES;
  struct task t = {.what = KERNEL_RUN, .k = f->k};
  memcpy(t.param, params[0], f->k->param);
  pthread_mutex_lock(&lock);
  CUresult r = fake_check(s->dev, t.k, t.param), before = s->error;
  if (r && !s->error) s->error = r; // a real one faults while it runs: seen at the next call that waits
  if (!r && !before) s->graph ? fake_keep(s, &t) : push(s, &t);
  pthread_mutex_unlock(&lock);
  return before;
}

// For other stand-ins, whose work is in a stream too: call is made when its turn
// comes, memory is where this process finds what the device has there, on is the
// stream's device and device that of the calling thread's context; −1: none.
CUresult fake_call(CUstream s, void (*call)(void *), void *arg) {
  ENTER; STREAM(s);
  return fake_queue(s, (struct task){.what = CALL, .call = call, .arg = arg});
}
int fake_on(CUstream s) { return s->dev; }
int fake_device(void) { return fake_current && fake_current->refs ? fake_current->dev : -1; }
void *fake_memory(CUstream s, u64 a, u64 n) { return fake_reach(s->dev, a, n) ? NULL : fake_at(a); }
