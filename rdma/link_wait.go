//go:build linux && cgo

package rdma

// #include "verbs.h"
import "C"

import (
	"errors"
	"fmt"
	"time"

	"busbw/collectives"
)

// probeWhen: nothing came for so long; is the peer there?
const probeWhen = time.Second

// progress takes in what has completed and posts what has room now. seen says
// whether anything had.
func (l *Link) progress(looks int) (seen bool, err error) {
	if l.broken != nil {
		return false, l.broken
	}
	for {
		ws, err := l.q.poll(looks)
		if err != nil {
			return seen, l.fail(l.blame(nil, err))
		}
		for i := range ws {
			if err := l.completed(&ws[i]); err != nil {
				return seen, err
			}
		}
		seen = seen || len(ws) > 0
		if len(ws) < batch {
			break
		}
		looks = 1
	}
	if seen {
		return true, l.resume()
	}
	return false, nil
}

// resume posts for the peers that wanted to post more.
func (l *Link) resume() error {
	n := len(l.held)
	for _, p := range l.held[:n] {
		p.held = false
		if err := l.pump(p); err != nil { // may hold the peer again
			return err
		}
	}
	l.held = append(l.held[:0], l.held[n:]...)
	return nil
}

// completed takes in one completion.
func (l *Link) completed(w *C.struct_rv_wc) error {
	id := uint64(w.wr_id)
	i := int(id >> 48 & 0x7fff)
	x := &l.q.qps[i]
	p := x.peer
	if w.status != 0 {
		return l.fail(l.because(w))
	}
	if id&idRecv == 0 {
		x.done = widen(id>>idShift, x.done)
		p.acked[x.lane] = widen(id, p.acked[x.lane])
		return nil
	}
	var err error
	if w.opcode == C.RV_WC_RECV_IMM {
		err = p.rx.arrive(x.lane, uint32(w.imm_data))
	} else {
		slot := l.memory[x.notes-l.whole.Addr+uint64(x.received)*noteSize:]
		var c control
		if c, err = parseControl(slot[:min(noteSize, int(w.byte_len))]); err == nil {
			if err = p.tx.heard(c); err == nil && p.tip < len(p.spans) && !p.held {
				p.held = true
				l.held = append(l.held, p)
			}
		}
	}
	if err != nil {
		return l.fail(l.blame(p, err))
	}
	x.received = (x.received + 1) % x.recvs
	if owed := (x.received + x.recvs - x.reposted) % x.recvs; owed >= repostAt {
		if err := l.q.receive(i, owed); err != nil {
			return l.fail(l.blame(p, err))
		}
	}
	return nil
}

// fail keeps the first error: after it the link is of no more use.
func (l *Link) fail(err error) error {
	if l.broken == nil {
		l.broken = err
	}
	return l.broken
}

// because finds the cause behind a failed completion: flushed requests only
// follow from something, so the next ones are looked at first, for a moment,
// and then the device's events.
func (l *Link) because(w *C.struct_rv_wc) error {
	c, p := l.failure(w)
	for end := time.Now().Add(20 * time.Millisecond); c.Flushed() && time.Now().Before(end); {
		ws, err := l.q.poll(looks)
		if err != nil {
			break
		}
		for i := range ws {
			if ws[i].status != 0 && ws[i].status != statusFlushed {
				c, p = l.failure(&ws[i])
				break
			}
		}
	}
	return l.blame(p, l.q.dev.explain(c))
}

func (l *Link) failure(w *C.struct_rv_wc) (*Completion, *peer) {
	p := l.q.qps[uint64(w.wr_id)>>48&0x7fff].peer
	return l.q.failure(w, p.gid), p
}

// wait is one wait for something of one peer.
type wait struct {
	l     *Link
	p     *peer
	since time.Time // nothing has happened; zero: not yet looked
}

func (l *Link) waiting(p *peer) wait { return wait{l: l, p: p} }

// step lets something happen, or some time pass.
func (w *wait) step() error {
	l := w.l
	seen, err := l.progress(looks)
	if err != nil {
		return err
	}
	if seen {
		w.since, w.p.probed = time.Time{}, time.Time{}
		return nil
	}
	if first := l.cfg.Abort.Err(); first != nil {
		return l.blame(w.p, fmt.Errorf("%w: %v", collectives.ErrAborted, first))
	}
	now := time.Now()
	if w.since.IsZero() {
		w.since = now
	}
	idle := now.Sub(w.since)
	if rest(idle) {
		return nil
	}
	if idle > probeWhen {
		if err := l.probe(w.p, now); err != nil {
			return err
		}
	}
	if e := l.q.dev.Trouble(); e != nil {
		return l.fail(l.blame(w.p, e))
	}
	if err := l.q.sleep(sleepFor, func() (bool, error) { return l.progress(1) }); err != nil {
		return l.fail(l.blame(nil, err))
	}
	return nil
}

// probe asks the peer's device, not its process, for a sign of life: an empty
// write on each queue pair, which a living device acknowledges by itself. So a
// peer that is only slow is never taken for dead, and one that is gone is found
// although nothing is being sent to it, and although the device may retry for ever.
func (l *Link) probe(p *peer, now time.Time) error {
	if !p.probed.IsZero() {
		answered := true
		for lane, mark := range p.probe {
			answered = answered && l.q.qps[p.base+lane].done >= mark
		}
		if !answered {
			if gone := now.Sub(p.probed); gone > l.cfg.Dead {
				return l.fail(l.blame(p, fmt.Errorf("%w: nothing was acknowledged for %.1f s on %s: the peer or its port is down, the path is broken, or both sides disagree on the MTU, the GID or the P_Key", ErrDead, gone.Seconds(), l.q.dev)))
			}
			return nil
		}
		if now.Sub(p.probed) < probeWhen {
			return nil
		}
	}
	p.probed = now
	for lane := range p.probe {
		x := &l.q.qps[p.base+lane]
		if l.q.room(p.base+lane) > 0 { // a full queue is a question in itself
			if err := l.q.put(p.base+lane, C.struct_rv_desc{op: C.RV_WR_WRITE, raddr: C.uint64_t(p.ring), rkey: C.uint32_t(p.key)}, p.tx.seq, true); err != nil {
				return l.fail(l.blame(p, err))
			}
		}
		p.probe[lane] = x.posted
	}
	return l.flush()
}

// Poll moves what can be moved without waiting.
func (l *Link) Poll() error {
	_, err := l.progress(1)
	return err
}

// Close sees to it that what was sent has arrived, unless the link or the run
// has failed, and gives everything back.
func (l *Link) Close() error {
	err := l.Drain()
	return errors.Join(err, l.free())
}

// Drain returns when everything that was sent has arrived, or at once when the
// link or the run has failed.
func (l *Link) Drain() error {
	for _, p := range l.peers {
		w := l.waiting(p)
		for p.tip < len(p.spans) || p.safe() < p.tx.seq {
			if l.broken != nil || l.cfg.Abort.Err() != nil {
				return nil
			}
			if err := w.step(); err != nil {
				return err
			}
		}
	}
	return nil
}
