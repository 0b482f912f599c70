package worker

import (
	"errors"
	"fmt"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/rdma"
	"busbw/worker/gpu"
)

// slots are a rank's buffers: several of each kind, used in turn, so that the
// data of one iteration is not still in the caches from the one before.
type slots struct {
	in, out, work region
	strideIn      int64 // bytes from one slot to the next
	strideOut     int64
	strideWork    int64
	needIn        int64
	needOut       int64
	needWork      int64
	count         int
	inAt, outAt   int64 // in place: where in and out lie in their common buffer
	inPlace       bool
}

// Rotation: all local ranks together move through about this many bytes of
// each kind of buffer, or two slots, whichever is more. It is beyond what
// caches that are not shared with other machines hold.
const (
	rotateBytes = 128 << 20
	maxSlots    = 4096
	slotAlign   = 4096 // small slots begin on a page of their own where there is room
)

// plan finds the sizes for a rank's program.
func (s *slots) plan(k *rank, c *liveCase, rotate bool, ranks int) {
	if _, _, s.needWork = k.program.Needs(); c.nccl {
		s.needWork = 0
	}
	s.needIn, s.needOut = c.sizes(k.me)
	s.inPlace, s.inAt, s.outAt = c.InPlace, 0, 0
	if s.inPlace {
		block := c.Count / int64(len(c.groups[0])) * int64(c.Dtype.Size())
		switch c.Op {
		case collectives.AllGather:
			s.inAt = int64(k.me) * block
		case collectives.ReduceScatter:
			s.outAt = int64(k.me) * block
		}
	}
	s.strideIn, s.strideOut, s.strideWork = stride(s.needIn), stride(s.needOut), stride(s.needWork)
	if s.inPlace {
		s.strideOut, s.strideIn = stride(max(s.inAt+s.needIn, s.outAt+s.needOut)), 0
	}
	s.count = 1
	if largest := max(s.strideIn, s.strideOut, s.strideWork); rotate && largest > 0 {
		s.count = min(maxSlots, max(2, int(rotateBytes/int64(ranks)/largest)))
		if c.sets > 0 {
			s.count = min(s.count, c.sets)
		}
	}
}

// sizes is the bytes of a rank's input and result (collectives/place.go). A
// program may touch less: in place, a rank's own block is there already.
func (c *liveCase) sizes(me int) (in, out int64) {
	all := c.Count * int64(c.Dtype.Size())
	block := c.block() * int64(c.Dtype.Size())
	at := func(root bool, n int64) int64 {
		if root {
			return n
		}
		return 0
	}
	root := me == c.Root
	switch c.Op {
	case collectives.Broadcast:
		return at(root, all), all
	case collectives.Reduce:
		return all, at(root, all)
	case collectives.AllGather:
		return block, all
	case collectives.ReduceScatter:
		return all, block
	case collectives.Gather:
		return block, at(root, all)
	case collectives.Scatter:
		return at(root, all), block
	default: // all_reduce, alltoall, sendrecv
		return all, all
	}
}

func stride(n int64) int64 { return (n + slotAlign - 1) / slotAlign * slotAlign }

// bytes is what the slots take.
func (s *slots) bytes() int64 {
	return (s.strideIn + s.strideOut + s.strideWork) * int64(s.count)
}

// at is the buffers of one slot.
func (s *slots) at(i int) collectives.Buffers {
	n := int64(i)
	b := collectives.Buffers{Work: s.work.Span(n*s.strideWork, s.needWork)}
	if s.inPlace {
		b.In = s.out.Span(n*s.strideOut+s.inAt, s.needIn)
		b.Out = s.out.Span(n*s.strideOut+s.outAt, s.needOut)
		return b
	}
	b.In, b.Out = s.in.Span(n*s.strideIn, s.needIn), s.out.Span(n*s.strideOut, s.needOut)
	return b
}

