//go:build linux && cgo

package rdma

// #include "verbs.h"
import "C"

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"unsafe"
)

// queues are RC queue pairs that share one completion queue, with what C needs
// to fill and to drain them in batches. They belong to one goroutine.
type queues struct {
	dev   *Device
	cq    *C.struct_rv_cq
	table *[1 << 15]*C.struct_rv_qp // C memory: what rv_post looks queue pairs up in
	wc    *[batch]C.struct_rv_wc    // C memory
	desc  *[batch]C.struct_rv_desc  // C memory
	n     int                       // descriptors that wait in desc
	qps   []qp
	most  int
}

const batch = 32 // work requests of a call, completions of a poll

// qp is a queue pair. Its send queue has sends entries, of which posted − done
// are taken: only completions of signalled requests, each standing for all
// before it, move done.
type qp struct {
	c            *C.struct_rv_qp
	start        QPStart
	remote       uint32
	peer         *peer // of a Link
	lane         int   // its number among the peer's queue pairs
	sends        uint64
	posted, done uint64
	slab         []byte // sends × slotSize registered bytes: inline-size payloads
	slabKey      uint32
	recvs        uint32 // entries of the receive queue
	received     uint32 // the receive that completes next, and the one to post next
	reposted     uint32
	notes        uint64 // where receives put what is sent: slots buffers of stride bytes; 0: none
	notesKey     uint32
	stride       uint32
	slots        uint32
	total, given uint32 // of a Pair's send test: receives of the round, and how many were posted
	inline       int
}

const (
	slotSize = 256 // bytes: payloads up to this are copied when posted, and need neither registration nor waiting
	noteSize = 64  // bytes of a receive buffer: a control message fits
)

// newQueues makes room for most queue pairs and entries completions.
func newQueues(d *Device, most, entries int) (*queues, error) {
	if most > 1<<15 {
		return nil, fmt.Errorf("%s: %d queue pairs; %d are possible", d.Rail, most, 1<<15)
	}
	if entries > int(d.attr.max_cqe) {
		return nil, fmt.Errorf("%s: %d connections need a completion queue of %d entries, the device has %d: use fewer queue pairs or a smaller window", d.Rail, most, entries, int(d.attr.max_cqe))
	}
	q := &queues{dev: d, most: most}
	cq, err := C.rv_cq(d.ctx, C.int(entries))
	if cq == nil {
		return nil, fmt.Errorf("%s: cannot create a completion queue of %d entries: %w%s", d.Rail, entries, err, memlockHint(err, 0))
	}
	q.cq = cq
	q.table = (*[1 << 15]*C.struct_rv_qp)(C.calloc(C.size_t(most), C.size_t(unsafe.Sizeof(q.table[0]))))
	q.wc = (*[batch]C.struct_rv_wc)(C.calloc(batch, C.sizeof_struct_rv_wc))
	q.desc = (*[batch]C.struct_rv_desc)(C.calloc(batch, C.sizeof_struct_rv_desc))
	return q, nil
}

// add creates a queue pair in INIT with room for so many sends and receives.
func (q *queues) add(sends, recvs int) (*qp, error) {
	d := q.dev
	var got C.struct_rv_qp_cap
	c, err := C.rv_qp(d.pd, q.cq, C.int(sends), C.int(recvs), slotSize, &got)
	if c == nil { // some devices refuse more inline data than they have
		c, err = C.rv_qp(d.pd, q.cq, C.int(sends), C.int(recvs), 0, &got)
	}
	if c == nil {
		return nil, fmt.Errorf("%s: cannot create queue pair %d with %d sends and %d receives: %w%s", d.Rail, len(q.qps)+1, sends, recvs, err, memlockHint(err, 0))
	}
	q.table[len(q.qps)] = c
	q.qps = append(q.qps, qp{c: c, start: QPStart{uint32(c.qp_num), rand.Uint32() >> 8}, sends: uint64(sends), recvs: uint32(recvs), inline: int(got.max_inline_data)})
	p := &q.qps[len(q.qps)-1]
	if r := C.rv_to_init(c, C.int(d.Rail.Port.Num), C.int(d.Settings.PKey), C.RV_A_LOCAL_WRITE|C.RV_A_REMOTE_WRITE|C.RV_A_REMOTE_READ); r != 0 {
		return nil, fmt.Errorf("%s: queue pair %d does not go to INIT: %w", d.Rail, p.start.Num, syscall.Errno(r))
	}
	return p, nil
}

