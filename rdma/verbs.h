// Own declarations of the part of the libibverbs ABI (stable since IBVERBS_1.1)
// that RC queue pairs need: neither <infiniband/verbs.h> nor -libibverbs is
// wanted to build, and the library is loaded at run time. verbs_check.c
// compares every layout with the real header where that is installed.
#ifndef BUSBW_VERBS_H
#define BUSBW_VERBS_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

union rv_gid { uint8_t raw[16]; };
struct rv_cq;
struct rv_qp;
struct rv_wc;
struct rv_send_wr;
struct rv_recv_wr;
struct rv_device { void *ops[2]; int node_type, transport_type; char name[64], dev_name[64], dev_path[256], ibdev_path[256]; };
struct rv_context_ops { // 32 pointers; the data path goes through the four named ones and needs no symbol
  void *p0[11];
  int (*poll_cq)(struct rv_cq *, int, struct rv_wc *);
  int (*req_notify_cq)(struct rv_cq *, int);
  void *p1[12];
  int (*post_send)(struct rv_qp *, struct rv_send_wr *, struct rv_send_wr **);
  int (*post_recv)(struct rv_qp *, struct rv_recv_wr *, struct rv_recv_wr **);
  void *p2[5];
};
struct rv_context { struct rv_device *device; struct rv_context_ops ops; int cmd_fd, async_fd, num_comp_vectors; pthread_mutex_t mutex; void *abi_compat; };
struct rv_device_attr { // 232 bytes; only the first part is named
  char fw_ver[64];
  uint64_t node_guid, sys_image_guid, max_mr_size, page_size_cap;
  uint32_t vendor_id, vendor_part_id, hw_ver;
  int max_qp, max_qp_wr;
  unsigned device_cap_flags;
  int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom;
  char rest[232 - 148];
};
struct rv_pd { struct rv_context *context; uint32_t handle; };
struct rv_mr { struct rv_context *context; struct rv_pd *pd; void *addr; size_t length; uint32_t handle, lkey, rkey; };
struct rv_comp_channel { struct rv_context *context; int fd, refcnt; };
struct rv_cq { struct rv_context *context; struct rv_comp_channel *channel; void *cq_context; uint32_t handle; int cqe; pthread_mutex_t mutex; pthread_cond_t cond; uint32_t comp_events_completed, async_events_completed; };
struct rv_qp { struct rv_context *context; void *qp_context; struct rv_pd *pd; struct rv_cq *send_cq, *recv_cq; void *srq; uint32_t handle, qp_num; int state, qp_type; pthread_mutex_t mutex; pthread_cond_t cond; uint32_t events_completed; };
struct rv_qp_cap { uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data; };
struct rv_qp_init_attr { void *qp_context; struct rv_cq *send_cq, *recv_cq; void *srq; struct rv_qp_cap cap; int qp_type, sq_sig_all; };
struct rv_global_route { union rv_gid dgid __attribute__((aligned(8))); uint32_t flow_label; uint8_t sgid_index, hop_limit, traffic_class; };
struct rv_ah_attr { struct rv_global_route grh; uint16_t dlid; uint8_t sl, src_path_bits, static_rate, is_global, port_num; };
struct rv_qp_attr {
  int qp_state, cur_qp_state, path_mtu, path_mig_state;
  uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
  unsigned qp_access_flags;
  struct rv_qp_cap cap;
  struct rv_ah_attr ah_attr, alt_ah_attr;
  uint16_t pkey_index, alt_pkey_index;
  uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
  uint32_t rate_limit;
};
struct rv_sge { uint64_t addr; uint32_t length, lkey; };
struct rv_send_wr {
  uint64_t wr_id;
  struct rv_send_wr *next;
  struct rv_sge *sg_list;
  int num_sge, opcode;
  unsigned send_flags;
  uint32_t imm_data;
  union {
    struct { uint64_t remote_addr; uint32_t rkey; } rdma;
    struct { uint64_t remote_addr, compare_add, swap; uint32_t rkey; } atomic;
  } wr;
  uint32_t srqn;
  uint64_t tail[6];
};
struct rv_recv_wr { uint64_t wr_id; struct rv_recv_wr *next; struct rv_sge *sg_list; int num_sge; };
struct rv_wc { uint64_t wr_id; int status, opcode; uint32_t vendor_err, byte_len, imm_data, qp_num, src_qp; unsigned wc_flags; uint16_t pkey_index, slid; uint8_t sl, dlid_path_bits; };
struct rv_port_attr {
  int state, max_mtu, active_mtu, gid_tbl_len;
  uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
  uint16_t pkey_tbl_len, lid, sm_lid;
  uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state, link_layer, flags;
  uint16_t port_cap_flags2;
  uint32_t active_speed_ex;
};
struct rv_async_event { union { void *p; int port_num; } element; int event_type; };

