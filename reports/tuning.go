package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Trial is one setting of a sweep, with the records of its launches.
type Trial struct {
	Name    string
	Lines   []string // shell lines that set it; none: the defaults
	Results []Result
}

// Tuning is what a sweep has shown: which setting is better where, and how
// sure that is. Setting 0 is the base that the others are held against.
type Tuning struct {
	Settings []Tried  `json:"settings"`
	Margin   float64  `json:"margin"`
	Tests    int      `json:"tests"` // that Holm's procedure allows for
	Bands    []Band   `json:"bands"`
	One      []Choice `json:"one_for_all,omitempty"` // the cheapest first
	Drift    *Drift   `json:"drift,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Tried is a setting and what became of it.
type Tried struct {
	Name     string   `json:"name"`
	Lines    []string `json:"lines,omitempty"`
	Launches int      `json:"launches"`
	Out      string   `json:"out,omitempty"`     // Wrong, Beyond: it cannot win anything
	Why      string   `json:"why,omitempty"`     // it is out, or has no result
	Effects  []string `json:"effects,omitempty"` // what it did, against the base
	Inert    bool     `json:"inert,omitempty"`   // nothing that the ranks report was different
	Unheard  []string `json:"unheard,omitempty"` // its variables that NCCL's log never mentions
}

// Band is a range of sizes of one operation in one scope. What counts is the
// geometric mean of a launch's speed over its sizes, against the base.
type Band struct {
	Head    string   `json:"head"` // operation, type, scope, as in the tables
	From    int64    `json:"from_bytes"`
	To      int64    `json:"to_bytes"`
	Noise   *float64 `json:"noise,omitempty"` // that two sets of launches of the base differ by, A/A; 0.03 is 3 %
	Entries []Entry  `json:"entries"`         // the base, then the fastest first
	Winner  int      `json:"winner"`          // setting; 0 where none is shown to be better than the base
	Tied    []int    `json:"tied,omitempty"`  // settings that are not shown to be slower than the winner
}

// Entry is one setting in a band.
type Entry struct {
	Setting  int         `json:"setting"`
	Launches int         `json:"launches"`
	Change   *float64    `json:"change,omitempty"`
	Between  *[2]float64 `json:"change_interval,omitempty"`
	P        *float64    `json:"p,omitempty"`
	Verdict  string      `json:"verdict,omitempty"`
	scores   []float64
}

// Choice is a setting for everything, and what that costs against the winner
// of each band: 0.02 is 2 % of the speed.
type Choice struct {
	Setting int     `json:"setting"`
	Mean    float64 `json:"mean_cost"`
	Worst   float64 `json:"worst_cost"`
	Where   string  `json:"worst_where"`
}

// Drift compares the second half of the launches with the first, all settings
// together, each against its own median.
type Drift struct {
	Change float64 `json:"change"` // of speed
	P      float64 `json:"p"`
}

// bandEnds are the largest sizes of the bands but the last: what latency
// rules, what mixes, and what bandwidth rules.
var bandEnds = []int64{32 << 10, 4 << 20}

// Bands counts the ranges of sizes that a sweep's sizes fall into.
func Bands(sizes []int64) int {
	seen := map[int]bool{}
	for _, s := range sizes {
		seen[bandOf(s)] = true
	}
	return len(seen)
}

func bandOf(size int64) int {
	for i, end := range bandEnds {
		if size <= end {
			return i
		}
	}
	return len(bandEnds)
}

// LeastLaunches is how many launches of each setting a claim needs where it is
// one of several tests: with fewer not even the clearest difference passes.
func LeastLaunches(tests int) int {
	n := minForInterval
	for float64(tests)*2*math.Exp(-lnChoose(2*n, n)) >= level {
		n += 2
	}
	return n
}

// Tune judges a sweep. twice are launches of the base that were made only to
// learn the noise. margin is the least change that is claimed.
func Tune(trials []Trial, twice []Result, margin float64) (*Tuning, error) {
	t := &Tuning{Margin: margin}
	var sides []Side
	for _, tr := range trials {
		t.Settings = append(t.Settings, Tried{Name: tr.Name, Lines: tr.Lines})
		sides = append(sides, Side{tr.Name, tr.Results})
	}
	sides = append(sides, Side{"A/A", twice})
	apart := slices.DeleteFunc(within(sides), func(d string) bool { return slices.Contains(shape, d) })
	cases, order := gathered(sides, apart)
	var rows []Row
	for _, k := range order {
		if len(cases[k][0]) > 0 {
			rows = append(rows, newRow(cases[k], apart, CompareOptions{}))
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the sweep holds no result of %s", trials[0].Name)
	}
	slices.SortStableFunc(rows, compareRows)
	for i := range t.Settings {
		t.inspect(i, rows, cases, order)
		if s := &t.Settings[i]; s.Launches == 0 && s.Out == "" {
			s.Why = firstError(trials[i].Results)
		}
	}
	for at := 0; at < len(rows); {
		end := at
		for end < len(rows) && rows[end].head() == rows[at].head() && bandOf(rows[end].Bytes) == bandOf(rows[at].Bytes) {
			end++
		}
		if b, ok := t.band(rows[at:end], len(sides)-1); ok {
			t.Bands = append(t.Bands, b)
		}
		at = end
	}
	t.judge()
	t.one()
	t.drift(rows, sides)
	return t, nil
}

// firstError is why nothing was measured, as far as it is known.
func firstError(results []Result) string {
	for _, r := range results {
		if r.Error != "" {
			return r.Error
		}
	}
	return ""
}

// inspect finds what a setting did and whether it is out.
func (t *Tuning) inspect(i int, rows []Row, cases map[string][][]Result, order []string) {
	s := &t.Settings[i]
	for j := range rows {
		c := &rows[j].Cells[i]
		s.Launches = max(s.Launches, c.Launches)
		if s.Out == "" && (c.Verdict == Wrong || c.Verdict == Beyond) {
			s.Out, s.Why = c.Verdict, fmt.Sprintf("%s, %s: %s", rows[j].head(), sizeText(rows[j].Bytes), c.Why)
		}
	}
	if i == 0 {
		return
	}
	counts, both := map[string]int{}, 0
	var seen []string
	for _, k := range order {
		base, mine := cases[k][0], cases[k][i]
		if len(base) == 0 || len(mine) == 0 {
			continue
		}
		both++
		for k := range mine[0].Config {
			if mine[0].Engine == "nccl" && mine[0].Config[k] != base[0].Config[k] && mine[0].Effective[k] == "" && len(mine[0].Effective) > 0 && !slices.Contains(s.Unheard, k) {
				s.Unheard = append(s.Unheard, k)
			}
		}
		for _, d := range did(&base[0], &mine[0]) {
			if counts[d]++; counts[d] == 1 {
				seen = append(seen, d)
			}
		}
	}
	const shown = 6
	for n, d := range seen {
		if n == shown {
			s.Effects = append(s.Effects, fmt.Sprintf("and %d more", len(seen)-n))
			break
		}
		if counts[d] < both {
			d = fmt.Sprintf("%s in %d of %d cases", d, counts[d], both)
		}
		s.Effects = append(s.Effects, d)
	}
	s.Inert = len(seen) == 0
	slices.Sort(s.Unheard)
}

// did lists what the ranks report differently from the base.
func did(base, mine *Result) (all []string) {
	say := func(what, a, b string) {
		if a != b {
			all = append(all, fmt.Sprintf("%s %s → %s", what, orNone(a), orNone(b)))
		}
	}
	say("algorithm", base.Algorithm, mine.Algorithm)
	say("link", base.Link, mine.Link)
	names := map[string]string{}
	for _, m := range []map[string]string{base.Effective, mine.Effective} {
		for k := range m {
			names[k] = ""
		}
	}
	for _, k := range sortedKeys(names) {
		if strings.HasPrefix(k, "NCCL_") {
			continue // that NCCL has read a variable is no effect of it
		}
		say(name(k), name(base.Effective[k]), name(mine.Effective[k]))
	}
	verbs := func(r *Result) string {
		if r.Verbs == nil {
			return ""
		}
		return prose(fmt.Sprint(r.Verbs.Rails, r.Verbs.QPs, r.Verbs.Attributes))
	}
	if verbs(base) != verbs(mine) {
		all = append(all, "queue pairs")
	}
	return all
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// drift looks for a machine that changes while the sweep lasts.
func (t *Tuning) drift(rows []Row, sides []Side) {
	type launched struct {
		at    time.Time
		score float64
	}
	var all []launched
	for side := range t.Settings {
		began := map[launchOf]time.Time{}
		for _, r := range sides[side].Results {
			l := launchOf{r.Run, r.Launch}
			if old, ok := began[l]; !ok || r.Time.Before(old) {
				began[l] = r.Time
			}
		}
		sums, counts := map[launchOf]float64{}, map[launchOf]int{}
		for i := range rows {
			c := &rows[i].Cells[side]
			if c.void() {
				continue
			}
			m := Median(c.speeds)
			for j, l := range c.launches {
				sums[l] += math.Log(c.speeds[j] / m)
				counts[l]++
			}
		}
		for l, n := range counts {
			all = append(all, launched{began[l], math.Exp(sums[l] / float64(n))})
		}
	}
	slices.SortFunc(all, func(a, b launched) int { return a.at.Compare(b.at) })
	half := len(all) / 2
	if half < minForInterval {
		return
	}
	var first, second []float64
	for i, l := range all {
		if i < half {
			first = append(first, l.score)
		} else {
			second = append(second, l.score)
		}
	}
	_, p := MannWhitney(second, first)
	t.Drift = &Drift{Change: Median(second)/Median(first) - 1, P: p}
	if p < level {
		t.Warnings = append(t.Warnings, fmt.Sprintf("the machine changed while it was measured: the second half of the launches is %s in speed (p = %.2g); the order favours no setting, but the noise is larger for it", changeText(t.Drift.Change), p))
	}
}

// sizes is a band's range for people.
func (b *Band) sizes() string {
	if b.From == b.To {
		return sizeText(b.From)
	}
	return sizeText(b.From) + " to " + sizeText(b.To)
}

// where names a band.
func (b *Band) where() string { return strings.Join([]string{b.Head, b.sizes()}, ", ") }
