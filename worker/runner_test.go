package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/collectives/reduce"
	"busbw/coordinator"
	"busbw/reports"
)

// pipes is a launch whose runners live in this process, behind pipes.
type pipes struct {
	in   []*io.PipeWriter
	out  []*bufio.Scanner
	done []chan error
	seq  uint64
}

func newPipes(t *testing.T, plan coordinator.Plan) *pipes {
	p := &pipes{}
	for i := range plan.Nodes {
		ir, iw := io.Pipe()
		or, ow := io.Pipe()
		lines := bufio.NewScanner(or)
		lines.Buffer(nil, 16<<20)
		done := make(chan error, 1)
		go func() {
			err := Run("test", ir, ow)
			ow.Close()
			done <- err
		}()
		plan.Node = i
		p.in, p.out, p.done = append(p.in, iw), append(p.out, lines), append(p.done, done)
		if err := json.NewEncoder(iw).Encode(plan); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for i := range p.in {
			p.in[i].Close()
			for p.out[i].Scan() {
			}
			if err := <-p.done[i]; err != nil {
				t.Errorf("runner %d: %v", i, err)
			}
		}
	})
	return p
}

// Do implements what a Sweep drives.
func (p *pipes) Do(_ context.Context, kind string, body func(int) any, _ time.Duration) ([]json.RawMessage, error) {
	p.seq++
	for i, w := range p.in {
		b, err := json.Marshal(body(i))
		if err != nil {
			return nil, err
		}
		if err := json.NewEncoder(w).Encode(coordinator.Command{Seq: p.seq, Kind: kind, Body: b}); err != nil {
			return nil, err
		}
	}
	out := make([]json.RawMessage, len(p.out))
	var first error
	for i, lines := range p.out {
		for {
			if !lines.Scan() {
				return nil, errors.Join(lines.Err(), fmt.Errorf("runner %d ended", i))
			}
			var e coordinator.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				return nil, err
			}
			if e.Seq != p.seq {
				continue // heartbeat
			}
			if e.Error != nil && first == nil {
				first = fmt.Errorf("node %d: %s", i, e.Error.Text)
			}
			out[i] = e.Body
			break
		}
	}
	return out, first
}

func testPlan(settings map[string]string, ranks ...int) coordinator.Plan {
	plan := coordinator.Plan{Run: "test", Settings: settings}
	for i, r := range ranks {
		plan.Nodes = append(plan.Nodes, coordinator.PlanNode{ID: fmt.Sprint(i), Host: fmt.Sprintf("n%d", i), Addr: "127.0.0.1", Ranks: r})
	}
	return plan
}

func testRequest(t *testing.T, env ...string) *coordinator.Request {
	t.Helper()
	settings, _, err := coordinator.Settings(env)
	if err != nil {
		t.Fatal(err)
	}
	return &coordinator.Request{Ops: collectives.Ops(), Algorithms: coordinator.Algorithms(), Scopes: coordinator.Scopes(), Sizes: []int64{4, 4096, 100_000},
		Dtype: reduce.Float, Redop: reduce.Sum, InPlace: []bool{false, true}, Iterations: 6, Time: time.Millisecond, Warmup: 1, Aggregate: 1,
		Checks: 2, Mode: coordinator.Barrier, Rotate: false, Settings: settings}
}

// measureAll runs every case of the request and fails on wrong data.
func measureAll(t *testing.T, plan coordinator.Plan, req *coordinator.Request) (all []reports.Result) {
	t.Helper()
	plan.Settings = req.Settings
	cases, _, err := req.Cases(plan.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	p := newPipes(t, plan)
	s := &coordinator.Sweep{Run: "test", Nodes: plan.Nodes, Source: "busbw test", Token: make([]byte, 32)}
	if _, err := s.Open(t.Context(), p, req); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		r, err := s.Measure(t.Context(), c)
		if err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		if r.Error != "" || r.Wrong == nil || *r.Wrong != 0 {
			t.Errorf("%s in place %t: wrong %v, error %q, notes %q", c, r.InPlace, deref(r.Wrong), r.Error, r.Notes)
		}
		if err := r.Check(); err != nil {
			t.Errorf("%s: the record is not valid: %v", c, err)
		}
		if len(r.Seconds) != req.Iterations || len(r.RankP50) != r.Ranks*r.Groups {
			t.Errorf("%s: %d samples, %d rank medians; want %d, %d", c, len(r.Seconds), len(r.RankP50), req.Iterations, r.Ranks*r.Groups)
		}
		all = append(all, r)
	}
	return all
}

func deref(p *int64) any {
	if p == nil {
		return "not checked"
	}
	return *p
}

