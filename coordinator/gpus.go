package coordinator

import (
	"fmt"
	"slices"
	"strings"
)

// Memories lists what --memory takes.
func Memories() []string { return []string{"auto", "host", "gpu"} }

// GPUs says whose memory a node's ranks would use.
type GPUs struct {
	None string   `json:"none,omitempty"` // why there is none
	Own  []string `json:"own,omitempty"`  // of each local rank: "GPU 0 (NVIDIA H100 80GB HBM3, 0000:18:00.0)"
	IDs  []string `json:"ids,omitempty"`  // of each of these: its UUID
	// Islands has a number for each local rank: ranks with equal numbers read
	// and write each other's memory.
	Islands []int    `json:"islands,omitempty"`
	Notes   []string `json:"notes,omitempty"` // why some ranks are on islands of their own
}

// place decides whether the buffers are in GPU memory: where the user says so,
// and with auto where every node has a GPU for each rank. facts are for the
// header of the run.
func (s *Sweep) place(nodes []OpenReply) (facts []string, err error) {
	if s.req.Memory != "gpu" && s.req.Memory != "auto" {
		return nil, nil
	}
	why, some := "", false
	for i, n := range nodes {
		none := n.GPUs.None
		distinct := slices.Clone(n.GPUs.Own)
		slices.Sort(distinct)
		distinct = slices.Compact(distinct)
		switch {
		case none == "" && len(n.GPUs.Own) != s.Nodes[i].Ranks || none == "" && len(n.GPUs.Islands) != len(n.GPUs.Own) || none == "" && len(n.GPUs.IDs) != len(n.GPUs.Own):
			none = "it does not say which"
		case none == "" && s.req.Memory == "auto" && len(distinct) < len(n.GPUs.Own):
			some, none = true, fmt.Sprintf("%d GPUs for %d ranks (--memory gpu shares them)", len(distinct), len(n.GPUs.Own))
			if s.req.OnNCCL() {
				none = fmt.Sprintf("%d GPUs for %d ranks, and NCCL takes one rank a GPU", len(distinct), len(n.GPUs.Own))
			}
		case none == "":
			some = true
		}
		if none != "" && why == "" {
			why = fmt.Sprintf("%s: %s", NodeName(s.Nodes, i), clean(none, 400))
		}
	}
	switch {
	case why != "" && s.req.OnNCCL():
		return nil, fmt.Errorf("--engine nccl: %s", why)
	case why != "" && s.req.Memory == "gpu":
		return nil, fmt.Errorf("--memory gpu: %s", why)
	case why != "" && some:
		return []string{"buffers in host memory, though some nodes have GPUs; " + why}, nil
	case why != "":
		return nil, nil
	}
	s.gpu = true
	for i, n := range nodes {
		s.islands = append(s.islands, n.GPUs.Islands)
		var own []string
		for _, g := range n.GPUs.Own {
			own = append(own, clean(g, 100))
		}
		if i < 8 {
			facts = append(facts, fmt.Sprintf("buffers in GPU memory; %s: %s", NodeName(s.Nodes, i), strings.Join(own, ", ")))
		}
		for _, t := range n.GPUs.Notes {
			if t = clean(NodeName(s.Nodes, i)+": "+t, 300); len(s.gpuNotes) < 16 {
				s.gpuNotes = append(s.gpuNotes, t)
			}
		}
	}
	return facts, nil
}
