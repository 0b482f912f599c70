package plan

import (
	"errors"
	"math"
	"strings"
	"testing"

	"busbw/collectives"
	"busbw/reports"
)

// measured makes results as a machine of known paths would give them; noise is a
// relative error that alternates.
func measured(t *testing.T, path collectives.Path, scope string, ranks []int, noise float64) (all []reports.Result) {
	t.Helper()
	for _, n := range ranks {
		for i, bytes := range []int64{64, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20} {
			for _, algorithm := range []string{"ring", "tree"} {
				f := reports.Figure{Result: reports.Result{Format: 1, Op: "all_reduce", Algorithm: algorithm, Engine: "native", Scope: scope,
					Ranks: n, Nodes: n, Groups: 1, Bytes: bytes, Mode: "barrier", Config: map[string]string{"NCCL_BUFFSIZE": "4194304", "NCCL_MIN_CTAS": "1"}}}
				if scope == "intra" {
					f.Nodes = 1
				}
				f.Timed, f.Stats.Median = true, 1
				_, p, err := pointOf(&f)
				if err != nil {
					t.Fatal(err)
				}
				s, err := p.schedule()
				if err != nil {
					t.Fatal(err)
				}
				seconds, err := collectives.Simulate(p.op, s, bytes, collectives.Fabric{Intra: path})
				if err != nil {
					t.Fatal(err)
				}
				seconds *= 1 + noise*float64(i%2*2-1)
				f.Result.Seconds = []float64{seconds, seconds, seconds, seconds, seconds, seconds}
				all = append(all, f.Result)
			}
		}
	}
	return all
}

// A path that gave the measurements is found again.
func TestCalibrationFindsThePath(t *testing.T) {
	m, err := Calibrate(measured(t, collectives.Uniform(7e-6, 12), "cross", []int{2, 4, 8}, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Measured.Fits) != 9 { // two algorithms and all together, three numbers of ranks
		t.Errorf("%d fits", len(m.Measured.Fits))
	}
	for _, f := range m.Measured.Fits {
		b := f.Way[0]
		near(t, "α", b.At[middle].Alpha, 7e-6, 1e-6)
		near(t, "B", b.At[middle].GBps, 12, 1e-6)
		if len(f.Way) != 1 {
			t.Errorf("%s: %d segments of a path that has one", f.Algorithm, len(f.Way))
		}
	}
	p, err := m.Predict(collectives.AllReduce, "ring", 1<<20, 16)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "16 nodes", p.Seconds, 30*(7e-6+(1<<20)/16/12e9), 1e-6)
	if p.Extrapolated != nil {
		t.Errorf("twice the measured scale is marked: %q", p.Extrapolated)
	}
	for _, c := range []struct {
		algorithm string
		bytes     int64
		nodes     int
		want      string
	}{
		{"ring", 1 << 20, 17, "17 ranks are more than twice the measured 8"},
		{"ring", 1 << 26, 8, "64 MiB is outside the measured 64 B to 16 MiB"},
		{"ring", 32, 8, "32 B is outside"},
		{"halving", 1 << 20, 8, "all_reduce halving between nodes was not measured"},
	} {
		p, err := m.Predict(collectives.AllReduce, c.algorithm, c.bytes, c.nodes)
		if err != nil || !strings.Contains(strings.Join(p.Extrapolated, "; "), c.want) {
			t.Errorf("%+v: %q, %v", c, p.Extrapolated, err)
		}
	}
}

// A protocol that changes with the size of messages is two segments.
func TestCalibrationFindsSegments(t *testing.T) {
	two := collectives.Path{{UpTo: 16 << 10, Class: collectives.Class{Alpha: 2e-6, GBps: 3}}, {Class: collectives.Class{Alpha: 30e-6, GBps: 20}}}
	m, err := Calibrate(measured(t, two, "intra", []int{2, 4}, 0.01), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := m.Measured.way("intra", collectives.AllReduce, "ring", 4)
	if len(w) != 2 {
		t.Fatalf("%d segments: %+v", len(w), w)
	}
	near(t, "small α", w.of(4 << 10).At[middle].Alpha, 2e-6, 0.05)
	near(t, "large B", w.of(4 << 20).At[middle].GBps, 20, 0.1)
	b := w.of(4 << 20)
	if !(b.GBps.Low < 20 && b.GBps.High > 20*0.98) || b.At[best].GBps < b.At[worst].GBps {
		t.Errorf("interval of B %v, ends %v", b.GBps, b.At)
	}
}

// Half of the results predict the rest of what a plain path gives, noise apart.
func TestCheckOfAPlainPath(t *testing.T) {
	h, err := Check(measured(t, collectives.Uniform(7e-6, 12), "cross", []int{2, 4, 8, 16}, 0.02))
	if err != nil {
		t.Fatal(err)
	}
	if off := reports.Median(h.Off); off > 0.04 || h.Fitted == 0 || h.Predicted < h.Fitted {
		t.Errorf("median error %.3f of %d predictions from %d fits", off, h.Predicted, h.Fitted)
	}
}

// Results that say nothing are refused, each with its reason.
func TestCalibrateRefuses(t *testing.T) {
	good := measured(t, collectives.Uniform(7e-6, 12), "cross", []int{2}, 0)
	for name, change := range map[string]func(*reports.Result){
		"scope": func(r *reports.Result) { r.Scope = "orbit" },
		"op":    func(r *reports.Result) { r.Op = "gossip" },
		"algo":  func(r *reports.Result) { r.Algorithm = "carrier pigeon" },
		"ranks": func(r *reports.Result) { r.Ranks = 1 << 20 },
		"times": func(r *reports.Result) { r.Seconds = nil },
		"bytes": func(r *reports.Result) { r.Bytes = 0 },
		"data":  func(r *reports.Result) { r.Wrong = new(int64(3)) },
		"guess": func(r *reports.Result) { r.Seconds, r.Predicted = nil, new(1.0) },
		"size":  func(r *reports.Result) { r.Bytes, r.Ranks = math.MaxInt64, 4096 },
	} {
		bad := append([]reports.Result(nil), good...)
		for i := range bad {
			change(&bad[i])
		}
		if _, err := Calibrate(bad, nil); !errors.Is(err, ErrNothing) {
			t.Errorf("%s: error %v, want ErrNothing", name, err)
		}
	}
}
