//go:build linux && cgo

package rdma

// #include "verbs.h"
import "C"

import (
	"fmt"
	"time"
)

// Run does one round of a test with the other end, which must be in Serve. Of
// bandwidth it returns one time, a message's share of the round in seconds (of
// a bidirectional round: a message's each way, of the slower direction). Of
// latency it returns one time for each message: half the round trip of a write
// or a send, the whole one of a read, as perftest has it.
func (p *Pair) Run(t Test) ([]float64, error) {
	if err := t.check(p.cfg.MaxSize); err != nil {
		return nil, err
	}
	if t.Latency && t.Verb == Write && p.target == nil {
		return nil, p.blame(fmt.Errorf("write latency is seen by polling memory, which the processor cannot in GPU memory: use send"))
	}
	if err := p.prepare(t, t.Latency || t.Bidirectional); err != nil {
		return nil, err
	}
	if err := p.tell(order{kind: orderTest, test: t}); err != nil {
		return nil, err
	}
	if _, err := p.told(orderReady, orderReady); err != nil {
		return nil, err
	}
	defer func() { p.patience = p.cfg.Dead }()
	if t.Latency {
		times, err := p.pingpong(t, true)
		if err != nil {
			return nil, err
		}
		_, err = p.told(orderDone, orderDone)
		return times, err
	}
	took, err := p.stream(t, true)
	if err != nil {
		return nil, err
	}
	if t.Bidirectional {
		p.patient(t.Count, t) // the peer's, of which nothing is seen here, may all be on their way
	}
	o, err := p.told(orderDone, orderDone)
	if err != nil {
		return nil, err
	}
	return []float64{max(took, o.took).Seconds() / float64(t.Count)}, nil
}

// End lets the other end's Serve return.
func (p *Pair) End() error {
	if err := p.tell(order{kind: orderEnd}); err != nil {
		return err
	}
	x := &p.q.qps[p.cfg.QPs]
	for x.done < x.posted {
		if err := p.wait(); err != nil {
			return err
		}
	}
	return nil
}

// Serve does what the other end orders until that calls End.
func (p *Pair) Serve() error {
	for {
		p.patience = forEver // between tests the other end may take its time
		o, err := p.told(orderTest, orderEnd)
		p.patience = p.cfg.Dead
		if err != nil || o.kind == orderEnd {
			return err
		}
		t := o.test
		if err := p.prepare(t, true); err != nil {
			return err
		}
		if err := p.tell(order{kind: orderReady}); err != nil {
			return err
		}
		var took time.Duration
		switch {
		case t.Latency && t.Verb == Read: // the device answers by itself
		case t.Latency:
			_, err = p.pingpong(t, false)
		default:
			took, err = p.stream(t, t.Bidirectional)
		}
		if err != nil {
			return err
		}
		if err := p.tell(order{kind: orderDone, took: took}); err != nil {
			return err
		}
	}
}

// prepare clears the byte that a ping-pong watches and posts the receives of a
// send test.
func (p *Pair) prepare(t Test, receives bool) error {
	if p.target != nil {
		p.target[t.Size-1] = 0
	}
	if t.Verb != SendRecv || !receives {
		return nil
	}
	for lane := range p.cfg.QPs {
		x := &p.q.qps[lane]
		x.notes, x.notesKey, x.stride, x.slots = p.local(lane, true), p.data.LKey, uint32(t.Size), 1
		x.received, x.reposted = 0, 0
		n := p.share(t, lane)
		x.total = uint32(n)
		if err := p.q.receive(lane, uint32(min(n, int(x.recvs)))); err != nil {
			return p.blame(err)
		}
		x.given = uint32(min(n, int(x.recvs)))
	}
	return nil
}

// share is how many messages of a round a queue pair carries.
func (p *Pair) share(t Test, lane int) int {
	if t.Latency {
		if lane > 0 {
			return 0
		}
		return t.Count
	}
	return (t.Count + p.cfg.QPs - 1 - lane) / p.cfg.QPs
}

// local is the address of a queue pair's part of the source or the target.
func (p *Pair) local(lane int, target bool) uint64 {
	half := p.hello.Size
	a := p.data.Addr + uint64(lane)*(half/uint64(p.cfg.QPs))
	if target {
		a += half
	}
	return a
}

// message is the work request of a test.
func (p *Pair) message(t Test, lane int) C.struct_rv_desc {
	d := C.struct_rv_desc{laddr: C.uint64_t(p.local(lane, false)), lkey: C.uint32_t(p.data.LKey), len: C.uint32_t(t.Size), raddr: C.uint64_t(p.peer.Addr + uint64(lane)*(p.peer.Size/uint64(p.cfg.QPs))), rkey: C.uint32_t(p.peer.RKey)}
	switch t.Verb {
	case Write:
		d.op = C.RV_WR_WRITE
	case Read:
		d.op = C.RV_WR_READ
	case SendRecv:
		d.op = C.RV_WR_SEND
	}
	if t.Latency && t.Verb != Read && t.Size <= p.q.qps[lane].inline && p.target != nil {
		d.flags = C.RV_F_INLINE
	}
	return d
}
