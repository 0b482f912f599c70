package reports

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// launches are results of one case with the given samples.
func launches(samples ...[]float64) []Result {
	var all []Result
	for i, s := range samples {
		r := sample("intra", "ring", 4, 4e9, s...)
		r.Launch = i
		all = append(all, r)
	}
	return all
}

func TestOneLaunch(t *testing.T) {
	f := Figures(launches([]float64{3, 1, 2, 4, 5, 6, 7}))
	if len(f) != 1 || f[0].Stats.Median != 4 || *f[0].Stats.Interval != [2]float64{1, 7} || f[0].Launches != 1 {
		t.Fatalf("%+v", f)
	}
	alg, ok1 := f[0].Algbw()
	bus, ok2 := f[0].Busbw()
	if !ok1 || !ok2 || alg != 1 || bus != 1.5 { // 4 GB in 4 s; 2·3/4
		t.Errorf("algbw %g, busbw %g", alg, bus)
	}
	if r := f[0].Remarks(); len(r) > 0 {
		t.Errorf("remarks without a reason: %q", r)
	}
}

// The launches' medians are the sample: not the iterations, of which a long
// launch would have more.
func TestLaunchesAreTheUnit(t *testing.T) {
	long := slices.Repeat([]float64{9}, 1000)
	f := Figures(launches([]float64{1, 1}, []float64{2}, []float64{3}, []float64{4}, []float64{5}, long))[0]
	if f.Stats.Median != 3.5 || *f.Stats.Interval != [2]float64{1, 9} {
		t.Errorf("six launches: %+v %v", f.Stats, f.Stats.Interval)
	}
	if f.Stats.N != 1006 || f.Stats.Min != 1 || f.Stats.Max != 9 || f.Launches != 6 {
		t.Errorf("the extremes are of all iterations: %+v", f.Stats)
	}
	f = Figures(launches(long, long))[0]
	if f.Stats.Interval != nil || !slices.Contains(f.Remarks(), "too few launches for an interval (want 6)") {
		t.Errorf("two launches of any length have no interval: %+v, %q", f.Stats, f.Remarks())
	}
}

// What differs in anything but the launch stays apart.
func TestCasesStayApart(t *testing.T) {
	base := sample("intra", "ring", 4, 64, 1)
	for what, change := range map[string]func(*Result){
		"run": func(r *Result) { r.Run = "x" }, "op": func(r *Result) { r.Op = "broadcast" }, "algorithm": func(r *Result) { r.Algorithm = "tree" },
		"auto": func(r *Result) { r.Auto = true }, "engine": func(r *Result) { r.Engine = "nccl" }, "scope": func(r *Result) { r.Scope = "cross" },
		"memory": func(r *Result) { r.Memory = "cuda" }, "dtype": func(r *Result) { r.Dtype = "half" }, "redop": func(r *Result) { r.Redop = "max" },
		"root": func(r *Result) { r.Root = new(0) }, "ranks": func(r *Result) { r.Ranks = 2 }, "nodes": func(r *Result) { r.Nodes = 3 },
		"groups": func(r *Result) { r.Groups = 3 }, "bytes": func(r *Result) { r.Bytes = 65 }, "place": func(r *Result) { r.InPlace = true },
		"mode": func(r *Result) { r.Mode = "pipelined" }, "aggregate": func(r *Result) { r.Aggregate = 2 },
		"config": func(r *Result) { r.Config = map[string]string{"NCCL_ALGO": "Ring"} },
	} {
		other := base
		change(&other)
		if n := len(Figures([]Result{base, other})); n != 2 {
			t.Errorf("%s: %d figures", what, n)
		}
	}
	other := base
	other.Launch, other.Skew, other.Link = 1, new(0.0), ""
	if n := len(Figures([]Result{base, other})); n != 1 {
		t.Errorf("two launches: %d figures", n)
	}
}

func TestWrongDataVoids(t *testing.T) {
	all := launches([]float64{1}, []float64{1})
	all[0].Wrong, all[1].Wrong = new(int64(0)), new(int64(2))
	f := Figures(all)[0]
	_, alg := f.Algbw()
	_, bus := f.Busbw()
	_, share := f.Share()
	if !f.Void() || *f.Wrong != 2 || alg || bus || share || !Found(all) {
		t.Errorf("a bad launch leaves a figure: %+v", f)
	}
	if *all[0].Wrong != 0 || Found(all[:1]) {
		t.Error("the results were changed")
	}
}

func TestOneRankHasNoBandwidth(t *testing.T) {
	f := merge([]Result{sample("intra", "ring", 1, 64, 1e-6)})
	if _, ok := f.Algbw(); ok {
		t.Error("algbw of one rank")
	}
	if _, ok := f.Busbw(); ok {
		t.Error("busbw of one rank")
	}
	if f = merge([]Result{sample("intra", "ring", 2, 64, 0)}); !f.Timed {
		t.Error("a time below the clock's step is a time")
	}
	if v, ok := f.Algbw(); ok {
		t.Errorf("no time, bandwidth %g", v)
	}
	r := sample("intra", "ring", 2, 64, 1e-6)
	r.Op = "alltoallv"
	if f = merge([]Result{r}); f.Timed {
		if _, ok := f.Busbw(); ok {
			t.Error("busbw of an operation without a known factor")
		}
	}
}

