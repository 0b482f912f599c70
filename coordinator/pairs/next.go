package pairs

import "slices"

// mostProbes bounds what a report proposes: more suspects than that are not
// settled pair by pair.
const mostProbes = 64

// confirm proposes, for each part that one way accuses, a measurement of it
// alone with a partner that is good, and one of that partner with another good
// one, as a control.
func (c *locator) confirm() {
	for u := range c.st {
		if c.st[u] != bad {
			continue
		}
		if slices.ContainsFunc(c.met[u], func(m meeting) bool { return m.alone && c.st[m.partner] == good }) {
			continue
		}
		n, r, s := c.t.ofUnit(u)
		partner := -1
		for _, m := range c.met[u] {
			if c.st[m.partner] == good {
				if p, _, _ := c.t.ofUnit(m.partner); partner < 0 || p < partner {
					partner = p
				}
			}
		}
		if partner < 0 {
			continue
		}
		c.propose(n, partner, r, s)
		for o := range c.t.Nodes {
			if o != n && o != partner && c.st[c.t.unit(o, r, s)] == good {
				c.propose(o, partner, r, s) // the control
				break
			}
		}
	}
}

func (c *locator) propose(node, partner, rail int, s side) {
	if s == receives {
		node, partner = partner, node
	}
	c.report.Next = append(c.report.Next, c.t.probe(node, partner, rail, c.lv.Way))
}

// settle leaves out of what is proposed what was done already, and what is
// proposed twice.
func (r *Report) settle(t *Table) {
	for _, cu := range r.Culprits {
		r.Next = append(r.Next, cu.Try...)
	}
	done := map[Probe]bool{}
	for _, s := range t.Bandwidth {
		if s.Alone {
			done[Probe{A: s.A, B: s.B, Rail: s.Rail, Way: s.Way}] = true
			if s.Way == Both {
				done[Probe{A: s.B, B: s.A, Rail: s.Rail, Way: s.Way}] = true
			}
		}
	}
	var next []Probe
	again := map[Probe]bool{}
	for _, p := range r.Next {
		k := Probe{A: p.A, B: p.B, Rail: p.Rail, Way: p.Way}
		if (!done[k] || p.again && !again[k]) && len(next) < mostProbes {
			done[k], again[k] = true, true
			next = append(next, p)
		}
	}
	r.Next = next
}