// connect takes queue pair i through RTR to RTS.
func (q *queues) connect(i int, mine, peer Hello, lane int, mtu uint8) error {
	d, p := q.dev, &q.qps[i]
	path := C.struct_rv_path{
		dest_qpn: C.uint32_t(peer.QPs[lane].Num), rq_psn: C.uint32_t(peer.QPs[lane].PSN), sq_psn: C.uint32_t(p.start.PSN),
		dlid: C.uint16_t(peer.LID), port: C.uint8_t(d.Rail.Port.Num), mtu: C.uint8_t(mtu), sgid_index: C.uint8_t(d.GID.Index),
		sl: C.uint8_t(d.Settings.SL), tclass: C.uint8_t(d.Settings.TrafficClass), timeout: C.uint8_t(d.Settings.Timeout), retries: C.uint8_t(d.Settings.Retries),
		reads: C.uint8_t(min(mine.Reads, peer.Reads)), // what both devices can, as perftest does
	}
	// A global route is what RoCE always has, and InfiniBand needs between subnets.
	if !d.infiniband() || [8]byte(mine.GID[:8]) != [8]byte(peer.GID[:8]) {
		path.global = 1
	}
	for k, b := range peer.GID {
		*(*byte)(unsafe.Add(unsafe.Pointer(&path.dgid), k)) = b
	}
	p.remote = peer.QPs[lane].Num
	way := fmt.Sprintf("%s queue pair %d to GID %s LID %d queue pair %d, MTU %d", d, p.start.Num, gidString(peer.GID), peer.LID, p.remote, 128<<mtu)
	if r := C.rv_to_rtr(p.c, &path); r != 0 {
		return fmt.Errorf("%s: no way to the peer (RTR): %w%s", way, syscall.Errno(r), routeHint(syscall.Errno(r)))
	}
	if r := C.rv_to_rts(p.c, &path); r != 0 {
		return fmt.Errorf("%s: cannot send (RTS): %w", way, syscall.Errno(r))
	}
	return nil
}

func routeHint(e syscall.Errno) string {
	if e == syscall.ETIMEDOUT || e == syscall.EINVAL || e == syscall.ENETUNREACH || e == syscall.EHOSTUNREACH {
		return " (the peer's address does not resolve from this GID: another subnet, a link-local GID, or a wrong NCCL_IB_GID_INDEX)"
	}
	return ""
}

// The id of a work request: bit 63 a receive, 62…48 the queue pair; of a send
// 47…24 its number on the queue pair and 23…0 the chunks that are posted on
// the connection, both counted after it.
const (
	idRecv  = 1 << 63
	idMask  = 1<<24 - 1
	idShift = 24
)

// widen restores a counter from its low 24 bits, given a value that it has
// passed by less than 2^24.
func widen(low, since uint64) uint64 { return since + (low-since)&idMask }

func (q *queues) room(i int) uint64 { return q.qps[i].sends - (q.qps[i].posted - q.qps[i].done) }

// put queues a send on queue pair i; the caller has seen to it that there is room.
func (q *queues) put(i int, d C.struct_rv_desc, chunks uint64, signal bool) error {
	p := &q.qps[i]
	p.posted++
	if signal || p.posted%signalAt == 0 {
		d.flags |= C.RV_F_SIGNALED
	}
	d.id = C.uint64_t(uint64(i)<<48 | p.posted&idMask<<idShift | chunks&idMask)
	d.qp = C.uint32_t(i)
	q.desc[q.n] = d
	q.n++
	if q.n == batch {
		return q.flush()
	}
	return nil
}

