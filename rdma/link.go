//go:build linux && cgo

package rdma

// #include "verbs.h"
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"busbw/collectives"
)

// Link carries spans between a rank and its peers over RC queue pairs. It
// implements collectives.Link. Set-up: NewLink on both sides; Hello travels to
// the peer over the control plane; Connect with what came from there; when
// every rank has connected, data may flow. Buffers that are registered with
// Register are sent from and received into without a copy.
type Link struct {
	cfg     LinkConfig
	q       *queues
	split   bool
	far     uint64 // longer writes carry no immediate, one of their own follows
	peers   []*peer
	byRank  []*peer // indexed by rank
	regions []*Region
	last    *Region // that matched last
	memory  []byte  // rings, slabs, notes and the outbox
	whole   *Region // memory but for the rings
	held    []*peer // that have more to post than there was room for
	out     outbox
	calm    time.Time // when a wait last saw something happen
	gpu     bool      // some regions are a GPU's memory
	broken  error
}

// peer is the connection to one rank.
type peer struct {
	rank   int
	base   int // of its queue pairs
	hello  Hello
	addr   string
	gid    [16]byte
	linked bool

	tx    sender
	rx    receiver
	inbox []byte
	local *Region // inbox
	ring  uint64  // the peer's inbox
	key   uint32

	spans      []outSpan // those before first are done, those before tip posted
	first, tip int
	done       uint64    // spans that may be rewritten, since the start
	acked      []uint64  // of each queue pair: chunks below this are done
	ctrl       bool      // a control message is owed
	want       span      // to announce with it
	held       bool      // in Link.held
	probe      []uint64  // sends that must complete for the probe to be answered
	probed     time.Time // zero: no probe is under way
}

// outSpan is a span to send.
type outSpan struct {
	p      []byte
	sent   int
	end    uint64 // chunks of the connection when it was posted in full
	copied bool   // all of it was copied when it was posted
}

// outbox holds copies of long payloads that come from memory that is not
// registered, a chunk a slot; a slot is free when its chunk is done.
type outbox struct {
	mem  []byte
	key  uint32
	slot int // bytes
	used []struct {
		p   *peer
		seq uint64 // chunks of p that must be done
	}
	next int
}

const outboxSlots = 8

// NewLink opens the connections of a rank, up to what needs the peers.
func NewLink(d *Device, cfg LinkConfig) (*Link, error) {
	if err := cfg.shaped(); err != nil {
		return nil, err
	}
	l := &Link{cfg: cfg, split: d.Settings.Split, far: ^uint64(0)}
	if d.adaptive() {
		l.far = uint64(d.Settings.ARThreshold)
	}
	if err := l.build(d); err != nil {
		l.free()
		return nil, fmt.Errorf("rank %d: %w", cfg.Rank, err)
	}
	return l, nil
}

func (l *Link) build(d *Device) (err error) {
	qps := d.Settings.QPs
	sh := l.cfg.shape(qps)
	entries, slabs := 0, 0
	for lane := range qps {
		s, r := queueSizes(sh.window, uint64(l.cfg.Window), qps, lane)
		entries += s + r
		slabs += s*slotSize + r*noteSize
	}
	n := len(l.cfg.Peers)
	if l.q, err = newQueues(d, max(1, n*qps), max(1, n*entries)); err != nil {
		return err
	}
	l.out.slot = int(sh.chunk)
	page := func(n int) int { return (n + 4095) &^ 4095 }
	head := page(n*slabs + outboxSlots*l.out.slot)
	if l.memory, err = mapMemory(head + n*page(l.cfg.Ring)); err != nil {
		return err
	}
	if l.whole, err = d.Register(l.memory[:head]); err != nil {
		return err
	}
	rest, rings := l.memory[:head:head], l.memory[head:]
	take := func(n int) (b []byte) { b, rest = rest[:n:n], rest[n:]; return b }
	l.out.mem, l.out.key = take(outboxSlots*l.out.slot), l.whole.LKey
	l.out.used = make([]struct {
		p   *peer
		seq uint64
	}, outboxSlots)
	for _, rank := range l.cfg.Peers {
		p := &peer{rank: rank, base: len(l.q.qps), acked: make([]uint64, qps), probe: make([]uint64, qps), rx: newReceiver(sh)}
		p.inbox, rings = rings[:l.cfg.Ring:l.cfg.Ring], rings[page(l.cfg.Ring):]
		if p.local, err = d.Register(p.inbox); err != nil { // by itself: the peer gets a key to nothing else
			return err
		}
		l.peers = append(l.peers, p)
		p.hello = d.hello(l.cfg.Rank, rank)
		p.hello.Chunk, p.hello.Window = uint32(sh.chunk), uint32(sh.window)
		p.hello.Addr, p.hello.Size, p.hello.RKey = p.local.Addr, p.local.Size, p.local.RKey
		for lane := range qps {
			s, r := queueSizes(sh.window, uint64(l.cfg.Window), qps, lane)
			x, err := l.q.add(s, r)
			if err != nil {
				return err
			}
			x.peer, x.lane = p, lane
			x.slab, x.slabKey = take(s*slotSize), l.whole.LKey
			x.notes, x.notesKey, x.stride, x.slots = l.whole.Addr+uint64(head-len(rest)), l.whole.LKey, noteSize, x.recvs
			take(r * noteSize)
			if err := l.q.receive(p.base+lane, x.recvs); err != nil {
				return err
			}
			p.hello.QPs = append(p.hello.QPs, x.start)
		}
		if rank >= len(l.byRank) {
			l.byRank = append(l.byRank, make([]*peer, rank+1-len(l.byRank))...)
		}
		l.byRank[rank] = p
	}
	return nil
}

