package collectives

// ring passes every block round the ring, from rank to rank+1. In reduce-scatter
// a block starts one past its owner and gathers every contribution on the way to
// it; in all-gather it starts at its owner; all-reduce is the one after the
// other, and as each pass is n-1 hops the block that arrives at hop j is the same
// formula all the way.
//
// With several pieces the link never waits for a combine: a rank sends one while
// it combines another. With more than one channel odd pieces go round the other
// way.
type ring struct {
	shape    Shape
	combines int // hops that combine
	hops     int // hops in all
	skip     int // the first block that rank r sends is r-skip
}

func ringOf(op Op) func(Params, Shape) (Schedule, error) {
	return func(p Params, s Shape) (Schedule, error) {
		n := p.Ranks
		s.Blocks, s.Period = n, 1
		switch op {
		case AllGather:
			return ring{s, 0, n - 1, 0}, nil
		case ReduceScatter:
			return ring{s, n - 1, n - 1, 1}, nil
		}
		return allReduceRing(s), nil
	}
}

func allReduceRing(s Shape) ring { return ring{s, s.Ranks - 1, 2 * (s.Ranks - 1), 1} }

func (r ring) Shape() Shape { return r.shape }

func (r ring) Len(int) int { return 2 * r.hops * r.shape.Pieces }

// Step names the chunk that arrives at the step's hop.
func (r ring) Step(rank, i int) Step {
	kind, piece, hop := r.locate(i)
	n := r.shape.Ranks
	pos, reversed := rank, r.shape.Channels > 1 && piece%2 == 1
	if reversed {
		pos = n - 1 - rank
	}
	peer, block := r.at(kind, pos, hop)
	if reversed {
		peer, block = n-1-peer, n-1-block
	}
	return Step{Kind: kind, Peer: int32(peer), Chunk: int32(block*r.shape.Pieces + piece)}
}

// at is the neighbour's position on the ring, and the block.
func (r ring) at(k Kind, pos, hop int) (peer, block int) {
	n := r.shape.Ranks
	peer = pos - 1
	if k == Send {
		peer = pos + 1
	}
	return mod(peer, n), mod(pos-r.skip-1-hop, n)
}

// locate finds step i: what it does to which piece, and at which hop that piece
// arrived (-1: it is sent for the first time). Time runs in slots. In slot t piece t is sent for the first time, then
// each piece t-1-h makes hop h: it is received and, but for the last hop, sent
// on. So the hops of several pieces overlap, and what is sent on is still in the
// caches; hop by hop, the whole first block would queue before it.
func (r ring) locate(i int) (kind Kind, piece, hop int) {
	lo, hi := 0, r.shape.Pieces+r.hops
	// Once as many hops overlap as can, all slots have the same number of steps.
	steady, last, steps := min(r.shape.Pieces, r.hops), max(r.shape.Pieces, r.hops), 2*min(r.shape.Pieces, r.hops)
	switch start, end := r.before(steady), r.before(last); {
	case i < start:
		hi = steady - 1
	case i >= end:
		lo = last
	default:
		lo = steady + (i-start)/steps
		hi = lo
	}
	for lo < hi {
		if t := (lo + hi) / 2; r.before(t+1) > i {
			hi = t
		} else {
			lo = t + 1
		}
	}
	i -= r.before(lo) // of slot lo
	if lo < r.shape.Pieces {
		if i == 0 {
			return Send, lo, -1
		}
		i--
	}
	hop = max(0, lo-r.shape.Pieces) + i/2
	switch {
	case i%2 == 1:
		kind = Send
	case hop < r.combines:
		kind = Combine
	default:
		kind = Recv
	}
	return kind, lo - 1 - hop, hop
}

// before is how many steps come before slot t.
func (r ring) before(t int) int {
	n := t - 1
	sum := func(hops int) int { // of the pieces that have made hop h, max(0, min(n-h, all)), over h < hops
		full := min(max(n-r.shape.Pieces+1, 0), hops) // hops that all pieces have made
		some := min(max(n, 0), hops)                  // hops that some pieces have made
		return full*r.shape.Pieces + (some-full)*n - (some*(some-1)-full*(full-1))/2
	}
	return min(t, r.shape.Pieces) + sum(r.hops) + sum(r.hops-1)
}

// mod is a mod n for a ≥ -2n.
func mod(a, n int) int {
	if a < 0 {
		return (a + 2*n) % n
	}
	if a >= n {
		return a % n
	}
	return a
}
