package collectives

import (
	"fmt"
	"math"
	"strings"
)

// Params is what an algorithm needs to know besides the operation.
type Params struct {
	Ranks, Root int
	Nodes       []int // the node of each rank; nil: all on one
	Pieces      int   // per block; 0 means 1
	Channels    int   // 0 means 1; no more than Pieces are used
}

// algorithm is one way to do an operation. build gets a shape whose Blocks is
// still to be set; the parameters are already checked.
type algorithm struct {
	op    Op
	name  string
	build func(p Params, s Shape) (Schedule, error)
	// depth is how many ranks a piece passes in turn while it could already be
	// followed by the next; nil where pieces don't shorten the run.
	depth func(p Params) int
	// group is how many pieces go different ways, so that only whole groups use
	// all ways equally; nil where all go the same.
	group func(p Params) int
	doc   string
}

// algorithms lists every algorithm; the first of an operation is its plainest.
func algorithms() []algorithm {
	return []algorithm{
		{AllReduce, "ring", ringOf(AllReduce), nil, nil, "reduce-scatter, then all-gather, round a ring: 2(n-1)/n of S a rank, 2(n-1) hops"},
		{AllReduce, "tree", treeOf(AllReduce, double), treeDepth, nil, "double binary tree, pipelined: each tree reduces and spreads every other piece"},
		{AllReduce, "halving", circulantOf(AllReduce), nil, nil, "halving, then doubling, distances: as few bytes as the ring, 2 log n hops"},
		{AllReduce, "doubling", buildDoubling, nil, nil, "recursive doubling of the whole buffer: log n hops, S bytes each"},
		{AllReduce, "hierarchical", buildHierarchical, nil, nil, "reduce-scatter in the node, all-reduce across nodes, all-gather in the node"},
		{AllReduce, "rails", buildRails, nil, railsGroup, "a ring for each rank of a node, over all ranks, so that every NIC carries an equal part between nodes"},
		{AllReduce, "oneshot", buildOneshot, nil, nil, "every rank sends its input to every other: one hop, (n-1)S bytes"},
		{AllReduce, "direct", directOf(AllReduce), nil, nil, "two-shot: block r is combined at rank r from all, then sent to all"},
		{Broadcast, "chain", treeOf(Broadcast, chain), chainDepth, nil, "pipeline through all ranks in turn"},
		{Broadcast, "tree", treeOf(Broadcast, double), treeDepth, nil, "two complementary binary trees, pipelined, each for every other piece"},
		{Broadcast, "binomial", treeOf(Broadcast, binomial), nil, nil, "binomial tree: log n hops"},
		{Broadcast, "direct", treeOf(Broadcast, star), nil, nil, "the root sends to every rank"},
		{Reduce, "chain", treeOf(Reduce, chain), chainDepth, nil, "pipeline through all ranks in turn"},
		{Reduce, "tree", treeOf(Reduce, double), treeDepth, nil, "two complementary binary trees, pipelined, each for every other piece"},
		{Reduce, "binomial", treeOf(Reduce, binomial), nil, nil, "binomial tree: log n hops"},
		{Reduce, "direct", treeOf(Reduce, star), nil, nil, "every rank sends to the root"},
		{AllGather, "ring", ringOf(AllGather), nil, nil, "every block goes round the ring"},
		{AllGather, "halving", circulantOf(AllGather), nil, nil, "doubling distances: (n-1)/n of S a rank, log n hops"},
		{AllGather, "direct", directOf(AllGather), nil, nil, "every rank sends its block to every other"},
		{ReduceScatter, "ring", ringOf(ReduceScatter), nil, nil, "every block goes round the ring and ends at its owner"},
		{ReduceScatter, "halving", circulantOf(ReduceScatter), nil, nil, "halving distances: (n-1)/n of S a rank, log n hops"},
		{ReduceScatter, "direct", directOf(ReduceScatter), nil, nil, "every rank sends each block to its owner"},
		{AllToAll, "direct", buildAllToAll, nil, nil, "pairwise exchange: step k sends to rank+k and receives from rank-k"},
		{Gather, "direct", subtreeOf(Gather, false), nil, nil, "every rank sends to the root"},
		{Gather, "binomial", subtreeOf(Gather, true), nil, nil, "binomial tree: a rank passes on its subtree's blocks"},
		{Scatter, "direct", subtreeOf(Scatter, false), nil, nil, "the root sends to every rank"},
		{Scatter, "binomial", subtreeOf(Scatter, true), nil, nil, "binomial tree: a rank passes on its subtree's blocks"},
		{SendRecv, "direct", buildSendRecv, nil, nil, "rank r sends to rank r+1"},
	}
}

// aliases are other names under which people know an algorithm.
var aliases = [...]struct {
	op           Op
	alias, means string
}{
	{Broadcast, "ring", "chain"},
	{Reduce, "ring", "chain"},
}

// Algorithms lists the names of an operation's algorithms.
func Algorithms(op Op) []string {
	var names []string
	for _, a := range algorithms() {
		if a.op == op {
			names = append(names, a.name)
		}
	}
	return names
}

// Aliases lists other names of an operation's algorithms, each as "ring = chain".
func Aliases(op Op) []string {
	var names []string
	for _, a := range aliases {
		if a.op == op {
			names = append(names, a.alias+" = "+a.means)
		}
	}
	return names
}

