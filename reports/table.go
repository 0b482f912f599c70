package reports

import (
	"bytes"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// legend explains the columns once, below all tables.
func legend(figures []Figure, all bool) string {
	share := ""
	if slices.ContainsFunc(figures, func(f Figure) bool { return f.Limit != nil }) {
		share = " SHARE: busbw of the limit."
	}
	if all {
		return "\nTIME: " + timesAre(figures) + ". ±95 %: interval of the median. TAIL: p99 of 100 samples or more, else the maximum.\n" +
			"MIN, MAX: of the iterations. OUTLIERS: beyond 1.5 interquartile ranges. ALGBW, BUSBW, LIMIT: GB/s (1e9 B/s)." + share + "\n" +
			"?: no verdict (skew, warm-up not settled, or wide intervals). " + none + ": not measured, not known, or not applicable (one rank has no bandwidth).\n"
	}
	return "\nTIME: " + timesAre(figures) + ". BUSBW: GB/s (1e9 B/s)." + share + " All figures: --format detail.\n" +
		"?: no verdict (skew, warm-up not settled, or wide intervals). " + none + ": not measured, not known, or not applicable.\n"
}

// table is the short text for people: what was run, the best of each scope
// side by side, and what went wrong.
func table(b *bytes.Buffer, results []Result, colour bool) error {
	return tables(b, results, colour, false)
}

// detail is the long one: all figures, and how they were measured.
func detail(b *bytes.Buffer, results []Result, colour bool) error {
	return tables(b, results, colour, true)
}

func tables(b *bytes.Buffer, results []Result, colour, all bool) error {
	for i, run := range runs(results) {
		if i > 0 {
			b.WriteByte('\n')
		}
		summary(b, run, all)
		figures := Figures(run)
		told := common(run)
		for i := range figures {
			figures[i].Notes = slices.DeleteFunc(figures[i].Notes, func(n string) bool { return slices.Contains(told, n) })
		}
		varies := varying(run)
		for _, s := range sheets(figures) {
			b.WriteByte('\n')
			s.head(b, varies)
			if len(s.scopes) > 1 {
				if err := s.versus(b, colour); err != nil {
					return err
				}
			}
			if all || len(s.scopes) < 2 {
				if len(s.scopes) > 1 {
					b.WriteByte('\n')
				}
				if err := s.details(b, colour, all); err != nil {
					return err
				}
			}
			s.remarks(b, all)
		}
	}
	if len(results) > 0 {
		b.WriteString(legend(Figures(results), all))
	}
	return nil
}

// details is a row for each figure.
func (s *sheet) details(b *bytes.Buffer, colour, all bool) error {
	heads := []string{"SIZE", "SCOPE", "ALGORITHM", "TIME", "±95 %", "TAIL", "MIN", "MAX", "OUTLIERS", "ALGBW", "BUSBW", "LIMIT", "SHARE", "CROSS/INTRA", "PREDICTED", "#WRONG"}
	align := []byte("lllrrrrrrrrrrrrr")
	some := func(has func(f *Figure) bool) bool { return slices.ContainsFunc(s.figures, has) }
	show := map[string]bool{
		"SCOPE": all || len(s.scopes) > 1, "TAIL": all, "MIN": all, "MAX": all, "OUTLIERS": all, "CROSS/INTRA": len(s.scopes) > 1,
		"ALGORITHM": some(func(f *Figure) bool { return f.Algorithm != "" }), "±95 %": all || some(func(f *Figure) bool { return f.Stats.Interval != nil }),
		"LIMIT": all && some(func(f *Figure) bool { return f.Limit != nil }), "SHARE": some(func(f *Figure) bool { return f.Limit != nil }),
		"PREDICTED": some(func(f *Figure) bool { return f.Predicted != nil && (all || !f.Timed) }),
	}
	keep := func(row []string) (out []string) {
		for i, c := range row {
			if shown, optional := show[heads[i]]; !optional || shown {
				out = append(out, c)
			}
		}
		return out
	}
	intra := map[twin]*Figure{}
	for _, f := range s.figures {
		if f.Scope == "intra" && intra[f.twin()] == nil {
			intra[f.twin()] = f
		}
	}
	var rows [][]string
	size := int64(-1)
	for _, f := range s.figures {
		first := ""
		if f.asked() != size {
			size = f.asked()
			first = f.size()
		}
		c := cellsOf(f, colour)
		rows = append(rows, keep([]string{first, c.scope, s.algorithm(f), c.time, c.spread, c.tail, c.least, c.most, c.outliers, c.algbw, c.busbw, c.limit, c.share, ratio(f, intra), c.predicted, c.wrong}))
	}
	var sides []string
	for _, c := range align {
		sides = append(sides, string(c))
	}
	return draw(b, keep(heads), strings.Join(keep(sides), ""), rows, nil)
}

// twin finds a figure's counterpart in another scope.
type twin struct {
	size      int64
	algorithm string
}

func (f *Figure) twin() twin { return twin{f.asked(), f.wanted()} }

// ratio is the busbw of a cross-node figure over that of its intra-node twin.
func ratio(f *Figure, intra map[twin]*Figure) string {
	if f.Scope != "cross" {
		return ""
	}
	if g := intra[f.twin()]; g != nil {
		return quotient(f, g)
	}
	return none
}

func quotient(f, g *Figure) string {
	a, ok1 := f.Busbw()
	b, ok2 := g.Busbw()
	text := rateText(a/b, ok1 && ok2 && b > 0)
	if text != none && (f.Doubtful() || g.Doubtful()) {
		text += "?"
	}
	return text
}

// wide is the half-width of a median's interval above which a ratio of two
// such figures is no verdict.
const wide = 0.10

// Doubtful says that a figure is no ground for a verdict: its ranks started
// apart, its warm-up did not settle, or its median is not known within 10 %.
func (f *Figure) Doubtful() bool {
	s := &f.Stats
	return f.Skewed() || f.unsettled() || s.Interval != nil && max(s.Interval[1]-s.Median, s.Median-s.Interval[0]) > wide*s.Median
}

// draw lays out a table without vertical lines. align has an l (left) or an r
// (right) for each column.
func draw(b *bytes.Buffer, heads []string, align string, rows [][]string, foot []string) error {
	columns := make([]tw.Align, len(heads))
	for i := range columns {
		columns[i] = map[byte]tw.Align{'l': tw.AlignLeft, 'r': tw.AlignRight}[align[i]]
	}
	cell := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Alignment:  tw.CellAlignment{Global: tw.AlignRight, PerColumn: columns},
		Padding:    tw.CellPadding{Global: tw.Padding{Left: " ", Overwrite: true}},
	}
	t := tablewriter.NewTable(b,
		tablewriter.WithConfig(tablewriter.Config{Header: cell, Row: cell, Footer: cell}),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off},
			Symbols: tw.NewSymbols(tw.StyleLight),
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.On, ShowFooterLine: tw.On, ShowTop: tw.Off, ShowBottom: tw.Off},
			},
		})))
	t.Header(heads)
	if err := t.Bulk(rows); err != nil {
		return err
	}
	if foot != nil {
		t.Footer(foot)
	}
	return t.Render()
}
