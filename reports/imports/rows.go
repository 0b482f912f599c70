package imports

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"busbw/reports"
)

// rows gives the records of a world.
func (s *stream) rows(base reports.Result, g *group, sh *share, c *clues, w *World) error {
	s.tests++
	base.Notes = recordNotes(w)
	if w.Rows == 0 {
		return s.empty(base, g, sh, w)
	}
	iters := int64(0)
	if len(g.banners) > 0 {
		iters = max(g.banners[0].iters, 0)
	}
	bad := badHalves(sh, g.layout.delta)
	out := base
	for i := range sh.rows {
		r := &sh.rows[i]
		if sh.period > 0 {
			out.Launch = i / sh.period
		}
		for h := range r.halves {
			x := &r.halves[h]
			if !x.there || !x.time.ok || x.time.v < 0 {
				continue
			}
			out.Root, out.Notes = nil, base.Notes
			out.Dtype, out.Redop = r.dtype, r.redop
			if r.redop == "none" {
				out.Redop = ""
			}
			if r.root >= 0 {
				out.Root = new(int(r.root & 0xffffff))
			}
			out.Bytes, out.Count, out.InPlace = r.size, r.count, h == 1
			wrong, checked := wrongOf(g, sh, x, bad[[2]int{i, h}])
			x.figures(&out, c.unit, wrong, checked)
			out.AtLeast = g.layout.delta && checked && wrong > 0
			out.Stated.Iterations = iters
			if r.iterations > 0 {
				out.Stated.Iterations = r.iterations
			}
			if g.layout.delta && out.Wrong != nil && *out.Wrong > 0 {
				out.Notes = append(slices.Clip(out.Notes), fmt.Sprintf("wrong data; this version prints the largest difference, %g, not how many elements", x.wrong.v))
			}
			if err := s.give(r.line, &out); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordNotes are those of a world's notes that belong to each of its records.
func recordNotes(w *World) []string {
	var notes []string
	if w.Beside > 1 {
		notes = append(notes, fmt.Sprintf("one of %d worlds whose lines are mixed in the text", w.Beside))
	}
	if w.OpFrom != "" && w.OpFrom[0] == 'b' {
		notes = append(notes, "operation "+w.OpFrom)
	}
	if w.RanksFrom != "" && w.RanksFrom != "listed" {
		notes = append(notes, "ranks "+w.RanksFrom)
	}
	return notes
}

// empty is the record of a world without rows: its failure, or the average
// that is all the text has. Where not even the size is known there is none.
func (s *stream) empty(base reports.Result, g *group, sh *share, w *World) error {
	lo, hi := g.cmd.min, g.cmd.max
	if len(g.banners) > 0 {
		lo, hi = g.banners[0].min, g.banners[0].max
	}
	switch {
	case w.State == Summary && lo > 0 && lo == hi && w.Average != nil:
		base.Bytes = lo
		base.Stated = &reports.Stated{Busbw: w.Average}
		base.Wrong = w.Wrong
		base.Notes = append(slices.Clip(base.Notes), "the average of one size is all that the text has: no time")
	case w.State == Hang || w.State == Failed:
		base.Bytes, base.Stated = max(lo, 0), &reports.Stated{}
		base.Error = w.Error
	default:
		return nil
	}
	return s.give(w.Line, &base)
}

// badHalves are those with wrong data in the layouts that print the largest
// difference: as many as the footer counts, by the difference.
func badHalves(sh *share, delta bool) map[[2]int]bool {
	bad := map[[2]int]bool{}
	if !delta || sh.bounds == nil || sh.bounds.wrong == 0 {
		return bad
	}
	var all [][2]int
	for i := range sh.rows {
		for h := range sh.rows[i].halves {
			if sh.rows[i].halves[h].wrong.ok {
				all = append(all, [2]int{i, h})
			}
		}
	}
	by := func(k [2]int) float64 { return sh.rows[k[0]].halves[k[1]].wrong.v }
	sort.SliceStable(all, func(a, b int) bool { return by(all[a]) > by(all[b]) })
	for i := range all {
		if int64(i) < sh.bounds.wrong {
			bad[all[i]] = true
		}
	}
	return bad
}

// figures gives a record the half's numbers, in one piece of memory.
func (x *half) figures(r *reports.Result, unit float64, wrong int64, checked bool) {
	m := &struct {
		stated   reports.Stated
		time     [1]float64
		alg, bus float64
		wrong    int64
	}{time: [1]float64{x.time.seconds(unit)}, alg: x.alg.v, bus: x.bus.v, wrong: wrong}
	r.Stated, r.Seconds, r.Wrong, r.AtLeast = &m.stated, m.time[:], nil, false
	m.stated.Time = reports.StatedMean
	if checked {
		r.Wrong = &m.wrong
	}
	if x.alg.ok {
		m.stated.Algbw = &m.alg
	}
	if x.bus.ok {
		m.stated.Busbw = &m.bus
	}
	if e := x.each; e != nil {
		m.stated.Min, m.stated.Max, m.stated.P99 = micros(e.least), micros(e.most), micros(e.p99)
		if len(e.samples) > 0 {
			r.Seconds = e.samples
		}
	}
}

// wrongOf is how many elements were wrong; not told where nobody checked.
func wrongOf(g *group, sh *share, x *half, bad bool) (elements int64, told bool) {
	switch {
	case !x.wrong.ok:
		return 0, false
	case !g.layout.delta:
		return int64(math.Min(x.wrong.v, 1<<62)), true
	case bad:
		return 1, true // at least
	}
	return 0, sh.bounds != nil // else a difference, and no verdict on it
}

// seconds is a printed time as the record has it, as near as can be to its
// decimal digits; unit is how many µs its unit has.
func (n number) seconds(unit float64) float64 {
	if n.exp > 0 {
		return n.v * unit / 1e6
	}
	scale := math.Pow10(-int(n.exp))
	return math.Round(n.v*scale) / (scale * 1e6 / unit)
}

func micros(n number) *float64 {
	if !n.ok {
		return nil
	}
	return new(n.seconds(1))
}

// remarks are what the numbers of a world make doubtful, or tell.
func (w *World) remarks(sh *share, c *clues) {
	note := func(format string, args ...any) { w.Notes = append(w.Notes, fmt.Sprintf(format, args...)) }
	if n := sh.cycles(); n > 1 {
		note("the sweep was run %d times (-N); each is a launch", n)
	}
	if c.unit > 1 && w.Rows > 0 {
		note("times are in ms, as the layout of 2017 prints them")
	}
	if c.scaledAlg {
		note("algbw is printed with the factor already in it, as the layout of 2019 does for all_gather; busbw agrees with size and time")
	}
	if c.misfit != nil {
		note("row of %d B, line %d: algbw is not size/time; the row or its unit is not what it seems", c.misfit.size, c.misfit.line)
	}
	if c.odd != nil {
		note("row of %d B, line %d: busbw/algbw differs from the other rows: rows of different runs?", c.odd.size, c.odd.line)
	}
	zero, na := 0, 0
	for i := range sh.rows {
		if sh.rows[i].size == 0 {
			zero++
		}
		for h := range sh.rows[i].halves {
			if x := &sh.rows[i].halves[h]; x.there && !x.time.ok {
				na++
			}
		}
	}
	if zero > 0 {
		note("%d row%s of size 0: an empty launch, kept, but neither a latency nor a bandwidth", zero, map[bool]string{true: "s"}[zero != 1])
	}
	if na > 0 {
		note("%d halves of rows have no time (N/A, nan) and no record", na)
	}
	w.shape(sh, note)
	if w.Average != nil && w.Computed != nil && sh.cycles() <= 1 {
		if d := math.Abs(*w.Average - *w.Computed); d > 0.006+1e-4**w.Average {
			mean := fmt.Sprintf("%.4g", *w.Computed)
			if *w.Computed == 0 {
				mean = "which print 0.00, too little to tell"
			}
			note("the printed average %.6g GB/s is not the mean of these rows (%s): rows are missing", *w.Average, mean)
			if w.State == Complete {
				w.State = Partial
			}
		}
	}
	if w.Failed {
		note("FAILED: wrong data; its bandwidth means nothing")
	}
}

// shape says where the curve of a half is not what a healthy one looks like:
// a slow first size, a dip.
func (w *World) shape(sh *share, note func(string, ...any)) {
	var rows []*row
	for i := range sh.rows {
		r := &sh.rows[i]
		if r.size == 0 {
			continue
		}
		if n := len(rows); n > 0 && (r.dtype != rows[0].dtype || r.redop != rows[0].redop || r.size <= rows[n-1].size) {
			return // not one sweep
		}
		rows = append(rows, r)
	}
	if len(rows) > 2 && rows[1].size < 1<<20 {
		a, b, c := rows[0].halves[0].time, rows[1].halves[0].time, rows[2].halves[0].time
		if a.ok && b.ok && c.ok && a.v > 1.5*b.v && math.Abs(b.v-c.v) < 0.25*b.v {
			note("the first size took %.1f times as long as the next: warm-up, not latency", a.v/b.v)
		}
	}
	dips := 0
	for i := 1; i+1 < len(rows) && dips < 3; i++ {
		deep, count := 0.0, 0
		for h := range rows[i].halves {
			a, x, b := rows[i-1].halves[h].bus, rows[i].halves[h].bus, rows[i+1].halves[h].bus
			if !rows[i].halves[h].there {
				continue
			}
			count++
			if !a.ok || !x.ok || !b.ok || a.v < 1 || x.v > 0.75*a.v || x.v > 0.75*b.v {
				deep = 0
				break
			}
			deep = math.Max(deep, 1-x.v/a.v)
		}
		if deep > 0 && count > 0 {
			x := rows[i]
			dips++
			both := map[bool]string{true: ", in both halves"}[count == 2]
			note("busbw dips at %d B: %.4g GB/s, %.0f %% below the size before and below the next%s: a change of algorithm or protocol; measure in finer steps", x.size, busOf(x), 100*deep, both)
		}
	}
}

func busOf(r *row) float64 {
	if r.halves[0].bus.ok {
		return r.halves[0].bus.v
	}
	return r.halves[1].bus.v
}
