// Package pairs finds which part of a cluster is slow from what pairs of its
// nodes measured with each other. It is arithmetic only: it neither measures
// nor reads a clock.
package pairs

import (
	"fmt"
	"slices"
)

// Way is how the data of a sample went.
type Way uint8

const (
	OneWay Way = iota // from A to B
	Both              // both directions at the same time; A and B may be exchanged
)

// ways lists them, for results and texts.
func ways() []Way { return []Way{OneWay, Both} }

func (w Way) String() string { return [...]string{"one way", "both ways"}[w] }

// MarshalText is for JSON.
func (w Way) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// Sample is one measured transfer between two nodes.
type Sample struct {
	A, B  int     // nodes, by index
	Rail  int     // which NIC of each, by local index
	Way   Way     // how the data went
	Value float64 // GB/s in each direction, or, for latency, seconds
	Alone bool    // nothing else ran at the same time
	Mark  string  // what an operator wrote beside it ("crossing TOR")
}

// Table is what was measured on a set of nodes.
type Table struct {
	Nodes []string // names
	Rails int      // NICs of a node that were told apart, at least 1
	Leaf  []string // switch or rack of each node, "" where unknown; nil: unknown for all
	// OneMachine says that the nodes are workers of one machine: what lies between
	// them is its memory and its loopback, no NIC and no cable.
	OneMachine bool
	Bandwidth  []Sample
	Latency    []Sample // of a small message, in s; evidence, never a reason by itself
}

// Bounds on tables that come from elsewhere.
const (
	MaxNodes   = 4096
	MaxRails   = 64
	MaxSamples = 8 << 20
)

// Check says what is wrong with a table.
func (t *Table) Check() error {
	switch {
	case len(t.Nodes) < 2 || len(t.Nodes) > MaxNodes:
		return fmt.Errorf("a pair table of %d nodes: want 2 to %d", len(t.Nodes), MaxNodes)
	case t.Rails < 1 || t.Rails > MaxRails:
		return fmt.Errorf("a pair table of %d rails: want 1 to %d", t.Rails, MaxRails)
	case t.Leaf != nil && len(t.Leaf) != len(t.Nodes):
		return fmt.Errorf("a pair table with the leaves of %d nodes and %d nodes", len(t.Leaf), len(t.Nodes))
	case len(t.Bandwidth) > MaxSamples:
		return fmt.Errorf("a pair table of %d samples: at most %d are taken", len(t.Bandwidth), MaxSamples)
	}
	for _, list := range [][]Sample{t.Bandwidth, t.Latency} {
		for _, s := range list {
			n := len(t.Nodes)
			if s.A < 0 || s.A >= n || s.B < 0 || s.B >= n || s.A == s.B || s.Rail < 0 || s.Rail >= t.Rails || !(s.Value > 0 && s.Value < 1e12) {
				return fmt.Errorf("a pair sample %+v: want two of %d nodes, one of %d rails and a number above 0", s, n, t.Rails)
			}
		}
	}
	return nil
}

// leaf of a node, "" where it is not known.
func (t *Table) leaf(n int) string {
	if t.Leaf == nil {
		return ""
	}
	return t.Leaf[n]
}

// Rounds are the circle method's: every pair of n nodes meets once, in rounds
// of disjoint pairs; n−1 rounds, or n with one node idle in each where n is
// odd. With most above 0 and less than that, evenly spread ones are taken.
func Rounds(n, most int) [][][2]int {
	m := n + n%2 // with a ghost where n is odd
	all := m - 1
	var pick []int
	for i := range all {
		pick = append(pick, i)
	}
	if most > 0 && most < all {
		pick = pick[:0]
		for i := range most {
			pick = append(pick, i*all/most)
		}
	}
	var rounds [][][2]int
	for _, r := range pick {
		var round [][2]int
		add := func(a, b int) {
			if a < n && b < n {
				round = append(round, [2]int{min(a, b), max(a, b)})
			}
		}
		add(m-1, r) // the fixed one
		for k := 1; k < m/2; k++ {
			add((r+k)%(m-1), (r-k+m-1)%(m-1))
		}
		slices.SortFunc(round, func(x, y [2]int) int { return x[0] - y[0] })
		rounds = append(rounds, round)
	}
	return rounds
}
