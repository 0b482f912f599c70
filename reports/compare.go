package reports

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Side is one thing under comparison: the records of a file or of several.
type Side struct {
	Label   string
	Results []Result
}

// CompareOptions say what counts as different.
type CompareOptions struct {
	Margin float64 // least change of speed that is claimed: 0.02 is 2 %
	Wire   float64 // GB/s that no rank's busbw can exceed, for records without a rated limit; 0: not known
}

// Comparison is several sides beside each other; the first is what the others
// are compared with.
type Comparison struct {
	Sides    []SideInfo `json:"sides"`
	Margin   float64    `json:"margin"`
	Differ   []Differ   `json:"differ,omitempty"`   // what is not the same on all sides
	Warnings []string   `json:"warnings,omitempty"` // what keeps a difference from being attributed, or from being found
	Rows     []Row      `json:"rows"`
	told     []string   // what the times are that other tools' texts give
}

// SideInfo is what a side is made of.
type SideInfo struct {
	Label    string `json:"label"`
	Results  int    `json:"results"`
	Launches int    `json:"launches"`
	Runs     int    `json:"runs"`
	Only     int    `json:"only,omitempty"` // cases that no other side has
}

// Row is one case: an operation at one size in one scope.
type Row struct {
	Op      string            `json:"op"`
	Scope   string            `json:"scope"`
	Dtype   string            `json:"dtype"`
	Redop   string            `json:"redop,omitempty"`
	Root    *int              `json:"root,omitempty"`
	InPlace bool              `json:"in_place"`
	Bytes   int64             `json:"bytes"` // asked for; 0 where no side knows it
	With    map[string]string `json:"with,omitempty"`
	Cells   []Cell            `json:"cells"` // by side
	unsized bool              // Bytes is not known: a test that failed before its first row
}

// Cell is one side of a row. Change is of speed, against the first side: 0.05
// is 5 % faster.
type Cell struct {
	Launches int         `json:"launches"`
	Runs     int         `json:"runs"`
	Seconds  *float64    `json:"seconds,omitempty"`  // median of the launches' medians
	Interval *[2]float64 `json:"interval,omitempty"` // 95 % of the median, s; from 6 launches on
	Busbw    *float64    `json:"busbw_gb_per_s,omitempty"`
	Change   *float64    `json:"change,omitempty"`
	Between  *[2]float64 `json:"change_interval,omitempty"` // 95 %, bootstrap
	P        *float64    `json:"p,omitempty"`               // Mann–Whitney over launches, Holm over the rows
	Verdict  string      `json:"verdict,omitempty"`         // of this side against the first; see Faster and the others
	Why      string      `json:"why,omitempty"`             // of a verdict that needs it
	speeds   []float64   // of each launch
	launches []launchOf  // theirs
	sittings []float64   // median speed of each run
}

// void says that the cell has no figure to compare.
func (c *Cell) void() bool { return len(c.speeds) == 0 || c.Verdict == Wrong || c.Verdict == Beyond }

// ErrNothingInCommon says that no case is on the first side and on another.
var ErrNothingInCommon = errors.New("nothing in common")

// Compare sets sides beside each other, case by case. Whatever differs within
// one case of one side (an algorithm, a setting) tells its rows apart; what
// differs only between sides is what is compared, and is named. Errors are
// ErrNothingInCommon, and a side without results.
func Compare(sides []Side, o CompareOptions) (*Comparison, error) {
	c := &Comparison{Margin: o.Margin}
	for _, s := range sides {
		for _, f := range Figures(s.Results) {
			if f.Stated != nil && f.Timed && len(c.told) <= maxKinds {
				c.told = appendNew(c.told, f.timeIs())
			}
		}
	}
	for _, s := range sides {
		if len(s.Results) == 0 {
			return nil, fmt.Errorf("%s has no results", s.Label)
		}
	}
	apart := within(sides)
	cases, order := gathered(sides, apart)
	for _, k := range order {
		if row := newRow(cases[k], apart, o); row.common() {
			c.Rows = append(c.Rows, row)
		}
	}
	if len(c.Rows) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNothingInCommon, foreign(sides, cases, order, apart))
	}
	slices.SortStableFunc(c.Rows, compareRows)
	for i := range sides {
		c.Sides = append(c.Sides, sideInfo(sides[i], i, cases))
		if i > 0 {
			c.judge(i)
		}
	}
	c.differences(sides, cases, order, apart)
	return c, nil
}

// common says that the first side has the case, and another.
func (r *Row) common() bool {
	n := 0
	for _, c := range r.Cells[1:] {
		if c.Launches > 0 || c.Verdict != "" {
			n++
		}
	}
	return n > 0 && (r.Cells[0].Launches > 0 || r.Cells[0].Verdict != "")
}

