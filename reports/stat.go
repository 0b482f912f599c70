package reports

import (
	"math"
	"slices"
)

// Least numbers of samples: with 5 the widest order-statistic interval of a
// median holds 93.75 % only, and the nearest-rank p99 of fewer than 100
// samples is their maximum.
const (
	minForInterval = 6
	minForP99      = 100
)

// Stats describes a sample of times, in seconds. Nothing is left out of it:
// outliers are counted, not removed.
type Stats struct {
	N                int
	Min, Median, Max float64
	Interval         *[2]float64 // 95 % interval of the median; nil for N < 6
	P99              *float64    // nearest rank; nil for N < 100
	Outliers         int         // beyond 1.5 interquartile ranges of the quartiles (Tukey)
}

// Describe computes the Stats of a sample; ok is false for an empty one.
func Describe(sample []float64) (s Stats, ok bool) {
	n := len(sample)
	if n == 0 {
		return s, false
	}
	sorted := slices.Sorted(slices.Values(sample))
	s = Stats{N: n, Min: sorted[0], Median: middle(sorted), Max: sorted[n-1]}
	if lo, hi, ok := MedianRanks(n); ok {
		s.Interval = &[2]float64{sorted[lo-1], sorted[hi-1]}
	}
	if n >= minForP99 {
		s.P99 = new(nearestRank(sorted, 0.99))
	}
	q1, q3 := nearestRank(sorted, 0.25), nearestRank(sorted, 0.75)
	reach := 1.5 * (q3 - q1)
	for _, x := range sorted {
		if x < q1-reach || x > q3+reach {
			s.Outliers++
		}
	}
	return s, true
}

// Median of a sample, which is left as it is; NaN for an empty one.
func Median(sample []float64) float64 {
	if len(sample) == 0 {
		return math.NaN()
	}
	return middle(slices.Sorted(slices.Values(sample)))
}

func middle(sorted []float64) float64 {
	h := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[h]
	}
	return sorted[h-1] + (sorted[h]-sorted[h-1])/2
}

// nearestRank is the smallest sample that at least a share p of all does not exceed.
func nearestRank(sorted []float64, p float64) float64 {
	k := int(math.Ceil(p * float64(len(sorted))))
	return sorted[max(k, 1)-1]
}

// Percentile is the smallest sample that at least a share p of all does not
// exceed; ok is false where so few samples do not tell it from their maximum.
func Percentile(sample []float64, p float64) (x float64, ok bool) {
	if float64(len(sample))*(1-p) < 0.999999 {
		return 0, false
	}
	return nearestRank(slices.Sorted(slices.Values(sample)), p), true
}

// MedianRanks are the ranks (from 1) of the order statistics that enclose the
// median of any continuous distribution with at least 95 % confidence: the
// narrowest symmetric pair by the binomial distribution of n fair tosses. ok
// is false for n < 6, where no pair does.
func MedianRanks(n int) (lo, hi int, ok bool) {
	if n < minForInterval {
		return 0, 0, false
	}
	// Sum P(K = k) from k = 0 while it stays within 2.5 %. Terms further than
	// 20 standard deviations from n/2 cannot be represented and are skipped.
	k := int(math.Max(0, math.Floor(float64(n)/2-10*math.Sqrt(float64(n)))))
	term := math.Exp(lnChoose(n, k) - float64(n)*math.Ln2)
	for sum := term; sum <= 0.025; sum += term {
		term *= float64(n-k) / float64(k+1)
		k++
	}
	return k, n + 1 - k, true
}

func lnChoose(n, k int) float64 {
	ln := func(m int) float64 { v, _ := math.Lgamma(float64(m) + 1); return v }
	return ln(n) - ln(k) - ln(n-k)
}

// Rate is a mean of rates that each moved some work (bytes): all work over all
// time, which is the harmonic mean weighted by work. Rates are averaged in no
// other way here, except where nccl-tests' footer defines a plain mean. ok is
// false without work.
func Rate(rates, work []float64) (mean float64, ok bool) {
	var total, time float64
	for i, r := range rates {
		total += work[i]
		time += work[i] / r
	}
	if total == 0 || time == 0 {
		return 0, false
	}
	return total / time, true
}
