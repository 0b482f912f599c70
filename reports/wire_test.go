package reports

import (
	"math"
	"strings"
	"testing"
	"time"
)

// Figures from the field that lie above the wire and are right, and others
// that may not.
func TestAboveWire(t *testing.T) {
	for _, tc := range []struct {
		what         string
		op, algo     string
		ranks, nodes int
		busbw, wire  float64
		legal        bool
	}{
		{"8 × H100, NVLS", "all_reduce", "NVLS", 8, 1, 480, 450, true},
		{"8 × H200, nccl-tests without a log", "all_reduce", "", 8, 1, 482.3, 450, true},
		{"8 × H100, ring", "all_reduce", "Ring", 8, 1, 480, 450, false},
		{"8 × H100, NVLS, more than it can be", "all_reduce", "NVLS", 8, 1, 720, 450, false},
		{"all_gather has no reduction to save", "all_gather", "NVLS", 8, 1, 480, 450, false},
		{"2 nodes of 8, tree over 8 × 400 Gb/s", "all_reduce", "tree", 16, 2, 471.2, 400, true},
		{"4 nodes, tree", "all_reduce", "tree", 32, 4, 471.2, 400, false},
		{"2 nodes, ring", "all_reduce", "ring", 16, 2, 471.2, 400, false},
		{"8 nodes with SHARP", "all_reduce", "CollnetDirect", 64, 8, 440, 400, true},
		{"8 nodes, NVLS inside", "all_reduce", "NVLS", 64, 8, 440, 400, false},
		{"one rank", "all_reduce", "NVLS", 1, 1, 2, 1, false},
		{"two GPUs: NVLS sends more than a ring", "all_reduce", "NVLS", 2, 1, 1.1, 1, false},
	} {
		f, why := AboveWire(tc.op, tc.algo, tc.ranks, tc.nodes)
		if legal := tc.busbw <= tc.wire*f; legal != tc.legal {
			t.Errorf("%s: %g of %g GB/s with factor %.3f: legal %v, want %v", tc.what, tc.busbw, tc.wire, f, legal, tc.legal)
		}
		if (f > 1) != (why != "") {
			t.Errorf("%s: factor %g because %q", tc.what, f, why)
		}
	}
	if f, _ := AboveWire("all_reduce", "nvls", 8, 1); math.Abs(f-14.0/9) > 1e-12 {
		t.Errorf("NVLS on 8 GPUs: %g, want 14/9", f)
	}
}

// A figure above its limit is told with the reason that it may be.
func TestAboveWireInReports(t *testing.T) {
	r := Result{Format: 1, Time: time.Unix(0, 0), Op: "all_reduce", Algorithm: "nvls", Scope: "intra", Ranks: 8, Nodes: 1, Groups: 1, Bytes: 16 << 30, Count: 4 << 30,
		Settled: true, Limit: &Limit{Name: "NVLink", GBps: 450}}
	remarks := func(busbw float64, algorithm string) string {
		r.Algorithm, r.Seconds = algorithm, nil
		for range 10 {
			r.Seconds = append(r.Seconds, float64(r.Bytes)*1.75/busbw/1e9)
		}
		fs := Figures([]Result{r})
		if len(fs) != 1 {
			t.Fatalf("%d figures", len(fs))
		}
		return strings.Join(fs[0].Remarks(), "; ")
	}
	if got := remarks(480, "nvls"); !strings.Contains(got, "above the wire, as it may be") {
		t.Error(got)
	}
	if got := remarks(480, "ring"); !strings.Contains(got, "above the limit") || strings.Contains(got, "may be") {
		t.Error(got)
	}
	if got := remarks(720, "nvls"); !strings.Contains(got, "above the limit") {
		t.Error(got)
	}
	if got := remarks(400, "nvls"); got != "" {
		t.Error(got)
	}
}
