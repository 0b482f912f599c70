package coordinator

import (
	"fmt"

	"busbw/collectives"
)

// BlockScope is the scope of cases whose groups are blocks of neighbouring
// nodes.
const BlockScope = "blocks"

// BlockCase is an operation over all ranks of each block of k neighbouring
// nodes, all blocks at the same time; nodes that fill no block sit it out.
// Blocks of one node are the scope intra, and one block of all is global.
func (r *Request) BlockCase(nodes []PlanNode, k int, op collectives.Op, bytes int64) (Case, error) {
	c := Case{scope: BlockScope, op: op, auto: true, bytes: bytes, apart: true}
	switch {
	case k < 1 || k > len(nodes):
		return c, fmt.Errorf("blocks of %d nodes among %d", k, len(nodes))
	case k == len(nodes):
		c.scope = "global"
	case k == 1:
		c.scope = "intra"
	}
	per := nodes[0].Ranks
	for _, n := range nodes {
		if n.Ranks != per {
			return c, fmt.Errorf("blocks need the same number of ranks on every node: %s has %d and %s %d", nodes[0].Host, per, n.Host, n.Ranks)
		}
	}
	for b := range len(nodes) / k {
		c.groups = append(c.groups, span(b*k*per, k*per))
	}
	n := k * per
	c.params = collectives.Params{Ranks: n, Nodes: make([]int, n), Channels: number(r.Settings, "NCCL_MIN_CTAS")}
	for i := range n {
		c.params.Nodes[i] = i / per
	}
	if c.count = count(op, bytes, int64(r.Dtype.Size()), int64(n)); c.count == 0 {
		return c, fmt.Errorf("%s of %d B over %d ranks: want at least %d B", op, bytes, n, smallest(op, r.Dtype, n))
	}
	allowed, err := Allowed(r.Settings["NCCL_ALGO"], op)
	if err != nil {
		return c, err
	}
	size := c.count * int64(r.Dtype.Size())
	c.algo = pick(op, c.params, size, k == 1 && r.Settings["NCCL_SHM_DISABLE"] != "1", allowed)
	c.pieces = max(c.params.Channels, collectives.Pieces(op, c.algo, c.params, size, int64(number(r.Settings, "NCCL_BUFFSIZE"))/8))
	return c, nil
}
