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
// The phases overlap block by block, in the order in which the ring passes
// blocks: while one is on its way to the next node, the following one is reduced
// inside, and what came round complete is spread at once. So it takes the longer
// of the ring and the traffic inside, and one block's time to begin and to end.
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

// A rank's program is a head, 2k-1 slots and a tail. Slot j is about the block
// that the ring passes j-th: hop j-1 brings it, hop j takes it on.
const (
	scatter  = iota // send the next block's parts inside the node
	gathered        // combine this block's, from inside
	arrive          // the ring brings the block
	leave           // and takes it on
	spread          // send the complete block inside
	collect         // receive the block before from inside
	stages
)

// slot is how many steps of each stage there are for a piece of slot j. Over all
// stages they are 2g, one fewer in the first slot (nothing arrives) and in the
// last (nothing leaves).
func (h hierarchical) slot(j int) (steps [stages]int) {
	local := h.perNode - 1
	if j < h.nodes-1 {
		steps[scatter] = local
	}
	if j < h.nodes {
		steps[gathered] = local
	}
	if j >= h.nodes-1 {
		steps[spread] = local
	}
	if j >= h.nodes {
		steps[collect] = local
	}
	steps[arrive], steps[leave] = min(j, 1), min(h.last()-j, 1)
	return steps
}

// last is the number of the last slot.
func (h hierarchical) last() int { return 2 * (h.nodes - 1) }

// begin is the number of steps before slot j.
func (h hierarchical) begin(j int) int {
	steps := h.perNode - 1 + j*2*h.perNode // of a piece
	if j > 0 {
		steps--
	}
	if j > h.last() {
		steps--
	}
	return steps * h.shape.Pieces
}

func (h hierarchical) Len(int) int {
	return h.begin(h.last()+1) + (h.perNode-1)*h.shape.Pieces
}

func (h hierarchical) Step(rank, i int) Step {
	at, local := int(h.position[rank]), h.perNode-1
	if i < h.begin(0) { // the head
		return h.step(at, scatter, -1, i/local, i%local)
	}
	j := 0
	if i >= h.begin(1) {
		j = 1 + (i-h.begin(1))/(2*h.perNode*h.shape.Pieces)
	}
	if j >= h.last() && i >= h.begin(h.last()+1) { // the tail
		i -= h.begin(h.last() + 1)
		return h.step(at, collect, h.last()+1, i/local, i%local)
	}
	i -= h.begin(j)
	steps := h.slot(j)
	sum := 0
	for _, n := range steps {
		sum += n
	}
	piece := i / sum
	i %= sum
	for stage, n := range steps {
		if i < n {
			return h.step(at, stage, j, piece, i)
		}
		i -= n
	}
	panic("collectives: step number beyond the rank's program")
}

// step is the i-th of a stage of slot j, for the rank at a position.
func (h hierarchical) step(at, stage, j, piece, i int) Step {
	node, index := at/h.perNode, at%h.perNode
	inside := func(kind Kind, way, of, j int) Step { // of: whose part, counted from this rank
		peer := mod(index+way*(1+i), h.perNode)
		part := index
		if of != 0 {
			part = peer
		}
		return Step{kind, h.members[node*h.perNode+peer], h.chunk(part, node-1-j, piece)}
	}
	ring := func(kind Kind, way int) Step {
		next := mod(node+way, h.nodes)
		return Step{kind, h.members[next*h.perNode+index], h.chunk(index, node-1-j, piece)}
	}
	switch stage {
	case scatter:
		return inside(Send, 1, 1, j+1)
	case gathered:
		return inside(Combine, -1, 0, j)
	case arrive:
		if j < h.nodes {
			return ring(Combine, -1)
		}
		return ring(Recv, -1)
	case leave:
		return ring(Send, 1)
	case spread:
		return inside(Send, 1, 0, j)
	}
	return inside(Recv, -1, 1, j-1)
}

// chunk is a piece of the block of a part, counted modulo the nodes.
func (h hierarchical) chunk(part, block, piece int) int32 {
	block %= h.nodes
	if block < 0 {
		block += h.nodes
	}
	return int32((part*h.nodes+block)*h.shape.Pieces + piece)
}
