package reports

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// pageChecks are the findings of checks, the worst first.
type pageChecks struct {
	Tally string
	Bad   []pageCheck // fail and warn
	Rest  *pageTable
	More  int // beyond what a page shows
}

// pageCheck is a finding, for all nodes that have the same one.
type pageCheck struct {
	Class, Word, ID, Nodes, Subject, Got, Want, Remedy string
	Evidence                                           []string
}

// pageTopology is how the devices of one node are joined, or of several that
// are alike.
type pageTopology struct {
	Nodes   string
	Label   string
	Devices []string
	Rows    []pagePath
	Near    *pageTable
	Facts   []string
	Odd     []string
}

type pagePath struct {
	Device string
	Cells  []pageCell
}

// pageCell is a way between two devices, coloured by how far it is.
type pageCell struct{ Class, Text string }

// What a page shows at most.
const (
	maxChecks  = 200
	maxLayouts = 16
	maxSquare  = 48 // devices in a matrix
)

func checksOf(fs []Finding) *pageChecks {
	if len(fs) == 0 {
		return nil
	}
	c := &pageChecks{Tally: Tally(fs), Rest: &pageTable{Name: "checks", Label: "All other checks", Caption: "What passed, could not be read, or does not apply.", Heads: []string{"check", "verdict", "node", "subject", "found", "wanted"}, Words: true}}
	at := map[string]int{}
	var same []Finding
	var nodes [][]string
	for _, f := range fs {
		key := strings.Join([]string{f.ID, string(f.Verdict), f.Subject, f.Got, f.Want}, "\x00")
		i, ok := at[key]
		if !ok {
			i = len(same)
			at[key] = i
			same, nodes = append(same, f), append(nodes, nil)
		}
		if f.Node != "" {
			nodes[i] = appendNew(nodes[i], name(f.Node))
		}
	}
	order := make([]int, len(same))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return slices.Index(verdicts, same[a].Verdict) - slices.Index(verdicts, same[b].Verdict)
	})
	for n, i := range order {
		f := &same[i]
		if n >= maxChecks {
			c.More++
			continue
		}
		if f.Verdict != Fail && f.Verdict != Warn {
			c.Rest.Rows = append(c.Rest.Rows, []string{name(f.ID), string(f.Verdict), listed(nodes[i]), printable(f.Subject), printable(f.Got), dashed(printable(f.Want))})
			continue
		}
		p := pageCheck{Class: "warn", Word: "warning", ID: name(f.ID), Nodes: listed(nodes[i]), Subject: printable(f.Subject), Got: printable(f.Got), Want: printable(f.Want), Remedy: printable(f.Remedy)}
		if f.Verdict == Fail {
			p.Class, p.Word = "bad", "fail"
		}
		for _, e := range f.Evidence[:min(len(f.Evidence), 6)] {
			p.Evidence = append(p.Evidence, printable(e.From)+": "+printable(e.Value))
		}
		c.Bad = append(c.Bad, p)
	}
	if len(c.Rest.Rows) == 0 {
		c.Rest = nil
	}
	return c
}

// listed is names in a line, the first dozen of many.
func listed(names []string) string {
	if n := len(names); n > 12 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:12], ", "), n-12)
	}
	return strings.Join(names, ", ")
}

func dashed(s string) string {
	if s == "" {
		return "—"
	}
	return s
}

// judgeWith adds the checks to the page's one word: what failed there may
// explain what was measured, whatever its data.
func judgeWith(v verdict, results int, a *Around) verdict {
	if len(a.Accepted) > 0 {
		return a.judged(v)
	}
	if len(a.Findings) == 0 {
		return v
	}
	failed, warned, first := 0, 0, ""
	for _, f := range a.Findings {
		switch f.Verdict {
		case Fail:
			if failed++; failed == 1 {
				first = strings.TrimPrefix(fmt.Sprintf("%s: %s: %s. ", name(f.Node), printable(f.Subject), printable(f.Got)), ": ")
			}
		case Warn:
			warned++
		}
	}
	what := fmt.Sprintf("Checks: %s.", Tally(a.Findings))
	switch {
	case results == 0 && failed > 0:
		return verdict{"bad", fmt.Sprintf("%d check%s failed", failed, plural(failed)), first + what}
	case results == 0 && Worst(a.Findings) == Pass:
		return verdict{"good", "Checks pass", what}
	case results == 0:
		return verdict{"warn", "No check failed", what}
	case failed > 0 && v.Class != "bad":
		return verdict{"bad", fmt.Sprintf("%d check%s failed", failed, plural(failed)), first + what + " " + v.Why}
	case warned > 0 && v.Class == "good":
		return verdict{"warn", fmt.Sprintf("%s; %d check%s warn%s", v.Word, warned, plural(warned), map[bool]string{true: "s"}[warned == 1]), v.Why + " " + what}
	}
	v.Why += " " + what
	return v
}

