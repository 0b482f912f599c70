package reports

import (
	"bytes"
	"fmt"
	"strings"
)

// versus is the comparison of scopes: a row a size, the best algorithm of each.
func (s *sheet) versus(b *bytes.Buffer, colour bool) error {
	heads, align := []string{"SIZE"}, "l"
	for _, scope := range s.scopes {
		heads = append(heads, strings.ToUpper(name(scope)), "TIME", "BUSBW", "SHARE")
		align += "lrrr"
	}
	heads = append(heads, "CROSS/INTRA")
	var rows [][]string
	var time, doubtful float64 // s, of cross and intra
	rates, work := map[string][]float64{}, map[string][]float64{}
	s.bySize(func(at, end int) {
		row, best := s.versusRow(at, end, colour)
		rows = append(rows, row)
		if len(best) < len(s.scopes) {
			return
		}
		for scope, f := range best {
			bus, _ := f.Busbw()
			if scope != "global" {
				if time += f.Stats.Median; f.Doubtful() {
					doubtful += f.Stats.Median
				}
			}
			rates[scope] = append(rates[scope], bus)
			work[scope] = append(work[scope], float64(f.Bytes))
		}
	})
	foot := []string{"all"}
	for _, scope := range s.scopes {
		foot = append(foot, "", "", rateText(Rate(rates[scope], work[scope])), "")
	}
	cross, ok1 := Rate(rates["cross"], work["cross"])
	intra, ok2 := Rate(rates["intra"], work["intra"])
	ratio := rateText(cross/intra, ok1 && ok2)
	if doubtful > wide*time && ratio != none {
		ratio += "?"
	}
	foot = append(foot, ratio)
	fmt.Fprintf(b, "cross-node versus intra-node, %s: the best algorithm of each scope\n", name(s.figures[0].Op))
	if err := draw(b, heads, align+"r", rows, foot); err != nil {
		return err
	}
	b.WriteString("  all: the bytes of all sizes that every scope has, over their time\n")
	return nil
}

// versusRow is the row of one size: the size, the fastest figure of each scope
// as algorithm, time, busbw and share, and the quotient of cross and intra.
func (s *sheet) versusRow(at, end int, colour bool) (row []string, best map[string]*Figure) {
	best = s.fastest(at, end)
	row = []string{sizeText(s.figures[at].asked())}
	for _, scope := range s.scopes {
		f := best[scope]
		if f == nil {
			row = append(row, none, none, none, none)
			continue
		}
		c := cellsOf(f, colour)
		row = append(row, name(f.Algorithm), c.time, c.busbw, c.share)
	}
	ratio := none
	if best["cross"] != nil && best["intra"] != nil {
		ratio = quotient(best["cross"], best["intra"])
	}
	return append(row, ratio), best
}
