package worker

import (
	"fmt"
	"testing"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/reports"
)

// Pairs of nodes run at the same time while other ranks and nodes sit the case
// out, and those play again in the next case.
func TestPairsLeaveOthersOut(t *testing.T) {
	plan := testPlan(nil, 2, 2, 2)
	req := testRequest(t)
	plan.Settings = req.Settings
	p := newPipes(t, plan)
	s := &coordinator.Sweep{Run: "test", Nodes: plan.Nodes, Source: "busbw test", Token: make([]byte, 32)}
	if _, err := s.Open(t.Context(), p, req); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pairs []reports.Pair
		d     coordinator.Direction
	}{
		{[]reports.Pair{{A: 0, B: 1, Rail: 0}, {A: 0, B: 1, Rail: 1}}, coordinator.Both},
		{[]reports.Pair{{A: 2, B: 0, Rail: 1}}, coordinator.Forth},
		{[]reports.Pair{{A: 2, B: 1, Rail: 0}, {A: 1, B: 0, Rail: 1}}, coordinator.Back},
	} {
		pc, err := req.PairCase(plan.Nodes, c.pairs, c.d, 100_000)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Measure(t.Context(), pc)
		if err != nil {
			t.Fatalf("%v %s: %v", c.pairs, c.d, err)
		}
		if r.Wrong == nil || *r.Wrong != 0 || r.Link != "tcp" || len(r.RankP50) != 2*len(c.pairs) || fmt.Sprint(r.Pairs) != fmt.Sprint(c.pairs) {
			t.Errorf("%v %s: wrong %v, link %q, medians %v, pairs %v", c.pairs, c.d, deref(r.Wrong), r.Link, r.RankP50, r.Pairs)
		}
		if err := r.Check(); err != nil {
			t.Errorf("the record is not valid: %v", err)
		}
		for _, x := range r.RankP50 {
			if x <= 0 {
				t.Errorf("%v %s: a rank of a pair took %g s", c.pairs, c.d, x)
			}
		}
	}
	cases, _, err := req.Cases(plan.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Measure(t.Context(), cases[0]); err != nil || r.Wrong == nil || *r.Wrong != 0 {
		t.Errorf("%s after the pairs: wrong %v, %v", cases[0], deref(r.Wrong), err)
	}
}

// Blocks of nodes run at the same time; what fills no block sits it out.
func TestBlocks(t *testing.T) {
	plan := testPlan(nil, 2, 2, 2, 2, 2)
	req := testRequest(t)
	plan.Settings = req.Settings
	p := newPipes(t, plan)
	s := &coordinator.Sweep{Run: "test", Nodes: plan.Nodes, Source: "busbw test", Token: make([]byte, 32)}
	if _, err := s.Open(t.Context(), p, req); err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{1, 2, 5} {
		c, err := req.BlockCase(plan.Nodes, k, collectives.AllReduce, 100_000)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Measure(t.Context(), c)
		if err != nil || r.Wrong == nil || *r.Wrong != 0 || r.Groups != 5/k || r.Ranks != 2*k || len(r.RankP50) != r.Ranks*r.Groups {
			t.Errorf("blocks of %d: wrong %v, %d groups of %d, %v", k, deref(r.Wrong), r.Groups, r.Ranks, err)
		}
	}
	if _, err := req.BlockCase(plan.Nodes, 6, collectives.AllReduce, 100_000); err == nil {
		t.Error("blocks of 6 among 5 nodes: no error")
	}
}

func TestGroupsAreChecked(t *testing.T) {
	nodes := testPlan(nil, 2, 2).Nodes
	for _, groups := range [][][]int{{}, {{}}, {{0, 4}}, {{-1, 0}}, {{0, 1}, {1, 2}}, {{0, 0}}, {{0, 1}, {2}}} {
		if g, err := coordinator.GroupsOf(coordinator.CaseBody{Scope: "pairs", Groups: groups}, nodes); err == nil {
			t.Errorf("groups %v: %v, no error", groups, g)
		}
	}
}
