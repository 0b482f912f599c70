package collectives

import (
	"fmt"
	"slices"
)

// hierarchical is all-reduce in three phases for k nodes of g ranks: a direct
// reduce-scatter in the node leaves part l (k blocks) at the rank with index l;
// the ranks of index l of all nodes all-reduce their part in a ring; a direct
// all-gather in the node spreads it. Only 2(k-1)/k of S/g a rank crosses nodes.
//
// Pieces overlap by one: while piece q crosses, piece q+1 is already on its way
// inside the node.
type hierarchical struct {
	shape          Shape
	nodes, perNode int
	members        []int32 // members[node*perNode+index] is a rank
	position       []int32 // the inverse: of a rank, node*perNode+index
}

func buildHierarchical(p Params, s Shape) (Schedule, error) {
	s.Blocks = p.Ranks
	members, perNode, err := byNode(p)
	if err != nil {
		return nil, err
	}
	h := hierarchical{shape: s, nodes: p.Ranks / perNode, perNode: perNode, members: members, position: make([]int32, p.Ranks)}
	for at, r := range h.members {
		h.position[r] = int32(at)
	}
	if slices.IsSorted(h.members) {
		h.shape.Period = h.perNode
	}
	return h, nil
}

// byNode lists the ranks of one node after the other, all nodes' numbers of them
// being equal, in the order of the nodes' first ranks.
func byNode(p Params) (members []int32, perNode int, err error) {
	nodes := p.Nodes
	if nodes == nil {
		nodes = make([]int, p.Ranks)
	}
	index := map[int]int{} // of each node, in order of its first rank
	var of [][]int32
	var names []int
	for r, node := range nodes {
		i, ok := index[node]
		if !ok {
			i = len(of)
			index[node] = i
			of, names = append(of, nil), append(names, node)
		}
		of[i] = append(of[i], int32(r))
	}
	perNode = len(of[0])
	for i, m := range of {
		if len(m) != perNode {
			return nil, 0, fmt.Errorf("every node must have the same number of ranks, but node %d has %d and node %d has %d", names[0], perNode, names[i], len(m))
		}
		members = append(members, m...)
	}
	return members, perNode, nil
}

func (h hierarchical) Shape() Shape { return h.shape }

// stages is the steps of one piece in each of the parts of a slot: sends and
// combines of the reduce-scatter, ring, sends and receives of the all-gather.
func (h hierarchical) stages() (local, ring int) {
	return (h.perNode - 1) * h.nodes, 4 * (h.nodes - 1)
}

func (h hierarchical) Len(int) int {
	local, ring := h.stages()
	return (4*local + ring) * h.shape.Pieces
}

// Step: slot q, from 0 to Pieces, is the sends of piece q's reduce-scatter, the
// ring and the all-gather's sends of piece q-1, the combines of piece q, and the
// all-gather's receives of piece q-1. Slot 0 lacks the parts of piece q-1, the
// last slot those of piece q.
func (h hierarchical) Step(rank, i int) Step {
	local, ring := h.stages()
	parts := [...]struct{ steps, lag int }{{local, 0}, {ring, 1}, {local, 1}, {local, 0}, {local, 1}}
	slot := 0
	if i >= 2*local {
		i -= 2 * local
		slot = 1 + i/(4*local+ring)
		i %= 4*local + ring
	}
	for part, p := range parts {
		piece := slot - p.lag
		if piece < 0 || piece >= h.shape.Pieces {
			continue
		}
		if i < p.steps {
			return h.step(int(h.position[rank]), part, piece, i)
		}
		i -= p.steps
	}
	panic("collectives: step number beyond the rank's program")
}

func (h hierarchical) step(at, part, piece, i int) Step {
	node, index := at/h.perNode, at%h.perNode
	chunk := func(index, block int) int32 {
		return int32((index*h.nodes+block)*h.shape.Pieces + piece)
	}
	if part == 1 {
		s := allReduceRing(Shape{Ranks: h.nodes, Blocks: h.nodes, Pieces: 1, Channels: 1}).Step(node, i)
		return Step{s.Kind, h.members[int(s.Peer)*h.perNode+index], chunk(index, int(s.Chunk))}
	}
	k, block := i/h.nodes, i%h.nodes
	next, last := mod(index+1+k, h.perNode), mod(index-1-k, h.perNode)
	peer := func(index int) int32 { return h.members[node*h.perNode+index] }
	switch part {
	case 0:
		return Step{Send, peer(next), chunk(next, block)}
	case 2:
		return Step{Send, peer(next), chunk(index, block)}
	case 3:
		return Step{Combine, peer(last), chunk(index, block)}
	}
	return Step{Recv, peer(last), chunk(last, block)}
}

// hierarchicalDepth: two phases overlap.
func hierarchicalDepth(Params) int { return 2 }
