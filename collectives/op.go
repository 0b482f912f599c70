// Package collectives holds the collective operations as data (schedules), the
// proof and the prediction of each, and the one executor that runs them all.
package collectives

import (
	"fmt"
	"strings"
)

// Op is a collective operation.
type Op uint8

const (
	AllReduce Op = iota
	Broadcast
	Reduce
	AllGather
	ReduceScatter
	AllToAll
	Gather
	Scatter
	SendRecv
)

var opNames = [...]string{"all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "alltoall", "gather", "scatter", "sendrecv"}

// Ops lists every operation, in the order in which they are documented.
func Ops() []Op {
	return []Op{AllReduce, Broadcast, Reduce, AllGather, ReduceScatter, AllToAll, Gather, Scatter, SendRecv}
}

// String is the name that nccl-tests prints, for example "all_reduce".
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// ParseOp reads an operation's name; underscores, dashes and case do not matter.
func ParseOp(s string) (Op, error) {
	plain := strings.NewReplacer("_", "", "-", "")
	want := plain.Replace(strings.ToLower(s))
	for i, n := range opNames {
		if plain.Replace(n) == want {
			return Op(i), nil
		}
	}
	return 0, fmt.Errorf("unknown operation %q; the operations are %s", s, strings.Join(opNames[:], ", "))
}

// Rooted says whether the operation has a root rank.
func (o Op) Rooted() bool { return o == Broadcast || o == Reduce || o == Gather || o == Scatter }

// Reduces says whether the operation combines elements (and so has a redop).
func (o Op) Reduces() bool { return o == AllReduce || o == Reduce || o == ReduceScatter }

// Blocked says whether the buffer is n equal blocks, one a rank, so that its
// element count must be a multiple of the number of ranks.
func (o Op) Blocked() bool {
	return o == AllGather || o == ReduceScatter || o == AllToAll || o == Gather || o == Scatter
}

// BusFactor is busbw/algbw for n ranks, as nccl-tests' doc/PERFORMANCE.md
// derives it, where algbw = S/t and S is the whole (n-rank) buffer for the
// blocked operations. ok is false for n = 1, where nothing crosses a bus.
func (o Op) BusFactor(n int) (factor float64, ok bool) {
	if n < 2 {
		return 0, false
	}
	f := float64(n)
	switch o {
	case AllReduce:
		return 2 * (f - 1) / f, true
	case AllGather, ReduceScatter, AllToAll, Gather, Scatter:
		return (f - 1) / f, true
	default:
		return 1, true
	}
}

// HasInPlace says whether the operation has an in-place form (see place.go).
func (o Op) HasInPlace() bool {
	return o == AllReduce || o == Broadcast || o == Reduce || o == AllGather || o == ReduceScatter
}