// compareRows puts all sizes of a thing together, in rising order.
func compareRows(a, b Row) int {
	if d := strings.Compare(a.head(), b.head()); d != 0 {
		return d
	}
	return int(min(max(a.Bytes-b.Bytes, -1), 1))
}

// judge gives each row's cell of a side its verdict against the first side.
func (c *Comparison) judge(side int) {
	p := make([]float64, len(c.Rows))
	least := 0.0 // p that the best possible outcome has
	for i := range c.Rows {
		p[i] = math.NaN()
		a, b := &c.Rows[i].Cells[0], &c.Rows[i].Cells[side]
		if a.void() || b.void() {
			continue
		}
		b.Change = new(Median(b.speeds)/Median(a.speeds) - 1)
		base, mine := units(a, b)
		between, ok := RatioInterval(mine, base)
		switch {
		case a.Verdict == Guessed || b.Verdict == Guessed:
			b.Verdict = Guessed
		case !ok:
			b.Verdict = TooFew
		default:
			b.Between = &[2]float64{between[0] - 1, between[1] - 1}
			_, p[i] = MannWhitney(mine, base)
			least = max(least, 2*lowerTail(len(base), len(mine), 0))
		}
	}
	tests := 0
	for i, q := range Holm(p) {
		if math.IsNaN(q) {
			continue
		}
		tests++
		a, b := &c.Rows[i].Cells[0], &c.Rows[i].Cells[side]
		b.P = new(q)
		b.Verdict = claim([2]float64{1 + b.Between[0], 1 + b.Between[1]}, q, c.Margin)
		if b.Verdict != Same && overlap(a, b) {
			b.Verdict, b.Why = Same, "within what single runs differ by"
		}
	}
	if tests > 0 && least*float64(tests) >= level {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %d rows are too many for so few launches: even the clearest difference would have p = %.2f; take more launches or fewer sizes", c.Sides[side].Label, tests, least*float64(tests)))
	}
}

// units are what a test of two cells counts: launches, or runs where both sides
// have enough of them and these hold several launches, for the launches of one
// sitting have more in common than those of several.
func units(a, b *Cell) (base, mine []float64) {
	if nested(a, b) && min(a.Runs, b.Runs) >= minForInterval {
		return a.sittings, b.sittings
	}
	return a.speeds, b.speeds
}

func nested(a, b *Cell) bool { return a.Launches > a.Runs || b.Launches > b.Runs }

// overlap says whether the ranges of the runs' medians meet, where runs of
// several launches are too few to be the units: a difference between sittings
// is not one between sides.
func overlap(a, b *Cell) bool {
	if !nested(a, b) || a.Runs+b.Runs < 3 || min(a.Runs, b.Runs) >= minForInterval {
		return false
	}
	return slices.Min(a.sittings) <= slices.Max(b.sittings) && slices.Min(b.sittings) <= slices.Max(a.sittings)
}

// head is what the sizes of one table share.
func (r *Row) head() string {
	place := "out of place"
	if r.InPlace {
		place = "in place"
	}
	text := fmt.Sprintf("%s %s, %s", name(r.Op), strings.TrimSpace(name(r.Dtype)+" "+name(r.Redop)), place)
	if r.Root != nil {
		text += fmt.Sprintf(", root %d", *r.Root)
	}
	if r.Scope != "" {
		text += ", scope " + name(r.Scope)
	}
	for _, k := range sortedKeys(r.With) {
		text += ", " + setting(k, r.With[k])
	}
	return text
}

// Judged counts the cells beyond the first side that a test could judge.
func (c *Comparison) Judged() (n int) {
	for i := range c.Rows {
		for j := range c.Rows[i].Cells[1:] {
			if c.Rows[i].Cells[j+1].P != nil {
				n++
			}
		}
	}
	return n
}

// Regressions lists the cells that are shown to be slower than the first side
// by at least a share, or that have no valid figure where the first side has
// one.
func (c *Comparison) Regressions(by float64) (found []string) {
	for i := range c.Rows {
		r := &c.Rows[i]
		for j := range r.Cells[1:] {
			b := &r.Cells[j+1]
			where := fmt.Sprintf("%s, %s, %s", c.Sides[j+1].Label, r.head(), r.size())
			switch {
			case b.Verdict == Slower && 1/(1+*b.Change)-1 >= by:
				found = append(found, fmt.Sprintf("%s: takes %s longer", where, shareText(1/(1+*b.Change)-1, true)))
			case !r.Cells[0].void() && (b.Verdict == Wrong || b.Verdict == Beyond || b.Verdict == Failed):
				found = append(found, fmt.Sprintf("%s: %s, %s", where, b.Verdict, b.Why))
			}
		}
	}
	return found
}
