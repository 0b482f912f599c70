package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"
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

// doing says what commands do, for people.
var doing = map[string]string{
	KindOpen:    "while opening its data address",
	KindLimits:  "while measuring the limits of its machine",
	KindDevices: "while testing its own ports and GPUs",
	KindCase:    "while preparing this size",
	KindCheck:   "while checking data",
	KindBatch:   "while measuring",
}

// Error is one line: who, where, what; then how far it had come and what
// followed from it.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.say(f.Fault))
	if does := doing[f.During]; does != "" {
		b.WriteString(", " + does)
	}
	if f.Last != nil && f.Last.Iteration > 0 {
		fmt.Fprintf(&b, "; rank %d had done %d iterations", f.Last.Rank, f.Last.Iteration)
		if f.Last.Step > 0 {
			fmt.Fprintf(&b, " and %d steps of the next", f.Last.Step)
		}
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

// culprit is the first fault that is a cause. A cause that blames a rank of a
// node that is lost yields to that loss: "connection refused by rank 0" is
// what a dead rank 0 looks like from afar.
func (j *Job) culprit() *Failure {
	k := max(0, slices.IndexFunc(j.faults, func(f Fault) bool { return !f.Consequence }))
	f := j.faults[k]
	if p := j.nodeOf(f.Peer); p >= 0 && p != f.Node {
		for i, o := range j.faults {
			if o.Node == p && j.gone[p] && !o.Consequence {
				k, f = i, o
			}
		}
	}
	out := &Failure{Fault: f, Nodes: j.nodes, During: j.during(), Last: j.progress[f.Node], Suspect: -1}
	for i, o := range j.faults {
		if i != k && o.Node != f.Node {
			out.Witnesses = append(out.Witnesses, o)
		}
	}
	if f.Consequence {
		out.Suspect = j.blamed()
	}
	return out
}

// blamed is the node whose ranks most faults name as the peer, if that is not
// a draw; −1: none.
func (j *Job) blamed() int {
	votes := make([]int, len(j.nodes))
	for _, f := range j.faults {
		if p := j.nodeOf(f.Peer); p >= 0 && p != f.Node {
			votes[p]++
		}
	}
	best, most := -1, 0
	for i, v := range votes {
		switch {
		case v > most:
			best, most = i, v
		case v == most:
			best = -1
		}
	}
	return best
}

// late is the verdict on a command that was not answered in time: the node
// that has come least far is named first.
func (j *Job) late() *Failure {
	slow, names := -1, []string(nil)
	for i, w := range j.waiting {
		if !w {
			continue
		}
		names = append(names, NodeName(j.nodes, i))
		if slow < 0 || j.progress[i].before(j.progress[slow]) {
			slow = i
		}
	}
	text := fmt.Sprintf("no answer to %q within %s", j.kind, j.timeout.Round(time.Millisecond))
	switch {
	case len(names) == len(j.nodes) && len(names) > 1:
		text += fmt.Sprintf("; none of the %d nodes answered", len(names))
		if slices.ContainsFunc(j.progress, func(p *Progress) bool { return p != nil }) {
			text += ", this one has come least far"
		}
	case len(names) > 1:
		text += fmt.Sprintf("; %d of %d nodes did not answer: %s", len(names), len(j.nodes), strings.Join(names[:min(8, len(names))], ", "))
	case len(j.nodes) > 1:
		text += "; all other nodes answered"
	}
	f := Fault{Node: slow, Rank: -1, Peer: -1, Text: text}
	if p := j.progress[slow]; p != nil {
		f.Rank = p.Rank
	}
	if more, first := j.absent(); more != "" {
		f.Text += "; " + more
		if first >= 0 {
			f.Rank, f.Node = first, j.nodeOf(first)
			slow = f.Node
		}
	}
	return &Failure{Fault: f, Nodes: j.nodes, Last: j.progress[slow], Suspect: -1}
}
