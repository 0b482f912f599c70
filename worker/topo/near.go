package topo

import "busbw/reports"

// near finds, for each GPU, the processors and adapters next to it. Adapters
// at the same distance are dealt out in turn, so that GPUs behind one switch
// do not all take its first adapter; one that is down is only taken where no
// other is up.
func near(t reports.Topology) (out []reports.Near) {
	taken := make([]int, len(t.NICs))
	for g, gpu := range t.GPUs {
		n := reports.Near{GPU: g, CPUs: gpu.CPUs}
		up := false
		for _, nic := range t.NICs {
			up = up || nic.Up == nil || *nic.Up
		}
		best := 0
		for i, nic := range t.NICs {
			w := t.Paths[g][len(t.GPUs)+i]
			if w == Unknown || up && nic.Up != nil && !*nic.Up {
				continue
			}
			switch r := rank(w); {
			case len(n.NICs) == 0 || r < best:
				best, n.NICs, n.Path = r, []int{i}, w
			case r == best:
				n.NICs = append(n.NICs, i)
			}
		}
		first := 0
		for i, k := range n.NICs {
			if taken[k] < taken[n.NICs[first]] {
				first = i
			}
		}
		if len(n.NICs) > 0 {
			k := n.NICs[first]
			taken[k]++
			copy(n.NICs[1:first+1], n.NICs[:first])
			n.NICs[0] = k
		}
		out = append(out, n)
	}
	return out
}

// Beside is what lies next to a GPU: the processors for its rank's threads (a
// kernel list, "" where unknown) and the adapters for its traffic, the one to
// use first. No GPU of that number has neither.
func Beside(t reports.Topology, gpu int) (cpus string, nics []reports.NIC) {
	for _, u := range t.Use {
		if u.GPU != gpu {
			continue
		}
		for _, i := range u.NICs {
			nics = append(nics, t.NICs[i])
		}
		return u.CPUs, nics
	}
	return "", nil
}
