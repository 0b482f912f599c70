package reports

import (
	"math"
	"slices"
)

// atom is one value that a statistic can take, and its probability.
type atom struct{ value, p float64 }

// faint is a probability too small to matter to an interval of 95 %.
const faint = 1e-9

// medians is the distribution of the median of n values that are drawn, with
// replacement, from a sample: the bootstrap's (Efron, 1979), counted instead of
// simulated. Two order statistics of n draws decide it: with N sorted values,
// exactly k draws lie among the first i and the others from the j-th on with
// probability C(n,k)·(i/N)^k·((N−j+1)/N)^(n−k).
func medians(sample []float64, n int) (out []atom) {
	x := slices.Sorted(slices.Values(sample))
	N := float64(len(x))
	k := (n + 1) / 2                                                    // the lower middle, from 1
	below := func(i int) float64 { return atLeast(n, k, float64(i)/N) } // P(it is among the first i values)
	joint := func(i, j int) float64 {                                   // P(it is among the first i, the next from the j-th on)
		if i == 0 || j > len(x) {
			return 0
		}
		return math.Exp(lnChoose(n, k) + float64(k)*math.Log(float64(i)/N) + float64(n-k)*math.Log((N-float64(j)+1)/N))
	}
	for i, before := 1, 0.0; i <= len(x); i++ {
		upto := below(i)
		here := upto - before
		before = upto
		if here < faint {
			continue
		}
		if n%2 == 1 {
			out = append(out, atom{x[i-1], here})
			continue
		}
		for j := i + 1; j <= len(x) && here > faint; j++ {
			if p := joint(i, j) - joint(i-1, j) - joint(i, j+1) + joint(i-1, j+1); p > faint {
				out = append(out, atom{x[i-1] + (x[j-1]-x[i-1])/2, p})
				here -= p
			}
		}
		if here > 0 {
			out = append(out, atom{x[i-1], here})
		}
	}
	return out
}

// atLeast is P(K ≥ k) for K successes in n trials of probability p.
func atLeast(n, k int, p float64) float64 {
	if p >= 1 {
		return 1
	}
	term := math.Exp(lnChoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	var sum float64
	for ; k <= n; k++ {
		sum += term
		if term *= float64(n-k) / float64(k+1) * p / (1 - p); term < 1e-18*sum {
			break
		}
	}
	return min(1, sum)
}

// ratios is the distribution of a over b, sorted by value.
func ratios(a, b []atom, of func(a, b float64) float64) []atom {
	out := make([]atom, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			if p := x.p * y.p; p > faint {
				out = append(out, atom{of(x.value, y.value), p})
			}
		}
	}
	slices.SortFunc(out, func(x, y atom) int {
		switch {
		case x.value < y.value:
			return -1
		case x.value > y.value:
			return 1
		}
		return 0
	})
	return out
}

// quantile is the least value that is not exceeded with probability p.
func quantile(d []atom, p float64) float64 {
	var all, sum float64
	for _, a := range d {
		all += a.p
	}
	for _, a := range d {
		if sum += a.p; sum >= p*all {
			return a.value
		}
	}
	return d[len(d)-1].value
}

// RatioInterval is the 95 % interval of median(a)/median(b) by the percentile
// bootstrap. ok is false where either has fewer than 6 values, or one that is
// not above zero. Its coverage is measured in docs/compare.md.
func RatioInterval(a, b []float64) (interval [2]float64, ok bool) {
	if min(len(a), len(b)) < minForInterval || slices.Min(a) <= 0 || slices.Min(b) <= 0 {
		return interval, false
	}
	d := ratios(medians(a, len(a)), medians(b, len(b)), func(x, y float64) float64 { return x / y })
	return [2]float64{quantile(d, 0.025), quantile(d, 0.975)}, true
}

// Noise is what two sets of n launches of the same thing differ by, as a
// ratio of medians above 1: 95 % of such pairs differ by less. It is found by
// drawing from the launches of one setting, each a median time; ok is false
// below 6 of them. It is the least difference that n launches can tell from
// none on this machine.
func Noise(launches []float64, n int) (ratio float64, ok bool) {
	if len(launches) < minForInterval || n < 1 || slices.Min(launches) <= 0 {
		return 0, false
	}
	m := medians(launches, n)
	return quantile(ratios(m, m, func(x, y float64) float64 { return max(x/y, y/x) }), 0.95), true
}
