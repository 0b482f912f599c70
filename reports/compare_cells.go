package reports

import (
	"fmt"
	"slices"
	"strconv"

	"busbw/collectives"
)

// wireSlack allows for rounding in figures that are held against the rate of
// a wire.
const wireSlack = 1.01

// measuredLimits are the limits that the program measures, so that a better
// setting or a cache may exceed them; every other limit is a rating.
var measuredLimits = []string{"memory bandwidth", "loopback stream"}

// rated is a limit that no busbw can exceed: the wire's.
func (r *Result) rated(o CompareOptions) (gbps float64, name string) {
	if r.Limit != nil && !slices.Contains(measuredLimits, r.Limit.Name) {
		return r.Limit.GBps, r.Limit.Name
	}
	return o.Wire, "wire"
}

// caseKey is the same for records that measure the same thing.
func (r *Result) caseKey() string {
	root := "-"
	if r.Root != nil {
		root = strconv.Itoa(*r.Root)
	}
	return fmt.Sprintf("%q", []string{r.Op, r.Scope, r.Dtype, r.Redop, root, strconv.FormatBool(r.InPlace), strconv.FormatInt(r.asked(), 10)})
}

// gathered sorts all records into cases, by side. apart are the dimensions
// that tell cases apart beside what is measured.
func gathered(sides []Side, apart []string) (cases map[string][][]Result, order []string) {
	cases = map[string][][]Result{}
	for i, s := range sides {
		for _, r := range s.Results {
			k := r.caseKey()
			for _, d := range apart {
				k += "\x00" + dimension(&r, d)
			}
			if cases[k] == nil {
				cases[k] = make([][]Result, len(sides))
				order = append(order, k)
			}
			cases[k][i] = append(cases[k][i], r)
		}
	}
	return cases, order
}

func newRow(of [][]Result, apart []string, o CompareOptions) Row {
	var row Row
	named := false
	for _, rs := range of {
		if len(rs) > 0 && !named {
			r := &rs[0]
			row = Row{Op: r.Op, Scope: r.Scope, Dtype: r.Dtype, Redop: r.Redop, Root: r.Root, InPlace: r.InPlace, Bytes: r.asked()}
			for _, d := range apart {
				if row.With == nil {
					row.With = map[string]string{}
				}
				row.With[d] = dimension(r, d)
			}
			named = true
		}
	}
	ranks := map[int]bool{}
	for _, rs := range of {
		for i := range rs {
			ranks[rs[i].Ranks] = true
		}
	}
	for _, rs := range of {
		row.Cells = append(row.Cells, newCell(rs, len(ranks) > 1, o))
	}
	return row
}

// launchOf names one launch of one run.
type launchOf struct {
	run    string
	launch int
}

// newCell merges the records of a case on one side. Speed is 1/time; where
// the sides differ in ranks it is busbw, which allows for that.
func newCell(rs []Result, byBusbw bool, o CompareOptions) (c Cell) {
	samples := map[launchOf][]float64{}
	var order []launchOf
	var faults []string
	wrong := int64(0)
	for i := range rs {
		r := &rs[i]
		if r.Wrong != nil {
			wrong += *r.Wrong
		}
		l := launchOf{r.Run, r.Launch}
		switch {
		case r.Error != "":
			faults = append(faults, r.Error)
		case len(r.Seconds) > 0 && Median(r.Seconds) > 0:
			if samples[l] == nil {
				order = append(order, l)
			}
			samples[l] = append(samples[l], r.Seconds...)
		}
	}
	var times []float64
	byRun := map[string][]float64{}
	var runs []string
	for _, l := range order {
		t := Median(samples[l])
		times = append(times, t)
		if byRun[l.run] == nil {
			runs = append(runs, l.run)
		}
		byRun[l.run] = append(byRun[l.run], t)
	}
	c.Launches, c.Runs, c.launches = len(times), len(runs), order
	if len(times) == 0 && len(faults) == 0 {
		if times = predictions(rs); len(times) > 0 {
			c.Verdict = Guessed
		}
	}
	if len(times) > 0 {
		c.timed(&rs[0], times, byBusbw)
		for _, run := range runs {
			c.sittings = append(c.sittings, c.speeds[0]*times[0]/Median(byRun[run]))
		}
	}
	switch limit, name := ratedOf(rs, o); {
	case wrong > 0:
		c.Verdict, c.Why = Wrong, fmt.Sprintf("%d elements have wrong data", wrong)
	case len(times) == 0 && len(faults) > 0:
		c.Verdict, c.Why = Failed, faults[0]
	case c.Busbw != nil && limit > 0 && *c.Busbw > limit*wireSlack:
		c.Verdict, c.Why = Beyond, fmt.Sprintf("%s GB/s is more than the %s GB/s of the %s: check the data and the byte counts", rateText(*c.Busbw, true), rateText(limit, true), name)
	case len(faults) > 0:
		c.Why = fmt.Sprintf("%d of %d launches failed: %s", len(faults), len(faults)+c.Launches, faults[0])
	}
	return c
}

// timed fills in what follows from the launches' times.
func (c *Cell) timed(r *Result, times []float64, byBusbw bool) {
	s, _ := Describe(times)
	c.Seconds, c.Interval = new(s.Median), s.Interval
	scale := 1.0
	if op, err := collectives.ParseOp(r.Op); err == nil && r.Ranks > 1 {
		if factor, ok := op.BusFactor(r.Ranks); ok {
			c.Busbw = new(float64(r.Bytes) * factor / s.Median / 1e9)
			if byBusbw {
				scale = float64(r.Bytes) * factor / 1e9
			}
		}
	}
	for _, t := range times {
		c.speeds = append(c.speeds, scale/t)
	}
}

// predictions are the times of records that measured nothing.
func predictions(rs []Result) (times []float64) {
	for i := range rs {
		if p := rs[i].Predicted; p != nil && *p > 0 {
			times = append(times, *p)
		}
	}
	return times
}

func ratedOf(rs []Result, o CompareOptions) (gbps float64, name string) {
	for i := range rs {
		if g, n := rs[i].rated(o); g > 0 && (gbps == 0 || g < gbps) {
			gbps, name = g, n
		}
	}
	return gbps, name
}

func sideInfo(s Side, at int, cases map[string][][]Result) SideInfo {
	launches, runs := map[launchOf]bool{}, map[string]bool{}
	for _, r := range s.Results {
		launches[launchOf{r.Run, r.Launch}], runs[r.Run] = true, true
	}
	info := SideInfo{Label: s.Label, Results: len(s.Results), Launches: len(launches), Runs: len(runs)}
	for _, of := range cases {
		others := 0
		for i, rs := range of {
			if i != at && len(rs) > 0 {
				others++
			}
		}
		if len(of[at]) > 0 && others == 0 {
			info.Only++
		}
	}
	return info
}
