package plan

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"busbw/collectives"
	"busbw/reports"
)

// chosen keeps the results of one algorithm for each size, as busbw run does when
// it chooses.
func chosen(all []reports.Result, algorithms map[int64]string) (some []reports.Result) {
	for _, r := range all {
		if algorithms[r.Bytes] == r.Algorithm {
			some = append(some, r)
		}
	}
	return some
}

// An algorithm measured with one size takes what others tell of its path, and is
// not preferred where another was measured.
func TestOneSizeOfMessageBorrows(t *testing.T) {
	path := collectives.Uniform(9e-6, 3)
	m, err := Calibrate(chosen(measured(t, path, "cross", []int{2}, 0), map[int64]string{64: "tree", 1 << 20: "ring"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Measured.Fits {
		if f.Borrowed != (f.Algorithm != "") {
			t.Errorf("%q: borrowed %v", f.Algorithm, f.Borrowed)
		}
		near(t, f.Algorithm+" α", f.Way[0].At[middle].Alpha, 9e-6, 1e-6)
		near(t, f.Algorithm+" B", f.Way[0].At[middle].GBps, 3, 1e-6)
	}
	for size, want := range map[int64]string{64: "tree", 1 << 20: "ring"} {
		p, _, err := m.Fastest(collectives.AllReduce, size, 2)
		if err != nil || p.Algorithm != want || p.Extrapolated != nil {
			t.Errorf("%d B: %s %q, %v; measured was %s", size, p.Algorithm, p.Extrapolated, err, want)
		}
	}
	// What could be faster but is not known is said, not chosen.
	p, _, err := m.Fastest(collectives.AllReduce, 1<<20, 16)
	if err != nil || p.Algorithm != "ring" || !strings.Contains(p.Aside, "less is known of it") {
		t.Errorf("%+v, %v", p, err)
	}
	var b bytes.Buffer
	if err := m.Fitted(&b); err != nil || !strings.Contains(b.String(), "†: measured with one size") || strings.Contains(b.String(), "0.000") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// Where nothing tells α from B, both are unknown: that size has a wide interval
// and others are refused.
func TestOneSizeAloneIsUnknown(t *testing.T) {
	for _, size := range []int64{64, 1 << 20} {
		m, err := Calibrate(chosen(measured(t, collectives.Uniform(9e-6, 3), "cross", []int{2}, 0), map[int64]string{size: "ring"}), nil)
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := m.Fastest(collectives.AllReduce, size, 2)
		if err != nil {
			t.Fatal(err)
		}
		want := m.Measured.times[timed{"all_reduce ring", 2, 2, size}].Low
		near(t, "time", p.Seconds, want, 1e-6)
		near(t, "low", p.Low, want/2, 1e-6)
		near(t, "high", p.High, want*2, 1e-6)
		if _, _, err := m.Fastest(collectives.AllReduce, 16<<10, 2); !errors.Is(err, ErrOneSize) {
			t.Errorf("another size: %v", err)
		}
		var b bytes.Buffer
		if err := m.Fitted(&b); err != nil || !strings.Contains(b.String(), "unknown") || strings.Contains(b.String(), "0.000") {
			t.Errorf("%v\n%s", err, b.String())
		}
	}
}

// The interval of what was measured holds the measurements, however odd.
func TestIntervalsHoldTheMeasurements(t *testing.T) {
	results := measured(t, collectives.Uniform(9e-6, 3), "cross", []int{2, 4}, 0.3)
	for _, r := range measured(t, collectives.Uniform(40e-6, 0.7), "global", []int{4}, 0.2) {
		r.Nodes = 2
		results = append(results, r)
	}
	results = append(results, measured(t, collectives.Uniform(1e-6, 30), "intra", []int{2}, 0.1)...)
	m, err := Calibrate(results, nil)
	if err != nil || m.GPUs != 2 {
		t.Fatal(err, m.GPUs)
	}
	n := 0
	for _, f := range reports.Figures(results) {
		if f.Scope == "cross" {
			continue // of one rank a node, which this cluster does not have
		}
		p, err := m.Predict(collectives.AllReduce, f.Algorithm, f.Bytes, f.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if f.Stats.Median < p.Low || f.Stats.Median > p.High {
			t.Errorf("%s %s of %d B took %g s; interval %g to %g", f.Scope, f.Algorithm, f.Bytes, f.Stats.Median, p.Low, p.High)
		}
	}
	if n != 32 {
		t.Errorf("%d compared", n)
	}
}
