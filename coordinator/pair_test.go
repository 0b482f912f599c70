package coordinator

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"busbw/reports"
)

// Every node is tested with its next one, and no node is in two pairs at once.
func TestNeighbours(t *testing.T) {
	for n := range 9 {
		pairs := map[string]bool{}
		for _, round := range Neighbours(n) {
			busy := map[int]bool{}
			for _, ab := range round {
				if ab[1] != (ab[0]+1)%n || busy[ab[0]] || busy[ab[1]] {
					t.Errorf("%d nodes: round %v", n, round)
				}
				busy[ab[0]], busy[ab[1]], pairs[fmt.Sprint(ab)] = true, true, true
			}
		}
		want := n
		if n == 2 {
			want = 1
		} else if n < 2 {
			want = 0
		}
		if len(pairs) != want {
			t.Errorf("%d nodes: %d pairs, want %d: %v", n, len(pairs), want, pairs)
		}
	}
}

func TestPairRecords(t *testing.T) {
	p := &PairSweep{QPs: 2, Depth: 128, rails: []Rail{rail("a:1", "InfiniBand", 4096, 50), rail("b:1", "InfiniBand", 4096, 25)}, round: [][2]int{{0, 1}}}
	p.Nodes, p.req = nodes(1, 1), request()
	p.verbs = &reports.Verbs{Rails: []string{"a:1 LID 1", "b:1 LID 2"}, QPs: 2, MTU: 4096}
	d := &told{replies: []PairTimes{{Seconds: []float64{1e-3, 2e-3}, Messages: 200, Settled: true}, {}}}
	p.session = d
	rs, err := p.Measure(t.Context(), PairTest{Kind: "write_bw", Both: true, Size: 1 << 20})
	if err != nil || len(rs) != 1 {
		t.Fatal(rs, err)
	}
	r := rs[0]
	if err := r.Check(); err != nil || r.Op != "write_bw" || r.Mode != "pipelined" || r.Ranks != 2 || r.Config["pair"] != "na to nb" || r.Config["queue_pairs"] != "2" {
		t.Errorf("%+v, %v", r, err)
	}
	if r.Limit == nil || math.Abs(r.Limit.GBps-25*4096/4122.0) > 1e-9 || !strings.Contains(strings.Join(r.Notes, ";"), "both directions") {
		t.Errorf("limit %+v, notes %q", r.Limit, r.Notes)
	}
	if !d.asked[0].(PairTest).First || d.asked[1].(PairTest).First {
		t.Errorf("asked %+v: node 0 measures, node 1 serves", d.asked)
	}
	rs, err = p.Measure(t.Context(), PairTest{Kind: "read_lat", Size: 8})
	if err != nil || rs[0].Limit != nil || rs[0].Mode != "ping-pong" || !strings.Contains(strings.Join(rs[0].Notes, ";"), "a whole read") || !strings.Contains(strings.Join(rs[0].Notes, ";"), "2 of 200 messages") {
		t.Errorf("%+v, %v", rs, err)
	}
	d.replies = []PairTimes{{}, {}}
	if _, err := p.Measure(t.Context(), PairTest{Kind: "write_bw", Size: 8}); err == nil {
		t.Error("no time, no error")
	}
}

// A member without RDMA ends a link test, with its reason: there is no other way.
func TestPairNeedsRDMA(t *testing.T) {
	p := &PairSweep{}
	p.Nodes = nodes(1, 1)
	d := &told{replies: []OpenReply{{RDMA: RDMA{Here: true, Rails: []Rail{rail("a:1", "InfiniBand", 4096, 50)}}}, {RDMA: RDMA{None: "it has no RDMA device"}}}}
	_, err := p.Open(t.Context(), d, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 have none: node 1 (nb) has no RDMA: it has no RDMA device") {
		t.Error(err)
	}
}
