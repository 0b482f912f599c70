package collectives

// subtree is gather and scatter, directly or along a binomial tree, in which
// the rank at distance v from the root stands for the 2^i ranks from v on, 2^i
// being v's lowest set bit. A block is passed on as soon as it is there:
// upwards nearest first (small subtrees are ready first), downwards farthest
// first (it has the longest way to go).
type subtree struct {
	shape    Shape
	root     int
	up       bool // gather
	binomial bool
}

func subtreeOf(op Op, binomial bool) func(Params, Shape) (Schedule, error) {
	return func(p Params, s Shape) (Schedule, error) {
		s.Blocks = p.Ranks
		return subtree{s, p.Root, op == Gather, binomial}, nil
	}
}

func (s subtree) Shape() Shape { return s.shape }

// size is how many ranks' blocks go through the rank at distance v.
func (s subtree) size(v int) int {
	switch n := s.shape.Ranks; {
	case v == 0:
		return n
	case s.binomial:
		return min(v&-v, n-v)
	}
	return 1
}

func (s subtree) parent(v int) int {
	if s.binomial {
		return v & (v - 1)
	}
	return 0
}

// child is the child of v through which the block of v+j passes.
func (s subtree) child(v, j int) int {
	if s.binomial {
		return v + topmost(j)
	}
	return v + j
}

func (s subtree) Len(rank int) int {
	v := mod(rank-s.root, s.shape.Ranks)
	steps := s.size(v) - 1 // with the children
	if v != 0 {
		steps += s.size(v) // and with the parent
	}
	return steps * s.shape.Pieces
}

// Step: up, first its own block to the parent, then for every block below a
// receive and, but for the root, the send that passes it on; down is the reverse.
func (s subtree) Step(rank, i int) Step {
	n, pieces := s.shape.Ranks, s.shape.Pieces
	v := mod(rank-s.root, n)
	if !s.up {
		i = s.Len(rank) - 1 - i
	}
	j, piece, parent := 0, 0, false
	switch {
	case v == 0:
		j, piece = i/pieces+1, i%pieces
	case i < pieces:
		piece, parent = i, true
	default:
		i -= pieces
		j, piece, parent = i/(2*pieces)+1, i%(2*pieces)/2, i%2 == 1
	}
	if !s.up {
		piece = pieces - 1 - piece
	}
	kind, peer := Recv, s.parent(v)
	if !parent {
		peer = s.child(v, j)
	}
	if parent == s.up {
		kind = Send
	}
	return Step{kind, int32(mod(peer+s.root, n)), int32(mod(v+j+s.root, n)*pieces + piece)}
}
