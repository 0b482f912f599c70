package coordinator

import (
	"fmt"
	"strings"
)

// Failure is the one error that ends a launch: the culprit, and what the
// others saw.
type Failure struct {
	Fault
	Nodes     []PlanNode
	During    string    // command under way; empty: between commands
	Last      *Progress // of the culprit's node
	Suspect   int       // node that the witnesses point at, where only consequences were seen; −1: none
	Witnesses []Fault   // faults of other nodes
}

// NodeName is how messages name a node: host names may be equal, numbers not.
func NodeName(nodes []PlanNode, i int) string {
	if i < 0 || i >= len(nodes) {
		return fmt.Sprintf("node %d", i)
	}
	return fmt.Sprintf("node %d (%s)", i, clean(nodes[i].Host, maxHost))
}

// Error is one line: who, where, what; then how far it had come and what
// followed from it.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.say(f.Fault))
	if f.During != "" {
		fmt.Fprintf(&b, "; during %q", f.During)
	}
	if f.Last != nil {
		fmt.Fprintf(&b, "; last completed: rank %d, iteration %d, step %d", f.Last.Rank, f.Last.Iteration, f.Last.Step)
	}
	if f.Suspect >= 0 {
		fmt.Fprintf(&b, "; suspect is %s", NodeName(f.Nodes, f.Suspect))
	}
	if n := len(f.Witnesses); n > 0 {
		fmt.Fprintf(&b, "; then %s", f.say(f.Witnesses[0]))
		if n > 1 {
			fmt.Fprintf(&b, " and %d more", n-1)
		}
	}
	return b.String()
}

// say is a fault without its history.
func (f *Failure) say(x Fault) string {
	var b strings.Builder
	b.WriteString(NodeName(f.Nodes, x.Node))
	if x.Rank >= 0 {
		fmt.Fprintf(&b, ", rank %d", x.Rank)
	}
	if x.Peer >= 0 {
		fmt.Fprintf(&b, " with peer rank %d", x.Peer)
		if p := NodeOf(f.Nodes, x.Peer); p >= 0 && p != x.Node {
			fmt.Fprintf(&b, " on %s", NodeName(f.Nodes, p))
		}
	}
	if x.Link != "" {
		fmt.Fprintf(&b, " over %s", clean(x.Link, 40))
	}
	if x.Step != "" {
		fmt.Fprintf(&b, " at %s", clean(x.Step, 200))
	}
	b.WriteString(": " + clean(x.Text, 2000))
	return b.String()
}
