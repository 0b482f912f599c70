package accept

import (
	"errors"
	"strings"
	"testing"

	"busbw/coordinator/pairs"
	"busbw/reports"
)

// What was not established is no pass, and the verdict says what it is.
func TestGaps(t *testing.T) {
	done := []Stage{{Name: "checks", Ran: true}, {Name: "each node by itself", Ran: true}, {Name: "pairs", Ran: true}, {Name: "collectives", Ran: true}}
	for _, c := range []struct {
		name   string
		change func(*Input)
		set    reports.Verdict
		pass   int
		gap    string
	}{
		{"all done", func(*Input) {}, reports.Pass, 6, ""},
		{"one rank each", func(in *Input) { in.Stages[1] = Stage{Name: "each node by itself", NA: true, Why: "one rank"} }, reports.Pass, 6, ""},
		{"no time for collectives", func(in *Input) { in.Stages[3] = Stage{Name: "collectives", Why: "no time"} }, reports.Unknown, 6, "collectives: no time"},
		{"no pairs", func(in *Input) { in.Pairs, in.Stages[2] = nil, Stage{Name: "pairs", Why: "no time"} }, reports.Unknown, 0, "pairs: no time"},
		{"scatter", func(in *Input) { in.Pairs.Good, in.Pairs.Doubt = nil, "the figures scatter too much" }, reports.Unknown, 0, "scatter too much"},
		{"undecided", func(in *Input) {
			in.Pairs.Good = in.Pairs.Good[2:]
			in.Pairs.Culprits = []pairs.Culprit{{Kind: pairs.Undecided, Nodes: []string{"n0", "n1"}, Verdict: reports.Warn, GBps: 2.26, Want: 3}}
		}, reports.Unknown, 4, "undecided n0 or n1: 2.26 GB/s one way (2 nodes)"},
		{"a check could not read", func(in *Input) {
			in.Findings = append(in.Findings, reports.Finding{ID: "gpu-copy", Verdict: reports.Unknown, Node: "n0", Subject: "GPUs", Got: "no driver"})
		}, reports.Pass, 6, "GPUs: no driver"},
	} {
		in := cluster(6, 1, nil, nil)
		in.Stages = append([]Stage(nil), done...)
		for _, n := range in.Nodes {
			in.Findings = append(in.Findings, reports.Finding{ID: "memlock", Verdict: reports.Pass, Node: n, Subject: "memlock"})
		}
		c.change(&in)
		rep := Judge(in)
		var text, md strings.Builder
		if err := errors.Join(rep.Table(&text), rep.Markdown(&md)); err != nil {
			t.Fatal(err)
		}
		if rep.Verdict != c.set || len(rep.Passing()) != c.pass || (len(rep.Gaps) > 0) != (c.gap != "") {
			t.Errorf("%s: %s, passing %v, gaps %q\n%s", c.name, rep.Verdict, rep.Passing(), rep.Gaps, &text)
		}
		if !strings.Contains(text.String(), c.gap) || !strings.Contains(md.String(), c.gap) || strings.Contains(text.String(), "as far as they were tested") != (c.gap != "" && c.pass > 0) {
			t.Errorf("%s: want %q in\n%s\n%s", c.name, c.gap, &text, &md)
		}
		if c.name == "undecided" && !strings.Contains(text.String(), "2.26 GB/s one way, want at least 3.00 GB/s") {
			t.Errorf("what was wanted is missing:\n%s", &text)
		}
		if na := "each node by itself: not applicable (one rank)"; c.name == "one rank each" && !(strings.Contains(text.String(), na) && strings.Contains(md.String(), na)) {
			t.Errorf("want %q in\n%s\n%s", na, &text, &md)
		}
		if len(rep.Quarantined()) != 0 {
			t.Errorf("%s: %v failed", c.name, rep.Quarantined())
		}
	}
}

// Stages that were not done for one reason are one line, and so is what a
// profile's limits were not measured for.
func TestSaidOnce(t *testing.T) {
	in := cluster(6, 1, nil, nil)
	in.Table, in.Pairs = nil, nil
	in.Stages = []Stage{{Name: "checks", Ran: true}, {Name: "devices of each node", NA: true, Why: "no device"}, {Name: "each node by itself", Why: "pointless"}, {Name: "pairs", Why: "pointless"}, {Name: "collectives", Why: "pointless"}}
	in.Profile = &Profile{Name: "p", Limits: []Limit{{Test: "all_reduce", Scope: "intra", Bytes: 1 << 20, AtLeast: 1, Unit: "GB/s", Source: "s"}}}
	rep := Judge(in)
	var text, md strings.Builder
	if err := errors.Join(rep.Table(&text), rep.Markdown(&md)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"checks: done\n", "devices of each node: not applicable (no device)\n", "each node by itself, pairs, collectives: not done (pointless)\n", "all_reduce, intra, 1 MiB or more: not measured\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, &text)
		}
	}
	if len(rep.Gaps) != 2 || !strings.HasPrefix(rep.Gaps[0], "each node by itself, pairs, collectives: pointless") {
		t.Errorf("%q", rep.Gaps)
	}
}

// The scatter that is named is that of the figures, not the margin.
func TestAgreeing(t *testing.T) {
	if got := agreeing([]float64{5.82, 5.12}, 0.332); !strings.Contains(got, "these 2 are from 5.12 to 5.82 GB/s") || !strings.Contains(got, "33 % below") {
		t.Error(got)
	}
	if got := plainly("H100.*(HBM3|SXM)"); got != "H100 … (HBM3 or SXM)" {
		t.Error(got)
	}
	for n, want := range map[Size]string{1 << 20: "1MiB", 1000: "1000", 0: "0", 64 << 10: "64KiB"} {
		text, err := n.MarshalYAML()
		var back Size
		if err != nil || string(text) != want || back.UnmarshalYAML(text) != nil || back != n {
			t.Errorf("%d: %s, %v, %d", int64(n), text, err, int64(back))
		}
		if back = 0; back.UnmarshalYAML([]byte(n.String())) != nil || back != n {
			t.Errorf("%s is not read back", n)
		}
	}
}