// topologiesOf draws each different node once.
func topologiesOf(all []Topology) (out []pageTopology, more int) {
	at := map[string]int{}
	var nodes [][]string
	for i := range all {
		t := &all[i]
		p := topologyPage(t)
		key, err := json.Marshal(p)
		if err != nil {
			more++
			continue
		}
		k, ok := at[string(key)]
		if !ok {
			if len(out) == maxLayouts {
				more++
				continue
			}
			k = len(out)
			at[string(key)] = k
			p.Label = fmt.Sprintf("Ways between the devices of node %d", k)
			if p.Near != nil {
				p.Near.Label = fmt.Sprintf("Nearest adapters of node %d", k)
			}
			out, nodes = append(out, p), append(nodes, nil)
		}
		nodes[k] = append(nodes[k], name(t.Node))
	}
	for i := range out {
		if out[i].Nodes = listed(nodes[i]); len(nodes[i]) > 1 {
			out[i].Nodes += fmt.Sprintf(" (%d nodes, all alike)", len(nodes[i]))
		}
	}
	return out, more
}

func topologyPage(t *Topology) (p pageTopology) {
	var names []string
	for _, g := range t.GPUs {
		names = append(names, fmt.Sprintf("GPU%d", g.Index))
	}
	for _, n := range t.NICs {
		names = append(names, name(n.Name))
	}
	for _, why := range []string{t.NoGPUs, t.NoNICs} {
		if why != "" {
			p.Facts = append(p.Facts, "Not known: "+printable(why))
		}
	}
	if len(t.GPUs) > 0 {
		p.Facts = append(p.Facts, fmt.Sprintf("%d × %s", len(t.GPUs), name(t.GPUs[0].Name)))
	}
	p.Facts = append(p.Facts, bondFacts(t)...)
	for _, s := range t.Shared {
		text := fmt.Sprintf("%s send through one PCIe port, %s", strings.Join(cleaned(s.Devices), ", "), printable(s.Port))
		if s.GBps != nil {
			text += fmt.Sprintf(" (%.3g GB/s each way)", *s.GBps)
		}
		p.Facts = append(p.Facts, text)
	}
	p.Odd = cleaned(t.Odd)
	if len(names) > maxSquare {
		p.Facts = append(p.Facts, fmt.Sprintf("%d devices are too many to draw; busbw topo lists them", len(names)))
		return p
	}
	p.Devices = names
	most := 0 // NVLinks between two GPUs
	for _, row := range t.Paths {
		for _, way := range row {
			most = max(most, links(way))
		}
	}
	for i, row := range t.Paths {
		line := pagePath{Device: names[i]}
		for _, way := range row {
			class := wayClass(way)
			if n := links(way); n > 0 && n < most {
				class = "far"
			}
			line.Cells = append(line.Cells, pageCell{class, name(way)})
		}
		p.Rows = append(p.Rows, line)
	}
	near := &pageTable{Caption: "For each GPU: where its rank's threads and its traffic belong.", Heads: []string{"GPU", "nearest adapter", "way", "CPUs"}, Words: true}
	for _, u := range t.Use {
		var nics []string
		for _, k := range u.NICs {
			nics = append(nics, name(t.NICs[k].Name))
		}
		near.Rows = append(near.Rows, []string{fmt.Sprintf("GPU%d", t.GPUs[u.GPU].Index), dashed(strings.Join(nics, ", ")), dashed(name(u.Path)), dashed(name(u.CPUs))})
	}
	if len(near.Rows) > 0 {
		p.Near = near
	}
	return p
}

// bondFacts say what joins GPUs directly, each kind once.
func bondFacts(t *Topology) (out []string) {
	for _, b := range t.Bonds {
		text := "GPUs are joined directly"
		if b.Links > 0 {
			text = fmt.Sprintf("%d link%s between two GPUs", b.Links, plural(b.Links))
		}
		if b.GBps != nil {
			text += fmt.Sprintf(", %.4g GB/s each way", *b.GBps)
		}
		if b.Switch {
			text += ", through switches that all pairs share"
		}
		if out = appendNew(out, text); len(out) == 6 {
			break
		}
	}
	return out
}

func cleaned(all []string) (out []string) {
	for _, s := range all {
		out = append(out, printable(s))
	}
	return out
}

// links is the number of NVLinks of a way, 0 where it is another.
func links(way string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(way, "NV"))
	if err != nil || !strings.HasPrefix(way, "NV") {
		return 0
	}
	return n
}

// wayClass is how far a way is, in the words of nvidia-smi topo -m.
func wayClass(way string) string {
	switch {
	case way == "X":
		return "self"
	case strings.HasPrefix(way, "NV"), way == "XGMI":
		return "nv"
	case way == "PIX", way == "PXB":
		return "near"
	case way == "PHB", way == "NODE":
		return "mid"
	case way == "SYS":
		return "sys"
	}
	return "none"
}
