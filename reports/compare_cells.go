package reports

import (
	"fmt"
	"strconv"

	"busbw/collectives"
)

// wireSlack allows for rounding in figures that are held against the rate of
// a wire.
const wireSlack = 1.01

// rated is a limit that no busbw can exceed: the wire's, and what an algorithm
// may rightly show above it.
func (r *Result) rated(o CompareOptions) (gbps float64, name string) {
	if r.Limit != nil && !r.Limit.Measured() {
		more, _ := r.aboveLimit()
		return r.Limit.GBps * more, r.Limit.Name
	}
	more, _ := AboveWire(r.Op, r.Algorithm, r.Ranks, r.groupNodes())
	if name = "wire"; more > 1 {
		name = fmt.Sprintf("wire, and %.2f times that is the most that busbw may show", more)
	}
	return o.Wire * more, name
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
			row = Row{Op: r.Op, Scope: r.Scope, Dtype: r.Dtype, Redop: r.Redop, Root: r.Root, InPlace: r.InPlace, Bytes: r.asked(), unsized: !r.sized()}
			for _, d := range apart {
				if row.With == nil {
					row.With = map[string]string{}
				}
				row.With[d] = dimension(r, d)
			}
			named = true
		}
	}
	byBusbw := false
	ranks := -1
	for _, rs := range of {
		for i := range rs {
			r := &rs[i]
			byBusbw = byBusbw || ranks >= 0 && ranks != r.Ranks || r.averageOnly()
			ranks = r.Ranks
		}
	}
	for _, rs := range of {
		row.Cells = append(row.Cells, newCell(rs, byBusbw, o))
	}
	return row
}

// averageOnly says that a bandwidth is all that another tool's text had.
func (r *Result) averageOnly() bool {
	return len(r.Seconds) == 0 && r.Error == "" && r.Stated != nil && r.Stated.Busbw != nil && *r.Stated.Busbw > 0
}

// speed of a launch whose median time is t: 1/t, or busbw in GB/s; ok is false
// where that is not known. t is 0 for a bandwidth without a time.
func (r *Result) speed(t float64, byBusbw bool) (speed float64, ok bool) {
	if !byBusbw {
		return 1 / t, t > 0
	}
	if bus, ok := r.busbw(t); ok {
		return bus, true
	}
	if r.Stated != nil && r.Stated.Busbw != nil && *r.Stated.Busbw > 0 {
		return *r.Stated.Busbw, true
	}
	return 0, false
}

// busbw of a time, GB/s.
func (r *Result) busbw(t float64) (gbps float64, ok bool) {
	op, err := collectives.ParseOp(r.Op)
	if err != nil || r.Ranks < 2 || t <= 0 {
		return 0, false
	}
	factor, ok := op.BusFactor(r.Ranks)
	return float64(r.Bytes) * factor / t / 1e9, ok
}

// launchOf names one launch of one run.
type launchOf struct {
	run    string
	launch int
}

// newCell merges the records of a case on one side. Speed is 1/time; where
// the sides differ in ranks, or one has bandwidths only, it is busbw.
func newCell(rs []Result, byBusbw bool, o CompareOptions) (c Cell) {
	samples := map[launchOf][]float64{}
	of := map[launchOf]*Result{}
	var order []launchOf
	var faults []string
	wrong, least := int64(0), false
	for i := range rs {
		r := &rs[i]
		if r.Wrong != nil {
			wrong += *r.Wrong
			least = least || r.AtLeast && *r.Wrong > 0
		}
		l := launchOf{r.Run, r.Launch}
		switch {
		case r.Error != "":
			faults = append(faults, r.Error)
		case len(r.Seconds) > 0 && Median(r.Seconds) > 0 || byBusbw && r.averageOnly():
			if of[l] == nil {
				order, of[l] = append(order, l), r
			}
			samples[l] = append(samples[l], r.Seconds...)
		}
	}
	var times, rates []float64
	byRun := map[string][]float64{}
	var runs []string
	for _, l := range order {
		t := 0.0
		if len(samples[l]) > 0 {
			t = Median(samples[l])
		}
		v, ok := of[l].speed(t, byBusbw)
		if !ok {
			continue
		}
		if t > 0 {
			times = append(times, t)
		}
		if bus, ok := of[l].speed(t, true); ok {
			rates = append(rates, bus)
		}
		c.speeds, c.launches = append(c.speeds, v), append(c.launches, l)
		if byRun[l.run] == nil {
			runs = append(runs, l.run)
		}
		byRun[l.run] = append(byRun[l.run], v)
	}
	c.Launches, c.Runs = len(c.speeds), len(runs)
	for _, run := range runs {
		c.sittings = append(c.sittings, Median(byRun[run]))
	}
	if c.Launches == 0 && len(faults) == 0 {
		for i := range rs {
			if p := rs[i].Predicted; p != nil && *p > 0 {
				if v, ok := rs[i].speed(*p, byBusbw); ok {
					c.Verdict, c.speeds, times = Guessed, append(c.speeds, v), append(times, *p)
				}
				if bus, ok := rs[i].busbw(*p); ok {
					rates = append(rates, bus)
				}
			}
		}
	}
	if len(rates) > 0 {
		c.Busbw = new(Median(rates))
	}
	if s, ok := Describe(times); ok {
		c.Seconds, c.Interval = new(s.Median), s.Interval
		if bus, ok := rs[0].busbw(s.Median); ok {
			c.Busbw = &bus
		}
	}
	switch limit, name := ratedOf(rs, o); {
	case wrong > 0:
		c.Verdict, c.Why = Wrong, fmt.Sprintf("%d elements have wrong data", wrong)
		if least {
			c.Why = "elements have wrong data; their number is not told"
		}
	case len(c.speeds) == 0 && len(faults) > 0:
		c.Verdict, c.Why = Failed, faults[0]
	case c.Busbw != nil && limit > 0 && *c.Busbw > limit*wireSlack:
		c.Verdict, c.Why = Beyond, fmt.Sprintf("%s GB/s is more than the %s GB/s of the %s: check the data and the byte counts", rateText(*c.Busbw, true), rateText(limit, true), name)
	case len(faults) > 0:
		c.Why = fmt.Sprintf("%d of %d launches failed: %s", len(faults), len(faults)+c.Launches, faults[0])
	}
	return c
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