enum { RV_QPT_RC = 2, RV_QPS_RESET = 0, RV_QPS_INIT, RV_QPS_RTR, RV_QPS_RTS, RV_QPS_SQD, RV_QPS_SQE, RV_QPS_ERR };
enum { RV_M_STATE = 1 << 0, RV_M_ACCESS = 1 << 3, RV_M_PKEY = 1 << 4, RV_M_PORT = 1 << 5, RV_M_AV = 1 << 7, RV_M_MTU = 1 << 8, RV_M_TIMEOUT = 1 << 9, RV_M_RETRY = 1 << 10, RV_M_RNR = 1 << 11, RV_M_RQ_PSN = 1 << 12, RV_M_RD_ATOMIC = 1 << 13, RV_M_MIN_RNR = 1 << 15, RV_M_SQ_PSN = 1 << 16, RV_M_DEST_RD = 1 << 17, RV_M_DEST_QPN = 1 << 20 };
enum { RV_A_LOCAL_WRITE = 1, RV_A_REMOTE_WRITE = 2, RV_A_REMOTE_READ = 4, RV_A_RELAXED = 1 << 20 };
enum { RV_WR_WRITE = 0, RV_WR_WRITE_IMM, RV_WR_SEND, RV_WR_SEND_IMM, RV_WR_READ };
enum { RV_F_FENCE = 1, RV_F_SIGNALED = 2, RV_F_SOLICITED = 4, RV_F_INLINE = 8 };
enum { RV_WC_RECV = 1 << 7, RV_WC_RECV_IMM = (1 << 7) + 1 };

// R: required, O: optional; then return type, name, version of the symbol, parameters.
#define RV_TABLE(R, O)                                                                                                         \
  R(struct rv_device **, get_device_list, "IBVERBS_1.1", (int *n))                                                             \
  R(void, free_device_list, "IBVERBS_1.1", (struct rv_device **l))                                                             \
  R(struct rv_context *, open_device, "IBVERBS_1.1", (struct rv_device *d))                                                    \
  R(int, close_device, "IBVERBS_1.1", (struct rv_context *c))                                                                  \
  R(int, query_port, "IBVERBS_1.1", (struct rv_context *c, uint8_t port, struct rv_port_attr *a))                              \
  R(int, query_device, "IBVERBS_1.1", (struct rv_context *c, struct rv_device_attr *a))                                        \
  R(struct rv_pd *, alloc_pd, "IBVERBS_1.1", (struct rv_context *c))                                                           \
  R(int, dealloc_pd, "IBVERBS_1.1", (struct rv_pd *p))                                                                         \
  R(struct rv_mr *, reg_mr, "IBVERBS_1.1", (struct rv_pd *p, void *a, size_t n, int access))                                   \
  O(struct rv_mr *, reg_mr_iova2, "IBVERBS_1.8", (struct rv_pd *p, void *a, size_t n, uint64_t iova, unsigned access))         \
  O(struct rv_mr *, reg_dmabuf_mr, "IBVERBS_1.12", (struct rv_pd *p, uint64_t off, size_t n, uint64_t iova, int fd, int access)) \
  R(int, dereg_mr, "IBVERBS_1.1", (struct rv_mr *m))                                                                           \
  R(struct rv_comp_channel *, create_comp_channel, "IBVERBS_1.0", (struct rv_context *c))                                      \
  R(int, destroy_comp_channel, "IBVERBS_1.0", (struct rv_comp_channel *c))                                                     \
  R(struct rv_cq *, create_cq, "IBVERBS_1.1", (struct rv_context *c, int n, void *ud, struct rv_comp_channel *ch, int vector)) \
  R(int, destroy_cq, "IBVERBS_1.1", (struct rv_cq *q))                                                                         \
  R(int, get_cq_event, "IBVERBS_1.1", (struct rv_comp_channel *c, struct rv_cq **q, void **ud))                                \
  R(void, ack_cq_events, "IBVERBS_1.1", (struct rv_cq *q, unsigned n))                                                         \
  R(int, get_async_event, "IBVERBS_1.1", (struct rv_context *c, struct rv_async_event *e))                                     \
  R(void, ack_async_event, "IBVERBS_1.1", (struct rv_async_event *e))                                                          \
  R(struct rv_qp *, create_qp, "IBVERBS_1.1", (struct rv_pd *p, struct rv_qp_init_attr *a))                                    \
  R(int, modify_qp, "IBVERBS_1.1", (struct rv_qp *q, struct rv_qp_attr *a, int mask))                                          \
  R(int, query_qp, "IBVERBS_1.1", (struct rv_qp *q, struct rv_qp_attr *a, int mask, struct rv_qp_init_attr *i))                \
  R(int, destroy_qp, "IBVERBS_1.1", (struct rv_qp *q))

