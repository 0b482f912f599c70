package pairs

import (
	"fmt"
	"slices"

	"busbw/reports"
)

// most is the share of a group's ports that must be slow for the group to be
// what is slow.
const most = 0.8

// Judge finds the slow parts of a table.
func Judge(t *Table, l Limits) (*Report, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	r := &Report{}
	explained := map[int]bool{} // ports that one way already accuses
	known := map[[3]int]bool{}  // and paths
	fine := make([]bool, len(t.Nodes))
	margin := 0.0
	for _, w := range ways() {
		lv, ok := t.level(w, l)
		if !ok {
			continue
		}
		view := *t
		if w == Both {
			view.Bandwidth = slices.DeleteFunc(slices.Clone(t.Bandwidth), func(s Sample) bool {
				return s.Way == Both && (explained[s.A*t.Rails+s.Rail] || explained[s.B*t.Rails+s.Rail] || known[[3]int{min(s.A, s.B), max(s.A, s.B), s.Rail}])
			})
		}
		lv.margin(max(lv.share, margin)) // scatter of one way is that of the other
		c := view.locate(lv)
		for !c.consistent() && c.lv.Relative && c.lv.share < hopeless {
			lv.margin(min(hopeless, 1.5*lv.share))
			c = view.locate(lv)
		}
		lv = c.lv
		margin = max(margin, lv.share)
		r.Levels = append(r.Levels, lv)
		r.Notes = append(append(r.Notes, t.marks(lv)...), c.report.Notes...)
		switch {
		case t.weak(lv):
			r.Doubt = fmt.Sprintf("fewer than %d nodes are no measure of each other: give a limit to call any of them good", fewNodes)
		case lv.Noisy && lv.Absolute == 0:
			r.Doubt = "the figures scatter too much to call any node good"
		}
		if lv.Noisy {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: the figures scatter so much that only what is below %s stands out: something else used these machines or links", w, rate(lv.Odd)))
		}
		r.Culprits = append(r.Culprits, c.report.Culprits...)
		r.Next = append(r.Next, c.report.Next...)
		for k := range c.known {
			known[k] = true
		}
		for u, s := range c.st {
			n, rail, _ := t.ofUnit(u)
			switch {
			case s == good && (!lv.Noisy || lv.Absolute > 0) && !t.weak(lv):
				fine[n] = true
			case s > good:
				explained[n*t.Rails+rail] = true
			}
		}
	}
	for n, ok := range fine {
		for rail := range t.Rails {
			ok = ok && !explained[n*t.Rails+rail]
		}
		if ok {
			r.Good = append(r.Good, t.Nodes[n])
		}
	}
	r.settle(t)
	slices.SortStableFunc(r.Culprits, func(a, b Culprit) int {
		return slices.Index(kinds(), a.Kind) - slices.Index(kinds(), b.Kind)
	})
	return r, nil
}

// hopeless is a margin at which nothing but a dead link would be seen.
const hopeless = 0.6

// beyond is the share of what counts as slow below which no scatter reaches.
const beyond = 0.6

// locator is the work on one way.
type locator struct {
	t      *Table
	lv     Level
	st     []state
	met    [][]meeting
	taken  map[int]bool    // units that a culprit explains
	leafy  map[int]bool    // of those, by the switch that they hang on
	known  map[[3]int]bool // paths that are accused
	routes int             // between good ports
	odd    [][2]int        // pairs of those that were slow and that no uplink explains, one for each route
	report *Report
}

// locate finds the culprits of one way.
func (t *Table) locate(lv Level) *locator {
	c := &locator{t: t, lv: lv, report: &Report{}, taken: map[int]bool{}, leafy: map[int]bool{}, known: map[[3]int]bool{}}
	c.st, c.met = t.states(lv.Way, lv.Slow)
	if lv.Below {
		c.all()
		if len(c.open(good)) == 0 {
			return c // and nobody stands out
		}
	}
	c.leaves()
	c.ports()
	c.undecided()
	c.paths()
	c.confirm()
	return c
}

// consistent says whether parts that are slow or not explain what was
// measured. Where many pairs of good ports are slow, or bad ones are fast as
// often as not, the figures scatter by more than they seemed to.
func (c *locator) consistent() bool {
	distinct := map[[2]int]bool{}
	for _, p := range c.odd {
		distinct[p] = true
	}
	if len(distinct) >= 3 && 20*len(c.odd) > c.routes {
		return false
	}
	guilty, fickle := 0, 0
	for u, s := range c.st {
		if s != bad {
			continue
		}
		guilty++
		var fast, all int
		for _, m := range c.met[u] {
			if c.st[m.partner] == good && !m.alone {
				if all++; m.value >= c.lv.Slow {
					fast++
				}
			}
		}
		if 5*fast > all {
			fickle++
		}
	}
	return 2*fickle <= guilty
}

