package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/reports"
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

// measuring is a launch whose nodes tell the next of these loopback rates each
// time that limits are asked for.
type measuring struct {
	gbps  []float64
	asked int
}

func (m *measuring) Do(_ context.Context, kind string, body func(int) any, _ time.Duration) ([]json.RawMessage, error) {
	if kind != KindLimits || !body(0).(LimitsBody).Measure || body(1).(LimitsBody).Measure {
		return nil, fmt.Errorf("%s %+v", kind, body(1))
	}
	wire, memory := m.gbps[min(m.asked, len(m.gbps)-1)], 100.0
	m.asked++
	first, err := json.Marshal(LimitsReply{LoopbackGBps: &wire, LoopbackHow: "test", MemoryGBps: &memory})
	return []json.RawMessage{first, json.RawMessage("{}")}, err
}

// A limit that a figure exceeds is measured again; the larger counts, and a
// figure that stays above it is not tried for ever.
func TestAgain(t *testing.T) {
	c := Case{op: collectives.AllReduce, groups: [][]int{{0, 1}}, params: collectives.Params{Ranks: 2, Nodes: []int{0, 1}}}
	for _, tc := range []struct {
		gbps  []float64
		bus   float64
		limit float64 // of two nodes with a rank each: half of the stream
		asked int
	}{
		{[]float64{4}, 1.9, 2, 1},
		{[]float64{0.79, 4}, 1.9, 2, 2},
		{[]float64{0.79, 2, 3.9}, 1.9, 1.95, 3},
		{[]float64{0.79, 0.42, 0.42, 0.42}, 1.9, 0.395, 2},
	} {
		m := &measuring{gbps: tc.gbps}
		s := &Sweep{session: m, Nodes: []PlanNode{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 1}}}
		s.opened = []OpenReply{{Machine: "m", CPUs: 2}, {Machine: "m", CPUs: 2}}
		if _, err := s.limits(t.Context(), s.opened); err != nil {
			t.Fatal(err)
		}
		for range 2 { // results
			res := reports.Result{Ranks: 2, Bytes: 1e9, Seconds: []float64{1 / tc.bus}, Limit: s.bound(c)}
			if err := s.again(t.Context(), c, &res); err != nil || res.Limit == nil || math.Abs(res.Limit.GBps-tc.limit) > 1e-9 {
				t.Fatalf("%v: limit %+v, %v; want %g GB/s", tc.gbps, res.Limit, err, tc.limit)
			}
		}
		if m.asked != tc.asked {
			t.Errorf("%v: measured %d times; want %d", tc.gbps, m.asked, tc.asked)
		}
		// The next launch on these nodes takes what is known.
		next := &Sweep{session: m, Nodes: s.Nodes, Known: s.Known}
		if _, err := next.takeLimits(t.Context(), s.opened); err != nil || m.asked != tc.asked || next.machine != s.machine {
			t.Errorf("%v: the next launch has %+v, %v, measured %d times; want %+v", tc.gbps, next.machine, err, m.asked, s.machine)
		}
	}
}