// Hello is what the peer must be told.
func (l *Link) Hello(rank int) ([]byte, error) {
	p, err := l.peer(rank)
	if err != nil {
		return nil, err
	}
	return p.hello.Encode(), nil
}

// Connect takes in what the peer's Hello said.
func (l *Link) Connect(rank int, hello []byte) error {
	p, err := l.peer(rank)
	if err != nil {
		return err
	}
	h, err := ParseHello(hello)
	if err != nil {
		return l.blame(p, err)
	}
	p.gid, p.addr = h.GID, gidString(h.GID)
	if h.LinkLayer == 1 {
		p.addr = fmt.Sprintf("LID %d", h.LID)
	}
	mtu, err := agree(p.hello, h)
	if err != nil {
		return l.blame(p, err)
	}
	if h.Size < leastRing || h.Size%ringAlign != 0 || uint64(h.Chunk) > h.Size || h.Chunk%ringAlign != 0 || int(h.Window) > l.cfg.Window {
		return l.blame(p, fmt.Errorf("the peer offers a ring of %d bytes with messages of %d and a window of %d; ours is of %d messages", h.Size, h.Chunk, h.Window, l.cfg.Window))
	}
	p.tx = sender{shape: shape{ring: h.Size, chunk: min(uint64(h.Chunk), uint64(l.out.slot)), window: uint64(h.Window), qps: uint64(len(h.QPs))}}
	p.ring, p.key = h.Addr, h.RKey
	for lane := range h.QPs {
		if err := l.q.connect(p.base+lane, p.hello, h, lane, mtu); err != nil {
			return l.blame(p, err)
		}
	}
	p.linked = true
	return nil
}

// Register makes host memory known to the device, so that spans in it travel
// without a copy. The peers may then write to all of it: register buffers for
// collectives and nothing else. Close the link before the memory goes.
func (l *Link) Register(mem []byte) error {
	r, err := l.q.dev.Register(mem)
	if err == nil {
		l.Use(r)
	}
	return err
}

// Use is Register for a region of the link's device that exists already (GPU
// memory); the link closes it.
func (l *Link) Use(r *Region) {
	l.regions = append(l.regions, r)
	l.gpu = l.gpu || r.gpu()
}

// onGPU is the region of a GPU's memory that a span lies in, or nil.
func (l *Link) onGPU(b []byte) *Region {
	if !l.gpu {
		return nil
	}
	if r := l.region(address(b), uint64(len(b))); r != nil && r.gpu() {
		return r
	}
	return nil
}

// Forget takes back what Register did; nothing of it may be under way.
func (l *Link) Forget(mem []byte) error {
	a := address(mem)
	i := slices.IndexFunc(l.regions, func(r *Region) bool { return r.Addr == a && r.Size == uint64(len(mem)) })
	if i < 0 {
		return fmt.Errorf("rank %d: %d bytes at %#x were not registered", l.cfg.Rank, len(mem), a)
	}
	r := l.regions[i]
	l.regions, l.last = slices.Delete(l.regions, i, i+1), nil
	return r.Close()
}

// region is the registered region that a span lies in, or nil.
func (l *Link) region(addr, n uint64) *Region {
	if l.last != nil && l.last.contains(addr, n) {
		return l.last
	}
	for _, r := range l.regions {
		if r.contains(addr, n) {
			l.last = r
			return r
		}
	}
	return nil
}

// Attributes are what the device says of each queue pair to a peer.
func (l *Link) Attributes(rank int) ([]Attributes, error) {
	p, err := l.peer(rank)
	if err != nil {
		return nil, err
	}
	var out []Attributes
	for lane := range p.acked {
		a, err := l.q.attributes(p.base + lane)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (l *Link) peer(rank int) (*peer, error) {
	if rank < 0 || rank >= len(l.byRank) || l.byRank[rank] == nil {
		return nil, &collectives.LinkError{Rank: l.cfg.Rank, Peer: rank, Link: "verbs", Err: errors.New("not one of the peers that the link was opened for")}
	}
	return l.byRank[rank], nil
}

func (l *Link) blame(p *peer, err error) error {
	if p == nil {
		return &collectives.LinkError{Rank: l.cfg.Rank, Peer: -1, Link: "verbs", Err: err}
	}
	return &collectives.LinkError{Rank: l.cfg.Rank, Peer: p.rank, Link: "verbs", Addr: p.addr, Err: err}
}

// free gives back everything that build took, in the order that verbs want.
func (l *Link) free() error {
	var errs []error
	if l.q != nil {
		errs = append(errs, l.q.close())
	}
	for _, r := range l.regions {
		errs = append(errs, r.Close())
	}
	for _, p := range l.peers {
		errs = append(errs, p.local.Close())
	}
	if l.whole != nil {
		errs = append(errs, l.whole.Close())
	}
	if l.memory != nil && errors.Join(errs...) == nil { // a device that still knows the memory must not find it reused
		errs = append(errs, unmapMemory(l.memory))
	}
	return errors.Join(errs...)
}
