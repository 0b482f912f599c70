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

// Step: all pieces are sent for the first time, then each makes hop after hop, so
// that every NIC is busy from the start. A plain ring starts a piece only when
// those before it have moved on.
func (r rails) Step(rank, i int) Step {
	shape := r.ring.shape
	kind, piece, hop := Send, i, -1
	if i >= shape.Pieces {
		i -= shape.Pieces
		hop = min(i/(2*shape.Pieces), r.ring.hops-1)
		i -= hop * 2 * shape.Pieces
		switch sends := hop < r.ring.hops-1; { // the last hop is where it ends
		case !sends:
			kind, piece = Recv, i
		case i%2 == 1:
			kind, piece = Send, i/2
		default:
			kind, piece = Recv, i/2
		}
		if kind == Recv && hop < r.ring.combines {
			kind = Combine
		}
	}
	peer, block := r.ring.at(kind, r.move(int(r.index[rank]), piece, -1), hop)
	return Step{kind, r.members[r.move(peer, piece, 1)], int32(block*shape.Pieces + piece)}
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

// railsGroup is how many pieces use each NIC of a node once.
func railsGroup(p Params) int {
	_, perNode, err := byNode(p)
	if err != nil || perNode == p.Ranks {
		return 1
	}
	return perNode
}
