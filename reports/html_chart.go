package reports

import (
	"fmt"
	"math"
	"slices"
)

// chart is what the page's script draws, as JSON. Absent numbers are null.
type chart struct {
	Series []curve    `json:"series"`
	Dist   []dist     `json:"dist"`
	Pairs  []pairGrid `json:"pairs"`
}

// curve is one scope and algorithm over the sizes.
type curve struct {
	Name   string       `json:"name"`
	Scope  string       `json:"scope"`
	Points []curvePoint `json:"points"`
	Limits [][2]float64 `json:"limits"` // bytes, GB/s
}

type curvePoint struct {
	Bytes  int64       `json:"bytes"`
	Size   string      `json:"size"`
	Time   float64     `json:"time"` // s
	Range  *[2]float64 `json:"range"`
	Bus    *float64    `json:"bus"` // GB/s
	BusLo  *float64    `json:"busLo"`
	BusHi  *float64    `json:"busHi"`
	Text   string      `json:"text"` // for the pointer
	Unsure bool        `json:"unsure"`
}

// dist is how samples spread at one size, and how ranks do.
type dist struct {
	Size string `json:"size"`
	Rows []box  `json:"rows"`
}

type box struct {
	Name  string     `json:"name"`
	N     int        `json:"n"`
	Box   [5]float64 `json:"box"`   // whisker, quartile, median, quartile, whisker, s
	Dots  []float64  `json:"dots"`  // beyond the whiskers, at most maxDots
	Ranks []float64  `json:"ranks"` // each rank's median, s; at most maxBars
}

// Bounds that keep the page of a large run small; what is left out is said.
const (
	maxDots = 60
	maxBars = 1024
)

// pairGrid is a matrix of nodes; cells are of the best group of the two.
type pairGrid struct {
	Size  string       `json:"size"`
	Hosts []string     `json:"hosts"`
	Cells [][3]float64 `json:"cells"` // column (B), row (A), GB/s
}

func (s *sheet) chart(samples map[string][]float64) chart {
	c := chart{Series: []curve{}, Dist: []dist{}, Pairs: []pairGrid{}}
	at := map[string]int{}
	s.bySize(func(from, to int) {
		d := dist{Size: sizeText(s.figures[from].asked())}
		for _, f := range s.figures[from:to] {
			if len(f.Pairs) > 0 {
				continue
			}
			key := name(f.Scope) + " " + s.algorithm(f)
			switch { // auto is one line a scope, whatever it picked
			case s.auto:
				key = name(f.Scope)
			case f.Auto:
				key = name(f.Scope) + " auto"
			}
			i, ok := at[key]
			if !ok {
				i = len(c.Series)
				at[key] = i
				c.Series = append(c.Series, curve{Name: key, Scope: name(f.Scope)})
			}
			if p, ok := point(f, s.algorithm(f)); ok {
				c.Series[i].Points = append(c.Series[i].Points, p)
			}
			if l := f.Bounds(); l != nil {
				c.Series[i].Limits = append(c.Series[i].Limits, [2]float64{float64(f.asked()), l.GBps})
			}
			if f.Timed && !f.Foretold() && !f.summarised() { // one number has no spread
				b := boxOf(samples[f.key()])
				b.Name = key
				if len(f.RankP50) <= maxBars {
					b.Ranks = rounded(f.RankP50)
				}
				d.Rows = append(d.Rows, b)
			}
		}
		if len(d.Rows) > 0 {
			c.Dist = append(c.Dist, d)
		}
	})
	c.Pairs = s.pairGrids()
	c.Series = slices.DeleteFunc(c.Series, func(v curve) bool { return len(v.Points) == 0 })
	return c
}

