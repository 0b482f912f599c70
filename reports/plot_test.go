package reports

import (
	"math"
	"slices"
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

// Between ranks there is nothing: every place shows a rank's own value, and the
// slowest of those that share it.
func TestSteps(t *testing.T) {
	if got, want := steps([]float64{1, 5, 1}, 9), []float64{1, 1, 5, 5, 5, 5, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	crowd := make([]float64, 1000)
	crowd[501], crowd[999] = 7, 9
	got := steps(crowd, plotWidth)
	n := 0
	for _, v := range got {
		if v == 7 {
			n++
		}
	}
	if n != 1 || got[plotWidth-1] != 9 {
		t.Errorf("a slow rank of many is lost: %v", got)
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
	if strings.Contains(text, "0.000 ns") || !strings.Contains(text, " 0 ┤") && !strings.Contains(text, " 0 ┼") {
		t.Errorf("the axis does not start at a plain 0:\n%s", text)
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colour where none was asked for")
	}
	b.Reset()
	if err := Plot(&b, results[:1]); err != nil || !strings.Contains(b.String(), "Nothing to plot") {
		t.Errorf("%v %s", err, b.String())
	}
}
