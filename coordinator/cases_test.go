package coordinator

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

func nodes(ranks ...int) []PlanNode {
	var out []PlanNode
	for _, r := range ranks {
		out = append(out, PlanNode{Host: "n" + string(rune('a'+len(out))), Ranks: r})
	}
	return out
}

func TestGroups(t *testing.T) {
	for _, c := range []struct {
		scope string
		nodes []PlanNode
		want  [][]int
	}{
		{"intra", nodes(2, 2), [][]int{{0, 1}, {2, 3}}},
		{"cross", nodes(2, 2), [][]int{{0, 2}, {1, 3}}},
		{"global", nodes(2, 1), [][]int{{0, 1, 2}}},
		{"cross", nodes(3, 3, 3), [][]int{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}}},
	} {
		got, err := Groups(c.scope, c.nodes)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.scope, got, err, c.want)
		}
	}
	for _, scope := range []string{"intra", "cross", "world"} {
		if _, err := Groups(scope, nodes(2, 1)); err == nil {
			t.Errorf("%s on uneven nodes: no error", scope)
		}
	}
}

// request is a valid request for tests.
func request() *Request {
	v, _, _ := Settings(nil)
	return &Request{Ops: []collectives.Op{collectives.AllReduce}, Algorithms: []string{"ring"}, Scopes: Scopes(), Sizes: []int64{1024},
		Dtype: reduce.Float, InPlace: []bool{false}, Warmup: -1, Aggregate: 1, Checks: 1, Mode: Barrier, Time: time.Millisecond, Settings: v}
}

func TestCasesLeaveOutWithReason(t *testing.T) {
	r := request()
	cases, notes, err := r.Cases(nodes(1, 1))
	if err != nil || len(cases) != 2 || len(notes) != 1 || !strings.Contains(notes[0], "intra") {
		t.Errorf("two nodes of one rank: %d cases, notes %q, %v; want cross and global and a note about intra", len(cases), notes, err)
	}
	r.Scopes = []string{"intra"}
	cases, notes, err = r.Cases(nodes(1))
	if err != nil || len(cases) != 1 || len(notes) != 1 {
		t.Errorf("one rank alone, asked for: %d cases, %q, %v; want it run, and remarked on", len(cases), notes, err)
	}
}

func TestCasesRefuse(t *testing.T) {
	r := request()
	r.Ops, r.Root = []collectives.Op{collectives.Broadcast}, 2
	if _, _, err := r.Cases(nodes(2, 2)); err == nil || !strings.Contains(err.Error(), "root 2") {
		t.Errorf("root outside a group: %v", err)
	}
	r = request()
	r.Ops, r.Algorithms = []collectives.Op{collectives.AllToAll}, []string{"tree"}
	if _, _, err := r.Cases(nodes(2, 2)); err == nil || !strings.Contains(err.Error(), "alltoall has no") {
		t.Errorf("an algorithm that no operation has: %v", err)
	}
	r = request()
	r.Algorithms = []string{"rnig"}
	if err := r.Valid(); err == nil || !strings.Contains(err.Error(), "ring") {
		t.Errorf("misspelt algorithm: %v; want the list", err)
	}
}

func TestCountRoundsBlocks(t *testing.T) {
	for _, c := range []struct {
		op             collectives.Op
		bytes, n, want int64
	}{
		{collectives.AllReduce, 10, 4, 2},
		{collectives.AllGather, 1000, 3, 3 * 80}, // 333 B a rank → 320 B
		{collectives.AllGather, 32, 4, 8},        // 8 B a rank: below 16 it is kept
		{collectives.AllGather, 8, 4, 0},
	} {
		if got := count(c.op, c.bytes, 4, c.n); got != c.want {
			t.Errorf("%s %d B, %d ranks: %d elements, want %d", c.op, c.bytes, c.n, got, c.want)
		}
	}
}

func TestBound(t *testing.T) {
	m := Machine{Memory: 40, Wire: 6, WireName: "loopback stream", Shared: 2}
	// intra: two groups of two ranks share 40 GB/s. Each moves 4·S, so 8·S in
	// all: 0.2 s for 1 GB, busbw 5.
	name, _, g, ok := m.Bound(collectives.AllReduce, 2, 1, 2, 2)
	if !ok || name != "memory bandwidth" || math.Abs(g-5) > 1e-9 {
		t.Errorf("intra: %s %v %v", name, g, ok)
	}
	// cross: two groups move 2·S each between the nodes: 4/6 s, busbw 1.5.
	name, _, g, ok = m.Bound(collectives.AllReduce, 2, 2, 2, 2)
	if !ok || name != "loopback stream" || math.Abs(g-1.5) > 1e-9 {
		t.Errorf("cross: %s %v %v", name, g, ok)
	}
	if _, _, _, ok := (Machine{Memory: 40}).Bound(collectives.AllReduce, 2, 2, 1, 2); ok {
		t.Error("an unknown wire gave a limit")
	}
	if _, _, _, ok := m.Bound(collectives.AllReduce, 1, 1, 1, 1); ok {
		t.Error("one rank has a limit")
	}
}

func TestMedianSkew(t *testing.T) {
	start := func(node int, first, last float64) skew {
		return skew{node: node, GroupStarts: GroupStarts{Group: 0, First: []float64{first}, Last: []float64{last}}}
	}
	got := medianSkew([]skew{start(0, 1, 2), start(1, 1.5, 4), start(0, 10, 11), start(1, 10, 10.5)})
	if got == nil || *got != 2 { // 3 and 1
		t.Errorf("got %v, want the median of 3 and 1", got)
	}
	short := start(1, 1, 2)
	short.First, short.Last = nil, nil
	if got := medianSkew([]skew{start(0, 1, 2), short}); got != nil {
		t.Errorf("a node with fewer starts gave %v", *got)
	}
	if got := medianSkew(nil); got != nil {
		t.Errorf("nothing measured gave %v", *got)
	}
}
