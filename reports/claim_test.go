package reports

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
)

// simulations is how many comparisons the tests of claims make; the figures of
// the documentation are those of 1000.
var simulations = flag.Int("simulations", 200, "comparisons that tests of claims make")

// judged is the verdicts on two settings over several sizes, as Compare finds
// them: the launches of each size, its ratio, and Holm over the sizes.
func judged(r *rand.Rand, launches, sizes int, change, noise, margin float64) (verdicts []string, inside int) {
	p := make([]float64, sizes)
	intervals := make([][2]float64, sizes)
	for i := range p {
		a, b := normals(r, launches, 1, noise), normals(r, launches, 1+change, noise)
		_, p[i] = MannWhitney(a, b)
		intervals[i], _ = RatioInterval(a, b)
		if truth := 1 / (1 + change); intervals[i][0] <= truth && truth <= intervals[i][1] {
			inside++
		}
	}
	for i, q := range Holm(p) {
		verdicts = append(verdicts, claim(intervals[i], q, margin))
	}
	return verdicts, inside
}

// What docs/compare.md says of false claims, power and coverage.
func TestClaimsBySimulation(t *testing.T) {
	rounds := *simulations
	for _, c := range []struct {
		launches, sizes int
		change, noise   float64
		margin          float64
		least, most     float64 // share of comparisons with a claim
		covered         float64 // least share of intervals that hold the true ratio
	}{
		{6, 1, 0, 0.02, 0, 0, 0.05, 0.95},
		{10, 1, 0, 0.02, 0, 0.005, 0.05, 0.95},
		{10, 4, 0, 0.02, 0, 0.005, 0.05, 0.95},
		{10, 4, 0, 0.02, 0.02, 0, 0.001, 0.95},
		{6, 1, 0.05, 0.02, 0.02, 0.45, 0.65, 0.95},
		{10, 1, 0.05, 0.02, 0.02, 0.70, 0.80, 0.95},
		{10, 1, 0.10, 0.02, 0.02, 0.99, 1, 0.95},
	} {
		r := rand.New(rand.NewPCG(7, 8))
		claims, right, inside := 0, 0, 0
		for range rounds {
			verdicts, in := judged(r, c.launches, c.sizes, c.change, c.noise, c.margin)
			inside += in
			any := false
			for _, v := range verdicts {
				any = any || v != Same
				if v == Slower {
					right++
				}
			}
			if any {
				claims++
			}
		}
		share, cover := float64(claims)/float64(rounds), float64(inside)/float64(rounds*c.sizes)
		t.Logf("%d launches, %d sizes, %.0f %% change, %.0f %% noise, margin %.0f %%: claimed in %.1f %%, interval holds the truth in %.1f %%", c.launches, c.sizes, 100*c.change, 100*c.noise, 100*c.margin, 100*share, 100*cover)
		slack := 2.5 * math.Sqrt(0.05/float64(rounds)) // of the simulation itself
		if share < c.least-slack || share > c.most+slack || cover < c.covered-slack {
			t.Errorf("claimed in %.3f, want %.2f to %.2f; interval covers %.3f, want %.2f", share, c.least, c.most, cover, c.covered)
		}
		if c.change > 0 && right != claims {
			t.Errorf("%d of %d claims name the wrong direction", claims-right, claims)
		}
	}
}

// The counted distribution of the median is that of drawing.
func TestMediansByDrawing(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, c := range [][2]int{{6, 6}, {7, 7}, {10, 10}, {31, 30}, {8, 21}, {40, 40}, {6, 1}, {6, 2}} {
		sample := normals(r, c[0], 1, 0.1)
		counted := medians(sample, c[1])
		var all, mean float64
		for _, a := range counted {
			all += a.p
			mean += a.p * a.value
		}
		if math.Abs(all-1) > 1e-6 {
			t.Errorf("%v: probabilities add up to %.9f", c, all)
		}
		const draws = 5000
		var sum float64
		below := map[float64]int{}
		points := []float64{0.025, 0.5, 0.975}
		room := make([]float64, c[1])
		for range draws {
			for i := range room {
				room[i] = sample[r.IntN(len(sample))]
			}
			m := Median(room)
			sum += m
			for _, p := range points {
				if m <= quantile(ratios(counted, []atom{{1, 1}}, func(x, y float64) float64 { return x }), p) {
					below[p]++
				}
			}
		}
		if math.Abs(sum/draws-mean) > 0.005 {
			t.Errorf("%v: mean %g, by drawing %g", c, mean, sum/draws)
		}
		for _, p := range points { // the distribution has steps: at least p lies at or below the quantile
			if got := float64(below[p]) / draws; got < p-0.02 {
				t.Errorf("%v: %.3f of the draws lie up to the %.3f quantile", c, got, p)
			}
		}
	}
}

func TestNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	few, _ := Noise(normals(r, 12, 1, 0.02), 6)
	many, _ := Noise(normals(r, 12, 1, 0.02), 30)
	// The median of n values has a standard error of about 1.25·σ/√n; two differ by √2 times as much.
	if few < 1.012 || few > 1.05 || many >= few {
		t.Errorf("2 %% noise: 6 launches tell %.4f, 30 tell %.4f; want about 1.03 and less", few, many)
	}
	if _, ok := Noise([]float64{1, 2, 3, 4, 5}, 6); ok {
		t.Error("5 launches say nothing of the noise")
	}
	if _, ok := RatioInterval([]float64{1, 2, 3, 4, 5}, []float64{1, 2, 3, 4, 5, 6}); ok {
		t.Error("5 launches have no interval")
	}
}
