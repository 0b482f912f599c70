package pairs

import (
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// Kind is what sort of part a culprit is.
type Kind string

// The kinds, in the order in which they are reported.
const (
	All       Kind = "every pair"
	Leaf      Kind = "leaf"
	Uplink    Kind = "uplink"
	Node      Kind = "node"
	Port      Kind = "NIC or cable"
	Path      Kind = "path"
	Undecided Kind = "undecided"
)

func kinds() []Kind { return []Kind{All, Leaf, Uplink, Node, Port, Path, Undecided} }

// Culprit is a part that is slow, with what speaks against it.
type Culprit struct {
	Kind       Kind            `json:"kind"`
	Nodes      []string        `json:"nodes,omitempty"` // a path's two ends; what is undecided; what hangs on a leaf
	Leaf       string          `json:"leaf,omitempty"`
	Rails      []int           `json:"rails,omitempty"` // absent: all, or the only one
	Side       string          `json:"side,omitempty"`  // "sending", "receiving", "sending and receiving at once"; absent: in every way
	Verdict    reports.Verdict `json:"verdict"`
	Sure       string          `json:"sure"` // "high", "medium", "low"
	Way        Way             `json:"way"`  // of the tests that accuse it
	GBps       float64         `json:"gb_per_s"`
	Want       float64         `json:"want_gb_per_s"`
	Why        []string        `json:"why"`
	Try        []Probe         `json:"try,omitempty"`         // measurements that would decide
	OneMachine bool            `json:"one_machine,omitempty"` // no NIC or cable lies between the nodes: they are workers of one machine
}

// Report is what a table says.
type Report struct {
	Levels   []Level   `json:"levels"`
	Culprits []Culprit `json:"culprits"`
	Good     []string  `json:"good,omitempty"`  // nodes of which every measured port reached the level
	Doubt    string    `json:"doubt,omitempty"` // why a node that nothing accuses is not called good
	Next     []Probe   `json:"next,omitempty"`  // measurements that would make it surer
	Notes    []string  `json:"notes,omitempty"`
}

// Verdict of the whole table.
func (r *Report) Verdict() reports.Verdict {
	v := reports.Pass
	if len(r.Good) == 0 {
		v = reports.Unknown
	}
	for _, c := range r.Culprits {
		switch {
		case c.Verdict == reports.Fail:
			return reports.Fail
		case c.Verdict == reports.Warn || v != reports.Warn:
			v = c.Verdict // what is unknown is no pass
		}
	}
	return v
}

// Found says whether something is slow that the figures do establish: scatter
// that forbids a verdict is none.
func (r *Report) Found() bool {
	return slices.ContainsFunc(r.Culprits, func(c Culprit) bool { return c.Verdict == reports.Fail || c.Verdict == reports.Warn })
}

// Subject names a culprit: "gn644", "n3 rail 2, sending", "leaf A", "n1 – n2".
func (c *Culprit) Subject() string {
	s := strings.Join(c.Nodes, ", ")
	switch c.Kind {
	case All:
		s = "every pair"
	case Leaf:
		if s = "the leaf of rail " + numbers(c.Rails); c.Leaf != "" {
			s = "leaf " + c.Leaf
		}
	case Uplink:
		s = "uplink between " + c.Leaf
	case Path:
		s = strings.Join(c.Nodes, " – ")
		if c.Side == sends.String() {
			s = strings.Join(c.Nodes, " → ")
		}
	case Undecided:
		s = strings.Join(c.Nodes, " or ")
	}
	if len(c.Rails) > 0 && (c.Kind != Leaf || c.Leaf != "") {
		s += " rail " + numbers(c.Rails)
	}
	if c.Side != "" && c.Kind != Path {
		s += ", " + c.Side
	}
	return s
}

// Findings are the culprits as every other check speaks. A node's finding
// carries its name; what concerns several names none.
func (r *Report) Findings() (out []reports.Finding) {
	for i := range r.Culprits {
		c := &r.Culprits[i]
		f := reports.Finding{ID: "pairs", Verdict: c.Verdict, Subject: string(c.Kind) + " " + c.Subject(), Got: rate(c.GBps) + " " + c.Way.String(), Want: "at least " + rate(c.Want), Remedy: c.remedy()}
		if len(c.Nodes) == 1 {
			f.Node = c.Nodes[0]
		}
		for _, w := range c.Why {
			f.Evidence = append(f.Evidence, reports.Evidence{From: "pair tests", Value: w})
		}
		f.Evidence = append(f.Evidence, reports.Evidence{From: "sureness", Value: c.Sure})
		out = append(out, f)
	}
	return out
}

// remedy is what to do about a culprit.
func (c *Culprit) remedy() string {
	if c.OneMachine && c.Kind != Undecided {
		return "the nodes are workers of one machine: look at what else uses its processors and memory, and at limits set on its interfaces; give each rank a core of its own and measure again, longer"
	}
	switch c.Kind {
	case All:
		return "no single part is to blame: compare the settings, the interface in use, the PCIe slots and the limit itself"
	case Leaf:
		return "look at that switch: its firmware, its ports' errors and speed, its uplinks"
	case Uplink:
		return "look at the links and the routes between those switches"
	case Node:
		return "keep the node out; busbw check on it, then PCIe slots, power settings and NUMA before cables"
	case Port:
		return "compare this NIC's PCIe slot (speed, width) with its twins first; then its port's rate and error counters, then swap the cable, then the peer port"
	case Path:
		return "both ends are good with others: look at the route between them (static routing, one link of a bundle)"
	}
	var s []string
	for _, p := range c.Try {
		s = append(s, p.Name)
	}
	if len(s) == 0 {
		return "measure them with other partners"
	}
	return "measure next: " + strings.Join(s, "; ")
}

// Probe is a measurement that would decide something.
type Probe struct {
	A     int    `json:"a"`
	B     int    `json:"b"`
	Rail  int    `json:"rail"`
	Way   Way    `json:"way"`  // from A to B, or both
	Name  string `json:"text"` // for people
	again bool   // once more: one measurement alone is not enough
}

func (t *Table) probe(a, b, rail int, w Way) Probe {
	link := " with "
	if w == OneWay {
		link = " → "
	}
	s := t.Nodes[a] + link + t.Nodes[b]
	if t.Rails > 1 {
		s += fmt.Sprintf(" rail %d", rail)
	}
	return Probe{A: a, B: b, Rail: rail, Way: w, Name: s}
}

// rate is a bandwidth for people, in GB/s.
func rate(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.1f GB/s", v)
	case v >= 0.095:
		return fmt.Sprintf("%.2f GB/s", v)
	}
	return fmt.Sprintf("%.2g GB/s", v)
}

func numbers(v []int) string {
	var s []string
	for _, n := range slices.Sorted(slices.Values(v)) {
		s = append(s, fmt.Sprint(n))
	}
	return strings.Join(s, ", ")
}
