//go:build linux && cgo

package worker

import (
	"slices"
	"strings"
	"testing"

	"busbw/collectives"
	"busbw/collectives/reduce"
	"busbw/coordinator"
	"busbw/reports"
	"busbw/worker/gpu/gputest"
)

// inGPU is a request for buffers in GPU memory.
func inGPU(t *testing.T, env ...string) *coordinator.Request {
	req := testRequest(t, env...)
	req.Memory, req.Iterations, req.Checks = "gpu", 2, 2
	return req
}

// links lists the scopes and links of results, each once.
func links(all []reports.Result) (out []string) {
	for _, r := range all {
		if l := r.Scope + " " + r.Link; !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	slices.Sort(out)
	return out
}

func onFakeGPUs(t *testing.T, env ...string) bool { return gputest.OnFake(t, "gpu", env...) }

// Every operation in every scope, in GPU memory. The suite of worker/gpu has
// every algorithm.
func TestEveryCaseOnGPUs(t *testing.T) {
	if !onFakeGPUs(t, "FAKECUDA_DEVICES=4") {
		return
	}
	req := inGPU(t)
	req.Sizes, req.Algorithms, req.Checks = []int64{4, 40_000}, []string{"auto", "ring", "tree"}, 1
	if testing.Short() {
		req.Ops = []collectives.Op{collectives.AllReduce, collectives.AllToAll}
	}
	all := measureAll(t, testPlan(nil, 2, 2), req)
	if got := links(all); !slices.Equal(got, []string{"cross tcp", "global cuda+tcp", "intra cuda"}) {
		t.Error(got)
	}
	for _, r := range all {
		if want := map[bool]string{true: "graph", false: "each pass"}[r.Link == "cuda"]; r.Effective["gpu launch"] != want {
			t.Errorf("%s over %s: launched by %q", r.Op, r.Link, r.Effective["gpu launch"])
		}
		if r.Memory != "cuda" || r.Limit != nil || r.Predicted != nil {
			t.Fatalf("%s memory, limit %v, prediction %v", r.Memory, r.Limit, r.Predicted)
		}
		if between := slices.ContainsFunc(r.Notes, func(s string) bool { return strings.Contains(s, "between nodes") }); between != strings.HasSuffix(r.Link, "tcp") {
			t.Errorf("%s: notes %q", r.Link, r.Notes)
		}
	}
}

// How ranks of a node reach each other depends on the devices and on NCCL's
// variables, and is named.
func TestPathsBetweenGPUs(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		nccl []string
		want string
		note string
	}{
		{"peer access", nil, nil, "cuda", ""},
		{"none", []string{"FAKECUDA_P2P=none"}, nil, "staged", "the driver offers no peer access"},
		{"pairs", []string{"FAKECUDA_P2P=pairs"}, nil, "cuda+staged", "GPUs 0 and 2"},
		{"disabled", nil, []string{"NCCL_P2P_DISABLE=1"}, "staged", "NCCL_P2P_DISABLE=1"},
		{"level", nil, []string{"NCCL_P2P_LEVEL=PHB"}, "staged", "NCCL_P2P_LEVEL=PHB and the path between them is"},
		{"farthest level", nil, []string{"NCCL_P2P_LEVEL=5"}, "cuda", ""},
		{"nothing shared", nil, []string{"NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1"}, "tcp", "NCCL_P2P_DISABLE=1"},
		{"two ranks a device", []string{"FAKECUDA_DEVICES=2"}, nil, "cuda", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !onFakeGPUs(t, append([]string{"FAKECUDA_DEVICES=4"}, c.env...)...) {
				return
			}
			req := scopes(inGPU(t, c.nccl...), "intra")
			req.Ops, req.Algorithms, req.Sizes = []collectives.Op{collectives.AllReduce, collectives.AllGather}, []string{"ring", "direct"}, []int64{50_000}
			req.Dtype, req.Redop = reduce.Half, reduce.Avg
			all := measureAll(t, testPlan(nil, 4), req)
			if got := links(all); !slices.Equal(got, []string{"intra " + c.want}) {
				t.Error(got)
			}
			if notes := strings.Join(all[0].Notes, "; "); !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "GPUs") {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

// open opens a sweep of a plan.
func open(t *testing.T, plan coordinator.Plan, req *coordinator.Request) (*coordinator.Sweep, []string, error) {
	t.Helper()
	plan.Settings = req.Settings
	s := &coordinator.Sweep{Run: "test", Nodes: plan.Nodes, Source: "busbw test", Token: make([]byte, 32)}
	facts, err := s.Open(t.Context(), newPipes(t, plan), req)
	return s, facts, err
}

// Where there are not GPUs enough, auto takes host memory, and gpu says why not.
func TestWhichMemory(t *testing.T) {
	for _, c := range []struct {
		name, memory string
		env          []string
		want         string // of the records; "": an error
		text         string // in the facts or the error
	}{
		{"one a rank", "auto", []string{"FAKECUDA_DEVICES=2"}, "cuda", "GPU 1 (Fake GPU, 0000:28:00.0)"},
		{"too few", "auto", []string{"FAKECUDA_DEVICES=1"}, "host", "1 GPUs for 2 ranks"},
		{"too few but wanted", "gpu", []string{"FAKECUDA_DEVICES=1"}, "cuda", "GPU 0"},
		{"none", "auto", []string{"FAKECUDA_DEVICES=0"}, "host", ""},
		{"none but wanted", "gpu", []string{"FAKECUDA_DEVICES=0"}, "", "--memory gpu: node 0 (n0)"},
		{"no driver", "gpu", []string{"LD_LIBRARY_PATH=/nowhere"}, "", "no CUDA driver"},
		{"too old a device", "gpu", []string{"FAKECUDA_CC=61"}, "", "compute capability 6.1, and busbw needs 7.0"},
		{"not wanted", "host", []string{"FAKECUDA_DEVICES=2"}, "host", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !onFakeGPUs(t, c.env...) {
				return
			}
			req := scopes(inGPU(t), "intra")
			req.Memory = c.memory
			req.Ops, req.Algorithms, req.Sizes = []collectives.Op{collectives.AllReduce}, []string{"ring"}, []int64{1000}
			s, facts, err := open(t, testPlan(nil, 2), req)
			text := strings.Join(facts, "; ")
			if err != nil {
				text = err.Error()
			}
			if (err != nil) != (c.want == "") || !strings.Contains(text, c.text) {
				t.Fatalf("%q; want %q", text, c.text)
			}
			if err != nil {
				return
			}
			cases, _, err := req.Cases(s.Nodes)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := s.Measure(t.Context(), cases[0]); err != nil || r.Memory != c.want || r.Wrong == nil || *r.Wrong != 0 {
				t.Errorf("%s memory, wrong %v: %v", r.Memory, deref(r.Wrong), err)
			}
		})
	}
}

// A size that does not fit is refused, and the next goes on; so is one that
// another process took the memory of.
func TestGPUMemoryRunsOut(t *testing.T) {
	if !onFakeGPUs(t, "FAKECUDA_MEM=16", "FAKECUDA_FAIL=cuMemAlloc_v2:3:2") { // 1 and 2 are the seats'
		return
	}
	req := scopes(inGPU(t), "intra")
	req.Ops, req.Algorithms, req.Sizes, req.InPlace = []collectives.Op{collectives.AllReduce}, []string{"ring"}, []int64{1000, 2000, 64 << 20, 3 << 20}, []bool{false}
	s, _, err := open(t, testPlan(nil, 2), req)
	if err != nil {
		t.Fatal(err)
	}
	cases, _, err := req.Cases(s.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"out of memory", "", "GiB for it", ""} {
		r, err := s.Measure(t.Context(), cases[i])
		if err != nil || !strings.Contains(r.Error, want) || (want == "") != (r.Error == "" && r.Wrong != nil && *r.Wrong == 0) {
			t.Errorf("%d B: record error %q, wrong %v, %v; want %q", req.Sizes[i], r.Error, deref(r.Wrong), err, want)
		}
	}
}

// A kernel that does nothing is found out.
func TestBrokenKernelIsCounted(t *testing.T) {
	for _, kernel := range []string{"sum_float", "fill"} {
		t.Run(kernel, func(t *testing.T) {
			if !onFakeGPUs(t, "FAKECUDA_BAD="+kernel) {
				return
			}
			req := scopes(inGPU(t), "intra")
			req.Ops, req.Algorithms, req.Sizes = []collectives.Op{collectives.AllReduce}, []string{"ring"}, []int64{4000}
			s, _, err := open(t, testPlan(nil, 2), req)
			if err != nil {
				t.Fatal(err)
			}
			cases, _, err := req.Cases(s.Nodes)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := s.Measure(t.Context(), cases[0]); err != nil || r.Wrong == nil || *r.Wrong < 1000 {
				t.Errorf("wrong %v, %v", deref(r.Wrong), err)
			}
		})
	}
}
