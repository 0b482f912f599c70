//go:build linux && cgo

package rdma

// #include "verbs.h"
import "C"

import (
	"fmt"
)

// Send queues p and posts what the peer has room for.
func (l *Link) Send(rank int, b []byte) error {
	p, err := l.ready(rank)
	if err != nil {
		return err
	}
	if p.first > 64 && 2*p.first > len(p.spans) { // reuse the place of what is done, in amortised constant time
		n := copy(p.spans, p.spans[p.first:])
		clear(p.spans[n:])
		p.spans, p.tip, p.first = p.spans[:n], p.tip-p.first, 0
	}
	p.spans = append(p.spans, outSpan{p: b})
	return l.pump(p)
}

// WaitSent returns when the first n spans ever sent to the peer may be rewritten.
func (l *Link) WaitSent(rank int, n uint64) error {
	p, err := l.ready(rank)
	if err != nil {
		return err
	}
	if p.reap(); p.done < n {
		if most := p.done + uint64(len(p.spans)-p.first); n > most {
			return l.blame(p, fmt.Errorf("cannot wait for %d spans: %d were sent", n, most))
		}
		w := l.waiting(p)
		for p.done < n {
			if err := w.step(); err != nil {
				return err
			}
			p.reap()
		}
	}
	return nil
}

// ready is the peer's connection, or why the link is of no more use.
func (l *Link) ready(rank int) (*peer, error) {
	if l.broken != nil {
		return nil, l.broken
	}
	if uint(rank) < uint(len(l.byRank)) && l.byRank[rank] != nil && l.byRank[rank].linked {
		return l.byRank[rank], nil
	}
	p, err := l.peer(rank)
	if err == nil {
		err = l.blame(p, fmt.Errorf("not connected"))
	}
	return nil, err
}

// reap drops the spans that may be rewritten.
func (p *peer) reap() {
	safe := p.safe()
	for p.first < p.tip && (p.spans[p.first].copied || p.spans[p.first].end <= safe) {
		p.spans[p.first].p = nil
		p.first++
		p.done++
	}
	if p.first == len(p.spans) {
		p.spans, p.first, p.tip = p.spans[:0], 0, 0
	}
}

// safe is the number of chunks, from the start, that are done without a gap:
// on each queue pair the first that is not done is the first of its own at or
// after what was acknowledged.
func (p *peer) safe() uint64 {
	safe := p.tx.seq
	for lane, a := range p.acked {
		n := uint64(len(p.acked))
		safe = min(safe, a+(uint64(lane)+n-a%n)%n)
	}
	return safe
}

// pump posts what is queued for a peer and fits, control messages first. What
// does not fit is tried again whenever something completes.
func (l *Link) pump(p *peer) error {
	if p.ctrl {
		if err := l.control(p, span{}); err != nil {
			return err
		}
	}
	for p.tip < len(p.spans) {
		s := &p.spans[p.tip]
		ok := true
		for ok && s.sent < len(s.p) {
			var err error
			if ok, err = l.chunk(p, s); err != nil {
				return err
			}
		}
		if !ok {
			break
		}
		s.end = p.tx.seq
		s.copied = s.copied || len(s.p) == 0
		p.tip++
	}
	if (p.ctrl || p.tip < len(p.spans)) && !p.held {
		p.held = true
		l.held = append(l.held, p)
	}
	return l.flush()
}

func (l *Link) flush() error {
	if err := l.q.flush(); err != nil {
		return l.fail(l.blame(nil, err))
	}
	return nil
}

// chunk posts the next chunk of a span; false while there is no room for it.
func (l *Link) chunk(p *peer, s *outSpan) (bool, error) {
	left := uint64(len(s.p) - s.sent)
	unit := p.tx.chunk
	if l.split && p.tx.qps > 1 { // NCCL cuts at multiples of 128 bytes
		unit = min(unit, (uint64(len(s.p))/p.tx.qps+127)&^127)
	}
	c, ok := p.tx.next(left, unit)
	lane := p.base + int(p.tx.seq%p.tx.qps)
	room := l.q.room(lane)
	if !ok || room < 3 { // two for a write with an immediate of its own, one for a control message
		return false, nil
	}
	body := s.p[s.sent : s.sent+int(c.n)]
	d, copied, ok := l.source(p, lane, body)
	if !ok {
		return false, nil
	}
	if !c.direct {
		c.addr, c.rkey = p.ring+c.offset, p.key
	}
	d.raddr, d.rkey = C.uint64_t(c.addr), C.uint32_t(c.rkey)
	// Signalled are the last chunk of a span on each queue pair, so that WaitSent
	// and Close hear of them all, and those that hold a slot of the outbox.
	inOutbox := copied && c.n > slotSize
	signal := inOutbox || left-c.n <= (p.tx.qps-1)*unit
	s.copied = copied && (s.sent == 0 || s.copied)
	s.sent += int(c.n)
	p.tx.posted(c)
	if inOutbox {
		u := &l.out.used[l.out.next]
		u.p, u.seq = p, p.tx.seq
		l.out.next = (l.out.next + 1) % len(l.out.used)
	}
	if c.n > l.far {
		d.op = C.RV_WR_WRITE
		if err := l.q.put(lane, d, p.tx.seq-1, false); err != nil {
			return false, l.fail(l.blame(p, err))
		}
		d = C.struct_rv_desc{raddr: d.raddr, rkey: d.rkey}
	}
	d.op, d.imm = C.RV_WR_WRITE_IMM, C.uint32_t(c.imm)
	if err := l.q.put(lane, d, p.tx.seq, signal); err != nil {
		return false, l.fail(l.blame(p, err))
	}
	return true, nil
}

// source makes the payload reachable for the device: short ones are copied
// into the queue pair's slab, a GPU's memory and other registered memory is read where it is, anything
// else is copied to the outbox.
func (l *Link) source(p *peer, lane int, body []byte) (d C.struct_rv_desc, copied, ok bool) {
	if r := l.onGPU(body); r != nil {
		return C.struct_rv_desc{laddr: C.uint64_t(address(body)), lkey: C.uint32_t(r.LKey), len: C.uint32_t(len(body))}, false, true
	}
	if len(body) <= slotSize {
		slot, d := l.q.copied(lane, len(body))
		copy(slot, body)
		return d, true, true
	}
	addr := address(body)
	if r := l.region(addr, uint64(len(body))); r != nil {
		return C.struct_rv_desc{laddr: C.uint64_t(addr), lkey: C.uint32_t(r.LKey), len: C.uint32_t(len(body))}, false, true
	}
	if u := &l.out.used[l.out.next]; u.p != nil && u.p.safe() < u.seq {
		return d, false, false
	}
	slot := l.out.mem[l.out.next*l.out.slot:][:len(body)]
	copy(slot, body)
	return C.struct_rv_desc{laddr: C.uint64_t(address(slot)), lkey: C.uint32_t(l.out.key), len: C.uint32_t(len(body))}, true, true
}

// control tells the peer what was taken of its stream and, unless a is empty,
// a span to announce. It is put off while the queue pair is full.
func (l *Link) control(p *peer, a span) error {
	if l.q.room(p.base) < 1 {
		p.ctrl = true
		return nil
	}
	slot, d := l.q.copied(p.base, controlSize)
	p.rx.told(a).encode(slot)
	p.ctrl = false
	d.op = C.RV_WR_SEND
	if err := l.q.put(p.base, d, p.tx.seq, false); err != nil {
		return l.fail(l.blame(p, err))
	}
	return nil
}