func TestRemarks(t *testing.T) {
	r := sample("cross", "ring", 2, 64, 1e-6, 1e-6)
	r.Settled, r.Skew, r.Notes = false, new(1.1e-7), []string{"as noted"}
	broken := r
	broken.Seconds, broken.Error, broken.Launch, broken.Notes = nil, "rank 1: lost", 1, nil
	f := Figures([]Result{r, broken})[0]
	want := []string{"as noted", "1 of 2 launches failed: launch 1: rank 1: lost", "not settled", "skew > 10 %: no verdict", "too few samples for an interval (want 6)"}
	if got := f.Remarks(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r.Skew = new(0.9e-7)
	if f = merge([]Result{r}); f.Skewed() {
		t.Error("9 % of the time is no skew to speak of")
	}
	if f = merge([]Result{broken}); f.Timed || len(f.Remarks()) > 0 || len(f.Faults) != 1 {
		t.Errorf("a failed case: %+v, %q", f, f.Remarks())
	}
}

func TestShare(t *testing.T) {
	r := sample("intra", "ring", 2, 1e9, 1)
	r.Limit = &Limit{Name: "memory bandwidth", GBps: 4}
	f := merge([]Result{r})
	if s, ok := f.Share(); !ok || s != 0.25 {
		t.Errorf("1 GB/s of 4: %g %v", s, ok)
	}
	for limit, want := range map[float64]bool{0.9: true, 0.99: false} {
		r.Limit.GBps = limit
		f = merge([]Result{r})
		if got := strings.Contains(strings.Join(f.Remarks(), ""), "above the limit"); got != want {
			t.Errorf("1 GB/s of %g: above the limit %v", limit, got)
		}
	}
	// A limit that is beaten several times over was disturbed: no percentage.
	for name, want := range map[string]string{"memory bandwidth": "in caches", "loopback stream": "unreliable: 0.058 GB/s by loopback stream, which this is 17.1 times: something else"} {
		r.Limit = &Limit{Name: name, GBps: 1 / 17.1}
		f = merge([]Result{r})
		if _, ok := f.Share(); ok || f.Bounds() != nil || !strings.Contains(strings.Join(f.Remarks(), ""), want) || strings.Contains(strings.Join(f.Remarks(), ""), "above") {
			t.Errorf("%s: a share (%v), or remarks %q; want %q", name, ok, f.Remarks(), want)
		}
	}
	r.Limit = &Limit{Name: "NIC line rate", GBps: 0.25} // a rating does not become a doubt
	if f = merge([]Result{r}); f.Bounds() == nil {
		t.Error("a rating is called unreliable")
	}
	// Of several launches the best measurement of the limit counts.
	low, high := r, r
	low.Limit, high.Limit, high.Launch = &Limit{Name: "loopback stream", GBps: 0.42}, &Limit{Name: "loopback stream", GBps: 4}, 1
	for _, rs := range [][]Result{{low, high}, {high, low}} {
		if f = merge(rs); f.Limit.GBps != 4 {
			t.Errorf("limit %g of launches with 0.42 and 4 GB/s", f.Limit.GBps)
		}
	}
	low.Launch, high.Bytes, high.Launch = 0, 2e9, 0 // another size
	if fs := Figures([]Result{low, high}); len(fs) != 2 || fs[0].Limit.GBps != 4 || fs[1].Limit.GBps != 4 {
		t.Errorf("limits of two sizes of one scope differ: %+v", fs)
	}
	r.Limit = nil
	f = merge([]Result{r})
	if _, ok := f.Share(); ok {
		t.Error("a share of no limit")
	}
}

func TestUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 8: "8 B", 1000: "1000 B", 1024: "1 KiB", 1536: "1536 B", 65536: "64 KiB", 1 << 20: "1 MiB", 3 << 19: "1536 KiB", 1 << 40: "1 TiB", 1 << 50: "1024 TiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for s, want := range map[float64]string{0: "0.000 ns", 5e-10: "0.500 ns", 1.2344e-6: "1.234 µs", 9.9996e-6: "10.00 µs", 0.99996e-3: "1.000 ms", 123.44e-6: "123.4 µs", 2: "2.000 s", 12345: "12345 s"} {
		if got := timeText(s); got != want {
			t.Errorf("%g s: %q, want %q", s, got, want)
		}
	}
	for g, want := range map[float64]string{0.00381: "0.0038", 0.1: "0.10", 0.0996: "0.10", 5.318: "5.32", 99.999: "100.0", 1234.56: "1234.6", 3e-7: "3e-07"} {
		if got := rateText(g, true); got != want {
			t.Errorf("%g GB/s: %q, want %q", g, got, want)
		}
	}
	for r, want := range map[float64]string{0.5: "50 %", 0.0996: "10 %", 0.0312: "3.1 %", 0.0001: "<0.1 %", 0: "0.0 %", 1.2: "120 %"} {
		if got := shareText(r, true); got != want {
			t.Errorf("%g: %q, want %q", r, got, want)
		}
	}
	if rateText(math.NaN(), false) != none || shareText(0, false) != none {
		t.Error("what is absent is not printed as such")
	}
	if got := clean("a\tb\x1b\u202e"+strings.Repeat("x", 50), 10); got != "a b??xxxxx…" {
		t.Errorf("clean: %q", got)
	}
}