// region is memory that cases use one after another: it only grows.
type region struct {
	host  *collectives.HostBuffer
	dev   *gpu.Memory // instead of host
	seat  *gpu.Seat   // whose dev is
	size  int64
	huge  bool
	known *rdma.Link // that it is registered with
}

// Span is n bytes from off.
func (g *region) Span(off, n int64) []byte {
	if g.dev != nil {
		return g.dev.Span(off, n)
	}
	return g.host.Span(off, n)
}

// free gives the memory back.
func (g *region) free() (err error) {
	if g.dev != nil {
		err = g.seat.Free(g.dev)
	}
	g.host.Free()
	*g = region{}
	return err
}

// register makes the region known to a link, which forgets it before it goes.
func (g *region) register(l *rdma.Link) error {
	if l == nil || g.known == l || g.size == 0 {
		return nil
	}
	if err := l.Register(g.Span(0, g.size)); err != nil {
		return err
	}
	g.known = l
	return nil
}

func (g *region) forget() (err error) {
	if g.known != nil {
		err = g.known.Forget(g.Span(0, g.size))
		g.known = nil
	}
	return err
}

// fit makes the region at least that large, on the seat's GPU if there is one.
func (g *region) fit(size int64, huge bool, seat *gpu.Seat) (err error) {
	if size <= g.size && huge == g.huge && seat == g.seat {
		return nil
	}
	if err := errors.Join(g.forget(), g.free()); err != nil {
		return err
	}
	if seat == nil {
		g.host, err = collectives.AllocHost(size, huge)
	} else {
		g.dev, err = seat.Alloc(size)
	}
	if err == nil {
		g.huge, g.size, g.seat = huge, size, seat
	}
	return err
}

func (s *slots) regions() []*region { return []*region{&s.in, &s.out, &s.work} }

func (s *slots) free() {
	for _, g := range s.regions() {
		g.free() // the process ends
	}
}

// allocate gives every rank its buffers, touched by its own thread so that
// they lie near it. Sizes that do not fit are refused, with the reason, before
// anything is allocated; a rotation that does not fit is shortened.
func (r *runner) allocate(c *liveCase, b coordinator.CaseBody) (refused string, err error) {
	if r.gpus.islands != nil {
		return r.allocateGPU(c, b)
	}
	have, err := collectives.MemoryAvailable()
	if err != nil {
		return "", err
	}
	sharers := 0 // nodes of the plan that may be on this machine
	for _, n := range r.plan.Nodes {
		if n.Addr == r.plan.Nodes[r.plan.Node].Addr {
			sharers++
		}
	}
	have = have / 10 * 9 / int64(max(1, sharers))
	for _, k := range r.players() {
		have += k.slots.held() // is given back before more is taken
	}
	need := r.planSlots(c, b.Rotate)
	if need > have && b.Rotate {
		need = r.planSlots(c, false)
	}
	if need > have {
		r.live = nil
		return fmt.Sprintf("%d ranks need %.1f GiB for %s of %d bytes and %.1f GiB are available to them", len(r.ranks), gib(need), c.Op, c.Count*int64(c.Dtype.Size()), gib(have)), nil
	}
	if err := r.each(func(k *rank) error { return k.slots.allocate(b.Huge, nil) }); err != nil {
		return "", err
	}
	return r.register(need)
}

func (r *runner) planSlots(c *liveCase, rotate bool) (need int64) {
	players := r.players()
	for _, k := range players {
		k.next = 0
		k.slots.plan(k, c, rotate, len(players))
		need += k.slots.bytes()
	}
	return need
}

// held is what the regions take now.
func (s *slots) held() int64 { return s.in.size + s.out.size + s.work.size }

func (s *slots) allocate(huge bool, seat *gpu.Seat) error {
	n := int64(s.count)
	return errors.Join(s.in.fit(n*s.strideIn, huge, seat), s.out.fit(n*s.strideOut, huge, seat), s.work.fit(n*s.strideWork, huge, seat))
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }
