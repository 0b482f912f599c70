package reports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

func compareFormats() []struct {
	name string
	run  func(*bytes.Buffer, *Comparison) error
} {
	return []struct {
		name string
		run  func(*bytes.Buffer, *Comparison) error
	}{
		{"table", compareTable},
		{"md", compareMarkdown},
		{"json", compareJSON},
		{"csv", compareCSV},
	}
}

// CompareFormats lists what Comparison.Render takes; the first is the default.
func CompareFormats() (names []string) {
	for _, f := range compareFormats() {
		names = append(names, f.name)
	}
	return names
}

// Render writes the comparison: "table" for people, "md" for an issue or a
// page, "json" and "csv" for programs.
func (c *Comparison) Render(w io.Writer, format string) error {
	i := slices.Index(CompareFormats(), format)
	if i < 0 {
		return fmt.Errorf("unknown format %q; the formats are %s", format, strings.Join(CompareFormats(), ", "))
	}
	var b bytes.Buffer
	if err := compareFormats()[i].run(&b, c); err != nil {
		return fmt.Errorf("format %s: %w", format, err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// preamble says what is compared, a line each.
func (c *Comparison) preamble() (lines []string) {
	for i, s := range c.Sides {
		text := fmt.Sprintf("%s: %d result%s of %d launch%s", prose(s.Label), s.Results, plural(s.Results), s.Launches, map[bool]string{true: "es"}[s.Launches != 1])
		if s.Runs > 1 {
			text += fmt.Sprintf(" in %d runs", s.Runs)
		}
		if i == 0 {
			text += ", what the others are compared with"
		}
		if s.Only > 0 {
			text += fmt.Sprintf("; %d case%s that no other side has", s.Only, plural(s.Only))
		}
		lines = append(lines, text)
	}
	if len(c.Differ) == 0 {
		lines = append(lines, "differs: nothing that the records tell")
	}
	for _, d := range c.Differ {
		text := "differs: "
		if d.Follows {
			text = "follows: "
		}
		lines = append(lines, text+name(d.What)+": "+prose(strings.Join(blanks(d.Values), " → ")))
	}
	for _, w := range c.Warnings {
		lines = append(lines, "warning: "+prose(w))
	}
	return lines
}

var compareHeads = []string{"SIZE", "SIDE", "N", "TIME", "±95 %", "BUSBW", "CHANGE", "95 % OF IT", "P", "VERDICT"}

// size is the row's size for people.
func (r *Row) size() string {
	if r.unsized {
		return none
	}
	return sizeText(r.Bytes)
}

// sizeBytes is the size for programs, empty where it is not known.
func (r *Row) sizeBytes() string {
	if r.unsized {
		return ""
	}
	return strconv.FormatInt(r.Bytes, 10)
}

// texts are the cells of a row's side, as the tables show them.
func (r *Row) texts(side int, label string) []string {
	c := &r.Cells[side]
	out := []string{"", name(label), strconv.Itoa(c.Launches), none, none, none, none, none, none, c.Verdict}
	if side == 0 {
		out[0] = r.size()
	}
	if c.Launches == 0 && c.Verdict == "" {
		out[9] = "absent"
	}
	if c.Verdict == Wrong {
		return out
	}
	if c.Seconds != nil {
		out[3] = timeText(*c.Seconds)
	}
	if c.Interval != nil {
		out[4] = shareText(math.Max(c.Interval[1]-*c.Seconds, *c.Seconds-c.Interval[0])/(*c.Seconds), true)
	}
	if c.Busbw != nil {
		out[5] = rateText(*c.Busbw, true)
	}
	if c.Change != nil {
		out[6] = changeText(*c.Change)
	}
	if c.Between != nil {
		out[7] = changeText(c.Between[0]) + " to " + changeText(c.Between[1])
	}
	if c.P != nil {
		out[8] = strconv.FormatFloat(*c.P, 'g', 2, 64)
	}
	return out
}

// changeText is a relative change in per cent, with its sign.
func changeText(x float64) string {
	p := 100 * x
	switch {
	case math.Abs(p) >= 99.95:
		return fmt.Sprintf("%+.0f %%", p)
	case math.Abs(p) < 0.05:
		return "0.0 %"
	}
	return fmt.Sprintf("%+.1f %%", p)
}

// tables gives the rows of each table.
func (c *Comparison) tables(draw func(head string, rows [][]string, foot []string) error) error {
	for at := 0; at < len(c.Rows); {
		head := c.Rows[at].head()
		var rows [][]string
		from := at
		for ; at < len(c.Rows) && c.Rows[at].head() == head; at++ {
			for i, s := range c.Sides {
				rows = append(rows, c.Rows[at].texts(i, s.Label))
			}
		}
		if err := draw(head, rows, c.totals(c.Rows[from:at])); err != nil {
			return err
		}
	}
	return nil
}

// totals are sentences on all sizes of a table, one for each side but the first.
func (c *Comparison) totals(rows []Row) (lines []string) {
	for side := 1; side < len(c.Sides); side++ {
		var sum float64
		n := 0
		counts := map[string]int{}
		var why []string
		for i := range rows {
			b := &rows[i].Cells[side]
			if b.Verdict != "" {
				counts[b.Verdict]++
			}
			if b.Change != nil {
				sum += math.Log1p(*b.Change)
				n++
			}
			if b.Why != "" {
				why = append(why, fmt.Sprintf("%s: %s: %s", name(c.Sides[side].Label), rows[i].size(), prose(b.Why)))
			}
		}
		text := name(c.Sides[side].Label) + ":"
		for _, v := range []string{Faster, Slower, Same, TooFew, Guessed, Wrong, Beyond, Failed} {
			if counts[v] > 0 {
				text += fmt.Sprintf(" %d %s,", counts[v], v)
			}
		}
		if n > 0 {
			text += fmt.Sprintf(" geometric mean of the change %s", changeText(math.Expm1(sum/float64(n))))
		}
		lines = append(append(lines, strings.TrimSuffix(text, ",")), why...)
	}
	for i := range rows {
		if a := &rows[i].Cells[0]; a.Why != "" {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", name(c.Sides[0].Label), rows[i].size(), prose(a.Why)))
		}
	}
	return lines
}

func (c *Comparison) legend() []string {
	times := "median of the launches' medians"
	if len(c.told) > 0 {
		times += "; of imports " + strings.Join(c.told, "; or ")
	}
	return []string{
		fmt.Sprintf("CHANGE: of speed, against %s. Faster or slower is claimed where p < %g (Mann–Whitney over launches, Holm over all rows) and the whole interval lies beyond %s.", name(c.Sides[0].Label), level, shareText(c.Margin, true)),
		fmt.Sprintf("%s: not shown to be different. %s: no interval, so nothing can be claimed. N: launches. TIME: %s. BUSBW: GB/s.", Same, TooFew, times),
	}
}

func compareTable(b *bytes.Buffer, c *Comparison) error {
	fmt.Fprintln(b, strings.Join(c.preamble(), "\n"))
	err := c.tables(func(head string, rows [][]string, foot []string) error {
		fmt.Fprintf(b, "\n%s\n", head)
		if err := draw(b, compareHeads, "llrrrrrrrl", rows, nil); err != nil {
			return err
		}
		fmt.Fprintf(b, "  %s\n", strings.Join(foot, "\n  "))
		return nil
	})
	fmt.Fprintf(b, "\n%s\n", strings.Join(c.legend(), "\n"))
	return err
}

func compareMarkdown(b *bytes.Buffer, c *Comparison) error {
	for _, l := range c.preamble() {
		fmt.Fprintf(b, "- %s\n", markdown(l))
	}
	err := c.tables(func(head string, rows [][]string, foot []string) error {
		fmt.Fprintf(b, "\n### %s\n\n", markdown(head))
		markdownRow(b, compareHeads)
		b.WriteString("|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n")
		for _, r := range rows {
			markdownRow(b, r)
		}
		b.WriteByte('\n')
		for _, f := range foot {
			fmt.Fprintf(b, "- %s\n", markdown(f))
		}
		return nil
	})
	fmt.Fprintf(b, "\n%s\n", markdown(strings.Join(c.legend(), " ")))
	return err
}

// markdown is a text that Markdown shows as it is.
func markdown(s string) string {
	return strings.NewReplacer(`\`, `\\`, "&", "&amp;", "\n", " ", "[", `\[`, "|", `\|`, "<", "&lt;", "`", "'", "~", `\~`, "*", `\*`, "_", `\_`).Replace(s)
}

func markdownRow(b *bytes.Buffer, cells []string) {
	b.WriteByte('|')
	for _, c := range cells {
		fmt.Fprintf(b, " %s |", markdown(c))
	}
	b.WriteByte('\n')
}

func compareJSON(b *bytes.Buffer, c *Comparison) error {
	e := json.NewEncoder(b)
	e.SetIndent("", "  ")
	return e.Encode(c)
}

// compareCSV is a row for each side of each case.
func compareCSV(b *bytes.Buffer, c *Comparison) error {
	w := csv.NewWriter(b)
	w.Write([]string{"op", "scope", "dtype", "redop", "root", "in_place", "with", "bytes", "side", "launches", "runs", "median_s", "median_low_s", "median_high_s",
		"busbw_gb_per_s", "change", "change_low", "change_high", "p", "verdict", "why"})
	for i := range c.Rows {
		r := &c.Rows[i]
		var with []string
		for _, k := range sortedKeys(r.With) {
			with = append(with, setting(k, r.With[k]))
		}
		for j := range r.Cells {
			x := &r.Cells[j]
			w.Write([]string{prose(r.Op), prose(r.Scope), prose(r.Dtype), prose(r.Redop), integer(r.Root), strconv.FormatBool(r.InPlace), strings.Join(with, " "),
				r.sizeBytes(), prose(c.Sides[j].Label), strconv.Itoa(x.Launches), strconv.Itoa(x.Runs), decimal(x.Seconds), bound(x.Interval, 0), bound(x.Interval, 1),
				decimal(x.Busbw), decimal(x.Change), bound(x.Between, 0), bound(x.Between, 1), decimal(x.P), x.Verdict, prose(x.Why)})
		}
	}
	w.Flush()
	return w.Error()
}

// blanks shows values that are absent as such.
func blanks(values []string) []string {
	out := slices.Clone(values)
	for i, v := range out {
		if v == "" {
			out[i] = none
		}
	}
	return out
}
