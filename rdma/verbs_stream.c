//go:build linux && cgo

#include "verbs.h"

// Posts a queue pair's next messages, as many as the depth allows, and receives
// for those that have come, a chain of 32 at a time.
static int post(struct rv_stream *s, struct rv_lane *l) {
  struct rv_desc d[32];
  while (l->left && l->posted - l->done < s->depth) {
    int posted, k = 0;
    for (; k < 32 && l->left && l->posted - l->done < s->depth; k++) {
      l->posted++, l->left--;
      d[k] = l->send;
      d[k].id |= (l->posted & 0xffffff) << 24;
      // the depth may be less than the distance between signals
      if (l->posted % s->every == 0 || !l->left || l->posted - l->done == s->depth) d[k].flags |= RV_F_SIGNALED;
    }
    int r = rv_post(&l->qp, d, k, &posted);
    if (r) return r;
  }
  uint32_t n = l->total - l->given, room = l->room - (l->given - l->received);
  if (n > room) n = room;
  if (!n || (n < 32 && n < l->total - l->given)) return 0;
  l->given += n;
  return rv_post_recv(l->qp, l->recv_id, l->recv_addr, l->recv_len, l->recv_key, 0, n, 1);
}

int rv_stream(struct rv_stream *s, long ns) {
  uint64_t end = rv_now() + ns;
  for (uint32_t looks = 1;; looks++) {
    while (s->at < s->n) {
      struct rv_wc *w = &s->wc[s->at++];
      uint32_t lane = w->wr_id >> 48 & 0x7fff;
      if (w->status || lane >= s->lanes) return -1;
      struct rv_lane *l = &s->lane[lane];
      if (w->wr_id >> 63) l->received++;
      else l->done += ((w->wr_id >> 24) - l->done) & 0xffffff;
      s->seen++;
    }
    int sending = 0, receiving = 0;
    for (uint32_t i = 0; i < s->lanes; i++) {
      struct rv_lane *l = &s->lane[i];
      int r = post(s, l);
      if (r) return -1000 - r;
      sending |= l->done < l->posted, receiving |= l->received < l->total;
    }
    if (!sending && !s->took) s->took = rv_now() - s->start;
    if (!sending && !receiving) return 1;
    s->at = 0;
    while (!(s->n = s->cq->context->ops.poll_cq(s->cq, 32, s->wc)) && ++looks % 256) {}
    if (s->n < 0) return -2;
    if (looks % 256 == 0 && rv_now() > end) return 0;
  }
}
