package reports

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// markdownReport is the report as GitHub's Markdown: for each run and
// operation all figures, and the comparison of scopes.
func markdownReport(b *bytes.Buffer, results []Result, _ bool) error {
	for i, run := range runs(results) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "## Run %s\n\n```\n", markdown(clean(run[0].Run, 80)))
		summary(b, run, true)
		b.WriteString("```\n")
		figures := Figures(run)
		told := common(run)
		for i := range figures {
			figures[i].Notes = slices.DeleteFunc(figures[i].Notes, func(n string) bool { return slices.Contains(told, n) })
		}
		varies := varying(run)
		for _, s := range sheets(figures) {
			var head bytes.Buffer
			s.head(&head, varies)
			title, scopes, _ := strings.Cut(head.String(), "\n")
			fmt.Fprintf(b, "\n### %s\n\n", markdown(title))
			for scope := range strings.Lines(scopes) {
				fmt.Fprintf(b, "- %s\n", markdown(strings.Join(strings.Fields(scope), " ")))
			}
			b.WriteByte('\n')
			s.markdown(b)
		}
	}
	return nil
}

func (s *sheet) markdown(b *bytes.Buffer) {
	intra := map[twin]*Figure{}
	for _, f := range s.figures {
		if f.Scope == "intra" && intra[f.twin()] == nil {
			intra[f.twin()] = f
		}
	}
	b.WriteString("| size | scope | algorithm | time | ±95 % | algbw, GB/s | busbw, GB/s | limit, GB/s | share | cross/intra | wrong | remarks |\n" +
		"|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n")
	for _, f := range s.figures {
		c := cellsOf(f, false)
		markdownRow(b, []string{f.size(), c.scope, s.algorithm(f), c.time, c.spread, c.algbw, c.busbw, c.limit, c.share, ratio(f, intra), c.wrong, strings.Join(f.sentences(), "; ")})
	}
}