// flush hands what put queued to the device.
func (q *queues) flush() error {
	if q.n == 0 {
		return nil
	}
	var posted C.int
	r := C.rv_post(&q.table[0], &q.desc[0], C.int(q.n), &posted)
	n := q.n
	q.n = 0
	if r != 0 {
		return fmt.Errorf("%s: cannot post %d requests: %w", q.dev.Rail, n, syscall.Errno(r))
	}
	return nil
}

// copied is the part of the slab that belongs to the next request of queue
// pair i, and the flag that posts it inline where the device can.
func (q *queues) copied(i, n int) (slot []byte, d C.struct_rv_desc) {
	p := &q.qps[i]
	at := int(p.posted%p.sends) * slotSize
	slot = p.slab[at : at+n]
	d = C.struct_rv_desc{laddr: C.uint64_t(uintptr(unsafe.Pointer(&p.slab[at]))), lkey: C.uint32_t(p.slabKey), len: C.uint32_t(n)}
	if n <= p.inline {
		d.flags = C.RV_F_INLINE
	}
	return slot, d
}

// receive posts so many more receives on queue pair i.
func (q *queues) receive(i int, n uint32) error {
	p := &q.qps[i]
	r := C.rv_post_recv(p.c, C.uint64_t(idRecv|uint64(i)<<48), C.uint64_t(p.notes), C.uint32_t(p.stride), C.uint32_t(p.notesKey), C.uint32_t(p.reposted), C.int(n), C.uint32_t(max(1, p.slots)))
	if r != 0 {
		return fmt.Errorf("%s: cannot post %d receives: %w", q.dev.Rail, n, syscall.Errno(r))
	}
	p.reposted = (p.reposted + n) % p.recvs
	return nil
}

// poll is the completions that have come after at most so many looks.
func (q *queues) poll(looks int) ([]C.struct_rv_wc, error) {
	n := int(C.rv_poll(q.cq, batch, &q.wc[0], C.long(looks)))
	if n < 0 {
		return nil, fmt.Errorf("%s: cannot poll the completion queue", q.dev.Rail)
	}
	return q.wc[:n], nil
}

// failure describes a completion with an error.
func (q *queues) failure(w *C.struct_rv_wc, peerGID [16]byte) *Completion {
	id := uint64(w.wr_id)
	p := &q.qps[id>>48&0x7fff]
	op := "an RDMA request"
	if id&idRecv != 0 {
		op = "a receive"
	}
	return &Completion{Status: int(w.status), Vendor: uint32(w.vendor_err), Op: op, Device: q.dev.Rail.String(), Local: p.start.Num, Remote: p.remote, LocalGID: q.dev.GID.Addr.String(), Peer: gidString(peerGID)}
}

func (q *queues) attributes(i int) (Attributes, error) {
	var a C.struct_rv_qp_attr
	if r := C.rv_query(q.qps[i].c, &a); r != 0 {
		return Attributes{}, fmt.Errorf("%s: cannot query queue pair %d: %w", q.dev.Rail, q.qps[i].start.Num, syscall.Errno(r))
	}
	return Attributes{int(a.qp_state), 128 << a.path_mtu, int(a.ah_attr.grh.sgid_index), int(a.ah_attr.sl), int(a.ah_attr.grh.traffic_class), int(a.pkey_index), int(a.timeout), int(a.retry_cnt), int(a.rnr_retry), int(a.min_rnr_timer), uint32(a.dest_qp_num)}, nil
}

func (q *queues) close() error {
	var first error
	for i := range q.qps {
		if r := C.rv_destroy_qp(q.qps[i].c); r != 0 && first == nil {
			first = fmt.Errorf("%s: cannot destroy queue pair %d: %w", q.dev.Rail, q.qps[i].start.Num, syscall.Errno(r))
		}
	}
	q.qps = nil
	if r := C.rv_destroy_cq(q.cq); r != 0 && first == nil {
		first = fmt.Errorf("%s: cannot destroy the completion queue: %w", q.dev.Rail, syscall.Errno(r))
	}
	C.free(unsafe.Pointer(q.table))
	C.free(unsafe.Pointer(q.wc))
	C.free(unsafe.Pointer(q.desc))
	return first
}
