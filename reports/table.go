package reports

import (
	"bytes"
	"slices"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// legend explains the columns once, below all tables.
const legend = `
TIME: median of the slowest rank. ±95 %: interval of the median. TAIL: p99 of 100 samples or more, else the maximum.
ALGBW, BUSBW, LIMIT: GB/s (1e9 B/s). SHARE: busbw of the limit. ?: skew too large for a verdict.
` + none + `: not measured, or not applicable (one rank has no bandwidth).
`

// table is the text for people: what was run, then for each operation all
// figures, and the best of each scope side by side.
func table(b *bytes.Buffer, results []Result, colour bool) error {
	for i, run := range runs(results) {
		if i > 0 {
			b.WriteByte('\n')
		}
		summary(b, run)
		figures := Figures(run)
		told := common(run)
		for i := range figures {
			figures[i].Notes = slices.DeleteFunc(figures[i].Notes, func(n string) bool { return slices.Contains(told, n) })
		}
		varies := varying(run)
		for _, s := range sheets(figures) {
			b.WriteByte('\n')
			s.head(b, varies)
			if err := s.details(b, colour); err != nil {
				return err
			}
			s.remarks(b)
			if len(s.scopes) < 2 {
				continue
			}
			if err := s.versus(b); err != nil {
				return err
			}
		}
	}
	if len(results) > 0 {
		b.WriteString(legend)
	}
	return nil
}

// details is a row for each figure.
func (s *sheet) details(b *bytes.Buffer, colour bool) error {
	heads := []string{"SIZE", "SCOPE", "ALGORITHM", "TIME", "±95 %", "TAIL", "ALGBW", "BUSBW", "LIMIT", "SHARE", "CROSS/INTRA", "PREDICTED", "#WRONG"}
	align := "lllrrrrrrrrrr"
	predicted := slices.ContainsFunc(s.figures, func(f *Figure) bool { return f.Predicted != nil })
	pairs := len(s.scopes) > 1
	keep := func(row []string) []string {
		var out []string
		for i, c := range row {
			if heads[i] == "PREDICTED" && !predicted || heads[i] == "CROSS/INTRA" && !pairs {
				continue
			}
			out = append(out, c)
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
			first = sizeText(size)
		}
		c := cellsOf(f, colour)
		rows = append(rows, keep([]string{first, c.scope, s.algorithm(f), c.time, c.spread, c.tail, c.algbw, c.busbw, c.limit, c.share, ratio(f, intra), c.predicted, c.wrong}))
	}
	return draw(b, keep(heads), align, rows, nil)
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
	if text != none && (f.Skewed() || g.Skewed()) {
		text += "?"
	}
	return text
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
