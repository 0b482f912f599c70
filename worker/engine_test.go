//go:build linux && cgo

package worker

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"busbw/coordinator"
	"busbw/worker/gpu/gputest"
	"busbw/worker/nccl/nccltest"
)

func onFakeNCCL(t *testing.T, env ...string) bool {
	return gputest.OnFake(t, "gpu", append(env, gputest.Libraries+nccltest.Library(t, "nccl"))...)
}

func onNCCL(t *testing.T, engines ...string) *coordinator.Request {
	req := inGPU(t)
	req.Engines, req.NCCL, req.Algorithms = engines, map[string]string{}, []string{"auto"}
	return req
}

// Every operation on the NCCL engine in every scope, beside the native engine:
// 0 wrong, and what NCCL says took effect is in the result.
func TestEveryCaseOnNCCL(t *testing.T) {
	if !onFakeNCCL(t, "FAKECUDA_DEVICES=4") {
		return
	}
	req := onNCCL(t, "native", "nccl")
	req.Sizes = []int64{64, 40_000}
	engines := map[string]int{}
	for _, r := range measureAll(t, testPlan(nil, 2, 2), req) {
		engines[r.Engine]++
		if r.Engine != "nccl" {
			continue
		}
		if r.Algorithm != "nccl" || r.Link != "nccl" || r.Memory != "cuda" || r.Predicted != nil {
			t.Errorf("%s %s: algorithm %s, link %s, memory %s, prediction %v", r.Scope, r.Op, r.Algorithm, r.Link, r.Memory, r.Predicted)
		}
		if r.Effective["nccl network"] != "Socket" || !strings.Contains(r.Effective["nccl channels"], "P2P/direct × ") || r.Effective["nccl version"] != "2.23.4" {
			t.Errorf("took effect: %v", r.Effective)
		}
		small, choice := r.Bytes < 32768, r.Effective["nccl algorithm"]+" "+r.Effective["nccl protocol"]
		if r.Op == "all_reduce" && r.Scope == "global" && choice != map[bool]string{true: "Tree LL", false: "Ring Simple"}[small] {
			t.Errorf("all_reduce of %d B ran by %s", r.Bytes, choice)
		}
	}
	if engines["nccl"] == 0 || engines["nccl"] != engines["native"] {
		t.Errorf("results by engine: %v", engines)
	}
}

// Wrong data of the library is found, and voids the size.
func TestWrongDataOfNCCL(t *testing.T) {
	if !onFakeNCCL(t, "FAKENCCL_WRONG=broadcast") {
		return
	}
	req := onNCCL(t, "nccl")
	plan := testPlan(req.Settings, 2)
	cases, _, err := req.Cases(plan.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	s := &coordinator.Sweep{Run: "test", Nodes: plan.Nodes, Source: "busbw test", Token: make([]byte, 32)}
	if _, err := s.Open(t.Context(), newPipes(t, plan), req); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases[:8] {
		r, err := s.Measure(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := r.Wrong != nil && *r.Wrong > 0; wrong != (r.Op == "broadcast") {
			t.Errorf("%s: wrong %v", c, deref(r.Wrong))
		}
	}
}

// A node without NCCL says so, and nothing runs.
func TestNoNCCL(t *testing.T) {
	if !onFakeGPUs(t) {
		return
	}
	req := onNCCL(t, "nccl")
	plan := testPlan(req.Settings, 2)
	cases, _, err := req.Cases(plan.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	s := &coordinator.Sweep{Run: "test", Nodes: plan.Nodes, Source: "busbw test", Token: make([]byte, 32)}
	if _, err := s.Open(t.Context(), newPipes(t, plan), req); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Measure(t.Context(), cases[0]); err == nil || !strings.Contains(err.Error(), "no NCCL library") {
		t.Error(err)
	}
}

// Files of settings that NCCL reads whatever the environment says are told.
func TestInjectedSettings(t *testing.T) {
	root := fstest.MapFS{"etc/nccl.conf": {Data: []byte("# site\nNCCL_DEBUG=WARN\n\n NCCL_IB_TC=106 \n")}, "home/u/.nccl.conf": {Data: []byte("NCCL_ALGO=Tree\n")}}
	site := []string{"/etc/nccl.conf sets NCCL_DEBUG=WARN", "/etc/nccl.conf sets NCCL_IB_TC=106"}
	for _, c := range []struct {
		home    string
		version int
		want    []string
	}{{"/home/u", 22304, site}, {"/home/u", 22205, append(slices.Clone(site), "/home/u/.nccl.conf sets NCCL_ALGO=Tree")}, {"", 22205, site}, {"/nowhere", 22205, site}} {
		if got := injected(root, c.home, c.version); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
