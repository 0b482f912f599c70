//go:build linux && cgo

package rdma

// #include "verbs.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"time"

	"busbw/collectives"
)

// Pair is one end of a connection for link tests: what perftest measures,
// without two terminals. One end calls Run, once a test and round; the other
// calls Serve once and does what it is told over the pair itself.
type Pair struct {
	cfg    PairConfig
	dev    *Device
	q      *queues
	hello  Hello
	peer   Hello
	memory []byte  // control slots, then source and target
	small  *Region // control slots
	data   *Region // source and target
	source []byte  // of data; nil in GPU memory
	target []byte
	inbox  []order

	calm     time.Time     // since when nothing has come; zero: something just did
	patience time.Duration // how long nothing may come
	probed   time.Time     // when the peer's device was asked for a sign of life; zero: it has answered
	probe    uint64        // the control queue pair's sends that must complete for that
}

// NewPair opens one end.
func NewPair(d *Device, cfg PairConfig) (*Pair, error) {
	if err := cfg.shaped(); err != nil {
		return nil, err
	}
	p := &Pair{cfg: cfg, dev: d, patience: cfg.Dead}
	if err := p.build(); err != nil {
		p.Close()
		return nil, fmt.Errorf("link test with rank %d: %w", cfg.Peer, err)
	}
	return p, nil
}

// controls is the depth of the queue pair that carries the orders.
const controls = 2 * signalAt

func (p *Pair) build() (err error) {
	c := p.cfg
	// Four times the depth in receives: those that are posted again late must not
	// make the sender wait (a NAK for want of a receive costs 0.64 ms).
	sends, recvs := max(c.Depth, 2*signalAt)+signalAt, 4*c.Depth
	if p.q, err = newQueues(p.dev, c.QPs+1, c.QPs*(sends+recvs)+2*controls); err != nil {
		return err
	}
	page := func(n int) int { return (n + 4095) &^ 4095 }
	slots := page(controls*(slotSize+noteSize) + c.QPs*sends*slotSize)
	half := c.QPs * page(c.MaxSize)
	size := slots
	if c.Memory == nil {
		size += 2 * half
	}
	if p.memory, err = mapMemory(size); err != nil {
		return err
	}
	if p.small, err = p.dev.Register(p.memory[:slots]); err != nil {
		return err
	}
	if p.data = c.Memory; p.data == nil {
		if p.data, err = p.dev.Register(p.memory[slots:]); err != nil {
			return err
		}
		p.source, p.target = p.memory[slots:slots+half], p.memory[slots+half:]
	} else if p.data.Size < uint64(2*half) {
		return fmt.Errorf("the region of %d bytes is too small: %d queue pairs with messages of %d bytes need %d", p.data.Size, c.QPs, c.MaxSize, 2*half)
	}
	p.hello = p.dev.hello(c.Rank, c.Peer)
	p.hello.Chunk, p.hello.Window = 1, 1 // of no meaning here
	p.hello.Addr, p.hello.Size, p.hello.RKey = p.data.Addr+uint64(half), uint64(half), p.data.RKey
	rest := p.memory[:slots:slots]
	take := func(n int) (b []byte) { b, rest = rest[:n:n], rest[n:]; return b }
	for lane := range c.QPs + 1 {
		if lane == c.QPs {
			sends, recvs = controls, controls
		}
		x, err := p.q.add(sends, recvs)
		if err != nil {
			return err
		}
		x.slab, x.slabKey = take(sends*slotSize), p.small.LKey
		p.hello.QPs = append(p.hello.QPs, x.start)
		if lane == c.QPs {
			x.notes, x.notesKey, x.stride, x.slots = address(take(recvs*noteSize)), p.small.LKey, noteSize, x.recvs
			if err := p.q.receive(lane, x.recvs); err != nil {
				return err
			}
		}
	}
	return nil
}

// Hello is what the other end must be told.
func (p *Pair) Hello() []byte { return p.hello.Encode() }

// Connect takes in what the other end's Hello said. When both ends have
// connected, tests may run.
func (p *Pair) Connect(hello []byte) error {
	h, err := ParseHello(hello)
	if err != nil {
		return p.blame(err)
	}
	mtu, err := agree(p.hello, h)
	if err != nil {
		return p.blame(err)
	}
	if h.Size != p.hello.Size {
		return p.blame(fmt.Errorf("%d bytes of buffer here, %d there", p.hello.Size, h.Size))
	}
	p.peer = h
	for lane := range h.QPs {
		if err := p.q.connect(lane, p.hello, h, lane, mtu); err != nil {
			return p.blame(err)
		}
	}
	return nil
}

