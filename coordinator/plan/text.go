package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"busbw/reports"
)

// Summary says what a machine is and where its numbers come from.
func (m *Machine) Summary(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster    %s: nodes of %d rank%s", m.title(), m.GPUs, s(m.GPUs))
	if m.NVLink.Domain != m.GPUs {
		fmt.Fprintf(&b, ", NVLink domains of %d", m.NVLink.Domain)
	}
	if m.NICs != m.GPUs {
		fmt.Fprintf(&b, ", %d NIC%s a node", m.NICs, s(m.NICs))
	}
	if m.Leaf.Nodes > 0 {
		fmt.Fprintf(&b, ", leaves of %d nodes, %g:1", m.Leaf.Nodes, m.Leaf.Oversubscription)
	}
	if m.NIC.Rails {
		b.WriteString(", rail-optimised")
	}
	b.WriteByte('\n')
	if m.Measured != nil {
		fmt.Fprintf(&b, "paths      fitted to measurements of up to %d ranks and %d node%s\n", m.Measured.Ranks, max(1, m.Measured.Nodes), s(m.Measured.Nodes))
		for _, why := range m.Measured.Passed {
			fmt.Fprintf(&b, "passed     %s\n", why)
		}
	} else {
		b.WriteString("paths      as described; nothing was measured\n")
	}
	for _, x := range []struct {
		name string
		way  Way
	}{{"NVLink", m.Intra}, {"NIC", m.Cross}} {
		if x.way != nil && m.Measured == nil {
			fmt.Fprintf(&b, "%-10s α %s, %s GB/s a rank and direction\n", x.name, span(x.way[0].Alpha, reports.TimeText), span(x.way[0].GBps, reports.RateText))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (m *Machine) title() string {
	if m.Name == "" {
		return "no name"
	}
	return reports.Clean(m.Name)
}

// Fitted lists the fits of a calibrated machine.
func (m *Machine) Fitted(w io.Writer) error {
	var rows [][]string
	for _, f := range m.Measured.Fits {
		what := "all together"
		if f.Algorithm != "" {
			what = caseName(f.Op, f.Algorithm)
		}
		for i, b := range f.Way {
			upTo := "≤ " + reports.SizeText(b.UpTo)
			if i == len(f.Way)-1 {
				upTo = "all"
				if i > 0 {
					upTo = "larger"
				}
			}
			rate := span(b.GBps, reports.RateText)
			if b.GBps.Low >= 1/least {
				rate = "—"
			}
			alpha := span(b.Alpha, reports.TimeText)
			switch {
			case b.Single:
				alpha, rate = "unknown", "unknown"
			case b.Alpha.High <= 0:
				alpha = "—"
			}
			if f.Borrowed {
				alpha, rate = alpha+"†", rate+"†"
			}
			rows = append(rows, []string{f.Path, what, fmt.Sprint(f.Ranks), fmt.Sprint(f.Points), upTo, alpha, rate})
		}
	}
	if err := reports.Draw(w, []string{"PATH", "CASE", "RANKS", "POINTS", "MESSAGES", "α", "B, GB/s"}, "llrrlll", rows); err != nil {
		return err
	}
	text := "MESSAGES: of which sizes; a collective cuts its bytes into such. —: too small to be seen beside the other.\n"
	has := func(which func(Fit) bool) bool { return slices.ContainsFunc(m.Measured.Fits, which) }
	if has(func(f Fit) bool { return f.Borrowed }) {
		text += "†: measured with one size of message, which cannot tell α from B: those of all together, scaled to its times.\n"
	}
	if has(func(f Fit) bool { return f.Way[0].Single }) {
		text += "unknown: messages of one size cannot tell α from B; the interval is half to twice, and other sizes are not predicted.\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// Table is a row for each prediction.
func Table(w io.Writer, predictions []Prediction) error {
	var rows [][]string
	for _, p := range predictions {
		bus := Range{Low: p.busbw(p.High), High: p.busbw(p.Low)}
		rows = append(rows, []string{p.Op.String(), fmt.Sprint(p.Nodes), fmt.Sprint(p.Ranks), reports.SizeText(p.Bytes), p.Algorithm,
			reports.TimeText(p.Seconds) + p.mark(), p.span(), rate(p.busbw(p.Seconds)), span(bus, rate), p.bound()})
	}
	heads := []string{"OP", "NODES", "RANKS", "SIZE", "ALGORITHM", "TIME", "BETWEEN", "BUSBW", "BETWEEN", "BOUND BY"}
	if err := reports.Draw(w, heads, "lrrrlrlrll", rows); err != nil {
		return err
	}
	if err := footnotes(w, predictions); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "BUSBW: GB/s (1e9 B/s).")
	return err
}

// Versus compares predictions of two machines, pair by pair. What neither knows
// is taken to be the same for both: the change is between equal ends.
func Versus(w io.Writer, a, b []Prediction, nameA, nameB string) error {
	var rows [][]string
	same := true
	for i, p := range a {
		q := b[i]
		change := Range{Low: q.Seconds / p.Seconds, High: q.Seconds / p.Seconds}
		for _, x := range []float64{q.Low / p.Low, q.High / p.High} {
			change = Range{Low: min(change.Low, x), High: max(change.High, x)}
		}
		sure := ""
		if change.Low < 1 && change.High > 1 {
			sure = "~"
		}
		same = same && p.Ranks == q.Ranks
		rows = append(rows, []string{p.Op.String(), both(p.Nodes, q.Nodes), both(p.Ranks, q.Ranks), reports.SizeText(p.Bytes), p.Algorithm, reports.TimeText(p.Seconds) + p.mark(), p.span(),
			q.Algorithm, reports.TimeText(q.Seconds) + q.mark(), q.span(), fmt.Sprintf("×%.3g", q.Seconds/p.Seconds) + sure, span(change, func(x float64) string { return fmt.Sprintf("%.3g", x) }), q.bound()})
	}
	fmt.Fprintf(w, "A: %s. B: %s.\n", nameA, nameB)
	heads := []string{"OP", "NODES", "RANKS", "SIZE", "A", "TIME", "BETWEEN", "B", "TIME", "BETWEEN", "B/A", "BETWEEN", "B BOUND BY"}
	if err := reports.Draw(w, heads, "lrrrlrllrlrll", rows); err != nil {
		return err
	}
	if !same {
		fmt.Fprintln(w, "A and B have different numbers of ranks: --nodes compares other sizes.")
	}
	fmt.Fprintln(w, "B/A: time; ~: the interval holds 1, so neither is shown to be faster.")
	return footnotes(w, append(append([]Prediction(nil), a...), b...))
}

// both is a number of A and of B.
func both(a, b int) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d, %d", a, b)
}

// footnotes explain the marks.
func footnotes(w io.Writer, predictions []Prediction) error {
	var b strings.Builder
	seen := map[string]bool{}
	for _, p := range predictions {
		for _, why := range p.Extrapolated {
			if !seen[why] && len(seen) < 12 {
				seen[why] = true
				fmt.Fprintf(&b, "*  extrapolated: %s\n", why)
			}
		}
	}
	for _, p := range predictions {
		if p.Aside != "" && !seen[p.Aside] {
			seen[p.Aside] = true
			fmt.Fprintln(&b, p.Aside)
		}
	}
	b.WriteString("BETWEEN: with what is not known exactly at its better and at its worse end.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Prediction) mark() string {
	if len(p.Extrapolated) > 0 {
		return "*"
	}
	return ""
}

func (p *Prediction) span() string { return span(Range{Low: p.Low, High: p.High}, reports.TimeText) }

// busbw for a time, GB/s; 0 for one rank.
func (p *Prediction) busbw(seconds float64) float64 {
	factor, ok := p.Op.BusFactor(p.Ranks)
	if !ok || seconds <= 0 {
		return 0
	}
	return factor * float64(p.Bytes) / seconds / 1e9
}

func rate(gbps float64) string {
	if gbps == 0 {
		return "—"
	}
	return reports.RateText(gbps)
}

// bound names the two largest terms.
func (p *Prediction) bound() string {
	var parts []string
	for _, t := range p.Terms[:min(2, len(p.Terms))] {
		parts = append(parts, t.Name+" "+reports.ShareText(t.Share))
	}
	return strings.Join(parts, ", ")
}

func span(r Range, text func(float64) string) string {
	low, high := text(r.Low), text(r.High)
	if low == high {
		return low
	}
	return low + " – " + high
}

func s(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
