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
			if err := k.fill(r.live, bufs); err != nil {
				return err
			}
			if err := k.exec.Barrier(); err != nil {
				return err
			}
			if err := k.collective(r.live, r.abort, bufs); err != nil {
				return err
			}
			n, at, err := k.compare(r.live, bufs.Out)
			if err != nil {
				return err
			}
			if l := k.global - r.first; n > 0 {
				if wrong[l] == 0 {
					first[l] = fmt.Sprintf("rank %d element %d of %d", k.global, at, r.live.Count)
				}
				wrong[l] += n
			}
			return nil
		})
		if err := r.hushNCCL(err); err != nil {
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

// fill writes a rank's input, and poison over its result.
func (k *rank) fill(c *liveCase, b collectives.Buffers) error {
	n := len(c.groups[0])
	if k.seat != nil {
		period := reduce.Source(c.Dtype, k.me, 0, len(b.In))
		if c.Op.Reduces() {
			period = reduce.Input(c.Dtype, c.Redop, n, k.me, 0, len(b.In))
		}
		return errors.Join(k.seat.Set(b.Out, poison), k.seat.Fill(b.In, period))
	}
	for j := range b.Out {
		b.Out[j] = poison
	}
	if c.Op.Reduces() {
		reduce.Fill(b.In, c.Dtype, c.Redop, n, k.me, 0)
		return nil
	}
	reduce.FillSource(b.In, c.Dtype, k.me, 0)
	return nil
}

// compare counts the wrong elements of a rank's result and finds the first.
func (k *rank) compare(c *liveCase, out []byte) (wrong, first int64, err error) {
	n := len(c.groups[0])
	if c.Op == collectives.AllToAll || ((c.Op == collectives.AllGather || c.Op == collectives.Gather) && len(out) > 0) {
		return k.compareBlocks(c, out)
	}
	switch c.Op {
	case collectives.AllReduce, collectives.Reduce:
		return k.compareResult(c, out, 0)
	case collectives.ReduceScatter:
		return k.compareResult(c, out, int64(k.me)*c.block())
	case collectives.Broadcast:
		return k.compareSource(c, out, c.Root, 0)
	case collectives.Scatter:
		return k.compareSource(c, out, c.Root, int64(k.me)*c.block())
	default: // sendrecv: from the rank before
		return k.compareSource(c, out, (k.me+n-1)%n, 0)
	}
}

// compareBlocks is for results that are a block from each rank: block i is
// rank i's input, or, in alltoall, its block for this rank.
func (k *rank) compareBlocks(c *liveCase, out []byte) (wrong, first int64, err error) {
	bytes := c.block() * int64(c.Dtype.Size())
	at := int64(0)
	if c.Op == collectives.AllToAll {
		at = int64(k.me) * c.block()
	}
	for i := range c.groups[0] {
		n, f, err := k.compareSource(c, out[int64(i)*bytes:int64(i+1)*bytes], i, at)
		if err != nil {
			return wrong, first, err
		}
		if n > 0 && wrong == 0 {
			first = int64(i)*c.block() + f - at
		}
		wrong += n
	}
	return wrong, first, nil
}

// compareResult compares with what a reduction must give from an element on,
// compareSource with a rank's input; both where the buffers are.
func (k *rank) compareResult(c *liveCase, out []byte, from int64) (wrong, first int64, err error) {
	if k.seat == nil {
		wrong, first = reduce.Check(out, c.Dtype, c.Redop, len(c.groups[0]), from)
		return wrong, first, nil
	}
	wrong, first, err = k.seat.Check(out, reduce.Result(c.Dtype, c.Redop, len(c.groups[0]), from, len(out)), c.Dtype.Size())
	return wrong, from + first, err
}

func (k *rank) compareSource(c *liveCase, out []byte, source int, from int64) (wrong, first int64, err error) {
	if k.seat == nil {
		wrong, first = reduce.CheckSource(out, c.Dtype, source, from)
		return wrong, first, nil
	}
	wrong, first, err = k.seat.Check(out, reduce.Source(c.Dtype, source, from, len(out)), c.Dtype.Size())
	return wrong, from + first, err
}
