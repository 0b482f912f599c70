package imports

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"busbw/reports"
)

// Bad says that a test of the text failed, hung or found wrong data, or that
// the ranks never formed one communicator. Without any result, NCCL's own
// warnings say that what was to be measured failed.
func (t *Text) Bad() bool {
	for i := range t.Worlds {
		if t.Worlds[i].Bad() {
			return true
		}
	}
	for _, f := range t.Findings {
		if f.Verdict == reports.Fail || f.ID == ncclWarn && t.Records == 0 {
			return true
		}
	}
	return false
}

// Describe writes for people what the text holds: how many worlds of how many
// ranks, each world, and what was found besides.
func (t *Text) Describe(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", t.Name, t.headline())
	for i := range t.Worlds {
		t.Worlds[i].describe(&b, fmt.Sprintf("%d", i+1))
	}
	if t.More > 0 {
		fmt.Fprintf(&b, "  and %d more\n", t.More)
	}
	for _, f := range t.Findings {
		fmt.Fprintf(&b, "%s  %s: %s", strings.ToUpper(string(f.Verdict)), f.Subject, f.Got)
		if f.Want != "" {
			fmt.Fprintf(&b, " (want %s)", f.Want)
		}
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, " [%s]", e.From)
		}
		b.WriteByte('\n')
		if f.Remedy != "" {
			fmt.Fprintf(&b, "      %s\n", f.Remedy)
		}
	}
	_, err := io.WriteString(w, printable(b.String()))
	return err
}

// headline is "2 worlds (communicators) of 2 ranks each, nccl-tests, 8 results".
func (t *Text) headline() string {
	n := len(t.Worlds) + t.More
	switch {
	case t.Own:
		return fmt.Sprintf("a results file of busbw with %d result%s", t.Records, plural(t.Records))
	case n == 0 && t.Lines == 0:
		return "empty"
	case n == 0:
		return fmt.Sprintf("no test in %d line%s, %d result%s", t.Lines, plural(t.Lines), t.Records, plural(t.Records))
	}
	s := "1 world (communicator)"
	if n > 1 {
		s = fmt.Sprintf("%d worlds (communicators)", n)
	}
	var tools, sizes []string
	for _, w := range t.Worlds {
		tools = appendNew(tools, w.Tool)
		sizes = appendNew(sizes, w.size())
	}
	if len(sizes) == 1 && n == 1 {
		s += " of " + sizes[0]
	} else if len(sizes) == 1 {
		s += " of " + sizes[0] + " each"
	} else if len(sizes) <= 8 {
		s += " of " + strings.Join(sizes, ", ")
	}
	if len(tools) <= 3 {
		s += "; " + strings.Join(tools, ", ")
	}
	return fmt.Sprintf("%s; %d result%s in %d line%s", s, t.Records, plural(t.Records), t.Lines, plural(t.Lines))
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func appendNew(list []string, s string) []string {
	for _, l := range list {
		if l == s {
			return list
		}
	}
	return append(list, s)
}

// size is how many ranks a world has, in words.
func (w *World) size() string {
	s := rankRange("", w.Ranks[0], w.Ranks[1])
	if s == "" {
		return "an unknown number of ranks"
	}
	if w.Groups > 1 {
		s += fmt.Sprintf(" in %d groups at once", w.Groups)
	}
	return s
}

func (w *World) describe(b *strings.Builder, number string) {
	op := w.Op
	if op == "" {
		op = "operation unknown"
	}
	fmt.Fprintf(b, "  %s  %s, %s", number, op, w.size())
	if w.RanksFrom != "" && w.RanksFrom != "listed" {
		fmt.Fprintf(b, " (%s)", w.RanksFrom)
	}
	if n := len(w.Hosts); n > 0 && n <= 4 {
		fmt.Fprintf(b, " on %s", strings.Join(w.Hosts, ", "))
	} else if n > 4 {
		fmt.Fprintf(b, " on %d hosts, %s …", n, strings.Join(w.Hosts[:3], ", "))
	}
	fmt.Fprintf(b, ", %d row%s", w.Rows, map[bool]string{true: "s"}[w.Rows != 1])
	if w.Average != nil {
		fmt.Fprintf(b, ", average busbw %.6g GB/s as printed", *w.Average)
	}
	if w.Wrong != nil {
		fmt.Fprintf(b, ", %d out of bounds", *w.Wrong)
	}
	fmt.Fprintf(b, ": %s\n", w.State)
	if w.Error != "" {
		fmt.Fprintf(b, "      %s\n", w.Error)
	}
	for _, n := range w.Notes {
		fmt.Fprintf(b, "      %s\n", n)
	}
}

// printable keeps what a text says from commanding a terminal.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
}
