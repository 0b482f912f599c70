package judge

import (
	"slices"

	"busbw/reports"
)

// Nearest judges how far the nearest NIC of each GPU is. In a virtual machine
// (guest) the tree that is shown need not be the machine's.
func Nearest(t reports.Topology, from Origin, node string, guest bool) []reports.Finding {
	var out []reports.Finding
	for _, u := range t.Use {
		if len(u.NICs) == 0 || u.GPU >= len(t.GPUs) || u.Path == "" {
			continue
		}
		var names []string
		for _, n := range u.NICs {
			if n < len(t.NICs) && t.NICs[n].RDMA {
				names = append(names, t.NICs[n].Name)
			}
		}
		if names == nil {
			continue
		}
		f := gpuFinding("gpu-nic-distance", node, t.GPUs[u.GPU])
		f.Got, f.Want = u.Path+" to "+list(names), "PIX or PXB (PCIe switches between)"
		f.Evidence = []reports.Evidence{from.of("", f.Got)}
		switch {
		case u.Path == "?", guest:
			f.Verdict = reports.Unknown
			if guest {
				f.Got += "; in a virtual machine the tree need not be the machine's"
			}
		case !slices.Contains([]string{"PIX", "PXB"}, u.Path):
			f.Verdict = reports.Warn
			f.Remedy = "no NIC is below this GPU's switch, and GPUDirect goes through the CPU: move the card to a slot there where one is, and do not expect the NIC's full rate from GPU memory"
		}
		out = append(out, f)
	}
	return out
}
