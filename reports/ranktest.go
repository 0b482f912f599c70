package reports

import (
	"math"
	"slices"
)

// exactSamples is the most of each sample for which MannWhitney counts
// arrangements; beyond it the normal approximation is good to four digits.
const exactSamples = 50

// MannWhitney is the two-sided rank test of whether values of a tend to be
// larger than values of b (Mann and Whitney, 1947). u counts the pairs in
// which a's value is the larger, a tie as half. p is exact where no two values
// are equal and neither sample has more than 50, else from the normal
// approximation with corrections for ties and continuity. Without any values
// on one side, or where all are equal, p is 1.
func MannWhitney(a, b []float64) (u, p float64) {
	n, m := len(a), len(b)
	all := slices.Sorted(slices.Values(slices.Concat(a, b)))
	var ties float64 // Σ t³ − t over groups of t equal values
	var ranks float64
	for at := 0; at < len(all); {
		end := at
		for end < len(all) && all[end] == all[at] {
			end++
		}
		t := float64(end - at)
		ties += t*t*t - t
		for _, x := range a {
			if x == all[at] {
				ranks += float64(at+1+end) / 2
			}
		}
		at = end
	}
	u = ranks - float64(n*(n+1))/2
	if n == 0 || m == 0 {
		return u, 1
	}
	if ties == 0 && max(n, m) <= exactSamples {
		return u, min(1, 2*lowerTail(n, m, int(min(u, float64(n*m)-u))))
	}
	all2 := float64(n + m)
	variance := float64(n*m) / 12 * (all2 + 1 - ties/(all2*(all2-1)))
	if variance <= 0 {
		return u, 1
	}
	z := (math.Abs(u-float64(n*m)/2) - 0.5) / math.Sqrt(variance)
	return u, min(1, math.Erfc(z/math.Sqrt2))
}

// lowerTail is P(U ≤ u) for samples of n and m from one distribution. The
// arrangements of n+m values with a given U satisfy f(n,m,u) =
// f(n−1,m,u−m) + f(n,m−1,u): the largest value is either of the first sample,
// above all m of the second, or of the second.
func lowerTail(n, m, u int) float64 {
	// rows[j][k] is the probability of U = k for samples of i and j; adding
	// probabilities instead of counts keeps every number below 1.
	rows := make([][]float64, m+1)
	for j := range rows {
		rows[j] = make([]float64, u+1)
		rows[j][0] = 1
	}
	for i := 1; i <= n; i++ {
		for j := 1; j <= m; j++ {
			first := float64(i) / float64(i+j)
			next := make([]float64, u+1)
			for k := range next {
				next[k] = (1 - first) * rows[j-1][k]
				if k >= j {
					next[k] += first * rows[j][k-j]
				}
			}
			rows[j] = next
		}
	}
	var p float64
	for _, q := range rows[m] {
		p += q
	}
	return p
}

// Holm adjusts the p-values of several tests so that the chance of even one
// false claim among them stays below the level that the adjusted values are
// held against (Holm, 1979). NaN stands for a test that was not made.
func Holm(p []float64) []float64 {
	out := slices.Clone(p)
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if p[i] < p[j] {
			return -1
		}
		return 1
	})
	var most float64
	for k, i := range order {
		most = max(most, min(1, float64(len(order)-k)*p[i]))
		out[i] = most
	}
	return out
}
