package worker

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"busbw/reports"
)

// checkNUMA looks where NICs are and where their interrupts are served. It
// matters for TCP and for waiting on events; a polling transfer only needs
// its memory and thread on the right node, which busbw sees to.
func checkNUMA(s *survey) []reports.Finding {
	nodes := 0
	for _, n := range s.names("sys/devices/system/node") {
		if strings.HasPrefix(n, "node") && strings.Trim(n[4:], "0123456789") == "" {
			nodes++
		}
	}
	if len(s.hcas) == 0 {
		return []reports.Finding{finding("numa", "NUMA", reports.NA, fmt.Sprintf("%d NUMA nodes, no RDMA device", nodes))}
	}
	var out []reports.Finding
	for _, h := range s.hcas {
		if h.PCI == "" {
			continue // no device behind it
		}
		dir := "sys/class/infiniband/" + h.Name + "/device"
		f := finding("numa", h.Name, reports.Pass, "one NUMA node")
		switch {
		case nodes > 1 && h.NUMA == nil:
			f.Verdict, f.Got, f.Want = reports.Warn, "its NUMA node is not told", "the node of its socket"
			f.Remedy = "update the BIOS (it leaves out the proximity of this slot); until then pin ranks by hand"
			f.Evidence = evidence("/"+dir+"/numa_node", "-1")
			if s.guest {
				f.Verdict, f.Remedy = reports.Unknown, ""
			}
		case nodes > 1:
			f.Got = fmt.Sprintf("NUMA node %d", *h.NUMA)
			near, all, how := s.interrupts(dir)
			if all > 0 {
				f.Got += fmt.Sprintf(", %d of %d interrupts served there", near, all)
				f.Evidence = evidence("/proc/irq/*/smp_affinity_list, "+how, fmt.Sprintf("%d of %d local", near, all))
				if near*2 < all {
					f.Verdict, f.Want = reports.Warn, "interrupts served on the NIC's own node"
					f.Remedy = "set_irq_affinity_cpulist.sh, or stop irqbalance for this device: matters for TCP and for waiting on events, not for polling"
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// interrupts counts the interrupts of a device that may be served on its node.
func (s *survey) interrupts(dir string) (near, all int, how string) {
	how = "irqbalance does not run"
	for _, p := range s.names("proc") {
		if strings.Trim(p, "0123456789") == "" && s.word("proc/"+p, "comm") == "irqbalance" {
			how = "irqbalance runs"
			break
		}
	}
	local := cpuList(s.word(dir, "local_cpulist"))
	for _, irq := range s.names(dir + "/msi_irqs") {
		cpus := cpuList(s.word(path.Join("proc/irq", irq), "smp_affinity_list"))
		if len(cpus) == 0 {
			continue
		}
		all++
		if slices.ContainsFunc(cpus, func(c int) bool { return slices.Contains(local, c) }) {
			near++
		}
	}
	return near, all, how
}

// cpuList reads the kernel's "0-3,8"; at most 8192 CPUs.
func cpuList(s string) []int {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		a, b, ok := strings.Cut(part, "-")
		from, err := strconv.Atoi(strings.TrimSpace(a))
		to := from
		if ok {
			to, _ = strconv.Atoi(strings.TrimSpace(b))
		}
		for c := from; err == nil && c <= to && len(out) < 8192; c++ {
			out = append(out, c)
		}
	}
	return out
}
