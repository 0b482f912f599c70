package worker

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"busbw/reports"
	"busbw/worker/gpu"
	"busbw/worker/topo"
)

// levels are the paths that NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL name, nearest
// first (NCCL 2.30, src/graph/topo.cc). Of NVB and PXN, ways through a third GPU,
// this engine takes none: as levels they let through what is nearer, and where NCCL
// would take NVB that is said.
var levels = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}

// level is a setting as a word: numbers are those of older versions of NCCL, where
// what is beyond the last is the last (src/graph/paths.cc).
func level(set string) string {
	if set == "" || set[0] < '0' || set[0] > '9' {
		return set
	}
	old := []string{"LOC", "PIX", "PXB", "PHB", "SYS"}
	return old[min(int(set[0]-'0'), len(old)-1)]
}

// distance is a path's place in levels. To NCCL the bridges of one NUMA node,
// NODE, are one host bridge (src/graph/paths.cc); what cannot be seen is far.
func distance(path string) int {
	switch {
	case path == "NODE":
		path = "PHB"
	case strings.HasPrefix(path, "NV") && path != "NVB":
		path = "NVL"
	}
	if at := slices.Index(levels, path); at >= 0 {
		return at
	}
	return len(levels) - 1
}

// within says that a path is no farther than a level.
func within(path, level string) bool { return distance(path) <= slices.Index(levels, level) }

const unknownPath = "not known"

// nearness is what of NCCL's rules depends on a node's GPUs and RDMA devices.
type nearness struct {
	t        reports.Topology
	settings map[string]string
	gpus     int  // that the ranks of the node use
	amd      bool // the node's processors are AMD's
}

// nearness reads the node.
func (r *runner) nearness() nearness {
	known, none := localGPUs(r.root)
	n := nearness{t: topo.Read("", r.root, known, none), settings: r.plan.Settings}
	var own []int
	for _, g := range r.gpus.own {
		own = append(own, g.Ordinal)
	}
	n.gpus = len(slices.Compact(slices.Sorted(slices.Values(own))))
	cpu, _ := fs.ReadFile(r.root, "proc/cpuinfo") // without it the rule for most processors holds
	n.amd = bytes.Contains(cpu, []byte("AuthenticAMD"))
	return n
}

// peers is the farthest path on which two GPUs reach each other's memory, and who
// says so. Not set, NCCL goes as far as PXB: no processor lies between them; with
// two GPUs on AMD's processors anywhere (src/graph/paths.cc, ncclTopoCheckP2p).
func (n nearness) peers() (to, said string) {
	switch set := n.settings["NCCL_P2P_LEVEL"]; {
	case set != "":
		return level(set), "NCCL_P2P_LEVEL=" + set
	case n.amd && n.gpus <= 2:
		return "SYS", "NCCL_P2P_LEVEL is SYS where it is not set, of two GPUs on AMD processors"
	}
	return "PXB", "NCCL_P2P_LEVEL is PXB where it is not set"
}

// apart is why two GPUs do not reach each other's memory by NCCL_P2P_LEVEL, or "".
// Where that is not set and the path not known, it is left to the driver, which
// offers peer access or does not.
func (n nearness) apart(a, b gpu.Info) string {
	i, j := n.find(a), n.find(b)
	path := unknownPath
	if i >= 0 && j >= 0 {
		path = n.t.Paths[i][j]
	}
	to, said := n.peers()
	if n.settings["NCCL_P2P_LEVEL"] == "" && (path == unknownPath || path == topo.Unknown) || within(path, to) {
		return ""
	}
	return fmt.Sprintf("%s and the path between them is %s", said, path)
}

// bridged says that NCCL would go from one GPU to the other over a third, which has
// NVLinks to both (src/graph/paths.cc, PATH_NVB); "": it would not.
func (n nearness) bridged(a, b gpu.Info) string {
	to, _ := n.peers()
	i, j := n.find(a), n.find(b)
	if i < 0 || j < 0 || distance(n.t.Paths[i][j]) <= distance("NVL") || !within("NVB", to) {
		return ""
	}
	for x := range n.t.GPUs {
		if x != i && x != j && distance(n.t.Paths[i][x]) == distance("NVL") && distance(n.t.Paths[x][j]) == distance("NVL") {
			return fmt.Sprintf("NCCL would go through GPU %d, which has NVLinks to both (NVB)", x)
		}
	}
	return ""
}

func (n nearness) find(g gpu.Info) int {
	return slices.IndexFunc(n.t.GPUs, func(x reports.GPU) bool { return gpu.SamePCI(x.PCI, g.PCI) })
}

// far is why an RDMA device does not reach a GPU's memory by NCCL_NET_GDR_LEVEL, or
// "". Not set, NCCL goes as far as P2C: PCIe switches, but no processor, unless
// the GPU is joined to that by NVLink-C2C; with NCCL_NET_GDR_C2C=0 as far as PXB.
func (n nearness) far(g gpu.Info, device string) string {
	to := level(n.settings["NCCL_NET_GDR_LEVEL"])
	if to == "" {
		to = "P2C"
		if n.settings["NCCL_NET_GDR_C2C"] == "0" {
			to = "PXB"
		}
	}
	i, d := n.find(g), slices.IndexFunc(n.t.NICs, func(x reports.NIC) bool { return x.Name == device })
	path := unknownPath
	if i >= 0 && d >= 0 {
		path = n.overC2C(i, n.t.Paths[i][len(n.t.GPUs)+d])
	}
	if within(path, to) {
		return ""
	}
	return fmt.Sprintf("the path between GPU %d and %s is %s, beyond NCCL_NET_GDR_LEVEL=%s", g.Ordinal, device, path, to)
}

// overC2C makes P2C of a path through the processor where the GPU is joined to
// that by NVLink-C2C, and no other adapter is nearer.
func (n nearness) overC2C(g int, path string) string {
	c2c := n.t.GPUs[g].C2C
	if c2c == nil || !*c2c || distance(path) != slices.Index(levels, "PHB") ||
		slices.ContainsFunc(n.t.Paths[g][len(n.t.GPUs):], func(w string) bool { return distance(w) < distance(path) }) {
		return path
	}
	return "P2C"
}

// noReads is why RDMA devices do not read a GPU's memory when they send, or "":
// NCCL_NET_GDR_READ. Not set, they do, from Ampere on, and before where the GPU is
// the only one or has NVLinks to others (src/graph/paths.cc, ncclTopoCheckGdr).
func (n nearness) noReads(g gpu.Info) string {
	switch set := n.settings["NCCL_NET_GDR_READ"]; {
	case set == "0":
		return "NCCL_NET_GDR_READ=0"
	case set != "" || g.Major >= 8 || n.gpus <= 1:
		return ""
	}
	if i := n.find(g); i >= 0 && slices.ContainsFunc(n.t.Paths[i][:len(n.t.GPUs)], func(w string) bool { return strings.HasPrefix(w, "NV") }) {
		return ""
	}
	return "NCCL_NET_GDR_READ is 0 where it is not set, of GPUs before Ampere without NVLink"
}
