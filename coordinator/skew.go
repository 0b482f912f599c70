package coordinator

import (
	"slices"

	"busbw/reports"
)

// skew is when one node's ranks of a group started the iterations of a batch.
type skew struct {
	node int
	GroupStarts
}

// medianSkew is the median, over iterations and groups, of the time between a
// group's first and last start, in seconds; nil where none was told or they do
// not fit each other. starts holds whole batches one after
// another: within a batch each node speaks at most once for a group.
func medianSkew(starts []skew) *float64 {
	var all []float64
	open := map[int][]skew{} // of the current batch, by group
	flush := func() bool {
		for _, g := range open {
			for i := range g[0].First {
				first, last := g[0].First[i], g[0].Last[i]
				for _, s := range g[1:] {
					if i >= len(s.First) || i >= len(s.Last) {
						return false
					}
					first, last = min(first, s.First[i]), max(last, s.Last[i])
				}
				all = append(all, last-first)
			}
		}
		clear(open)
		return true
	}
	for _, s := range starts {
		if len(s.First) != len(s.Last) {
			return nil
		}
		if slices.ContainsFunc(open[s.Group], func(o skew) bool { return o.node == s.node }) && !flush() {
			return nil
		}
		open[s.Group] = append(open[s.Group], s)
	}
	if !flush() || len(all) == 0 {
		return nil
	}
	m := reports.Median(all)
	return &m
}
