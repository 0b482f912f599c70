package pairs

import (
	"fmt"
	"slices"

	"busbw/reports"
)

// uplinks blames what joins two leaves where nearly every path between them is
// slow, and returns the paths that this does not explain.
func (c *locator) uplinks(routes map[[3]int]*route, slow []*route) []*route {
	type key struct {
		a, b string
	}
	sides := c.sides(slow)
	count := map[key][2]int{} // measured, slow
	of := func(r *route) (key, bool) {
		a, b := sides[r.a], sides[r.b]
		return key{min(a, b), max(a, b)}, a != "" && b != "" && a != b
	}
	for _, r := range routes {
		if k, ok := of(r); ok {
			n := count[k]
			n[0]++
			if r.value() < c.lv.Odd {
				n[1]++
			}
			count[k] = n
		}
	}
	guilty := func(r *route) bool {
		k, ok := of(r)
		n := count[k]
		return ok && n[0] >= 4 && float64(n[1]) >= most*float64(n[0])
	}
	var rest []*route
	found := map[key][]float64{}
	for _, r := range slow {
		if guilty(r) {
			k, _ := of(r)
			found[k] = append(found[k], r.value())
		} else {
			rest = append(rest, r)
		}
	}
	var ks []key
	for k := range found {
		ks = append(ks, k)
	}
	slices.SortFunc(ks, func(x, y key) int { return slices.Compare([]string{x.a, x.b}, []string{y.a, y.b}) })
	// A leaf that is slow with every other has one fault, not as many as there are leaves.
	whole := map[string]int{} // leaf → how many others it is slow with, if that is all
	for _, leaf := range leavesOf(sides) {
		all, bad := 0, 0
		for k := range count {
			if k.a == leaf || k.b == leaf {
				if all++; found[k] != nil {
					bad++
				}
			}
		}
		if all > 1 && bad == all {
			whole[leaf] = all
		}
	}
	if len(whole) == 1 {
		for leaf, n := range whole {
			var vs []float64
			paths := 0
			ks = slices.DeleteFunc(ks, func(k key) bool {
				if k.a != leaf && k.b != leaf {
					return false
				}
				vs, paths = append(vs, found[k]...), paths+count[k][0]
				return true
			})
			c.blame(Culprit{Kind: Uplink, Leaf: leaf + " and all others", Verdict: reports.Fail, Sure: "high", GBps: median(vs), Why: []string{
				fmt.Sprintf("its paths to all %d other leaves are slow (%d of %d, %s, typical %s), and its nodes are fast with each other", n, len(vs), paths, rate(median(vs)), rate(c.lv.Typical)),
			}}, nil)
		}
	}
	for _, k := range ks {
		c.blame(Culprit{Kind: Uplink, Leaf: k.a + " and " + k.b, Verdict: reports.Fail, Sure: "high", GBps: median(found[k]), Why: []string{
			fmt.Sprintf("%d of the %d paths between them are slow (%s, typical %s), and their nodes are fast with others", count[k][1], count[k][0], rate(median(found[k])), rate(c.lv.Typical)),
		}}, nil)
	}
	return rest
}

// leavesOf lists the leaves, each once.
func leavesOf(sides []string) []string {
	out := slices.DeleteFunc(slices.Clone(sides), func(s string) bool { return s == "" })
	slices.Sort(out)
	return slices.Compact(out)
}

// sides says which group each node is in: its leaf, or, where no leaf is
// known, the side of the slow paths it is on, if those join two groups of
// nodes that are fast inside.
func (c *locator) sides(slow []*route) []string {
	if c.t.Leaf != nil {
		return c.t.Leaf
	}
	out := make([]string, len(c.t.Nodes))
	next := map[int][]int{}
	for _, r := range slow {
		if slices.Contains(next[r.a], r.b) {
			continue // the other direction, or another rail
		}
		next[r.a], next[r.b] = append(next[r.a], r.b), append(next[r.b], r.a)
	}
	colour := map[int]int{}
	for start := range next {
		if colour[start] != 0 {
			continue
		}
		colour[start] = 1
		todo := []int{start}
		members := [3][]int{1: {start}}
		for len(todo) > 0 {
			n := todo[0]
			todo = todo[1:]
			for _, m := range next[n] {
				switch colour[m] {
				case colour[n]:
					return make([]string, len(c.t.Nodes)) // not two sides
				case 0:
					colour[m] = 3 - colour[n]
					members[colour[m]] = append(members[colour[m]], m)
					todo = append(todo, m)
				}
			}
		}
		links := 0
		for _, n := range members[1] {
			links += len(next[n])
		}
		if len(members[1]) < 2 || len(members[2]) < 2 || links < len(members[1])+len(members[2]) {
			continue // one node's paths, or a chain that chance made: not what joins two groups
		}
		for i := 1; i <= 2; i++ {
			slices.Sort(members[i])
			for _, n := range members[i] {
				out[n] = fmt.Sprintf("{%s}", join(c.t.Nodes, members[i]))
			}
		}
	}
	return out
}
