package reports

import (
	"fmt"
	"math"
	"strings"
)

// page is one operation of the page.
func (s *sheet) page(varies []string, samples map[string][]float64) pageGroup {
	f := s.figures[0]
	place := "out of place"
	if f.InPlace {
		place = "in place"
	}
	g := pageGroup{Heading: name(f.Op), Detail: strings.TrimPrefix(strings.TrimSpace(name(f.Dtype)+" "+name(f.Redop))+", "+place, ", ")}
	if f.Root != nil {
		g.Detail += fmt.Sprintf(", root %d", *f.Root)
	}
	if f.Aggregate > 1 {
		g.Detail += fmt.Sprintf(", %d at a time", f.Aggregate)
	}
	if engines := s.engines(); engines != "native" {
		g.Detail += ", " + engines
	}
	for _, k := range varies {
		g.Detail += ", " + setting(k, redact(f.Config)[k])
	}
	for _, scope := range s.scopes {
		var kinds []string
		for _, f := range s.figures {
			if f.Scope == scope && len(kinds) < maxKinds {
				kinds = appendNew(kinds, strings.TrimPrefix(name(scope)+": "+f.kind(), ": "))
			}
		}
		g.Kinds = append(g.Kinds, kinds...)
	}
	g.Curves = "Median and its 95 % interval; dashed: the limit."
	if times := s.timesAre(); times != ownTime {
		g.Curves = "Time: " + times + "."
	}
	g.Bars, g.Versus, g.All = s.bars(), s.versusTable(), s.allTable()
	for _, t := range []*pageTable{g.Versus, g.All} {
		if t != nil { // told apart when one jumps from region to region
			t.Label = t.Name + ", " + g.Heading + ", " + g.Detail
		}
	}
	g.Chart = s.chart(samples)
	for _, d := range g.Chart.Dist {
		g.Sizes = append(g.Sizes, d.Size)
	}
	return g
}

// fastest is the best valid figure of each scope at one size; s.figures[at:end].
func (s *sheet) fastest(at, end int) map[string]*Figure {
	best := map[string]*Figure{}
	for _, f := range s.figures[at:end] {
		bus, ok := f.Busbw()
		if !ok {
			continue
		}
		if g := best[f.Scope]; g != nil {
			if top, _ := g.Busbw(); top >= bus {
				continue
			}
		}
		best[f.Scope] = f
	}
	return best
}

// bySize calls do for the rows of each size, smallest first.
func (s *sheet) bySize(do func(at, end int)) {
	for at := 0; at < len(s.figures); {
		end := at
		for end < len(s.figures) && s.figures[end].asked() == s.figures[at].asked() {
			end++
		}
		do(at, end)
		at = end
	}
}

// bars compare the scopes at the largest size that most of them have.
func (s *sheet) bars() *pageBars {
	var out *pageBars
	most := 0
	s.bySize(func(at, end int) {
		best := s.fastest(at, end)
		if len(best) == 0 || len(best) < most {
			return
		}
		most = len(best)
		out = &pageBars{Size: sizeText(s.figures[at].asked())}
		full := 0.0
		for _, f := range best {
			bus, _ := f.Busbw()
			full = max(full, bus)
			if l := f.Bounds(); l != nil {
				full = max(full, l.GBps)
			}
		}
		for _, scope := range s.scopes {
			f := best[scope]
			if f == nil {
				continue
			}
			bus, _ := f.Busbw()
			b := pageBar{Scope: name(scope), Algorithm: name(f.Algorithm), Busbw: rateText(bus, true), Share: shareText(f.Share()), Width: percent(bus, full)}
			if l := f.Bounds(); l != nil {
				b.Limit, b.LimitName, b.Mark = rateText(l.GBps, true), name(l.Name), percent(l.GBps, full)
			}
			out.Bars = append(out.Bars, b)
		}
	})
	return out
}

func percent(part, whole float64) float64 { return math.Round(1000*part/whole) / 10 }

// lead is the comparison as a sentence; of is the operation and what else
// tells its measurements from others on the page.
func (p *pageBars) lead(of string) string {
	if p == nil {
		return ""
	}
	var said []string
	for _, b := range p.Bars {
		t := strings.TrimSpace(fmt.Sprintf("%s %s GB/s", b.Scope, b.Busbw))
		if b.Limit != "" {
			t += fmt.Sprintf(" (%s of %s)", b.Share, b.LimitName)
		}
		said = append(said, t)
	}
	return fmt.Sprintf("%s, %s a rank: %s.", of, p.Size, strings.Join(said, "; "))
}

// versusTable is the best of each scope, size by size; nil with one scope.
func (s *sheet) versusTable() *pageTable {
	if len(s.scopes) < 2 {
		return nil
	}
	t := &pageTable{Name: "Scope against scope", Caption: "Best algorithm of each scope: time, busbw in GB/s, share of the limit", Heads: []string{"Size"}}
	for _, scope := range s.scopes {
		n := name(scope)
		t.Heads = append(t.Heads, n, n+" time", n+" busbw", n+" share")
	}
	t.Heads = append(t.Heads, "cross / intra")
	s.bySize(func(at, end int) {
		row, _ := s.versusRow(at, end, false)
		t.Rows = append(t.Rows, row)
	})
	return t
}

// allTable is a row for every figure.
func (s *sheet) allTable() *pageTable {
	t := &pageTable{
		Name:    "Every figure",
		Caption: "Time: " + s.timesAre() + "; ±95 %: interval of the median; tail: p99 of 100 samples or more, else the maximum; bandwidths in GB/s",
		Heads:   []string{"Size", "Scope", "Algorithm", "Time", "±95 %", "Min", "Tail", "Max", "Outliers", "algbw", "busbw", "Limit", "Share", "Predicted", "Wrong"},
	}
	for _, f := range s.figures {
		c := cellsOf(f, false)
		t.Rows = append(t.Rows, []string{f.size(), c.scope, s.algorithm(f), c.time, c.spread, c.least, c.tail, c.most, c.outliers, c.algbw, c.busbw, c.limit, c.share, c.predicted, c.wrong})
	}
	return t
}
