package pairs

import (
	"fmt"
	"slices"

	"busbw/reports"
)

// group is ports that share a switch.
type group struct {
	leaf  string
	rails []int
	nodes []int
}

// leaves blames a switch where nearly all that hang on it are slow while
// others are not: a rail on all nodes (in rail-wired clusters each rail has a
// switch of its own), a named leaf on all rails, or one rail of a leaf.
func (c *locator) leaves() {
	byLeaf := map[string][]int{}
	var all []int
	for n := range c.t.Nodes {
		all = append(all, n)
		if l := c.t.leaf(n); l != "" {
			byLeaf[l] = append(byLeaf[l], n)
		}
	}
	var groups []group
	var rails []int
	for r := range c.t.Rails {
		rails = append(rails, r)
		if c.t.Rails > 1 {
			groups = append(groups, group{"", []int{r}, all})
		}
	}
	var names []string
	for l := range byLeaf {
		names = append(names, l)
	}
	slices.Sort(names)
	for _, l := range names {
		groups = append(groups, group{l, rails, byLeaf[l]})
	}
	for _, l := range names {
		for _, r := range rails {
			if len(rails) > 1 {
				groups = append(groups, group{l, []int{r}, byLeaf[l]})
			}
		}
	}
	for _, g := range groups {
		c.leafGroup(g)
	}
}

func (c *locator) leafGroup(g group) {
	var slow []int
	var guilty []string // sides
	for _, s := range sidesOf(c.lv.Way) {
		var us []int
		measured, nodes := 0, map[int]bool{}
		for _, n := range g.nodes {
			for _, r := range g.rails {
				u := c.t.unit(n, r, s)
				if c.st[u] == unmeasured || c.taken[u] {
					continue
				}
				measured++
				nodes[n] = true
				if c.st[u] > good {
					us = append(us, u)
				}
			}
		}
		if len(nodes) >= 3 && float64(len(us)) >= most*float64(measured) {
			slow, guilty = append(slow, us...), append(guilty, s.String())
		}
	}
	// Somebody outside must do better, or there is nothing to compare with.
	outside := slices.ContainsFunc(c.open(good), func(u int) bool {
		n, r, _ := c.t.ofUnit(u)
		return !slices.Contains(g.nodes, n) || !slices.Contains(g.rails, r)
	})
	if len(slow) == 0 || !outside {
		return
	}
	cu := Culprit{Kind: Leaf, Leaf: g.leaf, Verdict: reports.Fail, Sure: "high", GBps: c.typical(slow)}
	if len(g.rails) < c.t.Rails {
		cu.Rails = g.rails
	}
	if len(guilty) < len(sidesOf(c.lv.Way)) {
		cu.Side = guilty[0]
	}
	for _, n := range g.nodes {
		cu.Nodes = append(cu.Nodes, c.t.Nodes[n])
	}
	cu.Why = []string{fmt.Sprintf("%d of its %d nodes are slow on it, and ports elsewhere are not", len(c.nodes(slow)), len(g.nodes))}
	if g.leaf != "" && len(g.nodes) < len(c.t.Nodes) {
		c.within(g, &cu)
	}
	c.blame(cu, slow)
	for _, u := range slow {
		c.leafy[u] = true
	}
}

// within tells a leaf that is slow from one whose links to the others are: its
// own nodes are fast with each other. Where no two of them were measured
// together, that is proposed.
func (c *locator) within(g group, cu *Culprit) {
	var inside []float64
	for _, s := range c.t.Bandwidth {
		if s.Way == c.lv.Way && slices.Contains(g.nodes, s.A) && slices.Contains(g.nodes, s.B) && slices.Contains(g.rails, s.Rail) {
			inside = append(inside, s.Value)
		}
	}
	if len(inside) == 0 {
		cu.Sure = "medium"
		cu.Why = append(cu.Why, "no two of its nodes were measured with each other: it may be its links to the others")
		for _, k := range []int{0, len(g.nodes) - 2} {
			c.report.Next = append(c.report.Next, c.t.probe(g.nodes[k], g.nodes[k+1], g.rails[0], c.lv.Way))
		}
		return
	}
	if v := median(inside); v >= c.lv.Slow {
		cu.Kind, cu.Leaf, cu.Nodes = Uplink, g.leaf+" and all others", nil
		cu.Why = []string{fmt.Sprintf("%s: its nodes are slow with those of other leaves (%s) and fast with each other (%s)", g.leaf, rate(cu.GBps), rate(v))}
	}
}

func sidesOf(w Way) []side {
	if w == Both {
		return []side{duplex}
	}
	return []side{sends, receives}
}
