//go:build cgo && linux

package nvml

import (
	"fmt"
	"slices"

	"busbw/reports"
)

// counting are the facts that are counters.
var counting = []string{"pcie_replays", "ecc_corrected", "ecc_uncorrected"}

// Counters reads what each GPU ("GPU3", by NVML's index) has counted since its
// driver loaded, by name: "nvlink_tx_bytes" and "nvlink_rx_bytes" (payload),
// "nvlink_errors/replay", … (of all links together), "pcie_tx_bytes",
// "pcie_rx_bytes", "pcie_replays", "ecc_corrected", "ecc_uncorrected". What a
// GPU does not count is absent.
func (d *Driver) Counters() (map[string]map[string]uint64, error) {
	var which []fact
	for _, f := range facts {
		if slices.Contains(counting, f.name) {
			which = append(which, f)
		}
	}
	gpus, err := d.all(which)
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]uint64{}
	for _, g := range gpus {
		out[fmt.Sprintf("GPU%d", g.Index)] = counted(g)
	}
	return out, nil
}

func counted(g reports.GPU) map[string]uint64 {
	out := map[string]uint64{}
	add := func(name string, v *uint64) {
		if v != nil {
			out[name] += *v
		}
	}
	add("pcie_tx_bytes", g.PCIeTxBytes)
	add("pcie_rx_bytes", g.PCIeRxBytes)
	add("pcie_replays", g.PCIeReplays)
	add("ecc_corrected", g.ECCCorrected)
	add("ecc_uncorrected", g.ECCUncorrected)
	for _, l := range g.NVLinks {
		add("nvlink_tx_bytes", l.TxBytes)
		add("nvlink_rx_bytes", l.RxBytes)
		for name, v := range l.Errors {
			out["nvlink_errors/"+name] += v
		}
	}
	return out
}
