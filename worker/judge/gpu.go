package judge

import (
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// gpuFinding begins a finding about one GPU.
func gpuFinding(id, node string, g reports.GPU) reports.Finding {
	return reports.Finding{ID: id, Node: node, Subject: fmt.Sprintf("GPU %d", g.Index), Verdict: reports.Pass}
}

// GPUs compares the GPUs of a node: one product, and all of them there.
func GPUs(gpus []reports.GPU, why, node string) []reports.Finding {
	f := reports.Finding{ID: "gpu-count", Node: node, Subject: "GPUs", Verdict: reports.Pass}
	if len(gpus) == 0 {
		f.Verdict, f.Got = reports.NA, "no GPU"
		if why != "" {
			f.Verdict, f.Got = reports.Unknown, why
		}
		return []reports.Finding{f}
	}
	counts := map[string]int{}
	for _, g := range gpus {
		counts[g.Name]++
	}
	var kinds []string
	for n, c := range counts {
		kinds = append(kinds, fmt.Sprintf("%d × %s", c, or(n, "unnamed")))
	}
	slices.Sort(kinds)
	f.Got = strings.Join(kinds, ", ")
	f.Evidence = []reports.Evidence{{From: "GPUs shown", Value: f.Got}}
	switch {
	case len(kinds) > 1:
		f.Verdict, f.Want, f.Remedy = reports.Warn, "one product", "exclude the others (CUDA_VISIBLE_DEVICES), or expect the speed of the slowest"
	case len(gpus) >= 3 && len(gpus)&(len(gpus)+1) == 0:
		f.Verdict, f.Want = reports.Warn, fmt.Sprintf("%d, as such machines have", len(gpus)+1)
		f.Remedy = "one short of a usual number: has a GPU fallen off the bus? Look at the kernel log (Xid 79) and lspci"
	}
	return []reports.Finding{f}
}

// Memory limits of practice (azurehpc-health-checks): remapped rows beyond
// which a GPU is returned, and counts of corrected errors.
const (
	maxRemapped  = 512
	maxCorrected = 20_000_000
)

// GPUMemory judges ECC, row remapping and retired pages.
func GPUMemory(gpus []reports.GPU, from Origin, node string) []reports.Finding {
	var out []reports.Finding
	for _, g := range gpus {
		f := gpuFinding("gpu-memory", node, g)
		told := 0
		bad := func(v reports.Verdict, got, remedy string) {
			if v == reports.Fail || f.Verdict == reports.Pass {
				f.Verdict, f.Remedy = v, remedy
			}
			f.Got = strings.TrimPrefix(f.Got+"; "+got, "; ")
		}
		yes := func(name string, b *bool) bool {
			if b != nil {
				told++
				f.Evidence = append(f.Evidence, from.of(name, *b))
			}
			return b != nil && *b
		}
		const reset = "drain the node and reset the GPU; if it comes back, replace the GPU"
		if g.ECC != nil && !yes("ECC mode", g.ECC) {
			bad(reports.Warn, "ECC is off", "switch ECC on (nvidia-smi -e 1) and reboot: wrong data would not be noticed")
		}
		if g.ECCUncorrected != nil {
			told++
			f.Evidence = append(f.Evidence, from.of("uncorrected ECC errors", *g.ECCUncorrected))
			if *g.ECCUncorrected > 0 {
				bad(reports.Fail, fmt.Sprintf("%d uncorrected ECC errors", *g.ECCUncorrected), reset)
			}
		}
		if g.ECCCorrected != nil && *g.ECCCorrected > maxCorrected {
			bad(reports.Fail, fmt.Sprintf("%d corrected ECC errors (more than %d)", *g.ECCCorrected, maxCorrected), "replace the GPU")
		}
		if yes("row remapping failed", g.RemapFailed) {
			bad(reports.Fail, "row remapping failed", "replace the GPU: its spare rows are used up")
		}
		if yes("row remapping pending", g.RemapPending) {
			bad(reports.Fail, "row remapping is pending", "reset the GPU: the remapping takes effect then")
		}
		if yes("page retirement pending", g.RetiredPending) {
			bad(reports.Fail, "page retirement is pending", "reset the GPU: the retirement takes effect then")
		}
		if g.RemappedRows != nil {
			told++
			if *g.RemappedRows > maxRemapped {
				bad(reports.Fail, fmt.Sprintf("%d remapped rows (more than %d)", *g.RemappedRows, maxRemapped), "replace the GPU")
			} else if *g.RemappedRows > 10 {
				bad(reports.Warn, fmt.Sprintf("%d remapped rows", *g.RemappedRows), "measure this GPU alone: GPUs with more than 10 remapped rows are often slow")
			}
		}
		if g.RetiredPages != nil {
			told++
			if *g.RetiredPages >= 60 { // the driver's own limit is 64
				bad(reports.Fail, fmt.Sprintf("%d retired pages", *g.RetiredPages), "replace the GPU")
			}
		}
		if told == 0 {
			f.Verdict, f.Got = reports.Unknown, "nothing about its memory is told"
		} else if f.Got == "" {
			f.Got = "no uncorrected error, nothing pending"
		}
		out = append(out, f)
	}
	return out
}

// GPUClocks judges throttling, persistence and who else uses the GPU. mine
// are process ids that belong to the measurement.
func GPUClocks(gpus []reports.GPU, from Origin, node string) []reports.Finding {
	var out []reports.Finding
	for _, g := range gpus {
		f := gpuFinding("gpu-throttle", node, g)
		f.Got = "not throttled"
		for _, r := range g.Throttle {
			f.Evidence = append(f.Evidence, from.of("throttle reason", r))
			hot := strings.Contains(r, "thermal") || strings.Contains(r, "hw_slowdown") || strings.Contains(r, "brake")
			switch {
			case hot:
				f.Verdict, f.Got = reports.Fail, strings.Join(g.Throttle, ", ")
				f.Remedy = "look at cooling, power supplies and cabling of this GPU: it slows down to protect itself"
			case strings.Contains(r, "power_cap"), strings.Contains(r, "idle"): // usual under load; usual at rest
			case f.Verdict == reports.Pass:
				f.Verdict, f.Got = reports.Warn, strings.Join(g.Throttle, ", ")
				f.Remedy = "lift the clock limit (nvidia-smi -rgc, -rac)"
			}
		}
		if g.Throttle == nil && g.ClockMHz == nil {
			f.Verdict, f.Got = reports.Unknown, "clocks are not told"
		}
		out = append(out, f)
		if g.Persistence != nil {
			p := gpuFinding("gpu-persistence", node, g)
			p.Got = map[bool]string{true: "on", false: "off"}[*g.Persistence]
			p.Evidence = []reports.Evidence{from.of("persistence mode", p.Got)}
			if !*g.Persistence {
				p.Verdict, p.Want, p.Remedy = reports.Warn, "on", "start nvidia-persistenced: without it the driver loads anew for each job, and counters are lost"
			}
			out = append(out, p)
		}
		p := gpuFinding("gpu-processes", node, g)
		p.Got = "nobody else uses it"
		if g.ProcessIDs == nil {
			p.Verdict, p.Got = reports.NA, "no process is told"
		}
		if len(g.ProcessIDs) > 0 {
			p.Evidence = []reports.Evidence{from.of("compute processes", trimPIDs(g.ProcessIDs))}
			p.Verdict, p.Got, p.Want = reports.Warn, fmt.Sprintf("in use by processes %v", trimPIDs(g.ProcessIDs)), "nobody"
			p.Remedy = "end them or wait: what is measured beside them is not the machine's speed"
		}
		out = append(out, p)
		if g.PCIeReplays != nil {
			r := gpuFinding("gpu-pcie-replays", node, g)
			r.Got = fmt.Sprintf("%d replays since the driver loaded", *g.PCIeReplays)
			r.Evidence = []reports.Evidence{from.of("replay counter", *g.PCIeReplays)}
			if *g.PCIeReplays > correctable {
				r.Verdict, r.Want, r.Remedy = reports.Warn, fmt.Sprintf("at most %d", correctable), "reseat the GPU or its riser; watch whether the count grows during copies"
			}
			out = append(out, r)
		}
	}
	return out
}

func trimPIDs(p []int) []int { return p[:min(len(p), 8)] }

// NVLinkErrors judges the error counters of links since the driver loaded.
func NVLinkErrors(gpus []reports.GPU, from Origin, node string) []reports.Finding {
	var out []reports.Finding
	for _, g := range gpus {
		f := gpuFinding("gpu-nvlink-errors", node, g)
		told, sum := false, uint64(0)
		for _, l := range g.NVLinks {
			for kind, n := range l.Errors {
				told = true
				if n > 0 && !strings.HasPrefix(kind, "crc_flit") || n > 100 {
					sum += n
					f.Evidence = append(f.Evidence, from.of(fmt.Sprintf("link %d %s errors", l.Link, kind), n))
				}
			}
		}
		if !told {
			continue
		}
		slices.SortFunc(f.Evidence, func(a, b reports.Evidence) int { return strings.Compare(a.From, b.From) })
		f.Got = fmt.Sprintf("%d NVLink errors since the driver loaded", sum)
		if sum > 0 {
			f.Verdict, f.Want, f.Remedy = reports.Warn, "0", "measure, then read again: errors that grow under load point at the link's GPU, baseboard or switch"
		}
		out = append(out, f)
	}
	return out
}

// Fabric judges the GPUs' registration with the NVSwitch fabric.
func Fabric(gpus []reports.GPU, from Origin, node string) []reports.Finding {
	var out []reports.Finding
	for _, g := range gpus {
		if g.Fabric == nil {
			continue
		}
		f := gpuFinding("gpu-fabric", node, g)
		f.Got = g.Fabric.State
		f.Evidence = []reports.Evidence{from.of("fabric state", strings.TrimSpace(g.Fabric.State+" "+g.Fabric.Status))}
		ok := g.Fabric.Status == "" || strings.Contains(strings.ToLower(g.Fabric.Status), "success")
		switch {
		case g.Fabric.State == "not_supported":
			f.Verdict, f.Got = reports.NA, "no NVSwitch fabric"
		case g.Fabric.State == "completed" && ok:
		case g.Fabric.State == "in_progress":
			f.Verdict, f.Want, f.Remedy = reports.Fail, "completed", "wait a minute; if it stays, look at the fabric manager's log (nvidia-fabricmanager)"
		default:
			f.Verdict, f.Want, f.Remedy = reports.Fail, "completed", "start the fabric manager of the driver's version (systemctl status nvidia-fabricmanager), then reset the GPUs"
			f.Got = strings.TrimSpace(f.Got + " " + g.Fabric.Status)
		}
		out = append(out, f)
	}
	return out
}
