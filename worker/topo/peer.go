package topo

import (
	"fmt"

	"busbw/reports"
)

// usable is what PCIe leaves of its line rate for data: packets of 256 bytes
// with 24 bytes around each, and 3 % for flow control and acknowledgements.
const usable = 256.0 / 280 * 0.97

// Peer is the most that each of several GPUs of a node can send to the others
// while all do, GB/s, and what it goes through: "NVLink", "XGMI", "PCIe". ok
// is false where there are not two GPUs, or their links do not tell.
func Peer(t reports.Topology, gpus []int) (name string, gbps float64, how string, ok bool) {
	if len(gpus) < 2 {
		return "", 0, "", false
	}
	rate := map[[2]int]float64{}
	switched := true
	for _, b := range t.Bonds {
		if b.GBps != nil {
			rate[[2]int{b.A, b.B}], rate[[2]int{b.B, b.A}] = *b.GBps, *b.GBps
		}
		switched = switched && b.Switch
	}
	least, at, bonded := 0.0, 0, true
	for _, a := range gpus {
		if a < 0 || a >= len(t.GPUs) {
			return "", 0, "", false
		}
		sum := 0.0
		for _, b := range gpus {
			r, has := rate[[2]int{a, b}]
			switch {
			case a == b:
			case !has:
				bonded = false
			case switched: // the same links lead to all
				sum = max(sum, r)
			default:
				sum += r
			}
		}
		if least == 0 || sum < least {
			least, at = sum, a
		}
	}
	if bonded {
		if len(t.GPUs[at].XGMI) > 0 {
			return "XGMI", least, fmt.Sprintf("links of GPU%d to the others as amdgpu tells them", at), true
		}
		return "NVLink", least, fmt.Sprintf("links of GPU%d that are up, payload each way", at), true
	}
	return peerPCIe(t, gpus)
}

// Carries is what the NVLinks of a GPU that are up carry each way, GB/s; 0
// where it has none or they do not tell.
func Carries(g reports.GPU) float64 {
	_, _, gbps := sum(g, func(reports.NVLink) bool { return true })
	if gbps == nil {
		return 0
	}
	return *gbps
}

// peerPCIe is Peer where some pair meets on PCIe: the narrowest GPU's own link
// at its best speed, since an idle one runs slower.
func peerPCIe(t reports.Topology, gpus []int) (name string, gbps float64, how string, ok bool) {
	at, least := 0, 0.0
	var link Link
	for _, i := range gpus {
		g := t.GPUs[i]
		if g.PCIeGenMax == nil || g.PCIeWidth == nil || *g.PCIeGenMax < 1 || *g.PCIeGenMax > len(gtps) {
			return "", 0, "", false
		}
		l := Link{gtps[*g.PCIeGenMax-1], *g.PCIeWidth}
		if r := l.GBps() * usable; least == 0 || r < least {
			at, least, link = i, r, l
		}
	}
	return "PCIe", least, fmt.Sprintf("PCIe Gen%d x%d of GPU%d, %.0f %% of its line rate for data", link.Gen(), link.Lanes, at, 100*usable), true
}
