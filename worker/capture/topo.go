package capture

import (
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
	"busbw/worker/topo"
)

// readTopo reads the matrix of nvidia-smi topo -m.
func readTopo(s section) []reports.Finding {
	t, err := topo.ParseSMI(s.node, strings.NewReader(s.text()))
	if err != nil {
		return nil // no matrix, or none that can be read
	}
	out := judge.Nearest(t, "nvidia-smi topo -m", s.node, false)
	for _, odd := range t.Odd {
		out = append(out, reports.Finding{ID: "topology", Node: s.node, Subject: "topology", Verdict: reports.Warn, Got: odd, Want: "as elsewhere in the node",
			Evidence: []reports.Evidence{{From: "nvidia-smi topo -m", Value: odd}}, Remedy: "compare with another node of the kind; look at the device's links and slot"})
	}
	return out
}
