package coordinator

import (
	"math"
	"testing"

	"busbw/collectives"
)

// The limits of two nodes of eight H100 with 400 Gb/s for each GPU.
func TestBoundOfGPUs(t *testing.T) {
	m := Machine{Memory: 8 * 3000, MemoryHow: "m", Wire: 2 * 400, WireName: "NIC line rate", Peer: 450, PeerName: "NVLink", Shared: 1}
	for _, tc := range []struct {
		what                string
		op                  collectives.Op
		n, k, groups, nodes int
		name                string
		gbps                float64
	}{
		{"intra", collectives.AllReduce, 8, 1, 2, 2, "NVLink", 450},
		{"intra broadcast", collectives.Broadcast, 8, 1, 2, 2, "NVLink", 450},
		{"intra alltoall", collectives.AllToAll, 8, 1, 2, 2, "NVLink", 450},
		{"cross: one GPU of each node, eight groups", collectives.AllReduce, 2, 2, 8, 2, "NIC line rate", 50},
		// a tree on two nodes sends a buffer across once: 15/8 of 400, but NVLink and its share of the NICs carry 500
		{"global", collectives.AllReduce, 16, 2, 1, 2, "NVLink", 500},
		{"global all_gather", collectives.AllGather, 16, 2, 1, 2, "NVLink", 500},
	} {
		name, _, gbps, ok := m.Bound(tc.op, tc.n, tc.k, tc.groups, tc.nodes)
		if !ok || name != tc.name || math.Abs(gbps-tc.gbps) > 1e-9*tc.gbps {
			t.Errorf("%s: %s %g %v, want %s %g", tc.what, name, gbps, ok, tc.name, tc.gbps)
		}
	}
	m.Wire = 2 * 25 // one slow adapter a node
	if name, _, gbps, _ := m.Bound(collectives.AllReduce, 16, 2, 1, 2); name != "NIC line rate" || math.Abs(gbps-25*15.0/8) > 1e-9 {
		t.Errorf("slow adapters: %s %g", name, gbps)
	}
	m.Memory = 100 // through a narrow memory
	if name, _, _, _ := m.Bound(collectives.AllReduce, 8, 1, 2, 2); name != "memory bandwidth" {
		t.Errorf("narrow memory: %s", name)
	}
}

// The slowest node's links count, and none where a node does not know its own.
func TestPeerOfNodes(t *testing.T) {
	nvlink := func(gbps float64) LimitsReply {
		return LimitsReply{Peer: &Peer{Name: "NVLink", GBps: gbps, How: "links"}}
	}
	for _, tc := range []struct {
		replies []LimitsReply
		want    float64
		facts   int
	}{
		{[]LimitsReply{nvlink(450), nvlink(400)}, 400, 1},
		{[]LimitsReply{nvlink(450), {}}, 0, 1},
		{[]LimitsReply{{}, nvlink(450)}, 0, 1},
		{[]LimitsReply{nvlink(0), nvlink(450)}, 0, 1},
		{[]LimitsReply{{}, {}}, 0, 0},
	} {
		s := &Sweep{Nodes: []PlanNode{{Host: "a"}, {Host: "b"}}}
		if facts := s.peer(tc.replies); s.machine.Peer != tc.want || len(facts) != tc.facts {
			t.Errorf("%+v: %g, %q", tc.replies, s.machine.Peer, facts)
		}
	}
}
