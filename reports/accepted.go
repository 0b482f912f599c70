package reports

import (
	"fmt"
	"slices"
	"strings"
)

// Acceptance is the verdict that busbw accept gave on a set of nodes.
type Acceptance struct {
	Verdict Verdict
	Nodes   []NodeVerdict
	Gaps    []string // what nothing is known of
}

// NodeVerdict is that on one node.
type NodeVerdict struct {
	Node    string
	Verdict Verdict
}

func (a *Acceptance) check() error {
	for _, v := range append([]NodeVerdict{{"the set", a.Verdict}}, a.Nodes...) {
		if !slices.Contains(verdicts, v.Verdict) {
			return fmt.Errorf("%s has the verdict %q: want one of %v", printable(v.Node), printable(string(v.Verdict)), verdicts)
		}
	}
	return nil
}

// accepted is how many nodes may go into service.
func (a *Acceptance) accepted() (n int) {
	for _, v := range a.Nodes {
		if v.Verdict == Pass || v.Verdict == Warn {
			n++
		}
	}
	return n
}

// sentence claims no more than was tested.
func (a *Acceptance) sentence() string {
	s := fmt.Sprintf("%d of %d nodes may go into service", a.accepted(), len(a.Nodes))
	if n := len(a.Gaps); n > 0 && a.accepted() > 0 {
		s += " as far as they were tested; not established: " + printable(a.Gaps[0])
		if n > 1 {
			s += fmt.Sprintf("; and %d more", n-1)
		}
	}
	return s + "."
}

// with lists the nodes of a verdict.
func (a *Acceptance) with(v Verdict) (names []string) {
	for _, n := range a.Nodes {
		if n.Verdict == v {
			names = append(names, name(n.Node))
		}
	}
	return names
}

// text is the acceptance in a few lines, the nodes by verdict.
func (a *Acceptance) text() string {
	lines := []string{fmt.Sprintf("acceptance: %s: %s", strings.ToUpper(string(a.Verdict)), a.sentence())}
	for _, v := range verdicts {
		if names := a.with(v); len(names) > 0 {
			lines = append(lines, fmt.Sprintf("  %-8s %s", v, listed(names)))
		}
	}
	return strings.Join(lines, "\n")
}

// pageAccept is an acceptance on the page.
type pageAccept struct {
	ID, Word, Why string
	Kinds         []pageNodes
	Gaps          []string
}

// pageNodes are the nodes of one verdict.
type pageNodes struct{ Class, Word, Nodes, Why string }

// maxGaps bounds the list of what was not established.
const maxGaps = 40

func acceptsOf(all []Acceptance) (out []pageAccept) {
	for i := range all[:min(len(all), maxLayouts)] {
		a := &all[i]
		p := pageAccept{ID: fmt.Sprintf("accept-%d", i), Word: acceptWord(a.Verdict), Why: a.sentence()}
		for _, v := range verdicts {
			if names := a.with(v); len(names) > 0 {
				p.Kinds = append(p.Kinds, pageNodes{verdictClass(v), string(v), fmt.Sprintf("%d node%s: %s", len(names), plural(len(names)), strings.Join(names, ", ")), nodeWhy(v)})
			}
		}
		p.Gaps = cleaned(a.Gaps[:min(len(a.Gaps), maxGaps)])
		if n := len(a.Gaps) - maxGaps; n > 0 {
			p.Gaps = append(p.Gaps, fmt.Sprintf("and %d more", n))
		}
		out = append(out, p)
	}
	return out
}

func nodeWhy(v Verdict) string {
	switch v {
	case Fail:
		return "Leave them out; the checks below say why."
	case Unknown:
		return "Neither good nor bad was shown: do not count on them before they are tested."
	case Warn:
		return "They may go into service; see the warnings below."
	}
	return ""
}

func acceptWord(v Verdict) string {
	switch v {
	case Pass:
		return "Accepted"
	case Warn:
		return "Accepted, with warnings"
	case Unknown:
		return "Not established"
	}
	return "Not accepted"
}

func verdictClass(v Verdict) string {
	switch v {
	case Fail:
		return "bad"
	case Pass:
		return "good"
	}
	return "warn"
}

// judged is the page's one word where there are acceptances: the worst of them,
// and what the measurements beside say where that is worse.
func (a *Around) judged(v verdict) verdict {
	worst := a.worst()
	out := verdict{verdictClass(worst.Verdict), acceptWord(worst.Verdict), worst.sentence()}
	if v.Class == "bad" && out.Class != "bad" {
		out.Class, out.Word = "bad", out.Word+"; "+strings.ToLower(v.Word)
	}
	if len(a.Accepted) > 1 {
		out.Why += fmt.Sprintf(" The worst of %d acceptances.", len(a.Accepted))
	}
	if len(a.Findings) > 0 {
		out.Why += fmt.Sprintf(" Checks: %s.", Tally(a.Findings))
	}
	return verdict{out.Class, out.Word, out.Why + " " + v.Why}
}

// worst is the acceptance with the worst verdict; nil where there is none.
func (a *Around) worst() (worst *Acceptance) {
	for i := range a.Accepted {
		if x := &a.Accepted[i]; worst == nil || slices.Index(verdicts, x.Verdict) < slices.Index(verdicts, worst.Verdict) {
			worst = x
		}
	}
	return worst
}

// Verdict is that of the acceptance, else the worst of the findings.
func (a *Around) Verdict() Verdict {
	if worst := a.worst(); worst != nil {
		return worst.Verdict
	}
	return Worst(a.Findings)
}
