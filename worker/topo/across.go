package topo

import (
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// Across compares the nodes of a cluster: what each says of a thing that
// should be equal, against what more than half of them say.
func Across(ts []reports.Topology) []string {
	var facts []map[string]string
	var order []string
	seen := map[string]bool{}
	for _, t := range ts {
		f := map[string]string{}
		for _, kv := range factsOf(t) {
			f[kv[0]] = kv[1]
			if !seen[kv[0]] {
				seen[kv[0]] = true
				order = append(order, kv[0])
			}
		}
		facts = append(facts, f)
	}
	strange := make([][]string, len(ts)) // by node
	var tied []string
	for _, key := range order {
		var values []string
		for i := range ts {
			if v, ok := facts[i][key]; ok {
				values = append(values, v)
			}
		}
		if same(values) {
			continue
		}
		usual, ok := majority(values)
		if !ok {
			var parts []string
			for i, t := range ts {
				if v, has := facts[i][key]; has {
					parts = append(parts, v+" on "+t.Node)
				}
			}
			tied = append(tied, fmt.Sprintf("%s: %s", key, cut(parts, 4)))
			continue
		}
		for i := range ts {
			if v, has := facts[i][key]; has && v != usual {
				strange[i] = append(strange[i], fmt.Sprintf("%s is %s, elsewhere %s", key, v, usual))
			}
		}
	}
	var out []string
	for i, s := range strange {
		if len(s) > 0 {
			out = append(out, fmt.Sprintf("node %s: %s", ts[i].Node, cut(s, 4)))
		}
	}
	if len(tied) > 0 {
		out = append(out, "the nodes differ and none is in the majority: "+cut(tied, 4))
	}
	return out
}

func same(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
}

// cut joins the first n of several and counts the rest.
func cut(parts []string, n int) string {
	if len(parts) <= n {
		return strings.Join(parts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(parts[:n], "; "), len(parts)-n)
}

// factsOf are what should be equal on all nodes. What a node does not know is
// left out: unknown is no difference.
func factsOf(t reports.Topology) (out [][2]string) {
	add := func(key, value string) { out = append(out, [2]string{key, value}) }
	if t.NoGPUs == "" || len(t.GPUs) > 0 {
		count := map[string]int{}
		var models []string
		for _, g := range t.GPUs {
			if count[g.Name]++; count[g.Name] == 1 {
				models = append(models, g.Name)
			}
		}
		slices.Sort(models)
		for i, m := range models {
			models[i] = fmt.Sprintf("%d × %s", count[m], m)
		}
		if len(models) == 0 {
			models = []string{"none"}
		}
		add("GPUs", strings.Join(models, ", "))
	}
	var nics []string
	for _, n := range t.NICs {
		if n.RDMA {
			nics = append(nics, n.Name)
		}
	}
	if t.NoNICs == "" {
		add("RDMA devices", fmt.Sprintf("[%s]", strings.Join(nics, " ")))
	}
	for i, g := range t.GPUs {
		if n, _, told := up(g); told && len(g.NVLinks) > 0 {
			add(fmt.Sprintf("NVLinks up on GPU%d", i), fmt.Sprint(n))
		}
		if g.NUMA != nil {
			add(fmt.Sprintf("NUMA node of GPU%d", i), fmt.Sprint(*g.NUMA))
		}
	}
	ns := names(t)
	for i := range t.GPUs {
		for j := i + 1; j < len(ns); j++ {
			if j >= len(t.GPUs) && !t.NICs[j-len(t.GPUs)].RDMA {
				continue // interfaces are named as each node likes
			}
			if w := t.Paths[i][j]; w != Unknown {
				add(ns[i]+"–"+ns[j], w)
			}
		}
	}
	return out
}

// Alike groups nodes (their indices) of which all that is compared, and all
// that is odd, is the same, in order of appearance.
func Alike(ts []reports.Topology) (groups [][]int) {
	at := map[string]int{}
	for i, t := range ts {
		key := fmt.Sprint(factsOf(t), t.NoGPUs, t.NoNICs, t.Odd, len(t.NICs))
		k, ok := at[key]
		if !ok {
			k = len(groups)
			at[key] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	return groups
}
