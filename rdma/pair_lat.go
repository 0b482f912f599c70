//go:build linux && cgo

package rdma

// #include "verbs.h"
import "C"

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// pingpong sends one message at a time to and fro; first says who begins, and
// has the times.
func (p *Pair) pingpong(t Test, first bool) ([]float64, error) {
	x := &p.q.qps[0]
	size := C.size_t(unsafe.Sizeof(C.struct_rv_pingpong{}))
	s := (*C.struct_rv_pingpong)(C.calloc(1, size+C.size_t(t.Count)*8)) // C memory, times behind it
	defer C.free(unsafe.Pointer(s))
	s.qp, s.send, s.count = x.c, p.message(t, 0), C.uint32_t(t.Count)
	s.ns = (*C.uint64_t)(unsafe.Add(unsafe.Pointer(s), size))
	if first {
		s.first = 1
	}
	factor := 0.5
	switch t.Verb {
	case Write:
		s.watch = (*C.uint8_t)(unsafe.Pointer(&p.target[t.Size-1]))
	case Read:
		s.read, factor = 1, 1
	case SendRecv:
		s.again_sge = C.struct_rv_sge{addr: C.uint64_t(x.notes), length: C.uint32_t(x.stride), lkey: C.uint32_t(x.notesKey)}
		s.again = C.struct_rv_recv_wr{wr_id: C.uint64_t(idRecv), num_sge: 1}
		s.again_left = C.uint32_t(x.total - x.given)
	}
	if p.source != nil {
		s.source = (*C.uint8_t)(unsafe.Pointer(&p.source[t.Size-1]))
	}
	// A completion stands for everything that was posted on the queue pair before.
	s.send.id = C.uint64_t(x.posted & idMask << idShift)
	p.calm = time.Time{}
	p.patient(2, t)
	for at := s.i; ; at = s.i {
		switch r := C.rv_pingpong(s, C.long(watchFor)); r {
		case 1:
			x.given, x.received = x.total, x.total
			return times(s, factor), p.settle(x)
		case 0:
			if s.i != at {
				p.calm = time.Time{}
			}
			// Never the sleep of idle: a write makes no event here, and the other end
			// would find its answer late, sleep too, and so on for ever.
			idle, err := p.calmFor()
			if err != nil {
				return nil, err
			}
			// Nor a processor given away before the peer is in trouble: where the kernel
			// does the device's work in threads, they then came 2 ms late.
			if idle > 100*time.Millisecond {
				syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
			}
		case -1, -2: // of this queue pair with an error, or of another one
			if err := p.completed(&s.wc); err != nil {
				return nil, err
			}
		default:
			return nil, p.blame(fmt.Errorf("cannot post a message: %w", syscall.Errno(-1000-r)))
		}
	}
}

// settle waits until everything that was posted on a queue pair is done, so
// that its send queue is empty again.
func (p *Pair) settle(x *qp) error {
	if err := p.q.put(0, C.struct_rv_desc{op: C.RV_WR_WRITE, raddr: C.uint64_t(p.peer.Addr), rkey: C.uint32_t(p.peer.RKey)}, 0, true); err != nil {
		return p.blame(err)
	}
	if err := p.flush(); err != nil {
		return err
	}
	for x.done < x.posted {
		if err := p.wait(); err != nil {
			return err
		}
	}
	return nil
}

// times are what a ping-pong measured, in seconds.
func times(s *C.struct_rv_pingpong, factor float64) []float64 {
	if s.first == 0 {
		return nil
	}
	out := make([]float64, s.count)
	for i, ns := range unsafe.Slice(s.ns, s.count) {
		out[i] = float64(ns) / 1e9 * factor
	}
	return out
}
