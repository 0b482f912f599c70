package reports

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMannWhitney(t *testing.T) {
	for _, c := range []struct {
		source string
		a, b   []float64
		u, p   float64
	}{
		{"Hollander and Wolfe 1973, permeability of the chorioamnion; exact p as printed by R's coin",
			[]float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}, []float64{1.15, 0.88, 0.90, 0.74, 1.21}, 35, 0.2544},
		{"SciPy's manual of mannwhitneyu: age at diagnosis; exact",
			[]float64{19, 22, 16, 29, 24}, []float64{20, 11, 17, 12}, 17, 0.1111111},
		{"R's manual of wilcox.test: airquality, ozone in May and August; with ties",
			[]float64{41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23, 45, 115, 37},
			[]float64{39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73, 76, 118, 84, 85}, 127.5, 0.0001208},
		{"all equal", []float64{1, 1, 1}, []float64{1, 1}, 3, 1},
		{"nothing", nil, []float64{1, 2}, 0, 1},
		{"4 against 4, apart: 2/C(8,4)", []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 0, 2.0 / 70},
		{"6 against 6, apart: 2/C(12,6)", []float64{7, 8, 9, 10, 11, 12}, []float64{1, 2, 3, 4, 5, 6}, 36, 2.0 / 924},
	} {
		u, p := MannWhitney(c.a, c.b)
		if u != c.u || math.Abs(p-c.p) > 5e-4*c.p {
			t.Errorf("%s: U %g, p %.6g; want %g, %.6g", c.source, u, p, c.u, c.p)
		}
		if v, q := MannWhitney(c.b, c.a); u+v != float64(len(c.a)*len(c.b)) || math.Abs(p-q) > 1e-12 {
			t.Errorf("%s: the other way round U %g, p %g", c.source, v, q)
		}
	}
}

// Critical values of U, two-sided 5 %, from the tables of Mann and Whitney
// 1947 as textbooks print them: the largest U that is significant.
func TestMannWhitneyCriticalValues(t *testing.T) {
	for _, c := range [][3]int{{4, 4, 0}, {5, 5, 2}, {6, 6, 5}, {7, 7, 8}, {8, 8, 13}, {9, 9, 17}, {10, 10, 23}, {12, 12, 37}, {15, 15, 64}, {20, 20, 127}, {5, 10, 8}, {8, 12, 22}} {
		n, m, u := c[0], c[1], c[2]
		if at, next := 2*lowerTail(n, m, u), 2*lowerTail(n, m, u+1); at > 0.05 || next <= 0.05 {
			t.Errorf("n = %d, m = %d: P(U ≤ %d) = %.4f, P(U ≤ %d) = %.4f; want 5 %% between them", n, m, u, at, u+1, next)
		}
	}
}

// With many values the exact distribution and its approximation agree.
func TestMannWhitneyMeetsItsApproximation(t *testing.T) {
	const n = 50
	sd := math.Sqrt(n * n / 12.0 * (2*n + 1))
	for u := 900; u < n*n/2; u += 25 {
		exact, normal := 2*lowerTail(n, n, u), math.Erfc((n*n/2-float64(u)-0.5)/sd/math.Sqrt2)
		if math.Abs(exact-normal) > 0.04*exact {
			t.Errorf("U = %d: exact %g, normal %g", u, exact, normal)
		}
	}
}

// The example of Holm's procedure in R's manual of p.adjust, and one with ties.
func TestHolm(t *testing.T) {
	for _, c := range [][2][]float64{
		{{0.01, 0.02, 0.03, 0.04, 0.05}, {0.05, 0.08, 0.09, 0.09, 0.09}},
		{{0.04, 0.01, 0.5}, {0.08, 0.03, 0.5}},
		{{0.9, 0.9}, {1, 1}},
		{{math.NaN(), 0.02, 0.03}, {math.NaN(), 0.04, 0.04}},
		{nil, nil},
	} {
		for i, got := range Holm(c[0]) {
			if want := c[1][i]; math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
				t.Errorf("Holm(%v)[%d] = %g, want %g", c[0], i, got, want)
			}
		}
	}
}

func normals(r *rand.Rand, n int, mean, sd float64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = mean * (1 + sd*r.NormFloat64())
	}
	return s
}
