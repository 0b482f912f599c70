package collectives

// doubling is recursive doubling of the whole buffer: in round k a rank
// exchanges what it has with the rank whose number differs in bit k. Ranks from
// the largest power of two on first give their input to the rank that many
// below and get the result back at the end.
//
// Both sides of an exchange send a chunk and then combine into it, so sends must
// be buffered: this one is for small messages.
type doubling struct {
	shape  Shape
	power  int // largest power of two ≤ ranks
	rounds int // log2 power
}

func buildDoubling(p Params, s Shape) (Schedule, error) {
	s.Blocks, s.Buffered = 1, true
	d := doubling{shape: s, power: topmost(p.Ranks)}
	for 1<<d.rounds < d.power {
		d.rounds++
	}
	return d, nil
}

func (d doubling) Shape() Shape { return d.shape }

func (d doubling) Len(rank int) int {
	switch {
	case rank >= d.power:
		return 2 * d.shape.Pieces
	case rank+d.power < d.shape.Ranks:
		return 2 * (d.rounds + 1) * d.shape.Pieces
	}
	return 2 * d.rounds * d.shape.Pieces
}

func (d doubling) Step(rank, i int) Step {
	pieces := d.shape.Pieces
	phase, piece := i/pieces, int32(i%pieces)
	if rank >= d.power { // folded: send, receive
		kind := Send
		if phase == 1 {
			kind = Recv
		}
		return Step{kind, int32(rank - d.power), piece}
	}
	if folded := rank + d.power; folded < d.shape.Ranks {
		switch phase {
		case 0:
			return Step{Combine, int32(folded), piece}
		case 2*d.rounds + 1:
			return Step{Send, int32(folded), piece}
		}
		phase--
	}
	kind := Send
	if phase%2 == 1 {
		kind = Combine
	}
	return Step{kind, int32(rank ^ 1<<(phase/2)), piece}
}
