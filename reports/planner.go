package reports

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// planner is a table for capacity planning: for each operation what was
// reached by size and number of nodes, over all runs in the files, beside the
// limit. A size that was measured several times counts with its best algorithm
// and run.
func planner(b *bytes.Buffer, results []Result, _ bool) error {
	type place struct {
		op, dtype, scope string
		size             int64
		nodes, ranks     int
		inPlace          bool
	}
	best := map[place]*Figure{}
	figures := Figures(results)
	left := 0
	for i := range figures {
		f := &figures[i]
		bus, ok := f.Busbw()
		if !ok {
			left++
			continue
		}
		p := place{f.Op, f.Dtype, f.Scope, f.asked(), f.Nodes, f.Ranks, f.InPlace}
		if g := best[p]; g != nil {
			if other, _ := g.Busbw(); f.Foretold() != g.Foretold() && f.Foretold() || f.Foretold() == g.Foretold() && other >= bus {
				continue // what was measured wins over what was predicted
			}
		}
		best[p] = f
	}
	var order []place
	for p := range best {
		order = append(order, p)
	}
	slices.SortFunc(order, func(a, b place) int {
		inPlace := map[bool]int{true: 1}
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.dtype, b.dtype), cmp.Compare(inPlace[a.inPlace], inPlace[b.inPlace]),
			cmp.Compare(scopeOrder(a.scope), scopeOrder(b.scope)), cmp.Compare(a.scope, b.scope), cmp.Compare(a.size, b.size), cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.ranks, b.ranks))
	})
	heads := []string{"SIZE", "NODES", "RANKS", "SCOPE", "ALGORITHM", "TIME", "±95 %", "ALGBW GB/s", "BUSBW GB/s", "LIMIT GB/s", "SHARE", "LIMIT IS"}
	const align = "lrrllrrrrrrl"
	for at := 0; at < len(order); {
		first := order[at]
		var rows [][]string
		for ; at < len(order) && order[at].op == first.op && order[at].dtype == first.dtype && order[at].inPlace == first.inPlace; at++ {
			p, f := order[at], best[order[at]]
			c := cellsOf(f, false)
			limit, doubt := none, ""
			if f.Limit != nil {
				limit = name(f.Limit.Name)
			}
			if f.Doubtful() {
				doubt = "?"
			}
			if f.Foretold() {
				c.algorithm += ", predicted"
			}
			rows = append(rows, []string{sizeText(p.size), count(p.nodes), count(p.ranks), c.scope, c.algorithm, c.time, c.spread, c.algbw, c.busbw + doubt, c.limit, c.share, limit})
		}
		where := "out of place"
		if first.inPlace {
			where = "in place"
		}
		fmt.Fprintf(b, "%s %s, %s\n", name(first.op), name(first.dtype), where)
		if err := draw(b, heads, align, rows, nil); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	b.WriteString("GB is 1e9 bytes. RANKS: of one group. The best algorithm and run of each size and number of nodes. SHARE: busbw of the limit. ?: no verdict.\n")
	if left > 0 {
		fmt.Fprintf(b, "%d figures have no bandwidth (wrong data, failed, or one rank) and are left out.\n", left)
	}
	return nil
}

// count is a number of nodes or ranks, 0 for one that is not known.
func count(n int) string {
	if n == 0 {
		return none
	}
	return fmt.Sprint(n)
}
