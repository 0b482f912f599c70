package reports

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/guptarohit/asciigraph"
)

// Columns and lines of a plot, without its axes: what fits a terminal of 80 by 24.
const (
	plotWidth  = 64
	plotHeight = 12
)

// Plot draws, for terminals, busbw and time against size (both axes
// logarithmic, the fastest algorithm of each scope), and each rank's median at
// the largest size.
func Plot(w io.Writer, results []Result) error {
	var b bytes.Buffer
	colour := colours(w)
	for _, s := range sheets(Figures(results)) {
		curves := s.plotCurves()
		head := name(s.figures[0].Op)
		plotSizes(&b, head+": busbw, GB/s, against size", curves, colour, (*Figure).Busbw, func(v float64) string { return rateText(v, true) })
		plotSizes(&b, head+": time against size", curves, colour, func(f *Figure) (float64, bool) {
			return f.Stats.Median, f.Timed && !f.Void() && f.Stats.Median > 0
		}, timeText)
		plotRanks(&b, head, curves, colour)
	}
	if b.Len() == 0 {
		b.WriteString("\nNothing to plot: that takes two sizes of one operation.\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// plotCurve is the fastest figure of a scope at each size.
type plotCurve struct {
	scope   string
	figures []*Figure
}

func (s *sheet) plotCurves() []plotCurve {
	var out []plotCurve
	for _, scope := range s.scopes {
		c := plotCurve{scope: name(scope)}
		s.bySize(func(at, end int) {
			if f := s.fastest(at, end)[scope]; f != nil && f.asked() > 0 && len(f.Pairs) == 0 {
				c.figures = append(c.figures, f)
			}
		})
		if len(c.figures) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// plotSizes draws value over size for each scope; nothing with less than two sizes.
func plotSizes(b *bytes.Buffer, title string, curves []plotCurve, colour bool, value func(*Figure) (float64, bool), text func(float64) string) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, f := range c.figures {
			x := math.Log2(float64(f.asked()))
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	if !(hi > lo) {
		return
	}
	var lines [][]float64
	var names []string
	for _, c := range curves {
		var xs, ys []float64
		for _, f := range c.figures {
			if v, ok := value(f); ok && v > 0 {
				xs, ys = append(xs, math.Log2(float64(f.asked()))), append(ys, math.Log10(v))
			}
		}
		if len(xs) > 0 {
			lines, names = append(lines, resample(xs, ys, lo, hi, plotWidth)), append(names, c.scope)
		}
	}
	if len(lines) == 0 {
		return
	}
	options := append(plotOptions(names, colour),
		asciigraph.XAxisRange(lo, hi), asciigraph.XAxisTickCount(5),
		asciigraph.XAxisValueFormatter(func(x float64) string { return roundSize(math.Exp2(x)) }),
		asciigraph.YAxisValueFormatter(func(y float64) string { return text(math.Pow(10, y)) }))
	fmt.Fprintf(b, "\n%s\n%s\n", title, asciigraph.PlotMany(lines, options...))
}

// plotRanks draws each rank's median at the largest size that has them.
func plotRanks(b *bytes.Buffer, head string, curves []plotCurve, colour bool) {
	for _, c := range curves {
		f := c.figures[len(c.figures)-1]
		if f.Scope != "global" || len(f.RankP50) < 2 {
			continue
		}
		n := len(f.RankP50)
		line := steps(f.RankP50, plotWidth)
		options := append(plotOptions([]string{"median of each rank"}, colour),
			asciigraph.XAxisRange(0, float64(n-1)), asciigraph.XAxisTickCount(min(n, 8)),
			asciigraph.XAxisValueFormatter(func(x float64) string { return fmt.Sprintf("%.0f", x) }),
			asciigraph.YAxisValueFormatter(func(y float64) string {
				if y == 0 { // where the axis starts
					return "0"
				}
				return timeText(y)
			}), asciigraph.LowerBound(0))
		fmt.Fprintf(b, "\n%s: time against rank, %s, %s\n%s\n", head, sizeText(f.asked()), name(f.Algorithm), asciigraph.Plot(line, options...))
	}
}

// plotOptions tell scopes apart by colour, or by their signs where there is none.
func plotOptions(names []string, colour bool) []asciigraph.Option {
	signs := []string{"*", "o", "+", "x"}
	options := []asciigraph.Option{asciigraph.Height(plotHeight)}
	if colour {
		return append(options, asciigraph.SeriesColors(asciigraph.Blue, asciigraph.Orange, asciigraph.Purple, asciigraph.Green), asciigraph.SeriesLegends(names...))
	}
	var sets []asciigraph.CharSet
	var key []string
	for i, n := range names {
		sign := signs[i%len(signs)]
		sets, key = append(sets, asciigraph.CreateCharSet(sign)), append(key, sign+" "+n)
	}
	return append(options, asciigraph.SeriesChars(sets...), asciigraph.Caption(strings.Join(key, "   ")))
}

// resample is the line through the points at n places from lo to hi; NaN
// beyond its ends.
func resample(xs, ys []float64, lo, hi float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		x := lo + (hi-lo)*float64(i)/float64(n-1)
		out[i] = math.NaN()
		for k := range xs {
			switch {
			case math.Abs(x-xs[k]) < 1e-9:
				out[i] = ys[k]
			case k > 0 && xs[k-1] < x && x < xs[k]:
				out[i] = ys[k-1] + (ys[k]-ys[k-1])*(x-xs[k-1])/(xs[k]-xs[k-1])
			}
		}
	}
	return out
}

// steps is the value of the nearest rank at each of n places from the first rank
// to the last; ranks that share a place show the slowest of them.
func steps(ranks []float64, n int) []float64 {
	out := make([]float64, n)
	at := func(place int) int { return (2*place*(len(ranks)-1) + n - 1) / (2 * (n - 1)) }
	for i := range out {
		k := at(i)
		out[i] = ranks[k]
		for next := k + 1; next < len(ranks) && (i == n-1 || next < at(i+1)); next++ {
			out[i] = max(out[i], ranks[next])
		}
	}
	return out
}

// roundSize is a size on an axis, which need not be exact.
func roundSize(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	u := 0
	for n >= 1000 && u < len(units)-1 {
		n, u = n/1024, u+1
	}
	return fmt.Sprintf("%.3g %s", n, units[u])
}