// Describe is one line on what an algorithm does; "" if the operation lacks it.
func Describe(op Op, name string) string {
	a, err := find(op, name)
	if err != nil {
		return ""
	}
	return a.doc
}

// Resolve is an algorithm's own name for a name or alias; an error says what
// the operation has instead.
func Resolve(op Op, name string) (string, error) {
	a, err := find(op, name)
	return a.name, err
}

func find(op Op, name string) (algorithm, error) {
	for _, a := range aliases {
		if a.op == op && a.alias == name {
			name = a.means
		}
	}
	var has []string
	for _, a := range algorithms() {
		if a.name != name {
			continue
		}
		if a.op == op {
			return a, nil
		}
		has = append(has, a.op.String())
	}
	own := Algorithms(op)
	switch {
	case len(own) == 0:
		return algorithm{}, fmt.Errorf("%s is not an operation", op)
	case len(has) > 0:
		return algorithm{}, fmt.Errorf("%s has no algorithm %q (only %s); it has %s", op, name, strings.Join(has, ", "), strings.Join(own, ", "))
	}
	return algorithm{}, fmt.Errorf("unknown algorithm %q; %s has %s", name, op, strings.Join(own, ", "))
}

// New makes the schedule of an algorithm.
func New(op Op, name string, p Params) (Schedule, error) {
	a, err := find(op, name)
	if err != nil {
		return nil, err
	}
	if p, err = p.checked(op); err != nil {
		return nil, fmt.Errorf("%s %s: %w", op, name, err)
	}
	s, err := a.build(p, Shape{Ranks: p.Ranks, Pieces: p.Pieces, Channels: p.Channels})
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", op, name, err)
	}
	if shape := s.Shape(); shape.Blocks > math.MaxInt32/shape.Pieces {
		return nil, fmt.Errorf("%s %s: %d blocks of %d pieces are more chunks than 2^31", op, name, shape.Blocks, shape.Pieces)
	}
	return s, nil
}

func (p Params) checked(op Op) (Params, error) {
	switch {
	case p.Ranks < 1 || p.Ranks > maxRanks:
		return p, fmt.Errorf("%d ranks; there must be 1 to %d", p.Ranks, maxRanks)
	case op.Rooted() && (p.Root < 0 || p.Root >= p.Ranks):
		return p, fmt.Errorf("root %d is not one of the ranks 0 to %d", p.Root, p.Ranks-1)
	case p.Nodes != nil && len(p.Nodes) != p.Ranks:
		return p, fmt.Errorf("the nodes of %d ranks are given, but there are %d ranks", len(p.Nodes), p.Ranks)
	case p.Pieces < 0 || p.Pieces > math.MaxInt32:
		return p, fmt.Errorf("%d pieces", p.Pieces)
	case p.Channels < 0:
		return p, fmt.Errorf("%d channels", p.Channels)
	}
	if !op.Rooted() {
		p.Root = 0
	}
	p.Pieces = max(1, p.Pieces)
	p.Channels = min(max(1, p.Channels), p.Pieces)
	return p, nil
}

const (
	// maxRanks is far beyond any machine; it keeps a wrong number from taking
	// memory by the gigabyte.
	maxRanks = 1 << 20
	// maxSteps bounds a rank's program, which the executor keeps compiled (some
	// 64 bytes a step). It is what rings through 8192 ranks on 8 rails take.
	maxSteps = 1 << 18
	// minPiece is the smallest piece worth a step of its own when pipelining: at
	// 10 GB/s it takes 3 µs, about a hop and what each rank spends on a step.
	minPiece = 32 << 10
	// minGroupPiece is the same for a piece of a group: with all ways in use every
	// hop takes as long as one between nodes.
	minGroupPiece = 32 << 10
)

// Pieces is how many pieces each block of S = bytes should have: enough that no
// chunk exceeds chunkBytes; unless they would be tiny, one for each channel and,
// where pieces follow each other through a pipeline, twice as many as it is deep
// (then filling it costs half of the rest); where pieces go different ways, whole
// groups of them unless those would be tiny; but never so many that a rank's
// program exceeds 262 144 steps. It is 1 where New would fail.
func Pieces(op Op, name string, p Params, bytes, chunkBytes int64) int {
	channels := int64(p.Channels)
	p.Pieces, p.Channels = 1, 1
	s, err := New(op, name, p)
	if err != nil {
		return 1
	}
	shape := s.Shape()
	block := shape.BlockLen(op, bytes, 1)
	pieces := int64(1)
	if chunkBytes > 0 {
		// A piece is rounded up to a cache line, so chunkBytes is rounded down to one.
		limit := max(lineBytes, chunkBytes/lineBytes*lineBytes)
		pieces = max(1, (block+limit-1)/limit)
	}
	pieces = max(pieces, min(channels, block/minPiece))
	a, _ := find(op, name)
	if a.depth != nil && p.Ranks > 2 { // between two there is nothing to fill
		pieces = max(pieces, min(2*int64(a.depth(p)), block/minPiece))
	}
	steps := 1
	for r := range p.Ranks {
		steps = max(steps, s.Len(r))
	}
	// The steps grow with the pieces, and the busiest rank's no faster.
	most := min(int64(maxSteps/steps), math.MaxInt32/int64(shape.Blocks))
	pieces = min(pieces, most)
	if a.group != nil {
		if g := int64(a.group(p)); block >= g*minGroupPiece && most >= g {
			pieces = min((pieces+g-1)/g, most/g) * g
		}
	}
	return int(max(1, pieces))
}