// TestEveryCase runs every operation by every algorithm in every scope, in and
// out of place, over memory and TCP, and checks all data.
func TestEveryCase(t *testing.T) {
	all := measureAll(t, testPlan(nil, 2, 2), testRequest(t))
	links := map[string]bool{}
	for _, r := range all {
		links[r.Scope+" "+r.Link] = true
		if r.Skew == nil || *r.Skew < 0 {
			t.Errorf("%s %s %s: skew %v, want one", r.Scope, r.Op, r.Algorithm, r.Skew)
		}
	}
	for _, want := range []string{"intra memory", "cross tcp", "global memory+tcp"} {
		if !links[want] {
			t.Errorf("no result of %q; there are %v", want, links)
		}
	}
}

func TestThreeNodes(t *testing.T) {
	req := testRequest(t)
	req.Sizes, req.Dtype, req.Redop, req.Root = []int64{3000}, reduce.BFloat16, reduce.Avg, 2
	req.Scopes = []string{"cross", "global"}
	measureAll(t, testPlan(nil, 1, 1, 1), req)
}

func TestSharedMemoryDisabled(t *testing.T) {
	req := testRequest(t, "NCCL_SHM_DISABLE=1", "NCCL_SOCKET_NTHREADS=2", "NCCL_NSOCKS_PERTHREAD=2", "NCCL_MIN_CTAS=2")
	req.Ops, req.Algorithms = []collectives.Op{collectives.AllReduce, collectives.Broadcast}, []string{"ring", "tree"}
	for _, r := range measureAll(t, testPlan(nil, 2, 2), req) {
		if r.Link != "tcp" {
			t.Errorf("%s over %q with NCCL_SHM_DISABLE=1", r.Scope, r.Link)
		}
	}
}

func TestModes(t *testing.T) {
	for _, mode := range []string{coordinator.Barrier, coordinator.BarrierTimed, coordinator.Pipelined} {
		req := testRequest(t)
		req.Mode, req.Aggregate, req.Warmup, req.Rotate = mode, 3, -1, true
		req.Ops, req.Algorithms, req.Sizes = []collectives.Op{collectives.AllReduce}, []string{"auto"}, []int64{64}
		for _, r := range measureAll(t, testPlan(nil, 2, 1), scopes(req, "global")) {
			if r.Mode != mode || r.Aggregate != 3 || r.Warmup < 2 {
				t.Errorf("mode %s, aggregate %d, warm-up %d", r.Mode, r.Aggregate, r.Warmup)
			}
		}
	}
}

func scopes(r *coordinator.Request, s ...string) *coordinator.Request {
	r.Scopes = s
	return r
}

func TestOneRankAlone(t *testing.T) {
	req := testRequest(t)
	for _, r := range measureAll(t, testPlan(nil, 1), scopes(req, "global")) {
		if r.Link != "none" || r.Limit != nil {
			t.Errorf("link %q, limit %v", r.Link, r.Limit)
		}
	}
}

func TestTooLargeIsRefused(t *testing.T) {
	req := scopes(testRequest(t), "intra")
	req.Ops, req.Algorithms, req.Sizes = []collectives.Op{collectives.AllReduce}, []string{"ring"}, []int64{1 << 50}
	plan := testPlan(nil, 2)
	plan.Settings = req.Settings
	cases, _, err := req.Cases(plan.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	s := &coordinator.Sweep{Run: "test", Nodes: plan.Nodes, Source: "busbw test", Token: make([]byte, 32)}
	if _, err := s.Open(t.Context(), newPipes(t, plan), req); err != nil {
		t.Fatal(err)
	}
	r, err := s.Measure(t.Context(), cases[0])
	if err != nil || !strings.Contains(r.Error, "GiB") || r.Seconds != nil {
		t.Errorf("1 PiB: %v, record error %q", err, r.Error)
	}
}

func TestBadCommands(t *testing.T) {
	p := newPipes(t, testPlan(map[string]string{}, 1))
	for kind, body := range map[string]any{
		"dance":                coordinator.OpenBody{},
		coordinator.KindOpen:   coordinator.OpenBody{Token: []byte("short")},
		coordinator.KindCase:   coordinator.CaseBody{Op: "all_reduce"},
		coordinator.KindBatch:  coordinator.BatchBody{Iterations: 1 << 40},
		coordinator.KindCheck:  coordinator.CheckBody{Rounds: -1},
		coordinator.KindLimits: "no object",
	} {
		if _, err := p.Do(t.Context(), kind, func(int) any { return body }, time.Second); err == nil {
			t.Errorf("command %s with %+v was obeyed", kind, body)
		}
	}
}
