package worker

import (
	"errors"
	"fmt"

	"busbw/collectives"
	"busbw/collectives/reduce"
	"busbw/coordinator"
)

// poison is what results are filled with before a check, so that a result of
// an earlier run cannot pass.
const poison = 0xa5

// check runs the case on fresh inputs and compares every element of every
// result with what it must be.
func (r *runner) check(b coordinator.CheckBody) (any, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if b.Rounds < 1 || b.Rounds > 1000 {
		return nil, errors.New("rounds of check: want 1 to 1000")
	}
	var reply coordinator.CheckReply
	wrong := make([]int64, len(r.ranks))
	first := make([]string, len(r.ranks))
	for i := range b.Rounds {
		err := r.each(func(k *rank) error {
			bufs := k.slots.at(i % k.slots.count)
			for j := range bufs.Out {
				bufs.Out[j] = poison
			}
			k.fill(r.live, bufs.In)
			if err := k.exec.Barrier(); err != nil {
				return err
			}
			if err := k.exec.Run(k.program, bufs); err != nil {
				return err
			}
			n, at := k.compare(r.live, bufs.Out)
			if l := k.global - r.first; n > 0 {
				if wrong[l] == 0 {
					first[l] = fmt.Sprintf("rank %d element %d of %d", k.global, at, r.live.Count)
				}
				wrong[l] += n
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for i, n := range wrong {
		if reply.Wrong += n; reply.First == "" {
			reply.First = first[i]
		}
	}
	return reply, nil
}

// block is the elements of one rank's share of a blocked operation.
func (c *liveCase) block() int64 { return c.Count / int64(len(c.groups[0])) }

// fill writes a rank's input.
func (k *rank) fill(c *liveCase, in []byte) {
	if c.Op.Reduces() {
		reduce.Fill(in, c.Dtype, c.Redop, len(c.groups[0]), k.me, 0)
		return
	}
	reduce.FillSource(in, c.Dtype, k.me, 0)
}

// compare counts the wrong elements of a rank's result and finds the first.
func (k *rank) compare(c *liveCase, out []byte) (wrong, first int64) {
	n := len(c.groups[0])
	if c.Op == collectives.AllToAll || ((c.Op == collectives.AllGather || c.Op == collectives.Gather) && len(out) > 0) {
		return k.compareBlocks(c, out)
	}
	switch c.Op {
	case collectives.AllReduce, collectives.Reduce:
		return reduce.Check(out, c.Dtype, c.Redop, n, 0)
	case collectives.ReduceScatter:
		return reduce.Check(out, c.Dtype, c.Redop, n, int64(k.me)*c.block())
	case collectives.Broadcast:
		return reduce.CheckSource(out, c.Dtype, c.Root, 0)
	case collectives.Scatter:
		return reduce.CheckSource(out, c.Dtype, c.Root, int64(k.me)*c.block())
	default: // sendrecv: from the rank before
		return reduce.CheckSource(out, c.Dtype, (k.me+n-1)%n, 0)
	}
}

// compareBlocks is for results that are a block from each rank: block i is
// rank i's input, or, in alltoall, its block for this rank.
func (k *rank) compareBlocks(c *liveCase, out []byte) (wrong, first int64) {
	bytes := c.block() * int64(c.Dtype.Size())
	at := int64(0)
	if c.Op == collectives.AllToAll {
		at = int64(k.me) * c.block()
	}
	for i := range c.groups[0] {
		n, f := reduce.CheckSource(out[int64(i)*bytes:int64(i+1)*bytes], c.Dtype, i, at)
		if n > 0 && wrong == 0 {
			first = int64(i)*c.block() + f - at
		}
		wrong += n
	}
	return wrong, first
}
