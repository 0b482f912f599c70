package reports

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The ranks that tables of the sign test give for 95 %.
func TestMedianRanks(t *testing.T) {
	for n, want := range map[int][2]int{6: {1, 6}, 10: {2, 9}, 15: {4, 12}, 20: {6, 15}, 30: {10, 21}, 50: {18, 33}, 100: {40, 61}} {
		lo, hi, ok := MedianRanks(n)
		if !ok || [2]int{lo, hi} != want {
			t.Errorf("n = %d: ranks %d, %d, %v; want %v", n, lo, hi, ok, want)
		}
	}
	for n := range 6 {
		if _, _, ok := MedianRanks(n); ok {
			t.Errorf("n = %d has no 95 %% interval", n)
		}
	}
	// Large n: the normal approximation, half width 0.98·√n.
	for _, n := range []int{1000, 20000, 1 << 20} {
		lo, hi, _ := MedianRanks(n)
		want := float64(n)/2 - 0.97998*math.Sqrt(float64(n))
		if math.Abs(float64(lo)-want) > 2 || lo+hi != n+1 {
			t.Errorf("n = %d: ranks %d, %d; want about %.0f", n, lo, hi, want)
		}
	}
}

// The interval must hold the true median in at least 95 % of all samples of a
// skewed distribution, and not in nearly all of them.
func TestIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 4000
	for _, n := range []int{10, 51, 200} {
		hits := 0
		for range rounds {
			sample := make([]float64, n)
			for i := range sample {
				sample[i] = r.ExpFloat64()
			}
			s, _ := Describe(sample)
			if s.Interval[0] <= math.Ln2 && math.Ln2 <= s.Interval[1] {
				hits++
			}
		}
		if c := float64(hits) / rounds; c < 0.94 || c > 0.99 {
			t.Errorf("n = %d: the interval covers the median in %.1f %% of samples", n, 100*c)
		}
	}
}

func TestDescribe(t *testing.T) {
	if _, ok := Describe(nil); ok {
		t.Error("an empty sample has no statistics")
	}
	sample := make([]float64, 0, 100)
	for i := 100; i >= 1; i-- {
		sample = append(sample, float64(i))
	}
	s, _ := Describe(sample)
	if s.Min != 1 || s.Max != 100 || s.Median != 50.5 || *s.P99 != 99 || s.Outliers != 0 || *s.Interval != [2]float64{40, 61} {
		t.Errorf("1 to 100: %+v p99 %v interval %v", s, *s.P99, *s.Interval)
	}
	if sample[0] != 100 {
		t.Error("Describe sorted its argument")
	}
	if s, _ := Describe(sample[:99]); s.P99 != nil {
		t.Error("99 samples have no p99")
	}
	if s, _ := Describe([]float64{1, 2, 3, 5.5, 7.1, -1.1, 2, 3}); s.Outliers != 1 { // quartiles 1 and 3: the fences are −2 and 6
		t.Errorf("want one outlier: %+v", s)
	}
	if s, _ := Describe([]float64{1, 1.1, 1.2, 1.1, 9}); s.Outliers != 1 || s.Interval != nil {
		t.Errorf("want one outlier and no interval: %+v", s)
	}
}

func TestMedian(t *testing.T) {
	if m := Median([]float64{3, 1, 2}); m != 2 {
		t.Errorf("odd: %g", m)
	}
	if m := Median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Errorf("even: %g", m)
	}
	if m := Median(nil); !math.IsNaN(m) {
		t.Errorf("empty: %g", m)
	}
}

// 1 GB at 1 GB/s and 9 GB at 9 GB/s take 2 s together: 5 GB/s.
func TestRate(t *testing.T) {
	if m, ok := Rate([]float64{1, 9}, []float64{1, 9}); !ok || m != 5 {
		t.Errorf("weighted: %g %v", m, ok)
	}
	if m, _ := Rate([]float64{2, 6}, []float64{1, 1}); m != 3 {
		t.Errorf("harmonic mean of 2 and 6: %g, want 3", m)
	}
	if _, ok := Rate(nil, nil); ok {
		t.Error("nothing has no rate")
	}
}
