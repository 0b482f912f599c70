package pairs

import (
	"fmt"
	"slices"

	"busbw/reports"
)

// against are the meetings of some units with partners that are good: the ones
// that speak against the units.
func (c *locator) against(us []int) (ms []meeting) {
	for _, u := range us {
		for _, m := range c.met[u] {
			if c.st[m.partner] == good {
				ms = append(ms, m)
			}
		}
	}
	return ms
}

// typical is the median of what slow units reached.
func (c *locator) typical(us []int) float64 {
	var vs []float64
	for _, u := range us {
		for _, m := range c.met[u] {
			vs = append(vs, m.value)
		}
	}
	return median(vs)
}

// accuse makes the case against ports of a node: how slow, with how many good
// partners, whether alone too, and what the values look like.
func (c *locator) accuse(k Kind, node int, rails []int, side string, us []int) Culprit {
	cu := Culprit{Kind: k, Nodes: []string{c.t.Nodes[node]}, Rails: rails, Side: side, Verdict: reports.Fail, Sure: "medium"}
	ms := c.against(us)
	var vs []float64
	partners := map[int]bool{}
	var alone, aloneSlow int
	for _, m := range ms {
		vs = append(vs, m.value)
		n, _, _ := c.t.ofUnit(m.partner)
		partners[n] = true
		if m.alone {
			if alone++; m.value < c.lv.Slow {
				aloneSlow++
			}
		}
	}
	slices.Sort(vs)
	cu.GBps = median(vs)
	what := "it"
	if k == Node && c.t.Rails > 1 && len(rails) == 0 {
		what = "each of its rails"
	}
	cu.Why = append(cu.Why, fmt.Sprintf("%s reaches %s (%.0f %% of the typical %s) with %d partners that are fast with others; slow is %s",
		what, rate(cu.GBps), 100*cu.GBps/c.lv.Typical, rate(c.lv.Typical), len(partners), c.lv.Reasoning))
	lo, hi := vs[0], vs[len(vs)-1]
	if len(partners) > 1 && hi < lo*1.03 {
		cu.Why = append(cu.Why, fmt.Sprintf("the same figure with every partner (%s to %s): a fixed limit of its own, not congestion", rate(lo), rate(hi)))
	}
	if k == Node && c.t.Rails == 1 && !c.t.OneMachine {
		cu.Why = append(cu.Why, "only one rail was measured, so the node and its NIC cannot be told apart by pairs")
	}
	switch {
	case alone > 0 && aloneSlow == 0:
		cu.Verdict = reports.Warn
		cu.Why = append(cu.Why, "alone it reaches the level: it is slow only while other pairs run (congestion, or something that its rails share)")
	case aloneSlow > 0 || len(partners) >= 3 || cu.GBps < c.lv.Typical*(1-plain):
		cu.Sure = "high"
	}
	if aloneSlow > 0 {
		cu.Why = append(cu.Why, "slow also while nothing else ran")
	}
	if s := c.latency(node, rails); s != "" {
		cu.Why = append(cu.Why, s)
	}
	return cu
}

// lateFactor is how much above the typical latency counts (ClusterKit: 2.1).
const lateFactor = 2.1

// latency says whether small messages of a port are late, too.
func (c *locator) latency(node int, rails []int) string {
	var mine, all []float64
	for _, s := range c.t.Latency {
		all = append(all, s.Value)
		if (s.A == node || s.B == node) && (len(rails) == 0 || slices.Contains(rails, s.Rail)) {
			mine = append(mine, s.Value)
		}
	}
	if len(mine) == 0 {
		return ""
	}
	typical, own := median(all), median(mine)
	if scatter := 1.4826 * spread(all, typical); scatter > 0.25*typical {
		return "" // nothing can be said
	}
	if c.t.OneMachine {
		return fmt.Sprintf("small messages take %.1f µs, typical is %.1f µs", own*1e6, typical*1e6)
	}
	if own > lateFactor*typical {
		return fmt.Sprintf("small messages take %.1f µs against a typical %.1f µs, too: both latency and bandwidth are bad, as with a bad cable", own*1e6, typical*1e6)
	}
	return fmt.Sprintf("small messages take %.1f µs, typical is %.1f µs: the latency is normal, so less likely the cable", own*1e6, typical*1e6)
}

