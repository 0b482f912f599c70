package reports

import "math"

// level is the chance of a false claim that is accepted over all rows of a
// comparison together.
const level = 0.05

// Verdict words of a comparison. A difference is claimed only where it is
// significant and its whole interval lies beyond the margin.
const (
	Faster  = "faster"
	Slower  = "slower"
	Same    = "~"        // not shown to be different
	TooFew  = "n<6"      // fewer than 6 launches on one side: no interval
	Wrong   = "WRONG"    // wrong data: the figure is void
	Beyond  = "ABOVE"    // above what the wire can carry: the figure is impossible
	Failed  = "FAILED"   // no figure: the size failed
	Guessed = "forecast" // one side is a prediction, not a measurement
)

// claim is the verdict on a ratio of speeds (above 1 is faster) for a p-value
// that is adjusted for all rows.
func claim(interval [2]float64, p, margin float64) string {
	switch {
	case math.IsNaN(p) || p >= level:
		return Same
	case interval[0] > 1+margin:
		return Faster
	case interval[1] < 1/(1+margin):
		return Slower
	}
	return Same
}
