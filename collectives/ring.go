package collectives

// ring passes every block round the ring, from rank to rank+1. In reduce-scatter a block starts one past its owner
// and gathers every contribution on the way to it; in all-gather it starts at
// its owner; all-reduce is the one after the other, and as each pass is n-1 hops
// the block that arrives at hop j is the same formula all the way.
//
// A rank sends its first block (all pieces), then forwards each chunk as soon as
// it has arrived, so with several pieces the link never waits for a combine.
// With more than one channel odd pieces go round the other way.
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

// Step: P first sends, then for every hop and piece a receive and the send that
// forwards it; the last hop has receives only.
func (r ring) Step(rank, i int) Step {
	pieces := r.shape.Pieces
	if i < pieces {
		return r.step(Send, rank, i, -1)
	}
	i -= pieces
	hop, piece, sends := i/(2*pieces), i%(2*pieces)/2, i%2 == 1
	if hop == r.hops-1 {
		piece, sends = i-2*pieces*hop, false
	}
	if sends {
		return r.step(Send, rank, piece, hop)
	}
	if hop < r.combines {
		return r.step(Combine, rank, piece, hop)
	}
	return r.step(Recv, rank, piece, hop)
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
