package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// band scores every setting over the sizes of one band; ok is false where the
// base has no figure to hold them against. twice is the side of the A/A
// launches.
func (t *Tuning) band(rows []Row, twice int) (b Band, ok bool) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Cells[0].void() })
	if len(rows) == 0 {
		return b, false
	}
	b = Band{Head: rows[0].head(), From: rows[0].Bytes, To: rows[len(rows)-1].Bytes}
	for i := range t.Settings {
		e := Entry{Setting: i, Verdict: t.Settings[i].Out}
		for j := range rows {
			if v := rows[j].Cells[i].Verdict; e.Verdict == "" && (v == Failed || rows[j].Cells[i].Launches == 0) {
				e.Verdict = Failed
			}
		}
		if e.Verdict == "" {
			e.scores = scores(rows, i)
			e.Launches = len(e.scores)
		}
		b.Entries = append(b.Entries, e)
	}
	if n, ok := Noise(scores(rows, twice), max(b.Entries[0].Launches, 1)); ok {
		b.Noise = new(n - 1)
	}
	return b, true
}

// scores are the launches of a side that have every row: the geometric mean
// of their speed against the base's median.
func scores(rows []Row, side int) (out []float64) {
	sums, counts := map[launchOf]float64{}, map[launchOf]int{}
	var order []launchOf
	for i := range rows {
		base := Median(rows[i].Cells[0].speeds)
		c := &rows[i].Cells[side]
		for j, l := range c.launches {
			if counts[l] == 0 {
				order = append(order, l)
			}
			sums[l] += math.Log(c.speeds[j] / base)
			counts[l]++
		}
	}
	for _, l := range order {
		if counts[l] == len(rows) {
			out = append(out, math.Exp(sums[l]/float64(len(rows))))
		}
	}
	return out
}

// judge tests every setting in every band against the base, then names the
// winners. Holm's procedure covers all tests of the sweep.
func (t *Tuning) judge() {
	var p []float64
	var at []*Entry
	var floors []float64
	fewest := math.MaxInt
	for i := range t.Bands {
		b := &t.Bands[i]
		base := &b.Entries[0]
		floor := t.Margin
		if b.Noise != nil {
			floor = max(floor, *b.Noise)
		}
		for j := range b.Entries {
			e := &b.Entries[j]
			if len(e.scores) == 0 || len(base.scores) == 0 {
				continue
			}
			e.Change = new(Median(e.scores)/Median(base.scores) - 1)
			if e.Setting == 0 {
				continue
			}
			fewest = min(fewest, len(e.scores), len(base.scores))
			between, ok := RatioInterval(e.scores, base.scores)
			if !ok {
				e.Verdict = TooFew
				continue
			}
			e.Between = &[2]float64{between[0] - 1, between[1] - 1}
			_, q := MannWhitney(e.scores, base.scores)
			p, at, floors = append(p, q), append(at, e), append(floors, floor)
		}
	}
	t.Tests = len(p)
	for i, q := range Holm(p) {
		e := at[i]
		e.P = new(q)
		e.Verdict = claim([2]float64{1 + e.Between[0], 1 + e.Between[1]}, q, floors[i])
	}
	if need := LeastLaunches(max(t.Tests, 1)); t.Tests > 0 && fewest < need {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%d tests are too many for %d launches of a setting: not even the clearest difference could be claimed; %d launches or fewer settings would do", t.Tests, fewest, need))
	}
	for i := range t.Bands {
		t.win(&t.Bands[i])
	}
}

// win sorts a band, the base before all others, and finds its winner. A setting without any effect cannot
// win: if it looks better, that is noise.
func (t *Tuning) win(b *Band) {
	base := b.Entries[0]
	slices.SortStableFunc(b.Entries, func(x, y Entry) int {
		if (x.Setting == 0) != (y.Setting == 0) {
			return map[bool]int{true: -1, false: 1}[x.Setting == 0]
		}
		if (x.Change == nil) != (y.Change == nil) {
			return map[bool]int{true: 1, false: -1}[x.Change == nil]
		}
		if x.Change == nil {
			return cmp.Compare(x.Setting, y.Setting)
		}
		return cmp.Compare(*y.Change, *x.Change)
	})
	best := base
	for _, e := range b.Entries {
		inert := t.Settings[e.Setting].Inert
		if inert && (e.Verdict == Faster || e.Verdict == Slower) {
			t.Warnings = append(t.Warnings, fmt.Sprintf("%s, %s: %s is shown to be %s and yet did nothing that the ranks report: it has an effect that is not read back, or the noise is larger than A/A found", b.where(), t.Settings[e.Setting].Name, t.Settings[e.Setting].Name, e.Verdict))
		}
		if best.Setting == 0 && e.Verdict == Faster && !inert {
			best = e
		}
	}
	b.Winner = best.Setting
	for _, e := range b.Entries {
		if e.Setting == best.Setting || len(e.scores) == 0 {
			continue
		}
		between, ok := RatioInterval(e.scores, best.scores)
		_, p := MannWhitney(e.scores, best.scores)
		if !ok || p >= level || between[1] >= 1 {
			b.Tied = append(b.Tied, e.Setting)
		}
	}
}

// one ranks the base and the settings that are shown to be better somewhere by
// what each would cost if it were used for all. A setting that is shown to be
// better nowhere is no choice, whatever its medians.
func (t *Tuning) one() {
	for i, s := range t.Settings {
		if s.Out != "" || s.Inert || i > 0 && !slices.ContainsFunc(t.Bands, func(b Band) bool { return b.shown(i) }) {
			continue
		}
		c := Choice{Setting: i}
		var sum float64
		complete := true
		for j := range t.Bands {
			b := &t.Bands[j]
			var mine, best float64
			for _, e := range b.Entries {
				if e.Change == nil {
					continue
				}
				if e.Setting == i {
					mine = 1 + *e.Change
				}
				if e.Setting == i || e.Setting == b.Winner {
					best = max(best, 1+*e.Change)
				}
			}
			if complete = complete && mine > 0; !complete {
				break
			}
			cost := max(0, 1-mine/best)
			sum += math.Log(mine / best)
			if cost >= c.Worst {
				c.Worst, c.Where = cost, b.where()
			}
		}
		if complete && len(t.Bands) > 0 {
			c.Mean = max(0, -math.Expm1(sum/float64(len(t.Bands))))
			t.One = append(t.One, c)
		}
	}
	slices.SortStableFunc(t.One, func(a, b Choice) int { return cmp.Compare(a.Mean, b.Mean) })
}

// shown says that a setting is shown to be better than the base in this band.
func (b *Band) shown(setting int) bool {
	return slices.ContainsFunc(b.Entries, func(e Entry) bool { return e.Setting == setting && e.Verdict == Faster })
}
