package collectives

import "math/bits"

// circulant is all-gather with doubling distances (Bruck et al., 1997) and
// reduce-scatter as the same thing backwards; all-reduce is the one after the
// other. In all-gather round k a rank holds the blocks r to r+2^k-1 and sends
// them 2^k ranks down while as many come from 2^k ranks up, so after ⌈log2 n⌉
// rounds it has all n. Every block reaches every rank by one way, so backwards
// every contribution reaches its owner once. For a power of two this moves the
// bytes of recursive halving and doubling, and it needs no folding for any other
// number of ranks: always n-1 blocks a rank, the least possible.
type circulant struct {
	shape           Shape
	scatter, gather bool
}

func circulantOf(op Op) func(Params, Shape) (Schedule, error) {
	return func(p Params, s Shape) (Schedule, error) {
		s.Blocks, s.Period = p.Ranks, 1
		return circulant{s, op != AllGather, op != ReduceScatter}, nil
	}
}

func (c circulant) Shape() Shape { return c.shape }

// half is the steps of one of the two operations.
func (c circulant) half() int { return 2 * (c.shape.Ranks - 1) * c.shape.Pieces }

func (c circulant) Len(int) int {
	if c.scatter && c.gather {
		return 2 * c.half()
	}
	return c.half()
}

// Step: in each round first all sends, then all receives. Before all-gather
// round k a rank has received 2^k-1 blocks, so the round of a step is a logarithm.
func (c circulant) Step(rank, i int) Step {
	n, pieces := c.shape.Ranks, c.shape.Pieces
	scatter := c.scatter && i < c.half()
	if c.scatter && !scatter {
		i -= c.half()
	}
	round := i
	if scatter {
		round = c.half() - 1 - i // backwards
	}
	k := bits.Len(uint(round/(2*pieces)+1)) - 1
	far := 1 << k
	blocks := min(far, n-far)
	start := 2 * pieces * (far - 1) // of the round, in all-gather's order
	if scatter {
		start = c.half() - start - 2*pieces*blocks
	}
	i -= start
	receives := i >= pieces*blocks
	if receives {
		i -= pieces * blocks
	}
	block, piece := i/pieces, i%pieces
	// The rank that is far below, in both operations, deals with this rank's
	// blocks; this rank deals with those of the rank far above.
	down, up := Step{Peer: int32(mod(rank-far, n))}, Step{Peer: int32(mod(rank+far, n))}
	down.Chunk = int32(mod(rank+block, n)*pieces + piece)
	up.Chunk = int32(mod(rank+far+block, n)*pieces + piece)
	switch {
	case scatter && receives:
		down.Kind = Combine
		return down
	case scatter:
		up.Kind = Send
		return up
	case receives:
		up.Kind = Recv
		return up
	}
	down.Kind = Send
	return down
}