// Attributes are what the device says of each queue pair that carries data.
func (p *Pair) Attributes() (out []Attributes, err error) {
	for lane := range p.cfg.QPs {
		a, err := p.q.attributes(lane)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (p *Pair) blame(err error) error {
	return &collectives.LinkError{Rank: p.cfg.Rank, Peer: p.cfg.Peer, Link: "verbs", Addr: gidString(p.peer.GID), Err: err}
}

// tell sends an order.
func (p *Pair) tell(o order) error {
	lane := p.cfg.QPs
	for p.q.room(lane) == 0 {
		if err := p.wait(); err != nil {
			return err
		}
	}
	slot, d := p.q.copied(lane, orderSize)
	o.encode(slot)
	d.op = C.RV_WR_SEND
	if err := p.q.put(lane, d, 0, true); err != nil {
		return p.blame(err)
	}
	return p.flush()
}

func (p *Pair) flush() error {
	if err := p.q.flush(); err != nil {
		return p.blame(err)
	}
	return nil
}

// told waits for the next order, which must be of one of two kinds.
func (p *Pair) told(a, b orderKind) (order, error) {
	for len(p.inbox) == 0 {
		if err := p.wait(); err != nil {
			return order{}, err
		}
	}
	o := p.inbox[0]
	p.inbox = p.inbox[1:]
	if o.kind != a && o.kind != b {
		return o, p.blame(fmt.Errorf("the peer sent order %d where %d or %d should come", o.kind, a, b))
	}
	return o, nil
}

// wait takes in completions, and watches the clock and the abort when there are none.
func (p *Pair) wait() error {
	ws, err := p.q.poll(looks)
	if seen, err := p.took(ws, err); seen || err != nil {
		return err
	}
	idle, err := p.calmFor()
	if err != nil || rest(idle) {
		return err
	}
	return p.q.sleep(watchFor, func() (bool, error) { ws, err := p.q.poll(1); return p.took(ws, err) })
}

// calmFor is how long nothing has come, or why there is no more to wait for.
func (p *Pair) calmFor() (time.Duration, error) {
	if first := p.cfg.Abort.Err(); first != nil {
		return 0, p.blame(fmt.Errorf("%w: %v", collectives.ErrAborted, first))
	}
	now := time.Now()
	if p.calm.IsZero() {
		p.calm = now
	}
	idle := now.Sub(p.calm)
	if idle < yieldFor {
		return idle, nil
	}
	if e := p.dev.Trouble(); e != nil {
		return 0, p.blame(e)
	}
	if idle > p.patience {
		return 0, p.blame(fmt.Errorf("%w: nothing came for %.1f s on %s", ErrDead, idle.Seconds(), p.dev))
	}
	if idle > probeWhen && p.patience != forEver {
		return idle, p.ask(now)
	}
	return idle, nil
}

// ask sees to it that a peer that is gone is found in seconds, however long the
// test may take: its device acknowledges an empty write by itself, on the queue
// pair of the orders, where it waits for no message of the test.
func (p *Pair) ask(now time.Time) error {
	lane := p.cfg.QPs
	x := &p.q.qps[lane]
	switch {
	case p.probed.IsZero() || x.done >= p.probe && now.Sub(p.probed) > probeWhen:
		p.probed = now
		if p.q.room(lane) > 0 {
			if err := p.q.put(lane, C.struct_rv_desc{op: C.RV_WR_WRITE, raddr: C.uint64_t(p.peer.Addr), rkey: C.uint32_t(p.peer.RKey)}, 0, true); err != nil {
				return p.blame(err)
			}
		}
		p.probe = x.posted
		return p.flush()
	case x.done < p.probe && now.Sub(p.probed) > p.cfg.Dead:
		return p.blame(fmt.Errorf("%w: nothing was acknowledged for %.1f s on %s", ErrDead, now.Sub(p.probed).Seconds(), p.dev))
	}
	return nil
}

// slowest is the time of a byte on the slowest link that counts as alive, an
// emulated one on a busy machine: 250 kB/s.
const slowest = 4 * time.Microsecond

const forEver = time.Duration(math.MaxInt64)

// patient sets how long nothing may come, when so many messages of a test may
// have to pass before something does.
func (p *Pair) patient(messages int, t Test) {
	p.patience = p.cfg.Dead + time.Duration(min(int64(messages)*int64(t.Size), 1<<40))*slowest
}

// took takes in completions, if there are any.
func (p *Pair) took(ws []C.struct_rv_wc, err error) (bool, error) {
	if err != nil {
		return false, p.blame(err)
	}
	for i := range ws {
		if err := p.completed(&ws[i]); err != nil {
			return false, err
		}
	}
	return len(ws) > 0, nil
}

// completed takes in one completion.
func (p *Pair) completed(w *C.struct_rv_wc) error {
	id := uint64(w.wr_id)
	lane := int(id >> 48 & 0x7fff)
	x := &p.q.qps[lane]
	if lane < p.cfg.QPs || id&idRecv != 0 { // not what only says that the peer's device is there
		p.calm, p.probed = time.Time{}, time.Time{}
	}
	switch {
	case w.status != 0:
		return p.blame(p.dev.explain(p.q.failure(w, p.peer.GID)))
	case id&idRecv == 0:
		x.done = widen(id>>idShift, x.done)
	case lane < p.cfg.QPs:
		x.received++
	default:
		at := int(x.notes-address(p.memory)) + int(x.received%x.recvs)*noteSize
		o, err := parseOrder(p.memory[at:at+min(noteSize, int(w.byte_len))], p.cfg.MaxSize)
		if err != nil {
			return p.blame(err)
		}
		p.inbox = append(p.inbox, o)
		x.received++
		if err := p.q.receive(lane, 1); err != nil {
			return p.blame(err)
		}
	}
	return nil
}

// Close gives everything back.
func (p *Pair) Close() error {
	var errs []error
	if p.q != nil {
		errs = append(errs, p.q.close())
	}
	if p.data != nil && p.data != p.cfg.Memory {
		errs = append(errs, p.data.Close())
	}
	if p.small != nil {
		errs = append(errs, p.small.Close())
	}
	if p.memory != nil && errors.Join(errs...) == nil {
		errs = append(errs, unmapMemory(p.memory))
	}
	return errors.Join(errs...)
}
