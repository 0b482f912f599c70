package collectives

// direct lets the owner of a block and every other rank talk without anyone in
// between: one hop to combine, one hop to spread. All sends of a phase come
// first (they do not block), starting at the next rank up, so that no rank is
// everybody's first target; a rank's receives are in the order in which the
// others get round to it.
//
// A piece is combined from all ranks and sent to all in one unbroken run of
// steps, which the executor can do in a single pass over memory.
type direct struct {
	shape           Shape
	scatter, gather bool
}

func directOf(op Op) func(Params, Shape) (Schedule, error) {
	return func(p Params, s Shape) (Schedule, error) {
		s.Blocks, s.Period = p.Ranks, 1
		return direct{s, op != AllGather, op != ReduceScatter}, nil
	}
}

func (d direct) Shape() Shape { return d.shape }

// phase is the steps of a phase in which a rank sends or receives each piece
// of one block for each other rank.
func (d direct) phase() int { return (d.shape.Ranks - 1) * d.shape.Pieces }

func (d direct) Len(int) int {
	if d.scatter && d.gather {
		return 4 * d.phase()
	}
	return 2 * d.phase()
}

func (d direct) Step(rank, i int) Step {
	n, phase := d.shape.Ranks, d.phase()
	if d.scatter && i < phase { // every block to its owner
		peer := mod(rank+1+i%(n-1), n)
		return d.step(Send, peer, peer, i/(n-1))
	}
	if d.scatter {
		i -= phase
	}
	// The middle: combine, spread or both, piece by piece.
	middle, each := phase, n-1
	if d.scatter && d.gather {
		middle, each = 2*phase, 2*(n-1)
	}
	if i < middle {
		piece, k := i/each, i%each
		switch {
		case !d.scatter:
			return d.step(Send, mod(rank+1+k, n), rank, piece)
		case k < n-1:
			return d.step(Combine, mod(rank-1-k, n), rank, piece)
		}
		return d.step(Send, mod(rank+1+k-(n-1), n), rank, piece)
	}
	i -= middle
	peer := mod(rank-1-i%(n-1), n)
	return d.step(Recv, peer, peer, i/(n-1))
}

func (d direct) step(k Kind, peer, block, piece int) Step {
	return Step{k, int32(peer), int32(block*d.shape.Pieces + piece)}
}

// oneshot gives every rank every input: one hop, and n-1 times the bytes. Sends
// must be buffered, as all ranks send a chunk and then combine into it.
type oneshot struct{ shape Shape }

func buildOneshot(_ Params, s Shape) (Schedule, error) {
	s.Blocks, s.Buffered, s.Period = 1, true, 1
	return oneshot{s}, nil
}

func (o oneshot) Shape() Shape { return o.shape }

func (o oneshot) Len(int) int { return 2 * (o.shape.Ranks - 1) * o.shape.Pieces }

func (o oneshot) Step(rank, i int) Step {
	n := o.shape.Ranks
	if sends := (n - 1) * o.shape.Pieces; i >= sends {
		i -= sends
		return Step{Combine, int32(mod(rank-1-i%(n-1), n)), int32(i / (n - 1))}
	}
	return Step{Send, int32(mod(rank+1+i%(n-1), n)), int32(i / (n - 1))}
}

// pairwise is all-to-all in n-1 steps: step k sends to rank+k and receives from
// rank-k, so that every link is used once at a time. sendrecv is its first step.
type pairwise struct {
	shape    Shape
	alltoall bool
}

func buildAllToAll(p Params, s Shape) (Schedule, error) {
	s.Blocks, s.Period = p.Ranks*p.Ranks, 1
	return pairwise{s, true}, nil
}

func buildSendRecv(p Params, s Shape) (Schedule, error) {
	s.Blocks, s.Period = p.Ranks, 1
	return pairwise{s, false}, nil
}

func (p pairwise) Shape() Shape { return p.shape }

func (p pairwise) Len(int) int {
	exchanges := p.shape.Ranks - 1
	if !p.alltoall {
		exchanges = min(exchanges, 1)
	}
	return 2 * exchanges * p.shape.Pieces
}

func (p pairwise) Step(rank, i int) Step {
	n, pieces := p.shape.Ranks, p.shape.Pieces
	k, piece := i/(2*pieces)+1, i%pieces
	kind, peer, block := Send, mod(rank+k, n), rank
	if i/pieces%2 == 1 {
		kind, peer = Recv, mod(rank-k, n)
		block = peer
	}
	switch {
	case p.alltoall && kind == Send:
		block = rank*n + peer
	case p.alltoall:
		block = peer*n + rank
	}
	return Step{kind, int32(peer), int32(block*pieces + piece)}
}
