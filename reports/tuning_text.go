package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

func tuningFormats() []struct {
	name string
	run  func(*bytes.Buffer, *Tuning) error
} {
	return []struct {
		name string
		run  func(*bytes.Buffer, *Tuning) error
	}{
		{"table", tuningTable},
		{"md", tuningMarkdown},
		{"json", tuningJSON},
	}
}

// TuningFormats lists what Tuning.Render takes; the first is the default.
func TuningFormats() (names []string) {
	for _, f := range tuningFormats() {
		names = append(names, f.name)
	}
	return names
}

// Render writes the report of a sweep.
func (t *Tuning) Render(w io.Writer, format string) error {
	i := slices.Index(TuningFormats(), format)
	if i < 0 {
		return fmt.Errorf("unknown format %q; the formats are %s", format, strings.Join(TuningFormats(), ", "))
	}
	var b bytes.Buffer
	if err := tuningFormats()[i].run(&b, t); err != nil {
		return fmt.Errorf("format %s: %w", format, err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// label names a setting in a table.
func (t *Tuning) label(i int) string { return clean(t.Settings[i].Name, 100) }

var tuningHeads = []string{"SIZES", "SETTING", "N", "CHANGE", "95 % OF IT", "P", "VERDICT"}

// tables gives the rows of each table: all bands of one head.
func (t *Tuning) tables(draw func(head string, rows [][]string, foot []string) error) error {
	for at := 0; at < len(t.Bands); {
		head := t.Bands[at].Head
		var rows [][]string
		var foot []string
		for ; at < len(t.Bands) && t.Bands[at].Head == head; at++ {
			b := &t.Bands[at]
			for i, e := range b.Entries {
				row := []string{"", t.label(e.Setting), strconv.Itoa(e.Launches), none, none, none, e.Verdict}
				if i == 0 {
					row[0] = b.sizes()
				}
				switch {
				case e.Setting == 0:
					row[6] = "the base"
				case t.Settings[e.Setting].Inert && e.Verdict != "":
					row[6] += " (no effect)"
				}
				if e.Change != nil && e.Setting != 0 {
					row[3] = changeText(*e.Change)
				}
				if e.Between != nil {
					row[4] = changeText(e.Between[0]) + " to " + changeText(e.Between[1])
				}
				if e.P != nil {
					row[5] = strconv.FormatFloat(*e.P, 'g', 2, 64)
				}
				rows = append(rows, row)
			}
			foot = append(foot, t.outcome(b))
		}
		if err := draw(head, rows, foot); err != nil {
			return err
		}
	}
	return nil
}

// outcome is a sentence on who won a band.
func (t *Tuning) outcome(b *Band) string {
	var tied []string
	for _, i := range b.Tied {
		tied = append(tied, t.label(i))
	}
	text := b.sizes() + ": "
	if b.Winner == 0 {
		text += "no setting is shown to be better than the base"
	} else {
		text += t.label(b.Winner) + " wins"
		if len(tied) > 0 {
			text += "; not shown to be slower than it: " + strings.Join(tied, ", ")
		}
	}
	if b.Noise != nil {
		text += fmt.Sprintf("; two sets of launches of the base differ by up to %s", shareText(*b.Noise, true))
	}
	return text
}

// facts says what became of each setting, a line each.
func (t *Tuning) facts() (lines []string) {
	for i, s := range t.Settings {
		if i == 0 {
			continue
		}
		switch {
		case s.Out != "":
			lines = append(lines, fmt.Sprintf("disqualified: %s: %s: %s", t.label(i), s.Out, prose(s.Why)))
		case s.Launches == 0:
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("no result: %s: %s", t.label(i), prose(s.Why)), ": "))
		case s.Inert:
			lines = append(lines, fmt.Sprintf("no evidence of effect: %s: algorithm, link and all that the ranks report are those of the base in every case", t.label(i)))
		default:
			lines = append(lines, fmt.Sprintf("did something: %s: %s", t.label(i), prose(strings.Join(s.Effects, "; "))))
		}
		if s.Unheard != nil {
			lines = append(lines, fmt.Sprintf("never mentioned by NCCL: %s: %s: no sign that NCCL has read it", t.label(i), prose(strings.Join(s.Unheard, ", "))))
		}
	}
	return lines
}

// conclusion is what to do: one setting for all, its cost, and the lines.
func (t *Tuning) conclusion() (lines []string) {
	shown := map[int]bool{}
	switch {
	case t.Tests == 0:
		return []string{"nothing is shown: no setting has launches enough for a test (6); go on with the sweep"}
	case len(t.One) == 1 && t.One[0].Setting == 0:
		lines = append(lines, "one setting for all: the base; no other is shown to be better anywhere")
		shown[0] = true
	case len(t.One) > 0:
		best := t.One[0]
		lines = append(lines, fmt.Sprintf("one setting for all: %s costs %s of the speed of each band's winner on average, %s at worst (%s)", t.label(best.Setting), shareText(best.Mean, true), shareText(best.Worst, true), best.Where))
		for _, c := range t.One[1:] {
			if c.Setting == 0 {
				lines = append(lines, fmt.Sprintf("staying with the base costs %s on average, %s at worst (%s)", shareText(c.Mean, true), shareText(c.Worst, true), c.Where))
			}
		}
		lines = append(lines, "these costs are of medians, noise included: a cost below the noise is none")
		shown[best.Setting] = true
	}
	for i := range t.Bands {
		shown[t.Bands[i].Winner] = true
	}
	for i := range t.Settings {
		if shown[i] {
			lines = append(lines, t.label(i)+":")
			if len(t.Settings[i].Lines) == 0 {
				lines = append(lines, "    # nothing to set: the defaults")
			}
			for _, l := range t.Settings[i].Lines {
				lines = append(lines, "    "+prose(l))
			}
		}
	}
	return lines
}

func (t *Tuning) legend() string {
	text := "CHANGE: of speed, geometric mean over the sizes, against the base. N: launches."
	tests := fmt.Sprintf("all %d tests", t.Tests)
	if t.Tests == 1 {
		tests = "the one test"
	}
	if t.Tests > 0 {
		text += fmt.Sprintf(" Faster or slower is claimed where p < %g (Mann–Whitney over launches, Holm over %s) and the whole interval lies beyond %s and beyond the noise; %s: not shown to be different.",
			level, tests, shareText(t.Margin, true), Same)
	}
	if slices.ContainsFunc(t.Bands, func(b Band) bool {
		return slices.ContainsFunc(b.Entries, func(e Entry) bool { return e.Verdict == TooFew })
	}) {
		text += fmt.Sprintf(" %s: fewer than %d launches of it or of the base: no interval and no test, so nothing can be claimed.", TooFew, minForInterval)
	}
	return text
}

// driftText says whether the machine stayed the same.
func (t *Tuning) driftText() string {
	if t.Drift == nil {
		return "drift: too few launches to look for it"
	}
	return fmt.Sprintf("drift: the second half of the launches is %s in speed, p = %.2g", changeText(t.Drift.Change), t.Drift.P)
}

func tuningTable(b *bytes.Buffer, t *Tuning) error {
	for _, l := range t.facts() {
		fmt.Fprintln(b, l)
	}
	err := t.tables(func(head string, rows [][]string, foot []string) error {
		fmt.Fprintf(b, "\n%s\n", head)
		if err := draw(b, tuningHeads, "llrrrrl", rows, nil); err != nil {
			return err
		}
		fmt.Fprintf(b, "  %s\n", strings.Join(foot, "\n  "))
		return nil
	})
	fmt.Fprintf(b, "\n%s\n%s\n", t.legend(), t.driftText())
	for _, w := range t.Warnings {
		fmt.Fprintf(b, "warning: %s\n", prose(w))
	}
	fmt.Fprintf(b, "\n%s\n", strings.Join(t.conclusion(), "\n"))
	return err
}

func tuningMarkdown(b *bytes.Buffer, t *Tuning) error {
	list := func(lines []string) {
		for _, l := range lines {
			fmt.Fprintf(b, "- %s\n", markdown(l))
		}
	}
	list(t.facts())
	err := t.tables(func(head string, rows [][]string, foot []string) error {
		fmt.Fprintf(b, "\n### %s\n\n", markdown(head))
		markdownRow(b, tuningHeads)
		b.WriteString("|---|---|--:|--:|--:|--:|---|\n")
		for _, r := range rows {
			markdownRow(b, r)
		}
		b.WriteByte('\n')
		list(foot)
		return nil
	})
	fmt.Fprintf(b, "\n%s\n\n", markdown(t.legend()))
	list(append([]string{t.driftText()}, t.Warnings...))
	fmt.Fprintf(b, "\n```\n%s\n```\n", strings.ReplaceAll(strings.Join(t.conclusion(), "\n"), "```", "'''"))
	return err
}

func tuningJSON(b *bytes.Buffer, t *Tuning) error {
	e := json.NewEncoder(b)
	e.SetIndent("", "  ")
	return e.Encode(t)
}
