package reports

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// findingFormats is every form that findings can be written in.
func findingFormats() []struct {
	name  string
	write func(io.Writer, []Finding) error
} {
	return []struct {
		name  string
		write func(io.Writer, []Finding) error
	}{
		{"table", findingTable},
		{"json", findingJSON},
		{"junit", findingJUnit},
	}
}

// FindingFormats names the forms that WriteFindings knows.
func FindingFormats() []string {
	var out []string
	for _, f := range findingFormats() {
		out = append(out, f.name)
	}
	return out
}

// WriteFindings writes findings in one of the FindingFormats.
func WriteFindings(w io.Writer, format string, fs []Finding) error {
	for _, f := range findingFormats() {
		if f.name == format {
			return f.write(w, fs)
		}
	}
	return fmt.Errorf("format %q: want one of %s", format, strings.Join(FindingFormats(), ", "))
}

// verdicts from the worst to the one that matters least.
var verdicts = []Verdict{Fail, Warn, Unknown, Pass, NA}

// Worst is the verdict of a set of findings: the worst among them. Unknown is
// worse than pass; what does not apply says nothing. No finding at all is unknown.
func Worst(fs []Finding) Verdict {
	w := len(verdicts)
	for _, f := range fs {
		if i := slices.Index(verdicts, f.Verdict); i >= 0 {
			w = min(w, i)
		}
	}
	if w == len(verdicts) {
		return Unknown
	}
	return verdicts[w]
}

// Tally says how many findings there are of each verdict: "1 fail, 12 pass".
func Tally(fs []Finding) string {
	var out []string
	for _, v := range verdicts {
		n := 0
		for _, f := range fs {
			if f.Verdict == v {
				n++
			}
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(out, ", ")
}

// findingTable lists findings from the worst on; then what to do about the
// failures and warnings, and the evidence for them.
func findingTable(w io.Writer, fs []Finding) error {
	sorted := slices.Clone(fs)
	slices.SortStableFunc(sorted, func(a, b Finding) int {
		return slices.Index(verdicts, a.Verdict) - slices.Index(verdicts, b.Verdict)
	})
	nodes := slices.ContainsFunc(fs, func(f Finding) bool { return f.Node != "" })
	t := tablewriter.NewTable(w, tablewriter.WithConfig(tablewriter.Config{Row: tw.CellConfig{ColMaxWidths: tw.CellWidth{Global: 60}, Formatting: tw.CellFormatting{AutoWrap: tw.WrapNormal}}}))
	head := []string{"verdict", "check", "subject", "found", "wanted"}
	if nodes {
		head = slices.Insert(head, 1, "node")
	}
	t.Header(head)
	for _, f := range sorted {
		row := []string{string(f.Verdict), printable(f.ID), printable(f.Subject), printable(f.Got), printable(f.Want)}
		if nodes {
			row = slices.Insert(row, 1, printable(f.Node))
		}
		if err := t.Append(row); err != nil {
			return err
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	for _, f := range sorted {
		if f.Verdict != Fail && f.Verdict != Warn {
			continue
		}
		where := strings.TrimSpace(f.Node + " " + f.Subject)
		if _, err := fmt.Fprintf(w, "\n%s: %s: %s\n", f.Verdict, printable(where), printable(f.Got)); err != nil {
			return err
		}
		for _, e := range f.Evidence {
			fmt.Fprintf(w, "  evidence: %s: %s\n", printable(e.From), printable(e.Value))
		}
		if f.Remedy != "" {
			fmt.Fprintf(w, "  do: %s\n", printable(f.Remedy))
		}
	}
	return nil
}

func findingJSON(w io.Writer, fs []Finding) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if fs == nil {
		fs = []Finding{}
	}
	return enc.Encode(struct {
		Verdict  Verdict   `json:"verdict"`
		Findings []Finding `json:"findings"`
	}{Worst(fs), fs})
}

// A finding that fails is a <failure>; unknown and not-applicable are
// <skipped>; a warning passes, with its text in <system-out>.
func findingJUnit(w io.Writer, fs []Finding) error {
	all := junitSuites{Name: "busbw check"}
	at := map[string]int{}
	for _, f := range fs {
		node := cmp.Or(f.Node, "this node")
		if _, ok := at[node]; !ok {
			at[node] = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: printable(node)})
		}
		s := &all.Suites[at[node]]
		c := junitCase{Class: printable(f.ID), Name: printable(f.Subject)}
		text := fmt.Sprintf("found: %s\nwanted: %s\n", printable(f.Got), printable(f.Want))
		for _, e := range f.Evidence {
			text += fmt.Sprintf("evidence: %s: %s\n", printable(e.From), printable(e.Value))
		}
		if f.Remedy != "" {
			text += "do: " + printable(f.Remedy) + "\n"
		}
		switch f.Verdict {
		case Fail:
			c.Failure = &junitMsg{Message: printable(f.Got), Text: text}
			s.Failures++
			all.Failures++
		case Unknown, NA:
			c.Skipped = &junitMsg{Message: string(f.Verdict) + ": " + printable(f.Got)}
			s.Skipped++
			all.Skipped++
		case Warn:
			c.Out = "warning\n" + text
		}
		s.Cases = append(s.Cases, c)
		s.Tests++
		all.Tests++
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