func point(f *Figure, algorithm string) (p curvePoint, ok bool) {
	if !f.Timed || f.Void() || f.Stats.Median <= 0 {
		return p, false
	}
	p = curvePoint{Bytes: f.asked(), Size: sizeText(f.asked()), Time: short(f.Stats.Median)}
	c := cellsOf(f, false)
	p.Text = fmt.Sprintf("%s, %s: %s, busbw %s GB/s", algorithm, p.Size, c.time, c.busbw)
	if c.spread != none {
		p.Text += " ± " + c.spread
	}
	if c.share != none {
		p.Text += ", " + c.share + " of the limit"
	}
	p.Unsure = f.unsettled() || f.Skewed()
	if p.Unsure {
		p.Text += " (unsure)"
	}
	bus, valid := f.Busbw()
	if valid {
		p.Bus = new(short(bus))
	}
	if r := f.Stats.Interval; r != nil && r[0] > 0 {
		p.Range = &[2]float64{short(r[0]), short(r[1])}
		if valid {
			p.BusLo, p.BusHi = new(short(bus*f.Stats.Median/r[1])), new(short(bus*f.Stats.Median/r[0]))
		}
	}
	return p, true
}

// boxOf is Tukey's box: whiskers reach the last sample within 1.5
// interquartile ranges.
func boxOf(sample []float64) (b box) {
	sorted := slices.Sorted(slices.Values(sample))
	b.N, b.Dots, b.Ranks = len(sorted), []float64{}, []float64{}
	if b.N == 0 {
		return b
	}
	q1, q3 := nearestRank(sorted, 0.25), nearestRank(sorted, 0.75)
	reach := 1.5 * (q3 - q1)
	lo := slices.IndexFunc(sorted, func(x float64) bool { return x >= q1-reach })
	hi := len(sorted) - 1
	for sorted[hi] > q3+reach {
		hi--
	}
	for i, v := range []float64{sorted[lo], q1, middle(sorted), q3, sorted[hi]} {
		b.Box[i] = short(v)
	}
	out := append(slices.Clone(sorted[:lo]), sorted[hi+1:]...)
	step := max(1, (len(out)+maxDots-1)/maxDots)
	for i := len(out) - 1; i >= 0; i -= step { // the slowest is always among them
		b.Dots = append(b.Dots, short(out[i]))
	}
	return b
}

// pairGrids are the matrices of the sizes at which pairs of nodes were measured.
func (s *sheet) pairGrids() []pairGrid {
	grids := []pairGrid{}
	at := map[int64]int{}
	best := map[int64]map[[2]int]float64{}
	for _, f := range s.figures {
		if len(f.Pairs) == 0 || f.Void() || len(f.RankP50) == 0 || len(f.RankP50)%len(f.Pairs) != 0 {
			continue
		}
		size := f.asked()
		if _, ok := at[size]; !ok {
			at[size] = len(grids)
			g := pairGrid{Size: sizeText(size), Cells: [][3]float64{}}
			for _, h := range f.Hosts {
				g.Hosts = append(g.Hosts, name(h))
			}
			grids = append(grids, g)
			best[size] = map[[2]int]float64{}
		}
		each := len(f.RankP50) / len(f.Pairs)
		for i, p := range f.Pairs {
			t := slices.Max(f.RankP50[i*each : (i+1)*each])
			if t > 0 {
				k, gbps := [2]int{p.A, p.B}, float64(f.Bytes)/t/1e9
				best[size][k] = max(best[size][k], gbps)
				if f.Op == "sendrecv" { // both ways at once
					k = [2]int{p.B, p.A}
					best[size][k] = max(best[size][k], gbps)
				}
			}
		}
	}
	for size, cells := range best {
		g := &grids[at[size]]
		for k, v := range cells {
			g.Cells = append(g.Cells, [3]float64{float64(k[1]), float64(k[0]), short(v)})
		}
		slices.SortFunc(g.Cells, func(a, b [3]float64) int { return slices.Compare(a[:], b[:]) })
	}
	return grids
}

func rounded(in []float64) []float64 {
	out := make([]float64, len(in))
	for i, v := range in {
		out[i] = short(v)
	}
	return out
}

// short keeps four significant digits: more is not to be seen, and a page of
// a large run stays small.
func short(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