// open are the units in a state that nothing explains yet.
func (c *locator) open(states ...state) (us []int) {
	for u, s := range c.st {
		if slices.Contains(states, s) && !c.taken[u] {
			us = append(us, u)
		}
	}
	return us
}

// blame adds a culprit that explains units.
func (c *locator) blame(cu Culprit, units []int) {
	for _, u := range units {
		c.taken[u] = true
	}
	cu.Want, cu.Way, cu.OneMachine = c.lv.Slow, c.lv.Way, c.t.OneMachine
	if c.lv.Noisy && c.lv.Absolute == 0 && (cu.GBps > beyond*c.lv.Slow || c.t.weak(c.lv)) {
		cu.Verdict, cu.Sure = reports.Unknown, "low"
		cu.Why = append(cu.Why, "the figures of all nodes scatter too much to be sure")
	}
	if c.t.weak(c.lv) {
		if cu.Sure = "low"; cu.Verdict != reports.Unknown {
			cu.Verdict = reports.Warn
		}
		if c.t.OneMachine {
			cu.Verdict = reports.Unknown // they compete for its processors: such differences come and go
		}
		cu.Why = append(cu.Why, fmt.Sprintf("fewer than %d nodes and no limit for this hardware: a level among so few proves little; give a limit", fewNodes))
	}
	c.report.Culprits = append(c.report.Culprits, cu)
}

// all says that the whole cluster is below its limit.
func (c *locator) all() {
	c.blame(Culprit{Kind: All, Verdict: reports.Fail, Sure: "high", GBps: c.lv.Typical, Why: []string{
		fmt.Sprintf("the typical pair reaches %s %s, and the limit is %s", rate(c.lv.Typical), c.lv.Way, rate(c.lv.Absolute)),
	}}, nil)
	c.report.Culprits[len(c.report.Culprits)-1].Want = c.lv.Absolute
}

// ports blames nodes and their NICs.
func (c *locator) ports() {
	byNode := map[int]map[int][]int{} // node → rail → its slow units
	for _, u := range c.open(bad) {
		n, r, _ := c.t.ofUnit(u)
		if byNode[n] == nil {
			byNode[n] = map[int][]int{}
		}
		byNode[n][r] = append(byNode[n][r], u)
	}
	for n := range c.t.Nodes {
		slow := byNode[n]
		if len(slow) == 0 {
			continue
		}
		if whole, units, s := c.wholeNode(n, slow); whole {
			c.blame(c.accuse(Node, n, nil, s, units), units)
			continue
		}
		for r := range c.t.Rails {
			us := slow[r]
			if len(us) == 0 {
				continue
			}
			rails := []int{r}
			if c.t.Rails == 1 {
				rails = nil
			}
			kind := Port
			if c.t.OneMachine {
				kind = Node // which has no NIC or cable between it and the others
			}
			c.blame(c.accuse(kind, n, rails, c.sideOf(us), us), us)
		}
	}
}

// wholeNode says whether all rails of a node are slow in the same way. A node
// with one rail is blamed as a whole only if it is slow in both directions.
func (c *locator) wholeNode(n int, slow map[int][]int) (bool, []int, string) {
	var units []int
	measured, guilty := 0, map[side]int{}
	for r := range c.t.Rails {
		seen := false
		for _, s := range sidesOf(c.lv.Way) {
			u := c.t.unit(n, r, s)
			seen = seen || c.st[u] != unmeasured
			if (c.st[u] == bad || c.st[u] == suspect) && !c.taken[u] {
				units = append(units, u)
				guilty[s]++
			}
		}
		if seen {
			measured++
		}
	}
	for s, k := range guilty {
		if k == measured && len(slow) >= (measured+1)/2 && (measured > 1 || len(guilty) == len(sidesOf(c.lv.Way))) {
			if len(guilty) == len(sidesOf(c.lv.Way)) && (c.lv.Way == OneWay || !c.separate()) {
				return true, units, ""
			}
			return true, units, s.String()
		}
	}
	return false, nil, ""
}

// sideOf names the slow side of a port, or nothing if both are.
func (c *locator) sideOf(us []int) string {
	_, _, s := c.t.ofUnit(us[0])
	if len(us) > 1 || (s == duplex && !c.separate()) {
		return ""
	}
	return s.String()
}

// separate says whether each direction was measured by itself, too.
func (c *locator) separate() bool {
	return slices.ContainsFunc(c.t.Bandwidth, func(s Sample) bool { return s.Way == OneWay })
}

// nodes of some units.
func (c *locator) nodes(us []int) (ns []int) {
	for _, u := range us {
		if n, _, _ := c.t.ofUnit(u); !slices.Contains(ns, n) {
			ns = append(ns, n)
		}
	}
	return ns
}
