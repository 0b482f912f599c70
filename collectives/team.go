package collectives

import (
	"fmt"
	"slices"
)

// Team is a group of ranks that run collectives together, seen by one of them.
// Within the team ranks are 0 … n-1; links and hubs know them by global number.
type Team struct {
	Global []int // global rank of each member; no two are equal
	// Node is the process in which each member lives, any numbers: members with
	// equal numbers meet in memory, the others on the wire. Nil: all in one
	// process. Distinct numbers for all send everything over the wire.
	Node []int
	Me   int // the member that this is
}

// valid says what is wrong with the team, if anything.
func (t Team) valid() error {
	n := len(t.Global)
	if n == 0 || t.Me < 0 || t.Me >= n {
		return fmt.Errorf("team: member %d of %d does not exist", t.Me, n)
	}
	if t.Node != nil && len(t.Node) != n {
		return fmt.Errorf("team: %d members but the nodes of %d", n, len(t.Node))
	}
	sorted := slices.Sorted(slices.Values(t.Global))
	for i, g := range sorted {
		if g < 0 {
			return fmt.Errorf("team: global rank %d is negative", g)
		}
		if i > 0 && g == sorted[i-1] {
			return fmt.Errorf("team: global rank %d is in it twice", g)
		}
	}
	return nil
}

// local says whether members a and b share a process.
func (t Team) local(a, b int) bool { return t.Node == nil || t.Node[a] == t.Node[b] }

// Apart says whether some member lives in another process.
func (t Team) Apart() bool { return len(t.locals(t.Me)) < len(t.Global) }

// Together says whether another member lives in the same process.
func (t Team) Together() bool { return len(t.locals(t.Me)) > 1 }

// locals lists the members of rank's process, itself included, in rank order.
func (t Team) locals(rank int) []int {
	var out []int
	for q := range t.Global {
		if t.local(rank, q) {
			out = append(out, q)
		}
	}
	return out
}

// leaders lists the first member of each process, in rank order.
func (t Team) leaders() []int {
	var out []int
	seen := make(map[int]bool, len(t.Global))
	for q := range t.Global {
		node := 0
		if t.Node != nil {
			node = t.Node[q]
		}
		if !seen[node] {
			seen[node] = true
			out = append(out, q)
		}
	}
	return out
}

// Peers lists the global ranks that t.Me reaches over the wire when it runs s
// and barriers: only to these it needs a connection. s may be nil. Peers are
// mutual: b is a peer of a if and only if a is a peer of b.
func (t Team) Peers(s Schedule) []int {
	var peers []int
	seen := make([]bool, len(t.Global))
	add := func(q int) {
		if !seen[q] && !t.local(t.Me, q) {
			seen[q] = true
			peers = append(peers, t.Global[q])
		}
	}
	if s != nil {
		for i := range s.Len(t.Me) {
			add(int(s.Step(t.Me, i).Peer))
		}
	}
	if leaders := t.leaders(); slices.Contains(leaders, t.Me) {
		me := slices.Index(leaders, t.Me)
		for d := 1; d < len(leaders); d *= 2 {
			add(leaders[(me+d)%len(leaders)])
			add(leaders[(me-d+len(leaders))%len(leaders)])
		}
	}
	slices.Sort(peers)
	return peers
}
