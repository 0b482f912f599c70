package coordinator

import "fmt"

// The commands that a runner understands, in the order of a run. Bodies and
// answers are the types below.
const (
	KindOpen   = "open"   // OpenBody → OpenReply: listen on the data address
	KindLimits = "limits" // LimitsBody → LimitsReply: measure what this machine allows
	KindCase   = "case"   // CaseBody → CaseReply: connect, allocate, compile
	KindJoin   = "join"   // JoinBody → JoinReply: connect the queue pairs that a case has opened
	KindCheck  = "check"  // CheckBody → CheckReply: fill, run once, compare every element
	KindBatch  = "batch"  // BatchBody → BatchReply: run and time
	KindMark   = "mark"   // nothing → nothing: the timed part begins
	KindPorts  = "ports"  // nothing → PortsReply: what RDMA ports and GPUs have counted since the case began
	KindExit   = "exit"   // nothing → nothing: end the process
)

// OpenBody opens a node's data listener. Token is the launch's secret that
// every data connection shows first.
type OpenBody struct {
	Token []byte   `json:"token"`
	Rails []string `json:"rails,omitempty"` // RDMA ports to use, in turn; none: each rank the nearest
	GPUs  bool     `json:"gpus,omitempty"`  // look for GPUs
}

// OpenReply says where a node can be reached and what it is.
type OpenReply struct {
	Addr     string   `json:"addr"` // "ip:port" of the data listener
	Machine  string   `json:"machine"`
	CPUs     int      `json:"cpus"`
	Version  string   `json:"version"`
	Iface    string   `json:"iface,omitempty"`
	LineGBps *float64 `json:"line_gb_per_s,omitempty"` // of the interface, where the kernel knows it
	RDMA     RDMA     `json:"rdma"`
	GPUs     GPUs     `json:"gpus"` // where they were asked for
}

// LimitsBody asks for the machine's own limits; a node that shares its
// machine with one that measures is told to wait.
type LimitsBody struct {
	Measure bool    `json:"measure"`
	Threads int     `json:"threads"` // ranks on the machine
	Seconds float64 `json:"seconds"` // for each figure
}

// LimitsReply is what a machine allows, measured by the program itself.
type LimitsReply struct {
	MemoryGBps   *float64 `json:"memory_gb_per_s,omitempty"` // bytes read plus bytes written
	MemoryHow    string   `json:"memory_how,omitempty"`
	LoopbackGBps *float64 `json:"loopback_gb_per_s,omitempty"` // both directions added
	LoopbackHow  string   `json:"loopback_how,omitempty"`
	Peer         *Peer    `json:"peer,omitempty"` // where the ranks' buffers are in GPUs
}

// Peer is what each rank of a node can send to the others over what joins
// their GPUs, GB/s, while all do.
type Peer struct {
	Name string  `json:"name"` // "NVLink", "XGMI", "PCIe"
	GBps float64 `json:"gb_per_s"`
	How  string  `json:"how"`
}

// CaseBody is one operation at one size, as every rank must see it.
type CaseBody struct {
	Scope     string   `json:"scope"`
	Op        string   `json:"op"`
	Algorithm string   `json:"algorithm"`
	Dtype     string   `json:"dtype"`
	Redop     string   `json:"redop"`
	Root      int      `json:"root"`  // rank of the group
	Count     int64    `json:"count"` // elements of the whole buffer S
	InPlace   bool     `json:"in_place"`
	Pieces    int      `json:"pieces"`
	Channels  int      `json:"channels"`
	Rotate    bool     `json:"rotate"`
	Huge      bool     `json:"huge"`
	Groups    [][]int  `json:"groups,omitempty"` // global ranks of each group; absent: those of the scope
	Addrs     []string `json:"addrs"`            // data address of each node
	Machines  []string `json:"machines"`         // of each node: equal where they share a clock
	Verbs     bool     `json:"verbs"`            // queue pairs between processes instead of TCP
	Graph     bool     `json:"graph,omitempty"`  // in GPU memory: record what small sizes queue, and replay it
	// NCCL has a unique id for each group: the case runs on NCCL.
	NCCL [][]byte `json:"nccl,omitempty"`
	// Islands puts the buffers in GPU memory; it has GPUs.Islands of every node.
	Islands [][]int `json:"islands,omitempty"`
}

