package accept

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"busbw/reports"
)

// Passing lists the short names of nodes that may go into service, Failing
// those of all others: what is not known to be good does not go.
func (r *Report) Passing() []string { return r.short(true) }

// Failing lists the short names of nodes to leave out.
func (r *Report) Failing() []string { return r.short(false) }

func (r *Report) short(pass bool) (out []string) {
	for _, n := range r.Nodes {
		if name, _, _ := strings.Cut(n.Node, "."); (n.Verdict == reports.Pass || n.Verdict == reports.Warn) == pass && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ranked puts the worst first.
func ranked(fs []reports.Finding) []reports.Finding {
	order := []reports.Verdict{reports.Fail, reports.Unknown, reports.Warn, reports.Pass, reports.NA}
	fs = slices.Clone(fs)
	slices.SortStableFunc(fs, func(a, b reports.Finding) int {
		return cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict))
	})
	return fs
}

// reason is why a node has its verdict, in a line.
func (n *NodeReport) reason() string {
	var s []string
	for _, f := range ranked(n.Findings) {
		if f.Verdict == reports.Pass || f.Verdict == reports.NA || n.Verdict == reports.Fail && f.Verdict != reports.Fail {
			continue
		}
		why := f.Subject + ": " + f.Got
		if f.Want != "" {
			why += ", want " + f.Want
		}
		if s = append(s, oneLine(why)); len(s) == 3 {
			break
		}
	}
	if len(s) == 0 {
		k := 0
		for _, f := range n.Findings {
			if f.Verdict == reports.Pass {
				k++
			}
		}
		return fmt.Sprintf("%d tests passed", k)
	}
	return strings.Join(s, "; ")
}

// oneLine keeps control characters of other machines off a screen.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return ' '
		}
		return c
	}, s)
}

// Table is the report for people.
func (r *Report) Table(out io.Writer) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tVERDICT\tBECAUSE")
	for i := range r.Nodes {
		n := &r.Nodes[i]
		fmt.Fprintf(w, "%s\t%s\t%s\n", oneLine(n.Node), n.Verdict, n.reason())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range ranked(r.Set) {
		if f.Verdict == reports.Fail || f.Verdict == reports.Warn {
			fmt.Fprintf(&b, "\n%s: %s: %s, want %s\n", f.Verdict, oneLine(f.Subject), oneLine(f.Got), oneLine(f.Want))
		}
	}
	if err := WriteDiagnoses(&b, r.Diagnoses); err != nil {
		return err
	}
	b.WriteByte('\n')
	for _, s := range joint(r.Stages) {
		fmt.Fprintf(&b, "%s: %s", s.Name, s.state())
		if s.Why != "" {
			fmt.Fprintf(&b, " (%s)", oneLine(s.Why))
		}
		b.WriteByte('\n')
	}
	if len(r.Gaps) > 0 {
		b.WriteString("\nnot established:\n")
	}
	for i, g := range r.Gaps {
		if i == mostGaps {
			fmt.Fprintf(&b, "  … and %d more (--format json lists them)\n", len(r.Gaps)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", oneLine(g))
	}
	fmt.Fprintf(&b, "%s: %s\n", strings.ToUpper(string(r.Verdict)), r.sentence())
	_, err := io.WriteString(out, b.String())
	return err
}

// mostGaps is how many of the things that are not established a screen lists.
const mostGaps = 12

// sentence is the verdict in words, which claim no more than was tested.
func (r *Report) sentence() string {
	s := fmt.Sprintf("%d of %d nodes may go into service", len(r.Passing()), len(r.Nodes))
	if n := len(r.Gaps); n > 0 && len(r.Passing()) > 0 {
		s += fmt.Sprintf(" as far as they were tested; not established: %s", r.Gaps[0])
		if n > 1 {
			s += fmt.Sprintf("; and %d more", n-1)
		}
	}
	return s
}

// WriteDiagnoses says what most likely is wrong, with the reasons.
func WriteDiagnoses(out io.Writer, ds []Diagnosis) error {
	var b strings.Builder
	for _, d := range ds {
		fmt.Fprintf(&b, "\ndiagnosis, %s: %s (sureness: %s)\n", oneLine(strings.TrimSpace(d.Node+" "+d.about())), oneLine(d.Cause), d.Sure)
		for _, x := range slices.Concat(d.Because, d.Not) {
			fmt.Fprintf(&b, "  because: %s\n", oneLine(x))
		}
		fmt.Fprintf(&b, "  to do: %s\n", oneLine(d.Do))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// about is the subject without the node's name, which stands before it.
func (d *Diagnosis) about() string {
	return strings.Trim(strings.TrimPrefix(d.Subject, d.Node), " ,")
}

// Markdown is the report as a page.
func (r *Report) Markdown(out io.Writer) error {
	var b strings.Builder
	cell := func(s string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(oneLine(s)) }
	fmt.Fprintf(&b, "# Acceptance: %s\n\n%s", r.Verdict, cell(r.sentence()))
	if r.Profile != "" {
		fmt.Fprintf(&b, ", by profile %s", cell(r.Profile))
	}
	b.WriteString(".\n\n| node | verdict | because |\n|---|---|---|\n")
	for i := range r.Nodes {
		n := &r.Nodes[i]
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(n.Node), n.Verdict, cell(n.reason()))
	}
	if len(r.Diagnoses) > 0 {
		b.WriteString("\n## Diagnosis\n\n| what | cause | sureness | because | to do |\n|---|---|---|---|---|\n")
		for _, d := range r.Diagnoses {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(strings.TrimSpace(d.Node+" "+d.about())), cell(d.Cause), d.Sure, cell(strings.Join(slices.Concat(d.Because, d.Not), "; ")), cell(d.Do))
		}
	}
	if len(r.Gaps) > 0 {
		b.WriteString("\n## Not established\n\n")
	}
	for _, g := range r.Gaps {
		fmt.Fprintf(&b, "- %s\n", cell(g))
	}
	b.WriteString("\n## Findings\n\n| verdict | node | check | subject | found | wanted |\n|---|---|---|---|---|---|\n")
	for _, f := range ranked(r.Findings()) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", f.Verdict, cell(f.Node), cell(f.ID), cell(f.Subject), cell(f.Got), cell(f.Want))
	}
	b.WriteString("\n## Stages\n\n")
	for _, s := range joint(r.Stages) {
		fmt.Fprintf(&b, "- %s: %s", s.Name, s.state())
		if s.Why != "" {
			fmt.Fprintf(&b, " (%s)", cell(s.Why))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}
