//go:build linux && cgo

#define _GNU_SOURCE
#include "verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct {
#define X(ret, name, ver, params) ret(*name) params;
  RV_TABLE(X, X)
#undef X
} V;
static void *lib;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

// dlvsym, not dlsym: that may give the IBVERBS_1.0 wrappers, whose objects differ.
static int load(const char *path, char *err, int n) {
  if (lib) return 0;
  void *h = dlopen(path, RTLD_NOW | RTLD_GLOBAL); // GLOBAL: libibverbs loads its providers later, by itself
  if (!h) {
    snprintf(err, n, "%s", dlerror());
    return 1;
  }
#define R(ret, name, ver, params)                                           \
  if (!(V.name = (ret(*) params)dlvsym(h, "ibv_" #name, ver))) {            \
    snprintf(err, n, "%s has no ibv_" #name "@" ver ": too old", path);     \
    dlclose(h);                                                             \
    return 2;                                                               \
  }
#define O(ret, name, ver, params) V.name = (ret(*) params)dlvsym(h, "ibv_" #name, ver);
  RV_TABLE(R, O)
  lib = h;
  return 0;
}
int rv_load(const char *path, char *err, int n) {
  pthread_mutex_lock(&loading);
  int r = load(path, err, n);
  pthread_mutex_unlock(&loading);
  return r;
}

struct rv_device **rv_list(int *n) { return V.get_device_list(n); }
void rv_free_list(struct rv_device **l) { V.free_device_list(l); }
int rv_close(struct rv_context *c) { return V.close_device(c); }
struct rv_pd *rv_pd(struct rv_context *c) { return V.alloc_pd(c); }
int rv_dealloc_pd(struct rv_pd *p) { return V.dealloc_pd(p); }
int rv_dereg(struct rv_mr *m) { return V.dereg_mr(m); }
int rv_destroy_qp(struct rv_qp *q) { return V.destroy_qp(q); }
int rv_attr(struct rv_context *c, struct rv_device_attr *a) { return V.query_device(c, a); }

struct rv_context *rv_open(struct rv_device *d) {
  struct rv_context *c = V.open_device(d);
  if (c) fcntl(c->async_fd, F_SETFL, fcntl(c->async_fd, F_GETFL) | O_NONBLOCK); // so that rv_async never waits
  return c;
}
// query_port of rdma-core before 1.14 fills a prefix of the struct.
int rv_port(struct rv_context *c, int port, struct rv_port_attr *a) {
  memset(a, 0, sizeof *a);
  return V.query_port(c, port, a);
}
int rv_async(struct rv_context *c, int *port, uint32_t *qpn) {
  struct rv_async_event e;
  if (V.get_async_event(c, &e)) return -1;
  int type = e.event_type;
  *port = 0, *qpn = 0;
  if (type >= 1 && type <= 7 && e.element.p) *qpn = ((struct rv_qp *)e.element.p)->qp_num; // QP_FATAL … PATH_MIG_ERR
  else if ((type >= 9 && type <= 13) || type == 17 || type == 18) *port = e.element.port_num; // PORT_ACTIVE … SM_CHANGE, CLIENT_REREGISTER, GID_CHANGE
  V.ack_async_event(&e);
  return type;
}

// What the ibv_reg_mr macro does: optional access bits (relaxed ordering) need
// reg_mr_iova2 and are dropped where that is missing.
struct rv_mr *rv_reg(struct rv_pd *p, uint64_t addr, size_t n, int access) {
  void *a = (void *)(uintptr_t)addr;
  if ((access & RV_A_RELAXED) && V.reg_mr_iova2) return V.reg_mr_iova2(p, a, n, addr, access);
  return V.reg_mr(p, a, n, access & ~RV_A_RELAXED);
}
struct rv_mr *rv_reg_dmabuf(struct rv_pd *p, uint64_t off, size_t n, uint64_t iova, int fd, int access) {
  if (V.reg_dmabuf_mr) return V.reg_dmabuf_mr(p, off, n, iova, fd, access);
  errno = ENOSYS;
  return 0;
}

struct rv_cq *rv_cq(struct rv_context *c, int n) {
  struct rv_comp_channel *ch = V.create_comp_channel(c);
  if (!ch) return 0;
  fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK);
  struct rv_cq *q = V.create_cq(c, n, 0, ch, 0);
  if (!q) {
    int e = errno;
    V.destroy_comp_channel(ch);
    errno = e;
  }
  return q;
}
int rv_destroy_cq(struct rv_cq *q) {
  struct rv_comp_channel *ch = q->channel;
  rv_disarm(q);
  int r = V.destroy_cq(q);
  return r ? r : V.destroy_comp_channel(ch);
}
int rv_arm(struct rv_cq *q) { return q->context->ops.req_notify_cq(q, 0); }
int rv_disarm(struct rv_cq *q) {
  struct rv_cq *from;
  void *ud;
  unsigned n = 0;
  while (!V.get_cq_event(q->channel, &from, &ud)) n++;
  if (n) V.ack_cq_events(q, n);
  return n;
}

struct rv_qp *rv_qp(struct rv_pd *p, struct rv_cq *cq, int sends, int recvs, int inline_bytes, struct rv_qp_cap *got) {
  struct rv_qp_init_attr a = {.send_cq = cq, .recv_cq = cq, .cap = {sends, recvs, 1, 1, inline_bytes}, .qp_type = RV_QPT_RC};
  struct rv_qp *q = V.create_qp(p, &a);
  *got = a.cap;
  return q;
}
int rv_to_init(struct rv_qp *q, int port, int pkey, int access) {
  struct rv_qp_attr a = {.qp_state = RV_QPS_INIT, .port_num = port, .pkey_index = pkey, .qp_access_flags = access};
  return V.modify_qp(q, &a, RV_M_STATE | RV_M_PKEY | RV_M_PORT | RV_M_ACCESS);
}
// min_rnr_timer 12 (0.64 ms) and hop limit 255: as NCCL has them.
int rv_to_rtr(struct rv_qp *q, const struct rv_path *p) {
  struct rv_qp_attr a = {.qp_state = RV_QPS_RTR, .path_mtu = p->mtu, .dest_qp_num = p->dest_qpn, .rq_psn = p->rq_psn, .max_dest_rd_atomic = p->reads, .min_rnr_timer = 12};
  a.ah_attr.port_num = p->port, a.ah_attr.dlid = p->dlid, a.ah_attr.sl = p->sl, a.ah_attr.is_global = p->global;
  a.ah_attr.grh.dgid = p->dgid, a.ah_attr.grh.sgid_index = p->sgid_index, a.ah_attr.grh.hop_limit = 255, a.ah_attr.grh.traffic_class = p->tclass;
  return V.modify_qp(q, &a, RV_M_STATE | RV_M_AV | RV_M_MTU | RV_M_DEST_QPN | RV_M_RQ_PSN | RV_M_DEST_RD | RV_M_MIN_RNR);
}
int rv_to_rts(struct rv_qp *q, const struct rv_path *p) { // rnr_retry 7: for ever, our own deadline watches
  struct rv_qp_attr a = {.qp_state = RV_QPS_RTS, .timeout = p->timeout, .retry_cnt = p->retries, .rnr_retry = 7, .sq_psn = p->sq_psn, .max_rd_atomic = p->reads};
  return V.modify_qp(q, &a, RV_M_STATE | RV_M_TIMEOUT | RV_M_RETRY | RV_M_RNR | RV_M_SQ_PSN | RV_M_RD_ATOMIC);
}
int rv_query(struct rv_qp *q, struct rv_qp_attr *a) {
  struct rv_qp_init_attr i;
  return V.query_qp(q, a, RV_M_STATE | RV_M_AV | RV_M_MTU | RV_M_TIMEOUT | RV_M_RETRY | RV_M_RNR | RV_M_PKEY | RV_M_MIN_RNR | RV_M_DEST_QPN, &i);
}

// Descriptors of one queue pair that follow each other make one chain and ring one doorbell.
int rv_post(struct rv_qp **table, const struct rv_desc *d, int n, int *posted) {
  struct rv_send_wr w[32], *bad;
  struct rv_sge s[32];
  *posted = 0;
  while (*posted < n) {
    const struct rv_desc *x = d + *posted;
    int k = 0;
    for (; k < 32 && *posted + k < n && x[k].qp == x->qp; k++) {
      s[k] = (struct rv_sge){x[k].laddr, x[k].len, x[k].lkey};
      w[k] = (struct rv_send_wr){.wr_id = x[k].id, .next = &w[k + 1], .sg_list = &s[k], .num_sge = x[k].len ? 1 : 0, .opcode = x[k].op, .send_flags = x[k].flags, .imm_data = x[k].imm, .wr.rdma = {x[k].raddr, x[k].rkey}};
    }
    w[k - 1].next = 0;
    struct rv_qp *q = table[x->qp];
    int r = q->context->ops.post_send(q, w, &bad);
    if (r) return r;
    *posted += k;
  }
  return 0;
}
// Posts n receives into slots of a ring of buffers, beginning with slot first % slots; stride 0: receives without a buffer.
int rv_post_recv(struct rv_qp *q, uint64_t id, uint64_t base, uint32_t stride, uint32_t lkey, uint32_t first, int n, uint32_t slots) {
  struct rv_recv_wr w[32], *bad;
  struct rv_sge s[32];
  while (n > 0) {
    int k = n < 32 ? n : 32;
    for (int i = 0; i < k; i++) {
      s[i] = (struct rv_sge){base + (uint64_t)((first + i) % slots) * stride, stride, lkey};
      w[i] = (struct rv_recv_wr){id, i + 1 < k ? &w[i + 1] : 0, &s[i], stride ? 1 : 0};
    }
    int r = q->context->ops.post_recv(q, w, &bad);
    if (r) return r;
    n -= k, first += k;
  }
  return 0;
}
uint64_t rv_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
// Polls until something comes or the spins run out: one call from Go for the whole wait.
int rv_poll(struct rv_cq *q, int n, struct rv_wc *wc, long spins) {
  int r;
  do r = q->context->ops.poll_cq(q, n, wc);
  while (!r && --spins > 0);
  return r;
}
