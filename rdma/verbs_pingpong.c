//go:build linux && cgo

#include "verbs.h"

// Message i carries mark 1 … 255, so that neither the one before it nor fresh
// memory looks like it.
static uint8_t mark(uint32_t i) { return i % 255 + 1; }

static int post(struct rv_pingpong *p) {
  if (p->source) *p->source = mark(p->i);
  if (!p->i) p->start = rv_now(); // later messages begin when the one before has ended: one look at the clock each
  p->send.flags &= ~RV_F_SIGNALED;
  if (p->read || ++p->inflight % 16 == 0) p->send.flags |= RV_F_SIGNALED;
  int n, r = rv_post(&p->qp, &p->send, 1, &n);
  p->sent = r == 0;
  return r ? -1000 - r : 0;
}

// One look at the completion queue: 1: the answer came, 0: not yet, < 0: as rv_pingpong.
static int look(struct rv_pingpong *p) {
  struct rv_cq *q = p->qp->send_cq;
  int n = q->context->ops.poll_cq(q, 1, &p->wc);
  if (n <= 0) return n ? -1 : 0;
  if (p->wc.status) return -1;
  if (p->wc.qp_num != p->qp->qp_num) return -2;
  if (!(p->wc.opcode & RV_WC_RECV)) {
    p->inflight = p->inflight > 16 ? p->inflight - 16 : 0;
    return p->read;
  }
  if (p->again_left) {
    struct rv_recv_wr *bad;
    p->again_left--;
    int r = q->context->ops.post_recv(p->qp, &p->again, &bad);
    if (r) return -1000 - r;
  }
  return 1;
}

int rv_pingpong(struct rv_pingpong *p, long ns) {
  uint64_t end = rv_now() + ns;
  uint32_t looks = 0;
  int r = 0;
  p->again.sg_list = &p->again_sge;
  while (p->i < p->count) {
    // of writes nobody else looks at completions: every 16th send has one
    while (p->watch && p->inflight >= 32) {
      if ((r = look(p)) < 0) return r;
      if (!(++looks % 1024) && rv_now() > end) return 0;
    }
    if (p->first && !p->sent && (r = post(p))) return r;
    while (p->watch ? *p->watch != mark(p->i) : !(r = look(p)))
      if (!(++looks % 1024) && rv_now() > end) return p->watch && (r = look(p)) < 0 ? r : 0; // an error would come there
    if (!p->watch && r < 0) return r;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (p->first) {
      uint64_t t = rv_now();
      p->ns[p->i] = t - p->start;
      p->start = t;
    }
    if (!p->first && (r = post(p))) return r;
    p->i++, p->sent = 0;
  }
  return 1;
}
