package worker

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/rdma"
)

// queues are a rank's RDMA device and its link over queue pairs.
type queues struct {
	device *rdma.Device // nil: none
	link   *rdma.Link   // nil until a case needs one
	old    *rdma.Link   // what link replaces, until all nodes have replaced theirs
	peers  []int        // of link
	pair   *rdma.Pair   // of a link test
	direct direct       // how the device reaches the rank's GPU memory
}

// mesh is which ranks the cases so far have connected. All nodes see the same
// cases, so they come to the same answer without asking each other.
type mesh struct {
	shapes map[string]bool // that were looked at
	peers  map[int][]int   // of each rank, over all cases, rising
	fresh  bool            // links were opened and wait for join
	ports  []port          // that the ranks of this node use, each once
}

// add takes in a case; grown says whether it needs connections that are not there.
func (m *mesh) add(r *runner, c *liveCase) (grown bool) {
	if m.shapes[c.shape] {
		return false
	}
	m.shapes[c.shape] = true
	for _, g := range c.groups {
		t := r.teamOf(g)
		if !t.Apart() {
			continue
		}
		for t.Me = range g {
			have := m.peers[g[t.Me]]
			for _, p := range t.Peers(c.Schedule) {
				if r.stagedHere(g[t.Me], p) {
					continue
				}
				if i, ok := slices.BinarySearch(have, p); !ok {
					have, grown = slices.Insert(have, i, p), true
				}
			}
			m.peers[g[t.Me]] = have
		}
	}
	return grown
}

// reopen replaces the links of this node's ranks where the case needs more
// connections than any case before: what carries data is never changed, so
// that both ends of every connection begin anew together.
func (r *runner) reopen(c *liveCase, b coordinator.CaseBody) error {
	if r.mesh == nil {
		return errors.New("a case over verbs, and this node has no RDMA device")
	}
	if !r.mesh.add(r, c) {
		return nil
	}
	ring := r.setting("NCCL_BUFFSIZE")
	r.mesh.fresh = true
	return r.on(r.ranks, func(k *rank) error {
		q := &k.queues
		if err := q.retire(&k.slots); err != nil {
			return err
		}
		q.peers = r.mesh.peers[k.global]
		if len(q.peers) == 0 {
			return nil
		}
		var err error
		q.link, err = rdma.NewLink(q.device, rdma.LinkConfig{Rank: k.global, Peers: q.peers, Ring: ringOf(ring, len(q.peers)), Abort: r.abort, Put: k.put()})
		if err != nil {
			return err
		}
		if k.staged == nil {
			k.wire = collectives.NewWire(q.link, r.total())
			return nil
		}
		k.wire = collectives.NewWire(k.staged, r.total())
		return k.staged.Over(q.link, k.directTo(q.link))
	})
}

// ringOf is NCCL_BUFFSIZE, or 0 where it is the default or too much for so
// many peers: then the link chooses.
func ringOf(buffsize, peers int) int {
	if buffsize == 4<<20 || buffsize*peers > 256<<20 {
		return 0
	}
	return buffsize
}

// retire takes a rank's buffers from its link and keeps that until the peers
// no longer send to it.
func (q *queues) retire(s *slots) error {
	if q.link == nil {
		return nil
	}
	err := q.link.Drain()
	for _, g := range s.regions() {
		err = errors.Join(err, g.forget())
	}
	if q.old != nil {
		err = errors.Join(err, q.old.Close())
	}
	q.old, q.link = q.link, nil
	return err
}

// hellos are what new queue pairs tell their peers.
func (r *runner) hellos() (out []coordinator.Hello, err error) {
	if r.mesh == nil || !r.mesh.fresh {
		return nil, nil
	}
	for _, k := range r.ranks {
		for _, p := range k.queues.peers {
			h := coordinator.Hello{From: k.global, To: p}
			if h.Data, err = k.queues.link.Hello(p); err != nil {
				return nil, err
			}
			out = append(out, h)
		}
	}
	return out, nil
}

// join connects the new queue pairs with those of their peers.
func (r *runner) join(b coordinator.JoinBody) (any, error) {
	if r.mesh == nil || !r.mesh.fresh {
		return nil, errors.New("join without queue pairs that wait for it")
	}
	r.mesh.fresh = false
	replies := make([]coordinator.JoinReply, len(r.ranks))
	if err := r.on(r.ranks, func(k *rank) (err error) {
		replies[k.global-r.first], err = k.queues.join(b.Hellos, k.global)
		return err
	}); err != nil {
		return nil, err
	}
	all := coordinator.JoinReply{}
	for _, one := range replies {
		all.QPs = max(all.QPs, one.QPs)
		if one.MTU > 0 && (all.MTU == 0 || one.MTU < all.MTU) {
			all.MTU = one.MTU
		}
		for _, a := range one.Attributes {
			if !slices.Contains(all.Attributes, a) {
				all.Attributes = append(all.Attributes, a)
			}
		}
	}
	return all, nil
}

func (q *queues) join(hellos []coordinator.Hello, me int) (reply coordinator.JoinReply, err error) {
	if q.old != nil {
		if err := q.old.Close(); err != nil {
			return reply, err
		}
		q.old = nil
	}
	left := slices.Clone(q.peers)
	for _, h := range hellos {
		if h.To != me {
			continue
		}
		i := slices.Index(left, h.From)
		if i < 0 {
			return reply, fmt.Errorf("rank %d is told of queue pairs of rank %d, which is no peer, or is told twice", me, h.From)
		}
		left = slices.Delete(left, i, i+1)
		if err := q.link.Connect(h.From, h.Data); err != nil {
			return reply, err
		}
	}
	if len(left) > 0 {
		return reply, fmt.Errorf("rank %d is told nothing of the queue pairs of ranks %v", me, left)
	}
	for _, p := range q.peers {
		as, err := q.link.Attributes(p)
		if err != nil {
			return reply, err
		}
		reply = described(reply, as)
	}
	return reply, nil
}

// described adds what a device says of the queue pairs of a connection.
func described(reply coordinator.JoinReply, as []rdma.Attributes) coordinator.JoinReply {
	reply.QPs = len(as)
	for _, a := range as {
		if reply.MTU == 0 || a.MTU < reply.MTU {
			reply.MTU = a.MTU
		}
		if text := a.String(); !slices.Contains(reply.Attributes, text) {
			reply.Attributes = append(reply.Attributes, text)
		}
	}
	return reply
}

// register makes the ranks' buffers known to their links. Memory that cannot
// be locked is no error: this size is refused, and the next may fit.
func (r *runner) register(need int64) (refused string, err error) {
	err = r.each(func(k *rank) error {
		if t := r.team(r.live, k); !t.Apart() {
			return nil
		}
		for _, g := range k.slots.regions() {
			if err := g.register(k.queues.link); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, syscall.ENOMEM) && r.abort.Err() == nil {
		r.live = nil
		return fmt.Sprintf("the buffers of this node's %d ranks are %.1f MiB of memory that stays locked: %v", len(r.ranks), float64(need)/(1<<20), err), nil
	}
	return "", err
}

func (q *queues) close() {
	for _, l := range []*rdma.Link{q.old, q.link} {
		if l != nil {
			_ = l.Close() // the process ends: there is nobody to tell
		}
	}
	if q.pair != nil {
		_ = q.pair.Close()
	}
	if q.device != nil {
		_ = q.device.Close()
	}
	*q = queues{}
}

// cpu is the processor that the calling thread is kept on; −1: several.
func cpu() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() != 1 {
		return -1
	}
	for i := 0; ; i++ {
		if set.IsSet(i) {
			return i
		}
	}
}
