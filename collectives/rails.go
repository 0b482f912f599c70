package collectives

import "slices"

// rails is all-reduce round rings that leave a node by different ranks: piece q
// goes through the ranks of a node from index q downwards to q+1 and leaves there;
// the next node takes it at index q+1 and passes it upwards to q. So both ends of
// a crossing have the same index, and thus the same rail of switches; and with as
// many pieces as a node has ranks every NIC carries an equal part, where a plain
// ring uses one of them. A ring through an odd number of nodes cannot turn at
// each; it then enters at index q everywhere.
type rails struct {
	ring    ring
	perNode int
	turns   bool
	members []int32 // members[node*perNode+index] is a rank
	index   []int32 // the inverse
}

func buildRails(p Params, s Shape) (Schedule, error) {
	s.Blocks = p.Ranks
	members, perNode, err := byNode(p)
	if err != nil {
		return nil, err
	}
	r := rails{perNode: perNode, turns: p.Ranks/perNode%2 == 0, members: members, index: make([]int32, p.Ranks)}
	for at, m := range members {
		r.index[m] = int32(at)
	}
	if slices.IsSorted(members) {
		s.Period = perNode
		if r.turns {
			s.Period *= 2
		}
	}
	r.ring = allReduceRing(s)
	return r, nil
}

func (r rails) Shape() Shape { return r.ring.shape }

func (r rails) Len(rank int) int { return r.ring.Len(rank) }

func (r rails) Step(rank, i int) Step {
	kind, piece, hop := r.ring.locate(i)
	peer, block := r.ring.at(kind, r.move(int(r.index[rank]), piece, -1), hop)
	return Step{kind, r.members[r.move(peer, piece, 1)], int32(block*r.ring.shape.Pieces + piece)}
}

// move turns a position on the piece's ring into a place among the members (way
// 1), or back (-1). Even nodes are passed backwards, which is its own inverse.
func (r rails) move(at, piece, way int) int {
	node, index, q := at/r.perNode, at%r.perNode, piece%r.perNode
	if r.turns && node%2 == 1 {
		index += way * (q + 1)
	} else {
		index = q - index
	}
	return node*r.perNode + mod(index, r.perNode)
}

// railsDepth makes it a piece for every rank of a node at least.
func railsDepth(p Params) int {
	_, perNode, err := byNode(p)
	if err != nil {
		return 1
	}
	return (perNode + 1) / 2
}
