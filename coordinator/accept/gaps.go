package accept

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// pairsStage names the stage without which nothing is known of how a node
// reaches the others.
const pairsStage = "pairs"

const undonePairs = "not done: "

// unpaired says of a node that pair tests neither passed nor accused that they
// established nothing, and why. Where there was nothing to pair it is silent.
func (in *Input) unpaired(node string, fs []reports.Finding) (out []reports.Finding) {
	for _, s := range in.Stages {
		if s.Name != pairsStage || s.NA || slices.ContainsFunc(fs, func(f reports.Finding) bool { return f.ID == "pairs" || f.Verdict == reports.Fail }) {
			continue
		}
		f := reports.Finding{ID: "pairs", Verdict: reports.Unknown, Node: node, Subject: "pairs", Got: "nothing established", Want: "the level of the others, or a limit",
			Remedy: "give a profile or --min, and measure while nothing else runs, longer (--time)"}
		if !s.Ran {
			f.Got = undonePairs + cmp.Or(s.Why, "no reason is known")
		} else if in.Pairs != nil {
			f.Got = cmp.Or(in.Pairs.Doubt, "not every port of it was fast with a good partner")
		}
		out = append(out, f)
	}
	return out
}

// open says whether pair tests leave a node open: they did not pass it.
func open(fs []reports.Finding) bool {
	has := func(v reports.Verdict) bool {
		return slices.ContainsFunc(fs, func(f reports.Finding) bool { return f.ID == "pairs" && f.Verdict == v })
	}
	return has(reports.Unknown) && !has(reports.Pass)
}

// undone says whether a stage that had something to measure did not.
func (r *Report) undone() bool {
	return slices.ContainsFunc(r.Stages, func(s Stage) bool { return !s.Ran && !s.NA })
}

// state is what became of a stage, in words.
func (s *Stage) state() string {
	switch {
	case s.Ran:
		return "done"
	case s.NA:
		return "not applicable"
	}
	return "not done"
}

// joint makes one of stages in a row that were not done for one reason, so that
// it is told once.
func joint(stages []Stage) (out []Stage) {
	for _, s := range stages {
		if n := len(out); n > 0 && !s.Ran && s.Why != "" && s.state() == out[n-1].state() && s.Why == out[n-1].Why {
			out[n-1].Name += ", " + s.Name
			continue
		}
		out = append(out, s)
	}
	return out
}

// gaps lists what the acceptance did not establish: stages that were not done
// though there was something to measure, and what is unknown, each with how many nodes it is unknown of.
func (r *Report) gaps() (out []string) {
	for _, s := range joint(r.Stages) {
		if !s.Ran && !s.NA {
			out = append(out, fmt.Sprintf("%s: %s", s.Name, cmp.Or(s.Why, "not done")))
		}
	}
	type key struct{ id, subject, got string }
	of := map[key]int{}
	var order []key
	for _, f := range r.Findings() {
		if f.Verdict != reports.Unknown || f.ID == pairsStage && strings.HasPrefix(f.Got, undonePairs) {
			continue // the stage's line says so
		}
		k := key{f.ID, f.Subject, f.Got}
		if of[k]++; of[k] == 1 {
			order = append(order, k)
		}
	}
	for _, k := range order {
		s := k.subject + ": " + k.got
		if of[k] > 1 {
			s += fmt.Sprintf(" (%d nodes)", of[k])
		}
		out = append(out, s)
	}
	return out
}

// Quarantined lists the nodes that failed; one of which too little is known is
// no part of it.
func (r *Report) Quarantined() (out []string) {
	for _, n := range r.Nodes {
		if n.Verdict == reports.Fail {
			out = append(out, n.Node)
		}
	}
	return out
}
