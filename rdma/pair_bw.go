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

// alone says that all messages are signalled, as perftest's longer ones are: a
// place in the queue that is free again is used at once.
func alone(t Test) bool { return t.Size > 8<<10 }

// between is how many messages may pass before a completion is seen.
func (p *Pair) between(t Test) int {
	n := p.cfg.QPs
	if !alone(t) {
		n *= signalAt
	}
	if t.Bidirectional {
		n *= 2
	}
	return n
}

// stream sends a round's messages, if this end does, as many at a time as the
// depth allows, takes in those that come, if it was prepared for them, and says
// how long it took from the first post to the last completion of a send.
func (p *Pair) stream(t Test, send bool) (time.Duration, error) {
	if !send && t.Verb != SendRecv {
		return 0, nil // the device does it by itself
	}
	n := p.cfg.QPs
	s := (*C.struct_rv_stream)(C.calloc(1, C.sizeof_struct_rv_stream)) // C memory: it holds C pointers between calls
	defer C.free(unsafe.Pointer(s))
	lanes := (*C.struct_rv_lane)(C.calloc(C.size_t(n), C.sizeof_struct_rv_lane))
	defer C.free(unsafe.Pointer(lanes))
	s.cq, s.lane, s.lanes, s.depth, s.every = p.q.cq, lanes, C.uint32_t(n), C.uint32_t(p.cfg.Depth), signalAt
	if alone(t) {
		s.every = 1
	}
	for i := range unsafe.Slice(lanes, n) {
		l, x := &unsafe.Slice(lanes, n)[i], &p.q.qps[i]
		l.qp, l.posted, l.done = x.c, C.uint64_t(x.posted), C.uint64_t(x.done)
		if send {
			l.send, l.left = p.message(t, i), C.uint32_t(p.share(t, i))
			l.send.id = C.uint64_t(uint64(i) << 48)
		}
		if x.received < x.total {
			l.total, l.given, l.received, l.room = C.uint32_t(x.total), C.uint32_t(x.given), C.uint32_t(x.received), C.uint32_t(x.recvs)
			l.recv_id, l.recv_addr, l.recv_len, l.recv_key = C.uint64_t(idRecv|uint64(i)<<48), C.uint64_t(x.notes), C.uint32_t(x.stride), C.uint32_t(x.notesKey)
		}
	}
	p.calm = time.Time{}
	p.patient(p.between(t), t)
	s.start = C.rv_now()
	for seen := s.seen; ; seen = s.seen {
		r := C.rv_stream(s, C.long(watchFor))
		if s.seen != seen {
			p.calm, p.probed = time.Time{}, time.Time{}
		}
		switch {
		case r == 1:
			for i, l := range unsafe.Slice(lanes, n) {
				x := &p.q.qps[i]
				x.posted, x.done, x.given, x.received = uint64(l.posted), uint64(l.done), x.total, x.total
			}
			if !send {
				return 0, nil
			}
			return time.Duration(s.took), nil
		case r == 0:
			if _, err := p.calmFor(); err != nil {
				return 0, err
			}
		case r == -1: // with an error, or of the orders
			if err := p.completed(&s.wc[s.at-1]); err != nil {
				return 0, err
			}
		case r == -2:
			return 0, p.blame(fmt.Errorf("%s: cannot poll the completion queue", p.dev.Rail))
		default:
			return 0, p.blame(fmt.Errorf("cannot post a message: %w", syscall.Errno(-1000-r)))
		}
	}
}