// Work for a queue pair, in C memory: no Go pointer ever lies in what the
// library is handed.
struct rv_desc { uint64_t id, laddr, raddr; uint32_t lkey, rkey, len, imm, op, flags, qp, pad; };
// A path to a remote queue pair.
struct rv_path { union rv_gid dgid; uint32_t dest_qpn, rq_psn, sq_psn; uint16_t dlid, pkey; uint8_t port, mtu, sgid_index, global, sl, tclass, timeout, retries, reads; };

int rv_load(const char *path, char *err, int n); // 0, 1: absent, 2: too old
struct rv_device **rv_list(int *n);
void rv_free_list(struct rv_device **l);
struct rv_context *rv_open(struct rv_device *d);
int rv_close(struct rv_context *c);
int rv_port(struct rv_context *c, int port, struct rv_port_attr *a);
int rv_attr(struct rv_context *c, struct rv_device_attr *a);
int rv_async(struct rv_context *c, int *port, uint32_t *qpn); // −1: no event waits; else its type
struct rv_pd *rv_pd(struct rv_context *c);
int rv_dealloc_pd(struct rv_pd *p);
struct rv_mr *rv_reg(struct rv_pd *p, uint64_t addr, size_t n, int access);
struct rv_mr *rv_reg_dmabuf(struct rv_pd *p, uint64_t off, size_t n, uint64_t iova, int fd, int access);
int rv_dereg(struct rv_mr *m);
struct rv_cq *rv_cq(struct rv_context *c, int n);
int rv_destroy_cq(struct rv_cq *q);
int rv_arm(struct rv_cq *q);     // 0: the channel's descriptor becomes readable at the next completion
int rv_disarm(struct rv_cq *q);  // takes the event off the channel
struct rv_qp *rv_qp(struct rv_pd *p, struct rv_cq *cq, int sends, int recvs, int inline_bytes, struct rv_qp_cap *got);
int rv_destroy_qp(struct rv_qp *q);
int rv_to_init(struct rv_qp *q, int port, int pkey, int access);
int rv_to_rtr(struct rv_qp *q, const struct rv_path *p);
int rv_to_rts(struct rv_qp *q, const struct rv_path *p);
int rv_query(struct rv_qp *q, struct rv_qp_attr *a);
int rv_post(struct rv_qp **table, const struct rv_desc *d, int n, int *posted);
int rv_post_recv(struct rv_qp *q, uint64_t id, uint64_t base, uint32_t stride, uint32_t lkey, uint32_t first, int n, uint32_t slots);
int rv_poll(struct rv_cq *q, int n, struct rv_wc *wc, long spins);
uint64_t rv_now(void); // ns

// A ping-pong of count messages on one queue pair, kept here between calls: a
// call from Go for each message would weigh on what is measured.
struct rv_pingpong {
  struct rv_qp *qp;
  struct rv_desc send;
  const volatile uint8_t *watch; // of writes: where the other end's mark appears; else the completion queue tells
  volatile uint8_t *source;      // last byte of the message, for the mark; 0: the processor cannot reach it
  uint64_t *ns;                  // count times of the side that begins
  uint32_t count, i;             // messages in all, and done
  uint32_t inflight;             // sends without a completion
  int first, sent, read;         // begins; message i is on its way; the send's own completion is the answer
  struct rv_recv_wr again;       // receives that go back after each message of a send test
  struct rv_sge again_sge;
  uint32_t again_left;
  uint64_t start;
  struct rv_wc wc; // of an error
};
// 1: done, 0: ns have passed, −1: wc has an error, −2: wc is of another queue pair, −1000 − errno: cannot post.
int rv_pingpong(struct rv_pingpong *p, long ns);

// A queue pair's part in a round of a bandwidth test.
struct rv_lane {
  struct rv_qp *qp;
  struct rv_desc send;
  uint64_t posted, done;           // sends since the queue pair was made
  uint32_t left;                   // sends to post
  uint32_t total, given, received; // receives of the round: all, posted, completed
  uint32_t room;                   // entries of the receive queue
  uint32_t recv_len, recv_key;
  uint64_t recv_id, recv_addr; // all receives go to one place
};
// A round of a bandwidth test, kept here between calls: a return to Go for each
// completion would weigh on what is measured where processors are few or messages short.
struct rv_stream {
  struct rv_cq *cq;
  struct rv_lane *lane;
  uint32_t lanes, depth, every;   // every how many sends one is signalled
  uint64_t start, took;           // ns: begin of the round, time until the last send's completion
  uint64_t seen;                  // completions
  int n, at;                      // completions in wc, and the next of them
  struct rv_wc wc[32];
};
// 1: done, 0: ns have passed, −1: wc[at − 1] has an error or is of another
// queue pair, −2: cannot poll, −1000 − errno: cannot post.
int rv_stream(struct rv_stream *s, long ns);
#endif
