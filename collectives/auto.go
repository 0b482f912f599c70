package collectives

import "math"

// choice is a row of the table from which Auto chooses: the first row for the
// operation that fits the ranks and the size.
type choice struct {
	op        Op
	local     bool // all ranks share memory
	maxRanks  int
	upTo      int64 // bytes
	algorithm string
}

const always = math.MaxInt64 // no limit of size

// choices: in shared memory a chunk is read straight from its owner, so what
// counts is how often memory is read and written, and direct schedules are the
// least of both; on a wire it is hops for small sizes, bytes a rank for large.
func choices() []choice {
	return []choice{
		// Up to a page the second rendezvous of two-shot costs more than its bytes save.
		{AllReduce, true, math.MaxInt, 4 << 10, "oneshot"},
		{AllReduce, true, math.MaxInt, always, "direct"},
		// Two ranks: one hop with S bytes against two with S/2.
		{AllReduce, false, 2, 32 << 10, "oneshot"},
		{AllReduce, false, 2, always, "ring"},
		// Two trees carry as few bytes as the ring in fewer hops; few ranks make them shallow.
		{AllReduce, false, math.MaxInt, 32 << 10, "doubling"},
		{AllReduce, false, 4, 4 << 20, "tree"},
		{AllReduce, false, 8, 128 << 10, "tree"},
		// log n hops, while S bytes a hop cost less than the ring's further hops.
		{AllReduce, false, math.MaxInt, 64 << 10, "doubling"},
		// As few bytes as the ring in log n hops, while chunks of S/n are too small for the ring to stream.
		{AllReduce, false, math.MaxInt, 1 << 20, "halving"},
		{AllReduce, false, math.MaxInt, always, "ring"},

		{Broadcast, true, math.MaxInt, always, "direct"},
		{Broadcast, false, 2, always, "direct"},
		// log n hops of S against a pipeline that must first fill.
		{Broadcast, false, math.MaxInt, 64 << 10, "binomial"},
		{Broadcast, false, math.MaxInt, always, "chain"},

		{Reduce, true, math.MaxInt, always, "direct"},
		{Reduce, false, 2, always, "direct"},
		{Reduce, false, math.MaxInt, 64 << 10, "binomial"},
		{Reduce, false, math.MaxInt, always, "chain"},

		{AllGather, true, math.MaxInt, always, "direct"},
		{AllGather, false, math.MaxInt, 1 << 20, "halving"},
		{AllGather, false, math.MaxInt, always, "ring"},
		{ReduceScatter, true, math.MaxInt, always, "direct"},
		{ReduceScatter, false, math.MaxInt, 1 << 20, "halving"},
		{ReduceScatter, false, math.MaxInt, always, "ring"},

		{AllToAll, true, math.MaxInt, always, "direct"},
		{AllToAll, false, math.MaxInt, always, "direct"},
		// The root's link carries (n-1)/n of S in either case; the tree's hops are fewer.
		{Gather, true, math.MaxInt, always, "direct"},
		{Gather, false, math.MaxInt, 64 << 10, "binomial"},
		{Gather, false, math.MaxInt, always, "direct"},
		{Scatter, true, math.MaxInt, always, "direct"},
		{Scatter, false, math.MaxInt, 64 << 10, "binomial"},
		{Scatter, false, math.MaxInt, always, "direct"},
		{SendRecv, true, math.MaxInt, always, "direct"},
		{SendRecv, false, math.MaxInt, always, "direct"},
	}
}

// Auto names the algorithm to use for S = bytes; local says that all ranks
// share memory. It is one of Algorithms(op), or "" if op is not an operation.
func Auto(op Op, p Params, bytes int64, local bool) string {
	for _, c := range choices() {
		if c.op == op && c.local == local && p.Ranks <= c.maxRanks && bytes <= c.upTo {
			return c.algorithm
		}
	}
	return ""
}
