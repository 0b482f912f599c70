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
		s.Blocks = n
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

// Step: time runs in slots. In slot t piece t is sent for the first time, then
// each piece t-1-h makes hop h: it is received and, but for the last hop, sent
// on. So the hops of several pieces overlap, and what is sent on is still in the
// caches; hop by hop, the whole first block would queue before it.
func (r ring) Step(rank, i int) Step {
	lo, hi := 0, r.shape.Pieces+r.hops
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
			return r.step(Send, rank, lo, -1)
		}
		i--
	}
	hop, sends := max(0, lo-r.shape.Pieces)+i/2, i%2 == 1
	switch {
	case sends:
		return r.step(Send, rank, lo-1-hop, hop)
	case hop < r.combines:
		return r.step(Combine, rank, lo-1-hop, hop)
	}
	return r.step(Recv, rank, lo-1-hop, hop)
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

// step names the chunk that arrives at hop (-1: the first one sent).
func (r ring) step(k Kind, rank, piece, hop int) Step {
	n := r.shape.Ranks
	pos, reversed := rank, r.shape.Channels > 1 && piece%2 == 1
	if reversed {
		pos = n - 1 - rank
	}
	peer := pos - 1
	if k == Send {
		peer = pos + 1
	}
	peer = mod(peer, n)
	block := mod(pos-r.skip-1-hop, n)
	if reversed {
		peer, block = n-1-peer, n-1-block
	}
	return Step{Kind: k, Peer: int32(peer), Chunk: int32(block*r.shape.Pieces + piece)}
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
