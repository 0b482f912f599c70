package coordinator

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Engines lists what --engine takes. native: busbw's own schedules. nccl: the
// NCCL library of each node, in GPU memory.
func Engines() []string { return []string{"native", "nccl"} }

// KindNCCL has a node load NCCL and make the unique id of every group whose
// first rank it has: NCCLBody → NCCLReply.
const KindNCCL = "nccl"

// NCCLBody names the groups, by global rank.
type NCCLBody struct {
	Groups [][]int `json:"groups"`
}

// NCCLReply has an id for each group, empty where another node makes it.
type NCCLReply struct {
	Version string   `json:"version"` // "2.23.4"
	IDs     [][]byte `json:"ids"`
	Notes   []string `json:"notes,omitempty"` // settings that a file of the node injects
}

// communicators has the nodes agree on the ids of a case's groups; they stay
// until the groups change.
func (s *Sweep) communicators(ctx context.Context, c Case) ([][]byte, error) {
	key := fmt.Sprint(c.groups)
	if s.ncclKey == key {
		return s.ncclIDs, nil
	}
	replies, err := ask[NCCLReply](ctx, s, KindNCCL, func(int) any { return NCCLBody{c.groups} }, grace)
	if err != nil {
		return nil, err
	}
	ids := make([][]byte, len(c.groups))
	for i, r := range replies {
		if r.Version != replies[0].Version {
			return nil, fmt.Errorf("%s has NCCL %s and %s has %s: install one version everywhere", NodeName(s.Nodes, i), clean(r.Version, 40), NodeName(s.Nodes, 0), clean(replies[0].Version, 40))
		}
		if len(r.IDs) != len(ids) {
			return nil, fmt.Errorf("%s answered with %d ids for %d groups", NodeName(s.Nodes, i), len(r.IDs), len(ids))
		}
		for g, id := range r.IDs {
			if len(id) > 0 && NodeOf(s.Nodes, c.groups[g][0]) == i {
				ids[g] = id
			}
		}
		for _, n := range r.Notes {
			if n = clean(NodeName(s.Nodes, i)+": "+n, 300); len(s.ncclNotes) < 16 {
				s.ncclNotes = append(s.ncclNotes, n)
			}
		}
	}
	for g, id := range ids {
		if len(id) != ncclIDBytes {
			return nil, fmt.Errorf("%s made no id for group %d", NodeName(s.Nodes, NodeOf(s.Nodes, c.groups[g][0])), g)
		}
	}
	s.ncclKey, s.ncclIDs = key, ids
	return ids, nil
}

// shareGPU says which ranks of a case NCCL would refuse to have in one communicator,
// for they are on one GPU; "": none. From 2.31 on a variable allows it.
func (s *Sweep) shareGPU(c Case) string {
	if v := s.req.NCCL["NCCL_MULTI_RANK_GPU_ENABLE"]; v != "" && v != "0" {
		return ""
	}
	for _, g := range c.groups {
		first := map[string]int{} // rank, by machine and GPU
		for _, rank := range g {
			node := NodeOf(s.Nodes, rank)
			local := rank - total(s.Nodes[:node])
			has := s.opened[node].GPUs
			key := s.machines[node] + "\x00" + has.IDs[local]
			if other, twice := first[key]; twice {
				return fmt.Sprintf("ranks %d and %d are both on %s of %s, and NCCL takes one rank a GPU: fewer ranks, or the native engine", other, rank, clean(has.Own[local], 100), NodeName(s.Nodes, node))
			}
			first[key] = rank
		}
	}
	return ""
}

// ncclIDBytes is the size of ncclUniqueId.
const ncclIDBytes = 128

// maxNCCLValue bounds the value of a variable of NCCL.
const maxNCCLValue = 4096

// NCCLEnviron is what this process's environment sets for NCCL itself, for
// runners of the nccl engine: with that engine no default of ours is passed on.
func NCCLEnviron() map[string]string {
	set := map[string]string{}
	for _, kv := range os.Environ() {
		if name, v, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "NCCL_") && len(set) < 256 && len(v) < maxNCCLValue {
			set[name] = v
		}
	}
	return set
}

// OnNCCL says whether some of the request runs on NCCL.
func (r *Request) OnNCCL() bool { return slices.Contains(r.Engines, "nccl") }

// NCCLSettings are the settings of a run on NCCL alone: what busbw itself needs
// to find its way. All other variables go to NCCL as they are.
func NCCLSettings() (map[string]string, error) {
	var own []string
	for _, name := range []string{"NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY"} {
		if v, ok := os.LookupEnv(name); ok {
			own = append(own, name+"="+v)
		}
	}
	values, _, err := Settings(own)
	return values, err
}

// onEngines are an operation's cases on every engine that is asked for. NCCL
// has no algorithms to ask for here: each size is one case.
func (r *Request) onEngines(native []Case) (out []Case) {
	if !r.OnNCCL() {
		return native
	}
	if slices.Contains(r.Engines, "native") {
		out = native
	}
	seen := map[string]bool{}
	for _, c := range native {
		if key := fmt.Sprint(c.bytes, c.inPlace); !seen[key] {
			seen[key] = true
			c.nccl, c.auto = true, false
			out = append(out, c)
		}
	}
	return out
}

// OnNCCL says whether the case runs on NCCL.
func (c Case) OnNCCL() bool { return c.nccl }
