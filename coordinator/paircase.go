package coordinator

import (
	"fmt"

	"busbw/collectives"
	"busbw/reports"
)

// PairScope is the scope of cases whose groups are pairs of nodes.
const PairScope = "pairs"

// Direction is which way the data of a pair test goes.
type Direction string

// Both directions at once are a sendrecv of two ranks; one direction is a
// broadcast of two, from its root.
const (
	Forth Direction = "a→b"
	Back  Direction = "b→a"
	Both  Direction = "both"
)

// PairCase is a test of disjoint pairs, all at the same time, with bytes in
// each direction that has data.
func (r *Request) PairCase(nodes []PlanNode, pairs []reports.Pair, d Direction, bytes int64) (Case, error) {
	c := Case{scope: PairScope, op: collectives.Broadcast, auto: true, bytes: bytes, apart: true, pairs: pairs}
	root := 0
	switch d {
	case Both:
		c.op = collectives.SendRecv
	case Back:
		root = 1
	}
	first := make([]int, len(nodes))
	for i := 1; i < len(nodes); i++ {
		first[i] = first[i-1] + nodes[i-1].Ranks
	}
	for _, p := range pairs {
		for _, n := range []int{p.A, p.B} {
			if n < 0 || n >= len(nodes) || p.Rail < 0 || p.Rail >= nodes[n].Ranks {
				return c, fmt.Errorf("pair %+v: want two of the %d nodes and a rail that both have", p, len(nodes))
			}
		}
		c.groups = append(c.groups, []int{first[p.A] + p.Rail, first[p.B] + p.Rail})
	}
	if _, err := GroupsOf(CaseBody{Scope: PairScope, Groups: append([][]int{}, c.groups...)}, nodes); err != nil {
		return c, err
	}
	c.count = count(c.op, bytes, int64(r.Dtype.Size()), 2)
	if c.count == 0 {
		return c, fmt.Errorf("a pair test of %d B: want at least one element of %s", bytes, r.Dtype)
	}
	c.params = collectives.Params{Ranks: 2, Root: root, Nodes: []int{pairs[0].A, pairs[0].B}, Channels: number(r.Settings, "NCCL_MIN_CTAS")}
	size := c.count * int64(r.Dtype.Size())
	c.algo = collectives.Auto(c.op, c.params, size, false)
	c.pieces = max(c.params.Channels, collectives.Pieces(c.op, c.algo, c.params, size, int64(number(r.Settings, "NCCL_BUFFSIZE"))/8))
	return c, nil
}
