package accept

import (
	"fmt"
	"slices"

	"busbw/coordinator/pairs"
	"busbw/reports"
)

// Input is all that is known of a set of nodes.
type Input struct {
	Nodes    []string          // names, in the order of the results' hosts
	Profile  *Profile          // nil: nothing is wanted in figures
	Findings []reports.Finding // of the checks, and of what could not be measured
	Results  []reports.Result

	Topologies []reports.Topology           // of the nodes that told
	NoDevices  map[string]map[string]string // node, test: why it tested no device of its own

	Table  *pairs.Table // nil: no pair was measured
	Pairs  *pairs.Report
	Stages []Stage
}

// Stage is a part of the acceptance and how it went.
type Stage struct {
	Name    string  `json:"name"`
	Ran     bool    `json:"ran"`
	Why     string  `json:"why,omitempty"`            // it did not run, or did not end
	NA      bool    `json:"not_applicable,omitempty"` // it did not run because these nodes have nothing that it measures
	Seconds float64 `json:"seconds,omitempty"`
}

// Report is the verdict on a set of nodes.
type Report struct {
	Verdict   reports.Verdict   `json:"verdict"`
	Profile   string            `json:"profile,omitempty"`
	Nodes     []NodeReport      `json:"nodes"`
	Set       []reports.Finding `json:"set,omitempty"` // what concerns no single node
	Diagnoses []Diagnosis       `json:"diagnoses,omitempty"`
	Stages    []Stage           `json:"stages"`
	Gaps      []string          `json:"not_established,omitempty"` // what nothing is known of
}

// NodeReport is the verdict on one node.
type NodeReport struct {
	Node     string            `json:"node"`
	Verdict  reports.Verdict   `json:"verdict"`
	Findings []reports.Finding `json:"findings"`
}

// Judge joins all evidence into a verdict for each node and for the set.
func Judge(in Input) *Report {
	r := &Report{Stages: in.Stages}
	all := slices.Clone(in.Findings)
	if in.Profile != nil {
		r.Profile = in.Profile.Name
		all = append(all, in.limits()...)
	}
	all = append(all, Devices(in.Profile, in.Results)...)
	all = append(all, in.undevised()...)
	all = append(all, in.peers()...)
	if in.Pairs != nil {
		all = append(all, OfPairs(in.Nodes, in.Pairs)...)
	}
	all = append(all, in.data()...)
	for _, n := range in.Nodes {
		nr := NodeReport{Node: n, Findings: []reports.Finding{}}
		for _, f := range all {
			if f.Node == n {
				nr.Findings = append(nr.Findings, f)
			}
		}
		nr.Findings = append(nr.Findings, in.unpaired(n, nr.Findings)...)
		nr.Verdict = verdict(nr.Findings)
		r.Nodes = append(r.Nodes, nr)
	}
	for _, f := range all {
		if !slices.Contains(in.Nodes, f.Node) {
			r.Set = append(r.Set, f)
		}
	}
	r.Diagnoses = Diagnose(in)
	r.Verdict = r.whole()
	r.Gaps = r.gaps()
	return r
}

// verdict of a node: what fails, fails it; without any pass nothing is known.
// A single thing that could not be read does not hide what was measured well;
// but a node that pair tests leave open is not known to be good.
func verdict(fs []reports.Finding) reports.Verdict {
	has := map[reports.Verdict]bool{}
	for _, f := range fs {
		has[f.Verdict] = true
	}
	switch {
	case has[reports.Fail]:
		return reports.Fail
	case !has[reports.Pass], open(fs):
		return reports.Unknown
	case has[reports.Warn]:
		return reports.Warn
	}
	return reports.Pass
}

// whole is the verdict of the set: one node or one common part that fails, fails
// it; a stage that was not done leaves it unknown.
func (r *Report) whole() reports.Verdict {
	var vs []reports.Verdict
	for _, n := range r.Nodes {
		vs = append(vs, n.Verdict)
	}
	if r.undone() {
		vs = append(vs, reports.Unknown)
	}
	for _, f := range r.Set {
		if f.Verdict == reports.Fail || f.Verdict == reports.Warn {
			vs = append(vs, f.Verdict)
		}
	}
	for _, v := range []reports.Verdict{reports.Fail, reports.Unknown, reports.Warn, reports.Pass} {
		if slices.Contains(vs, v) {
			return v
		}
	}
	return reports.Unknown
}

// Findings are those of all nodes and of the set.
func (r *Report) Findings() (out []reports.Finding) {
	for _, n := range r.Nodes {
		out = append(out, n.Findings...)
	}
	return append(out, r.Set...)
}

// OfPairs are the findings of the pair tests: every culprit, on each node that
// must not go into service because of it; a pass for each node that is good.
func OfPairs(nodes []string, r *pairs.Report) (out []reports.Finding) {
	fs := r.Findings()
	for i, c := range r.Culprits {
		f := fs[i]
		switch c.Kind {
		case pairs.Leaf, pairs.Undecided, pairs.Path:
			for _, n := range c.Nodes {
				g := f
				g.Node = n
				switch {
				case c.Kind == pairs.Undecided:
					g.Verdict = reports.Unknown // one of several: not proved
				case c.Kind == pairs.Path:
					g.Verdict = reports.Warn // both ends are good with others
				}
				out = append(out, g)
			}
			if c.Kind != pairs.Undecided {
				out = append(out, f)
			}
		case pairs.All:
			for _, n := range nodes {
				g := f
				g.Node = n
				out = append(out, g)
			}
		default:
			out = append(out, f)
		}
	}
	for _, n := range r.Good {
		f := reports.Finding{ID: "pairs", Verdict: reports.Pass, Node: n, Subject: "all rails, with every partner"}
		if len(r.Levels) > 0 {
			lv := r.Levels[0]
			f.Got = fmt.Sprintf("typical of the cluster: %s %s", speed(lv.Typical), lv.Way)
			f.Want = fmt.Sprintf("at least %s: slow is %s", speed(lv.Slow), lv.Reasoning)
		}
		out = append(out, f)
	}
	return out
}

// data says where results are wrong: such a set must not go into service.
func (in *Input) data() (out []reports.Finding) {
	for _, r := range in.Results {
		what := fmt.Sprintf("%s %s %s of %s", r.Scope, r.Op, r.Algorithm, Size(r.Bytes))
		switch {
		case r.Wrong != nil && *r.Wrong > 0:
			out = append(out, reports.Finding{ID: "data", Verdict: reports.Fail, Subject: what, Got: fmt.Sprintf("%d wrong elements", *r.Wrong), Want: "none",
				Remedy: "corrupt data voids every figure: find the part with busbw pairs, which checks the data of each pair"})
		case r.Error != "":
			out = append(out, reports.Finding{ID: "collective", Verdict: reports.Unknown, Subject: what, Got: r.Error, Want: "a measurement"})
		}
	}
	return out
}
