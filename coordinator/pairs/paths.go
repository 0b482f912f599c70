package pairs

import (
	"fmt"
	"slices"

	"busbw/reports"
)

// route is what was measured from one node to another on one rail.
type route struct {
	a, b, rail int
	together   []float64
	alone      []float64
}

// value is what the route reached: alone where that was measured.
func (r *route) value() float64 {
	if len(r.alone) > 0 {
		return median(r.alone)
	}
	return median(r.together)
}

// fewOnce is how many paths are named after one slow measurement.
const fewOnce = 4

// paths blames what lies between ports that are good with others.
func (c *locator) paths() {
	routes := map[[3]int]*route{}
	for _, s := range c.t.Bandwidth {
		if s.Way != c.lv.Way {
			continue
		}
		us := c.t.units(s)
		if c.st[us[0]] != good || c.st[us[1]] != good {
			continue
		}
		k := [3]int{s.A, s.B, s.Rail}
		if s.Way == Both {
			k[0], k[1] = min(s.A, s.B), max(s.A, s.B)
		}
		if routes[k] == nil {
			routes[k] = &route{a: k[0], b: k[1], rail: k[2]}
		}
		if s.Alone {
			routes[k].alone = append(routes[k].alone, s.Value)
		} else {
			routes[k].together = append(routes[k].together, s.Value)
		}
	}
	var slow []*route
	for k, r := range routes {
		if r.value() < c.lv.Odd {
			slow = append(slow, r)
			c.known[[3]int{min(k[0], k[1]), max(k[0], k[1]), k[2]}] = true
		}
	}
	slices.SortFunc(slow, func(x, y *route) int {
		return slices.Compare([]int{x.rail, x.a, x.b}, []int{y.rail, y.a, y.b})
	})
	before := slow
	slow = c.uplinks(routes, slow)
	c.routes = len(routes)
	for _, r := range routes {
		if len(r.together) > 0 && median(r.together) < c.lv.Odd && (slices.Contains(slow, r) || !slices.Contains(before, r)) {
			c.odd = append(c.odd, [2]int{min(r.a, r.b), max(r.a, r.b)})
		}
	}
	slow = c.patchy(routes, slow)
	// Both directions and all rails of one pair are one path.
	done := map[[2]int]bool{}
	var once []*route
	for _, r := range slow {
		if len(r.alone) == 0 {
			once = append(once, r)
		}
	}
	if len(once) > fewOnce {
		// So many that chance explains them: said as a number until they are measured again.
		c.report.Notes = append(c.report.Notes, fmt.Sprintf("%d paths were slow %s in one measurement and were not measured again", len(once), c.lv.Way))
		slow = slices.DeleteFunc(slow, func(r *route) bool { return len(r.alone) == 0 })
		for _, r := range once {
			c.report.Next = append(c.report.Next, c.t.probe(r.a, r.b, r.rail, c.lv.Way))
		}
	}
	for _, r := range slow {
		p := [2]int{min(r.a, r.b), max(r.a, r.b)}
		if done[p] {
			continue
		}
		done[p] = true
		c.path(p, slow)
	}
}

// path reports one pair of nodes with all its slow routes.
func (c *locator) path(p [2]int, slow []*route) {
	cu := Culprit{Kind: Path, Verdict: reports.Warn, Sure: "medium"}
	dirs := map[[2]int]bool{}
	var vs []float64
	alone, plainly := 0, false
	for _, r := range slow {
		if min(r.a, r.b) != p[0] || max(r.a, r.b) != p[1] {
			continue
		}
		dirs[[2]int{r.a, r.b}] = true
		vs = append(vs, r.value())
		alone = max(alone, len(r.alone))
		plainly = plainly || r.value() < c.lv.Typical*(1-plain)
		if c.t.Rails > 1 && !slices.Contains(cu.Rails, r.rail) {
			cu.Rails = append(cu.Rails, r.rail)
		}
		p := c.t.probe(r.a, r.b, r.rail, c.lv.Way)
		p.again = len(r.alone) == 1
		cu.Try = append(cu.Try, p)
	}
	if alone < 2 && !plainly {
		// One value a little below the level: among many pairs some are, by chance.
		c.report.Next = append(c.report.Next, cu.Try...)
		return
	}
	from, to := p[0], p[1]
	if len(dirs) == 1 && c.lv.Way == OneWay {
		cu.Side = sends.String()
		for d := range dirs {
			from, to = d[0], d[1]
		}
	}
	cu.Nodes = []string{c.t.Nodes[from], c.t.Nodes[to]}
	cu.GBps = median(vs)
	cu.Why = []string{fmt.Sprintf("%s (%.0f %% of the typical %s) between them, and both are fast with others; slow is %s",
		rate(cu.GBps), 100*cu.GBps/c.lv.Typical, rate(c.lv.Typical), c.lv.Reasoning)}
	if alone > 1 {
		cu.Verdict, cu.Sure, cu.Try = reports.Fail, "high", nil
		cu.Why = append(cu.Why, fmt.Sprintf("slow also in %d measurements while nothing else ran", alone))
	}
	c.blame(cu, nil)
}

// patchy blames a node that is slow with several partners and fast with
// others: part of what it has (one link of a bundle, one of its routes).
func (c *locator) patchy(routes map[[3]int]*route, slow []*route) []*route {
	type port struct{ node, rail int }
	measured, bad := map[port]map[int]bool{}, map[port]map[int]bool{}
	note := func(m map[port]map[int]bool, r *route) {
		for _, p := range []struct {
			port
			other int
		}{{port{r.a, r.rail}, r.b}, {port{r.b, r.rail}, r.a}} {
			if m[p.port] == nil {
				m[p.port] = map[int]bool{}
			}
			m[p.port][p.other] = true
		}
	}
	for _, r := range routes {
		note(measured, r)
	}
	for _, r := range slow {
		note(bad, r)
	}
	for n := range c.t.Nodes {
		for rail := range c.t.Rails {
			p := port{n, rail}
			if len(bad[p]) < 3 || 5*len(bad[p]) < len(measured[p]) {
				continue
			}
			var mine, rest []*route
			var vs []float64
			var try []Probe
			for _, r := range slow {
				if (r.a == n || r.b == n) && r.rail == rail {
					mine, vs = append(mine, r), append(vs, r.value())
					try = append(try, c.t.probe(r.a, r.b, r.rail, c.lv.Way))
				} else {
					rest = append(rest, r)
				}
			}
			if len(mine) < 3 { // explained by another node meanwhile
				continue
			}
			slow = rest
			kind := Port
			if c.t.OneMachine {
				kind = Node
			}
			cu := Culprit{Kind: kind, Nodes: []string{c.t.Nodes[n]}, Verdict: reports.Warn, Sure: "low", GBps: median(vs), Try: try, Why: []string{
				fmt.Sprintf("slow (%s, typical %s) with %d of %d partners and fast with the others: a route or one link of several, or a fault that comes and goes", rate(median(vs)), rate(c.lv.Typical), len(bad[p]), len(measured[p])),
			}}
			if c.t.Rails > 1 {
				cu.Rails = []int{rail}
			}
			c.blame(cu, nil)
		}
	}
	return slow
}

func join(names []string, of []int) string {
	s := ""
	for i, n := range of {
		switch {
		case i == 4:
			return s + fmt.Sprintf(" and %d more", len(of)-4)
		case i > 0:
			s += ", "
		}
		s += names[n]
	}
	return s
}
