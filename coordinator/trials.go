package coordinator

import (
	"fmt"

	"busbw/reports"
)

// Tables counts what stands apart among cases beside their sizes: operations,
// scopes, algorithms that were asked for, and places.
func Tables(cases []Case) int {
	seen := map[string]bool{}
	for _, c := range cases {
		algo := c.algo
		if c.auto {
			algo = "auto"
		}
		seen[fmt.Sprint(c.scope, c.op, algo, c.inPlace)] = true
	}
	return len(seen)
}

// Failed are the records of cases that a launch could not measure.
func (r *Request) Failed(run string, launch int, nodes []PlanNode, source string, cases []Case, why error) (all []reports.Result) {
	s := &Sweep{Run: run, Launch: launch, Nodes: nodes, Source: source, req: r}
	for _, c := range cases {
		res := s.Blank(c)
		res.Error = why.Error()
		all = append(all, res)
	}
	return all
}
