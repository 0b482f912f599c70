package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbw/reports"
)

// NodeFacts is what a node says of itself.
type NodeFacts struct {
	Node    string
	Machine string // MachineID: workers of one machine share more than they should elsewhere
	Facts   map[string]string
}

// fact says how a fact of several nodes is judged. Facts that are not listed
// should be equal, and a difference is a warning.
type fact struct {
	name    string // or its beginning, up to a blank
	unique  bool   // must differ
	verdict reports.Verdict
	remedy  string
}

func facts() []fact {
	return []fact{
		{"machine id", true, reports.Warn, "cloned images share it: write it anew on each node (systemd-machine-id-setup), or DHCP and logs take nodes for one"},
		{"host name", true, reports.Warn, "give each node a name of its own: logs and reports take them for one"},
		{"GPUs", false, reports.Fail, "a node with fewer or other GPUs cannot take its part: see its own findings"},
		{"RDMA devices", false, reports.Fail, "a node with fewer or other devices cannot take its part: see its own findings"},
		{"RDMA ports active", false, reports.Fail, "see the port findings of the node"},
		{"RDMA port rates", false, reports.Fail, "see the rate findings of the node"},
		{"subnet manager", false, reports.Warn, "ports of one subnet know the same manager: are the nodes on one fabric?"},
		{"RoCE GID row", false, reports.Warn, "leave NCCL_IB_GID_INDEX unset: one index for all nodes cannot work"},
		{"locked memory limit", false, reports.Fail, "raise it where the worker is started (systemd: LimitMEMLOCK=infinity)"},
		{"NCCL files", false, reports.Warn, "make /etc/nccl.conf equal on all nodes, or remove it"},
	}
}

func judgeFact(name string) fact {
	for _, f := range facts() {
		if f.name == name || strings.HasPrefix(name, f.name+" ") {
			return f
		}
	}
	return fact{name, false, reports.Warn, "bring the odd nodes to the version or setting of the others"}
}

// Agree compares the facts of nodes and names the odd ones out against the
// majority. Where there is no majority none is called odd.
func Agree(nodes []NodeFacts) []reports.Finding {
	if len(nodes) < 2 {
		return nil
	}
	names := map[string]bool{}
	for _, n := range nodes {
		for k := range n.Facts {
			names[k] = true
		}
	}
	machines := map[string]string{}
	for _, n := range nodes {
		machines[n.Node] = n.Machine
	}
	var out []reports.Finding
	for _, name := range slices.Sorted(maps.Keys(names)) {
		by := map[string][]string{} // value → nodes
		for _, n := range nodes {
			v := cmp.Or(n.Facts[name], "not told")
			by[v] = append(by[v], n.Node)
		}
		f := judgeFact(name)
		if f.unique {
			out = append(out, distinct(f, name, by, machines)...)
			continue
		}
		out = append(out, equal(f, name, by, len(nodes))...)
	}
	return out
}

func distinct(f fact, name string, by map[string][]string, machine map[string]string) []reports.Finding {
	var out []reports.Finding
	for _, v := range slices.Sorted(maps.Keys(by)) {
		one := machine[by[v][0]]
		other := slices.ContainsFunc(by[v], func(n string) bool { return machine[n] != one || one == "" })
		switch {
		case len(by[v]) > 1 && !other:
			out = append(out, reports.Finding{ID: "nodes-distinct", Verdict: reports.NA, Subject: name, Got: some(by[v]) + " are workers of one machine"})
		case len(by[v]) > 1 && v != "not told":
			out = append(out, reports.Finding{ID: "nodes-distinct", Verdict: f.verdict, Subject: name, Got: "the same on " + some(by[v]), Want: "different on each node", Remedy: f.remedy,
				Evidence: []reports.Evidence{{From: some(by[v]), Value: v}}})
		}
	}
	if out == nil {
		out = []reports.Finding{{ID: "nodes-distinct", Verdict: reports.Pass, Subject: name, Got: "different on each node"}}
	}
	return out
}

func equal(f fact, name string, by map[string][]string, n int) []reports.Finding {
	values := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(len(by[b])-len(by[a]), strings.Compare(a, b))
	})
	if len(values) == 1 {
		return []reports.Finding{{ID: "nodes-equal", Verdict: reports.Pass, Subject: name, Got: values[0], Want: "equal on all nodes"}}
	}
	most := by[values[0]]
	var evidence []reports.Evidence
	for _, v := range values[:min(len(values), 8)] {
		evidence = append(evidence, reports.Evidence{From: some(by[v]), Value: v})
	}
	if len(most)*2 <= n {
		return []reports.Finding{{ID: "nodes-equal", Verdict: undecided(f.verdict), Subject: name, Got: fmt.Sprintf("%d different values, none on most nodes", len(values)), Want: "equal on all nodes", Evidence: evidence,
			Remedy: "decide which is right; " + f.remedy}}
	}
	var out []reports.Finding
	for _, v := range values[1:] {
		for _, node := range by[v] {
			g := reports.Finding{ID: "nodes-equal", Verdict: f.verdict, Node: node, Subject: name, Got: v, Want: fmt.Sprintf("%s, as on %d of %d nodes", values[0], len(most), n), Evidence: evidence, Remedy: f.remedy}
			if v == "not told" {
				g.Verdict, g.Remedy = reports.Unknown, ""
			}
			out = append(out, g)
		}
	}
	return out
}

// undecided: who is wrong is not known, so that nobody fails for it.
func undecided(v reports.Verdict) reports.Verdict {
	if v == reports.Fail {
		return reports.Warn
	}
	return v
}

// some is at most four names.
func some(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:4], ", "), len(names)-4)
	}
	return strings.Join(names, ", ")
}
