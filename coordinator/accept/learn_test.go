package accept

import (
	"strings"
	"testing"

	"busbw/reports"
)

// What a limit is learned of is what it judges: each node's own figure, not the
// iterations of the slowest node.
func TestLearnWhatIsJudged(t *testing.T) {
	intra := reports.Result{Op: "all_reduce", Scope: "intra", Engine: "native", Memory: "host", Link: "memory", Ranks: 2, Groups: 2, Nodes: 2, Bytes: 1 << 20,
		Hosts: []string{"a", "b"}, Run: "x", Source: "test", RankP50: []float64{1e-4, 1e-4, 1.02e-4, 1e-4}}
	for i := range 20 {
		intra.Seconds = append(intra.Seconds, 1e-4*float64(1+i)) // the slowest of both nodes, disturbed
	}
	p, warnings, err := Learn("x", []reports.Result{intra}, Margin)
	if err != nil || len(warnings) > 0 || p.Limits[0].AtLeast < 9.7 || p.Limits[0].AtLeast > 9.9 {
		t.Fatalf("%+v, %q, %v; want 5 %% below 10.5 and 10.3 GB/s", p, warnings, err)
	}
	for _, f := range (&Input{Nodes: intra.Hosts, Profile: p, Results: []reports.Result{intra}}).limits() {
		if f.Verdict == reports.Fail {
			t.Errorf("its own figures fail it: %+v", f)
		}
	}
	// Nodes that differ wildly: half of the median, and not silently.
	intra.RankP50[2] = 1e-3
	p, warnings, err = Learn("x", []reports.Result{intra}, Margin)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "scatter") || !strings.Contains(warnings[0], "50 % below") || !strings.Contains(warnings[0], "idle machine") {
		t.Errorf("%+v, %q, %v; want a warning", p, warnings, err)
	}
	// One figure of all nodes: its median's interval, and several files agree.
	global := intra
	global.Scope, global.Link, global.Ranks, global.Groups = "global", "tcp", 4, 1
	if _, warnings, err = Learn("x", []reports.Result{global}, Margin); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "one figure") {
		t.Errorf("%q, %v; want a warning of one disturbed figure", warnings, err)
	}
	for i := range global.Seconds {
		global.Seconds[i] = 1e-4 * (1 + 0.02*float64(i%2))
	}
	if p, warnings, err = Learn("x", []reports.Result{global, global, global}, Margin); err != nil || len(warnings) > 0 || p.Limits[0].AtLeast < 14.7 || p.Limits[0].AtLeast > 15 {
		t.Errorf("%+v, %q, %v; want 5 %% below 15.6 GB/s", p, warnings, err)
	}
}

// Of two kinds of devices the slower sets the limit, once.
func TestLearnDevices(t *testing.T) {
	var rs []reports.Result
	for i, gbps := range []float64{50, 51, 25, 25} {
		r := copyIn("n0", i, gbps)
		r.Run, r.Source = "x", "test"
		rs = append(rs, r)
	}
	p, _, err := Learn("x", rs, Margin)
	if err != nil || len(p.Limits) == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	seen := map[string]bool{}
	for _, l := range p.Limits {
		if seen[l.how()] {
			t.Errorf("two limits: %s", l.how())
		}
		seen[l.how()] = true
	}
}
