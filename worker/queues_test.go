package worker

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"busbw/collectives"
	"busbw/coordinator"
)

// meshCase is a case of all ranks as every node reads it.
func meshCase(t *testing.T, r *runner, op collectives.Op, algo string, groups [][]int) *liveCase {
	t.Helper()
	p := collectives.Params{Ranks: len(groups[0]), Pieces: 1, Channels: 1}
	for _, g := range groups[0] {
		p.Nodes = append(p.Nodes, coordinator.NodeOf(r.plan.Nodes, g))
	}
	c := &liveCase{groups: groups, shape: fmt.Sprint(op, algo, groups)}
	var err error
	if c.Schedule, err = collectives.New(op, algo, p); err != nil {
		t.Fatal(err)
	}
	return c
}

// Every node finds the same connections from the same cases, both ends of each
// name it, and only a case that needs one more opens any.
func TestMeshGrows(t *testing.T) {
	plan := testPlan(nil, 2, 2, 2, 2)
	r := &runner{plan: plan}
	m := &mesh{shapes: map[string]bool{}, peers: map[int][]int{}}
	all := [][]int{{0, 1, 2, 3, 4, 5, 6, 7}}
	if m.add(r, meshCase(t, r, collectives.AllReduce, "ring", [][]int{{0, 1}})) || len(m.peers) != 0 {
		t.Errorf("a group inside a node opened %v", m.peers)
	}
	ring := meshCase(t, r, collectives.AllReduce, "ring", all)
	if !m.add(r, ring) || m.add(r, ring) {
		t.Error("the first ring opens connections, the second none")
	}
	for a, peers := range m.peers {
		for _, b := range peers {
			if !slices.Contains(m.peers[b], a) {
				t.Errorf("rank %d names %d, which does not name it: %v", a, b, m.peers)
			}
			if a/2 == b/2 {
				t.Errorf("ranks %d and %d share a process", a, b)
			}
		}
	}
	few := len(m.peers[1])
	if !m.add(r, meshCase(t, r, collectives.AllToAll, "direct", all)) || len(m.peers[1]) != 6 || few >= 6 {
		t.Errorf("rank 1 has %d peers after a ring and %v after alltoall", few, m.peers[1])
	}
}

// Every node is asked for its devices; without any it says so, and a rail that
// the user names is then an error.
func TestNoRails(t *testing.T) {
	plan := testPlan(map[string]string{}, 1, 1)
	r := &runner{plan: plan, root: fstest.MapFS{}}
	got, err := r.openRails(nil)
	if err != nil || got.Here || got.None != "it has no RDMA device" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := r.openRails([]string{"mlx5_0"}); err == nil {
		t.Error("--rails on a node without devices was taken")
	}
	r.root = fstest.MapFS{"sys/class/infiniband/mlx5_0/ports/1/state": {Data: []byte("1: DOWN\n")}, "sys/class/infiniband/mlx5_0/ports/1/phys_state": {Data: []byte("3: Disabled\n")}}
	if got, err := r.openRails(nil); err != nil || !got.Here || got.None != "no port can be used: mlx5_0:1: disabled by an administrator" {
		t.Errorf("a port that is down: %+v, %v", got, err)
	}
	plan.Settings["NCCL_IB_DISABLE"] = "1"
	if got, err := r.openRails(nil); err != nil || got.None != "NCCL_IB_DISABLE is 1" {
		t.Errorf("RDMA disabled: %+v, %v", got, err)
	}
}