// CaseReply says what a node understood. Digests of all nodes must agree.
type CaseReply struct {
	Digest string `json:"digest"`
	Link   string `json:"link"` // "memory", "tcp", "verbs", "memory+tcp", "memory+verbs", "none"; of GPU memory "cuda", "staged", "cuda+staged+tcp", "cuda+verbs"
	// Hellos of queue pairs that wait for their peers; a join must follow.
	Hellos []Hello `json:"hellos,omitempty"`
	// Effective is what the settings came to on this node, by name.
	Effective map[string]string `json:"effective,omitempty"`
	// Notes are worth a reader's attention: data that goes another way than it could.
	Notes []string `json:"notes,omitempty"`
	// Refused says why this node cannot run this size ("needs 300 GiB, 20 GiB
	// are available"); the run goes on with the next.
	Refused string `json:"refused,omitempty"`
}

// BatchBody is a number of timed iterations.
type BatchBody struct {
	Iterations int    `json:"iterations"`
	Mode       string `json:"mode"` // see Modes
	Aggregate  int    `json:"aggregate"`
}

// Modes of timing. Barrier: an untimed barrier before each iteration.
// Pipelined: iterations follow each other without one. BarrierTimed: the
// barrier is part of the iteration (nccl-tests' -z 1).
const (
	Barrier      = "barrier"
	Pipelined    = "pipelined"
	BarrierTimed = "barrier-timed"
)

// BatchReply is what the ranks of one node measured.
type BatchReply struct {
	Seconds []float64 `json:"seconds"`  // of each iteration: the slowest local rank, for one collective
	RankP50 []float64 `json:"rank_p50"` // of each local rank; 0 for one that is in no group
	// Starts of the first iterations (at most 256), by group that has ranks
	// here, s on the clock of the group's first rank.
	Starts []GroupStarts `json:"starts,omitempty"`
}

// GroupStarts are the first and last start among a group's local ranks.
type GroupStarts struct {
	Group int       `json:"group"`
	First []float64 `json:"first"`
	Last  []float64 `json:"last"`
}

// CheckBody asks for a check of the data; Buffers is how many of the rotated
// buffers to check (1 is the first).
type CheckBody struct {
	Rounds int `json:"rounds"`
}

// CheckReply counts wrong elements on this node's ranks.
type CheckReply struct {
	Wrong int64  `json:"wrong"`
	First string `json:"first,omitempty"` // "rank 3 element 17 of 1024"
}

// Scopes lists what --scope takes.
func Scopes() []string { return []string{"intra", "cross", "global"} }

// Groups lists the global ranks of every group of a scope; the groups run at
// the same time. intra: each node by itself. cross: one rank of each node, for
// every local index. global: all.
func Groups(scope string, nodes []PlanNode) ([][]int, error) {
	var groups [][]int
	first := 0
	switch scope {
	case "intra":
		for _, n := range nodes {
			groups = append(groups, span(first, n.Ranks))
			first += n.Ranks
		}
	case "cross":
		for _, n := range nodes {
			for j := range n.Ranks {
				if j == len(groups) {
					groups = append(groups, nil)
				}
				groups[j] = append(groups[j], first+j)
			}
			first += n.Ranks
		}
	case "global":
		for _, n := range nodes {
			first += n.Ranks
		}
		groups = [][]int{span(0, first)}
	default:
		return nil, fmt.Errorf("unknown scope %q; the scopes are intra, cross and global", scope)
	}
	for _, g := range groups {
		if len(g) != len(groups[0]) {
			return nil, fmt.Errorf("scope %s needs the same number of ranks on every node: one group would have %d ranks and another %d", scope, len(groups[0]), len(g))
		}
	}
	return groups, nil
}

// GroupsOf are the groups of a case: its own, or those of its scope. A rank is
// in one group at most; ranks without one sit the case out.
func GroupsOf(b CaseBody, nodes []PlanNode) ([][]int, error) {
	if b.Groups == nil {
		return Groups(b.Scope, nodes)
	}
	if len(b.Groups) == 0 || len(b.Groups[0]) == 0 {
		return nil, fmt.Errorf("scope %s: no groups of ranks", b.Scope)
	}
	seen := make([]bool, total(nodes))
	for i, g := range b.Groups {
		if len(g) != len(b.Groups[0]) {
			return nil, fmt.Errorf("scope %s: group 0 has %d ranks and group %d has %d", b.Scope, len(b.Groups[0]), i, len(g))
		}
		for _, r := range g {
			if r < 0 || r >= len(seen) || seen[r] {
				return nil, fmt.Errorf("scope %s group %d: rank %d is not one of the %d ranks, or is in two groups", b.Scope, i, r, len(seen))
			}
			seen[r] = true
		}
	}
	return b.Groups, nil
}

// NodeOf says on which node a global rank lives.
func NodeOf(nodes []PlanNode, rank int) int {
	for i, n := range nodes {
		if rank < n.Ranks {
			return i
		}
		rank -= n.Ranks
	}
	return -1
}

func span(first, n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = first + i
	}
	return s
}
