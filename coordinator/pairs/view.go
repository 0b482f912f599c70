package pairs

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"busbw/reports"
)

// Sizes of what fits on a screen: a matrix of numbers, a map of marks.
const (
	mostNumbers = 16
	mostMarks   = 160
)

// Text writes a report for people: what is normal, the pairs, and what is
// slow, with the reasons. colour is for terminals.
func (r *Report) Text(w io.Writer, t *Table, colour bool) error {
	var b strings.Builder
	for _, lv := range r.Levels {
		fmt.Fprintf(&b, "%s: %d measurements, typical %s, scatter ±%.1f %%; slow is %s\n", lv.Way, lv.Samples, rate(lv.Typical), 100*lv.Noise/lv.Typical, lv.Reasoning)
	}
	for _, lv := range r.Levels {
		for rail := range t.Rails {
			t.draw(&b, lv, rail, colour)
		}
	}
	b.WriteByte('\n')
	for i := range r.Culprits {
		c := &r.Culprits[i]
		word := "FAIL"
		switch c.Verdict {
		case reports.Warn:
			word = "WARN"
		case reports.Unknown:
			word = "UNKNOWN"
		}
		if colour {
			word = paint(word, c.Verdict == reports.Fail)
		}
		fmt.Fprintf(&b, "%s  %s: %s: %s %s, want %s (sureness: %s)\n", word, c.Kind, c.Subject(), rate(c.GBps), c.Way, rate(c.Want), c.Sure)
		for _, why := range c.Why {
			fmt.Fprintf(&b, "      %s\n", why)
		}
		fmt.Fprintf(&b, "      to do: %s\n", c.remedy())
	}
	switch {
	case len(r.Culprits) == 0 && len(r.Good) == 0:
		fmt.Fprintf(&b, "nothing stands out; %s\n", cmp.Or(r.Doubt, "no node is called good"))
	case len(r.Culprits) > 0 && !r.Found():
		b.WriteString("nothing is established: these figures can neither accuse nor acquit\n")
	case len(r.Culprits) == 0:
		b.WriteString("no slow node, NIC, cable or path was found\n")
	}
	if len(r.Good) > 0 && len(r.Good) < len(t.Nodes) {
		fmt.Fprintf(&b, "good: %s\n", strings.Join(r.Good, " "))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if len(r.Next) > 0 {
		b.WriteString("not settled; measure next, alone:\n")
		for i, p := range r.Next {
			if i == 10 {
				fmt.Fprintf(&b, "  … and %d more\n", len(r.Next)-i)
				break
			}
			fmt.Fprintf(&b, "  %s\n", p.Name)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func paint(s string, fail bool) string {
	if fail {
		return "\x1b[1;31m" + s + "\x1b[0m"
	}
	return "\x1b[33m" + s + "\x1b[0m"
}

// draw shows one rail and way: numbers where they fit, else a mark for each.
func (t *Table) draw(b *strings.Builder, lv Level, rail int, colour bool) {
	n := len(t.Nodes)
	cells := map[[2]int]float64{}
	for _, s := range t.Bandwidth {
		if s.Way != lv.Way || s.Rail != rail {
			continue
		}
		for _, k := range [][2]int{{s.A, s.B}, {s.B, s.A}} {
			if k[0] == s.A || lv.Way == Both {
				if v, ok := cells[k]; !ok || s.Value < v {
					cells[k] = s.Value
				}
			}
		}
	}
	if len(cells) == 0 {
		return
	}
	b.WriteByte('\n')
	if t.Rails > 1 {
		fmt.Fprintf(b, "rail %d, ", rail)
	}
	fmt.Fprintf(b, "%s, GB/s", lv.Way)
	if lv.Way == OneWay {
		b.WriteString(" (row sends to column)")
	}
	wide := 0
	for _, name := range t.Nodes {
		wide = max(wide, utf8.RuneCountInString(name))
	}
	pad := func(s string) string { return s + strings.Repeat(" ", wide-utf8.RuneCountInString(s)) }
	switch {
	case n <= mostNumbers:
		b.WriteString("\n" + pad(""))
		cell := max(7, wide+1)
		for _, name := range t.Nodes {
			fmt.Fprintf(b, "%*s", cell, name)
		}
		for i, name := range t.Nodes {
			b.WriteString("\n" + pad(name))
			for j := range t.Nodes {
				v, ok := cells[[2]int{i, j}]
				text := "—"
				if i == j {
					text = ""
				} else if ok {
					text = strings.TrimSuffix(rate(v), " GB/s")
				}
				text = strings.Repeat(" ", max(0, cell-utf8.RuneCountInString(text))) + text
				if ok && v < lv.Slow && colour {
					text = paint(text, v < 0.8*lv.Typical)
				}
				b.WriteString(text)
			}
		}
	case n <= mostMarks:
		b.WriteString("; of the typical: · reached it, - slow, ░ under 85 %, ▒ under 65 %, █ under 40 %, blank: not measured\n")
		for i, name := range t.Nodes {
			b.WriteString("\n" + pad(name) + " ")
			for j := range t.Nodes {
				v, ok := cells[[2]int{i, j}]
				m := mark(v, ok, lv)
				if colour && ok && v < lv.Slow {
					m = paint(m, v < 0.8*lv.Typical)
				}
				b.WriteString(m)
			}
		}
	default:
		fmt.Fprintf(b, ": %d nodes do not fit on a screen; --format json has every pair", n)
	}
	b.WriteByte('\n')
}

// mark is a cell of a map: the slower, the darker.
func mark(v float64, ok bool, lv Level) string {
	switch {
	case !ok:
		return " "
	case v >= lv.Slow:
		return "·"
	case v >= 0.85*lv.Typical:
		return "-"
	case v >= 0.65*lv.Typical:
		return "░"
	case v >= 0.40*lv.Typical:
		return "▒"
	}
	return "█"
}
