package reports

import (
	"math"
	"strings"
	"testing"
)

func TestResample(t *testing.T) {
	got := resample([]float64{1, 2, 4}, []float64{10, 20, 0}, 0, 4, 5)
	want := []float64{math.NaN(), 10, 20, 10, 0}
	for i := range want {
		if got[i] != want[i] && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			t.Errorf("place %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// The plots name what they show, and the top of the axis is the best figure.
func TestPlot(t *testing.T) {
	results := page2x2()
	var b strings.Builder
	if err := Plot(&b, results); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	best := 0.0
	for _, f := range Figures(results) {
		if bus, ok := f.Busbw(); ok && f.Op == "all_reduce" {
			best = max(best, bus)
		}
	}
	for _, want := range []string{"all_reduce: busbw, GB/s, against size", "broadcast: time against size", "* intra   o cross   + global", "64 MiB", rateText(best, true) + " ┤", "time against rank, 64 MiB, ring"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colour where none was asked for")
	}
	b.Reset()
	if err := Plot(&b, results[:1]); err != nil || !strings.Contains(b.String(), "Nothing to plot") {
		t.Errorf("%v %s", err, b.String())
	}
}