// undecided names what is slow and cannot be told apart: ports that met no
// good partner, or only one.
func (c *locator) undecided() {
	left := c.open(dark, suspect)
	for len(left) > 0 {
		// All that are connected by slow meetings stand or fall together.
		in := map[int]bool{left[0]: true}
		todo := []int{left[0]}
		var ends []int // good partners of a suspect: the way to them may be it
		for len(todo) > 0 {
			u := todo[0]
			todo = todo[1:]
			for _, m := range c.met[u] {
				switch {
				case m.value >= c.lv.Slow || in[m.partner] || c.taken[m.partner]:
				case c.st[m.partner] == good && c.st[u] == suspect:
					ends = append(ends, m.partner)
				case c.st[m.partner] != good && c.st[m.partner] != bad:
					in[m.partner] = true
					todo = append(todo, m.partner)
				}
			}
			if n, r, _ := c.t.ofUnit(u); c.lv.Way == OneWay { // the other side of the same port
				for _, s := range []side{sends, receives} {
					if o := c.t.unit(n, r, s); !in[o] && !c.taken[o] && (c.st[o] == dark || c.st[o] == suspect) {
						in[o] = true
						todo = append(todo, o)
					}
				}
			}
		}
		var us []int
		for u := range in {
			us = append(us, u)
		}
		slices.Sort(us)
		if !slices.ContainsFunc(us, func(u int) bool {
			return slices.ContainsFunc(c.met[u], func(m meeting) bool { return c.st[m.partner] != bad && !c.leafy[m.partner] })
		}) { // its partners' faults explain all that was seen of it
			for _, u := range us {
				c.taken[u] = true
			}
			c.report.Next = append(c.report.Next, c.partners(us)...)
			left = c.open(dark, suspect)
			continue
		}
		cu := Culprit{Kind: Undecided, Verdict: reports.Warn, Sure: "low", GBps: c.typical(us)}
		ns := c.nodes(us)
		for _, n := range ns {
			cu.Nodes = append(cu.Nodes, c.t.Nodes[n])
		}
		if c.t.Rails > 1 {
			for _, u := range us {
				if _, r, _ := c.t.ofUnit(u); !slices.Contains(cu.Rails, r) {
					cu.Rails = append(cu.Rails, r)
				}
			}
		}
		why := "slow together, and neither was measured with a partner that is known to be good: one of them, both, or the path between them"
		if len(ends) > 0 {
			n, _, _ := c.t.ofUnit(ends[0])
			why = fmt.Sprintf("slow with %s, which is fast with others, and measured with no other good partner: it, or the path between them", c.t.Nodes[n])
		} else if len(ns) == 1 {
			why = "slow in all that was measured of it"
		}
		cu.Why = append(cu.Why, why, "slow is "+c.lv.Reasoning)
		cu.Try = c.partners(us)
		c.blame(cu, us)
		left = c.open(dark, suspect)
	}
}

// partners proposes, for each port of some units, a known-good partner that it
// has not been measured with: those that were never in a slow pair first.
func (c *locator) partners(us []int) (try []Probe) {
	used := map[int]bool{}
	ports := map[[2]int]bool{}
	for _, u := range us {
		n, r, s := c.t.ofUnit(u)
		if ports[[2]int{n, r}] && s != receives {
			continue
		}
		ports[[2]int{n, r}] = true
		best, least := -1, 0
		for p := range c.t.Nodes {
			v := c.t.unit(p, r, s.opposite())
			if p == n || c.st[v] != good || slices.ContainsFunc(c.met[u], func(m meeting) bool { return m.partner == v }) {
				continue
			}
			slow := 0
			for _, m := range c.met[v] {
				if m.value < c.lv.Slow {
					slow++
				}
			}
			if used[p] {
				slow += 1 << 20 // rather another one, so that all can be measured at once
			}
			if best < 0 || slow < least {
				best, least = p, slow
			}
		}
		if best < 0 {
			continue
		}
		used[best] = true
		a, b := n, best
		if s == receives {
			a, b = best, n
		}
		try = append(try, c.t.probe(a, b, r, c.lv.Way))
	}
	return try
}

func (s side) opposite() side {
	switch s {
	case sends:
		return receives
	case receives:
		return sends
	}
	return duplex
}
