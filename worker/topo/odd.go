package topo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

// odd says what of a node is not as it is elsewhere in the node, or cannot be
// right anywhere. A machine that is built unevenly is told of as such.
func odd(t reports.Topology) (out []string) {
	out = append(out, oddLinks(t.GPUs)...)
	out = append(out, oddFabric(t.GPUs)...)
	out = append(out, oddPaths(t)...)
	out = append(out, oddNICs(t)...)
	return append(out, oddWidths(t)...)
}

// up counts the links of a GPU that are up and names those that are down; told
// is false where some link does not say.
func up(g reports.GPU) (n int, down []int, told bool) {
	told = true
	for _, l := range g.NVLinks {
		switch {
		case l.Up == nil:
			told = false
		case *l.Up:
			n++
		default:
			down = append(down, l.Link)
		}
	}
	return n, down, told
}

func oddLinks(gpus []reports.GPU) (out []string) {
	most, have, upAny := map[string]int{}, false, false // by model
	for _, g := range gpus {
		n, _, _ := up(g)
		most[g.Name] = max(most[g.Name], n)
		have, upAny = have || len(g.NVLinks) > 0, upAny || n > 0
	}
	if have && !upAny && slices.ContainsFunc(gpus, func(g reports.GPU) bool { return judge.Bridged(g.Name) }) {
		return nil // no bridge is fitted: that is how it was bought
	}
	if have && !upAny {
		return []string{"no NVLink of any GPU is up: on a machine with NVSwitch the fabric manager does not run or failed (systemctl status nvidia-fabricmanager)"}
	}
	for i, g := range gpus {
		if len(g.NVLinks) == 0 { // it has none, or does not tell
			if most[g.Name] > 0 {
				out = append(out, fmt.Sprintf("GPU%d tells of no NVLink, other %s have %d", i, g.Name, most[g.Name]))
			}
			continue
		}
		n, down, told := up(g)
		want, from := most[g.Name], "other "+g.Name+" have"
		if b, _, _, known := judge.Wiring(g.Name); known && b > want {
			want, from = b, g.Name+" as built has"
		}
		if !told {
			out = append(out, fmt.Sprintf("GPU%d: the state of some of its NVLinks is not known", i))
		} else if n < want {
			out = append(out, fmt.Sprintf("GPU%d has %d NVLinks up, %s %d%s", i, n, from, want, listed("; down: ", down)))
		}
		out = append(out, slowLinks(i, g)...)
	}
	return out
}

// slowLinks finds links of a GPU that run below its others.
func slowLinks(i int, g reports.GPU) (out []string) {
	var best float64
	for _, l := range g.NVLinks {
		if l.GBps != nil {
			best = max(best, *l.GBps)
		}
	}
	for _, l := range g.NVLinks {
		if l.GBps != nil && *l.GBps < best*0.99 {
			out = append(out, fmt.Sprintf("GPU%d: NVLink %d runs at %g GB/s, others of it at %g", i, l.Link, *l.GBps, best))
		}
	}
	return out
}

func listed(before string, ns []int) string {
	if len(ns) == 0 {
		return ""
	}
	return before + strings.Trim(strings.ReplaceAll(fmt.Sprint(ns), " ", ", "), "[]")
}

// oddFabric looks at the registration with the NVSwitch fabric. A GPU that
// needs one and has not completed it reaches no other GPU over NVLink.
func oddFabric(gpus []reports.GPU) (out []string) {
	cliques := map[string][]string{}
	for i, g := range gpus {
		f := g.Fabric
		switch {
		case f == nil || f.State == "not_supported":
			continue
		case f.State != "completed":
			out = append(out, fmt.Sprintf("GPU%d: its registration with the NVSwitch fabric is %q, not completed: NVLink cannot be used (is nvidia-fabricmanager running?)", i, f.State))
		case f.Status != "" && f.Status != "ok":
			out = append(out, fmt.Sprintf("GPU%d: its registration with the NVSwitch fabric failed: %s", i, f.Status))
		case f.CliqueID != nil:
			c := fmt.Sprintf("%s/%d", f.ClusterUUID, *f.CliqueID)
			cliques[c] = append(cliques[c], fmt.Sprintf("GPU%d", i))
		}
	}
	if len(cliques) > 1 {
		var parts []string
		for _, c := range slices.Sorted(maps.Keys(cliques)) {
			parts = append(parts, strings.Join(cliques[c], " "))
		}
		out = append(out, "the fabric is partitioned: "+strings.Join(parts, " | ")+" do not reach each other over NVLink")
	}
	return out
}

// oddPaths compares how each GPU reaches the others.
func oddPaths(t reports.Topology) (out []string) {
	var profile []string
	for i := range t.GPUs {
		count := map[string]int{}
		for j := range t.GPUs {
			if w := t.Paths[i][j]; i != j && links(w) > 0 && len(t.GPUs[i].NVLinks) > 0 {
				count["NV#"]++ // how many is told link by link
			} else if i != j {
				count[w]++
			}
		}
		var parts []string
		for _, w := range slices.Sorted(maps.Keys(count)) {
			parts = append(parts, fmt.Sprintf("%d × %s", count[w], w))
		}
		profile = append(profile, strings.Join(parts, ", "))
	}
	usual, ok := majority(profile)
	for i, p := range profile {
		if ok && p != usual {
			out = append(out, fmt.Sprintf("GPU%d reaches the other GPUs by %s; most GPUs by %s", i, p, usual))
		}
	}
	return out
}

// oddNICs compares the way from each GPU to its nearest adapter.
func oddNICs(t reports.Topology) (out []string) {
	var words []string
	for _, u := range t.Use {
		words = append(words, u.Path)
	}
	usual, ok := majority(words)
	if len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool { return w != SYS }) {
		return []string{"no GPU has an adapter on its socket: all are across the link between sockets (SYS)"}
	}
	for _, u := range t.Use {
		switch {
		case len(u.NICs) == 0:
		case u.Path == SYS:
			out = append(out, fmt.Sprintf("GPU%d has no adapter on its socket: the nearest, %s, is across the link between sockets (SYS)", u.GPU, t.NICs[u.NICs[0]].Name))
		case ok && rank(u.Path) > rank(usual):
			out = append(out, fmt.Sprintf("GPU%d's nearest adapter, %s, is %s away; most GPUs have one at %s", u.GPU, t.NICs[u.NICs[0]].Name, u.Path, usual))
		}
	}
	return out
}

// oddWidths compares the PCIe width of GPUs of one model: it does not change
// with idleness, as the speed does.
func oddWidths(t reports.Topology) (out []string) {
	most := map[string]int{}
	for _, g := range t.GPUs {
		if g.PCIeWidth != nil {
			most[g.Name] = max(most[g.Name], *g.PCIeWidth)
		}
	}
	for i, g := range t.GPUs {
		if g.PCIeWidth != nil && *g.PCIeWidth < most[g.Name] {
			out = append(out, fmt.Sprintf("GPU%d's PCIe link is x%d wide, other %s have x%d", i, *g.PCIeWidth, g.Name, most[g.Name]))
		}
	}
	return out
}

// majority is the value that more than half have.
func majority(values []string) (string, bool) {
	count := map[string]int{}
	for _, v := range values {
		count[v]++
		if count[v]*2 > len(values) {
			return v, true
		}
	}
	return "", false
}
