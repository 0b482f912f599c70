//go:build linux && cgo

// Where libibverbs-dev is installed, every layout and constant of verbs.h is
// compared with the real header when this file is compiled.
#include "verbs.h"

#if defined(__has_include) || defined(BUSBW_HEADER_REQUIRED)
#if defined(BUSBW_HEADER_REQUIRED) || __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#pragma GCC diagnostic ignored "-Wenum-compare"
#define SIZE(t) _Static_assert(sizeof(struct rv_##t) == sizeof(struct ibv_##t), "sizeof " #t)
#define F(t, f) _Static_assert(offsetof(struct rv_##t, f) == offsetof(struct ibv_##t, f) && sizeof(((struct rv_##t *)0)->f) == sizeof(((struct ibv_##t *)0)->f), #t "." #f)
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)

SIZE(device); F(device, name); F(device, dev_name); F(device, ibdev_path);
SIZE(context); F(context, device); F(context, ops.poll_cq); F(context, ops.req_notify_cq); F(context, ops.post_send); F(context, ops.post_recv); F(context, async_fd); F(context, num_comp_vectors);
SIZE(device_attr); F(device_attr, fw_ver); F(device_attr, max_mr_size); F(device_attr, max_qp); F(device_attr, max_qp_wr); F(device_attr, max_cqe); F(device_attr, max_mr); F(device_attr, max_qp_rd_atom);
SIZE(pd); F(pd, context);
SIZE(mr); F(mr, addr); F(mr, length); F(mr, lkey); F(mr, rkey);
SIZE(comp_channel); F(comp_channel, fd);
SIZE(cq); F(cq, context); F(cq, channel); F(cq, cqe);
SIZE(qp); F(qp, context); F(qp, qp_num); F(qp, state); F(qp, qp_type);
SIZE(qp_cap); F(qp_cap, max_send_wr); F(qp_cap, max_inline_data);
SIZE(qp_init_attr); F(qp_init_attr, send_cq); F(qp_init_attr, cap); F(qp_init_attr, qp_type); F(qp_init_attr, sq_sig_all);
SIZE(ah_attr); F(ah_attr, grh.dgid); F(ah_attr, grh.sgid_index); F(ah_attr, grh.hop_limit); F(ah_attr, grh.traffic_class); F(ah_attr, dlid); F(ah_attr, sl); F(ah_attr, is_global); F(ah_attr, port_num);
SIZE(qp_attr); F(qp_attr, qp_state); F(qp_attr, path_mtu); F(qp_attr, rq_psn); F(qp_attr, sq_psn); F(qp_attr, dest_qp_num); F(qp_attr, qp_access_flags); F(qp_attr, ah_attr); F(qp_attr, pkey_index);
F(qp_attr, max_rd_atomic); F(qp_attr, max_dest_rd_atomic); F(qp_attr, min_rnr_timer); F(qp_attr, port_num); F(qp_attr, timeout); F(qp_attr, retry_cnt); F(qp_attr, rnr_retry);
SIZE(sge); F(sge, addr); F(sge, length); F(sge, lkey);
SIZE(recv_wr); F(recv_wr, next); F(recv_wr, sg_list); F(recv_wr, num_sge);
SIZE(send_wr); F(send_wr, next); F(send_wr, sg_list); F(send_wr, num_sge); F(send_wr, opcode); F(send_wr, send_flags); F(send_wr, imm_data); F(send_wr, wr.rdma.remote_addr); F(send_wr, wr.rdma.rkey);
SIZE(wc); F(wc, wr_id); F(wc, status); F(wc, opcode); F(wc, vendor_err); F(wc, byte_len); F(wc, imm_data); F(wc, qp_num); F(wc, wc_flags);
F(port_attr, state); F(port_attr, active_mtu); F(port_attr, max_msg_sz); F(port_attr, lid); F(port_attr, active_width); F(port_attr, active_speed); F(port_attr, phys_state); F(port_attr, link_layer);
_Static_assert(sizeof(struct rv_port_attr) >= sizeof(struct ibv_port_attr), "port_attr"); // newer libraries append
SIZE(async_event); F(async_event, element.port_num); F(async_event, event_type);

SAME(RV_QPT_RC, IBV_QPT_RC); SAME(RV_QPS_INIT, IBV_QPS_INIT); SAME(RV_QPS_RTR, IBV_QPS_RTR); SAME(RV_QPS_RTS, IBV_QPS_RTS); SAME(RV_QPS_ERR, IBV_QPS_ERR);
SAME(RV_M_STATE, IBV_QP_STATE); SAME(RV_M_ACCESS, IBV_QP_ACCESS_FLAGS); SAME(RV_M_PKEY, IBV_QP_PKEY_INDEX); SAME(RV_M_PORT, IBV_QP_PORT); SAME(RV_M_AV, IBV_QP_AV); SAME(RV_M_MTU, IBV_QP_PATH_MTU);
SAME(RV_M_TIMEOUT, IBV_QP_TIMEOUT); SAME(RV_M_RETRY, IBV_QP_RETRY_CNT); SAME(RV_M_RNR, IBV_QP_RNR_RETRY); SAME(RV_M_RQ_PSN, IBV_QP_RQ_PSN); SAME(RV_M_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC);
SAME(RV_M_MIN_RNR, IBV_QP_MIN_RNR_TIMER); SAME(RV_M_SQ_PSN, IBV_QP_SQ_PSN); SAME(RV_M_DEST_RD, IBV_QP_MAX_DEST_RD_ATOMIC); SAME(RV_M_DEST_QPN, IBV_QP_DEST_QPN);
SAME(RV_A_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE); SAME(RV_A_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE); SAME(RV_A_REMOTE_READ, IBV_ACCESS_REMOTE_READ); SAME(RV_A_RELAXED, IBV_ACCESS_RELAXED_ORDERING);
SAME(RV_WR_WRITE, IBV_WR_RDMA_WRITE); SAME(RV_WR_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM); SAME(RV_WR_SEND, IBV_WR_SEND); SAME(RV_WR_SEND_IMM, IBV_WR_SEND_WITH_IMM); SAME(RV_WR_READ, IBV_WR_RDMA_READ);
SAME(RV_F_SIGNALED, IBV_SEND_SIGNALED); SAME(RV_F_INLINE, IBV_SEND_INLINE);
SAME(RV_WC_RECV, IBV_WC_RECV); SAME(RV_WC_RECV_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
SAME(2, IBV_EVENT_QP_REQ_ERR); SAME(1, IBV_EVENT_QP_FATAL); SAME(7, IBV_EVENT_PATH_MIG_ERR); SAME(8, IBV_EVENT_DEVICE_FATAL); SAME(9, IBV_EVENT_PORT_ACTIVE); SAME(10, IBV_EVENT_PORT_ERR); SAME(18, IBV_EVENT_GID_CHANGE);
SAME(1, IBV_LINK_LAYER_INFINIBAND); SAME(2, IBV_LINK_LAYER_ETHERNET);
#endif
#endif
