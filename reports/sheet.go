package reports

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
)

// sheet is the figures of one table: they differ in size, scope and algorithm.
type sheet struct {
	figures []*Figure
	scopes  []string // in the order of the table
	auto    bool     // all algorithms were chosen by busbw, which the heading says
}

// runs splits results by run, in order of appearance.
func runs(results []Result) [][]Result {
	at := map[string]int{}
	var out [][]Result
	for _, r := range results {
		i, ok := at[r.Run]
		if !ok {
			i = len(out)
			at[r.Run] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

func sheets(figures []Figure) []*sheet {
	at := map[string]*sheet{}
	var out []*sheet
	together := sideBySide(figures)
	for i := range figures {
		f := &figures[i]
		k := f.Result
		k.Algorithm, k.Auto, k.Scope, k.Ranks, k.Groups, k.Pairs, k.Bytes = "", false, "", 0, 0, nil, 0
		if together[f.Run] {
			k.Engine, k.Config = "", nil
		}
		key := k.key()
		s := at[key]
		if s == nil {
			s = &sheet{auto: true}
			at[key] = s
			out = append(out, s)
		}
		s.figures = append(s.figures, f)
		s.auto = s.auto && f.Auto
		s.scopes = appendNew(s.scopes, f.Scope)
	}
	for _, s := range out {
		s.sort()
	}
	return out
}

// sideBySide finds the runs that measured several engines, each under one
// configuration: their rows stand in one table, for they are compared.
func sideBySide(figures []Figure) map[string]bool {
	configs := map[string]map[string][]string{} // by run and engine
	for i := range figures {
		f := &figures[i]
		if configs[f.Run] == nil {
			configs[f.Run] = map[string][]string{}
		}
		of := configs[f.Run]
		of[f.Engine] = appendNew(of[f.Engine], fmt.Sprint(f.Config))
	}
	out := map[string]bool{}
	for run, of := range configs {
		out[run] = len(of) > 1
		for _, c := range of {
			out[run] = out[run] && len(c) == 1
		}
	}
	return out
}

// engines names those of the sheet's rows.
func (s *sheet) engines() string {
	var names []string
	for _, f := range s.figures {
		names = appendNew(names, name(f.Engine))
	}
	return strings.Join(names, " and ")
}

// sort orders by size, then scope, then algorithm as first measured.
func (s *sheet) sort() {
	slices.SortStableFunc(s.scopes, func(a, b string) int { return scopeOrder(a) - scopeOrder(b) })
	slices.SortStableFunc(s.figures, func(a, b *Figure) int {
		if d := a.asked() - b.asked(); d != 0 {
			return int(min(max(d, -1), 1))
		}
		return scopeOrder(a.Scope) - scopeOrder(b.Scope)
	})
}

func scopeOrder(scope string) int {
	known := []string{"intra", "cross", "global"}
	if i := slices.Index(known, scope); i >= 0 {
		return i
	}
	return len(known)
}

// head says what all rows share, and what each scope is.
func (s *sheet) head(b *bytes.Buffer, varies []string) {
	f := s.figures[0]
	place := "out of place"
	if f.InPlace {
		place = "in place"
	}
	fmt.Fprintf(b, "%s, %s", strings.Join(strings.Fields(name(f.Op)+" "+name(f.Dtype)+" "+name(f.Redop)), " "), place)
	if f.Root != nil {
		fmt.Fprintf(b, ", root %d", *f.Root)
	}
	if f.Mode != "" {
		fmt.Fprintf(b, ", %s", name(f.Mode))
	}
	fmt.Fprintf(b, ", %s engine%s", s.engines(), plural(strings.Count(s.engines(), " and ")+1))
	if f.Memory != "" {
		fmt.Fprintf(b, ", %s memory", name(f.Memory))
	}
	if f.Nodes > 0 {
		fmt.Fprintf(b, ", %d node%s", f.Nodes, plural(f.Nodes))
	}
	if f.Aggregate > 1 {
		fmt.Fprintf(b, ", %d at a time", f.Aggregate)
	}
	if s.auto {
		b.WriteString(", algorithm auto")
	}
	for _, k := range varies {
		fmt.Fprintf(b, ", %s", setting(k, redact(f.Config)[k]))
	}
	b.WriteByte('\n')
	for _, scope := range s.scopes {
		var what []string
		for _, f := range s.figures {
			if f.Scope == scope && len(what) < maxKinds {
				what = appendNew(what, f.kind())
			}
		}
		for _, w := range what {
			fmt.Fprintf(b, "  %s\n", strings.TrimLeft(fmt.Sprintf("%-6s  %s", name(scope), w), " "))
		}
	}
}

// maxKinds bounds the lines on one scope; one is usual.
const maxKinds = 4

// kind is what a scope's rows have in common, the limit's name above all.
func (f *Figure) kind() string {
	w := fmt.Sprintf("%d group%s of %d rank%s", max(f.Groups, 1), plural(f.Groups), f.Ranks, plural(f.Ranks))
	if f.Ranks == 0 {
		w = "an unknown number of ranks"
	}
	if f.Link != "" {
		w += " over " + name(f.Link)
	}
	if f.Limit != nil {
		w += fmt.Sprintf("; limit %s GB/s: %s (%s)", rateText(f.Limit.GBps, true), name(f.Limit.Name), prose(f.Limit.How))
	}
	return w
}

func plural(n int) string {
	if n > 1 {
		return "s"
	}
	return ""
}

// algorithm is how a row names it.
func (s *sheet) algorithm(f *Figure) string {
	if f.Auto && !s.auto {
		return "auto: " + name(f.Algorithm)
	}
	return name(f.Algorithm)
}

// modelOff says how far the predictions are off, and where most.
func (s *sheet) modelOff(b *bytes.Buffer) {
	var factors []float64
	var worst *Figure
	most, sign := 0.0, 0.0
	for _, f := range s.figures {
		factor, ok := f.Off()
		if !ok {
			continue
		}
		off := math.Abs(math.Log(factor))
		factors = append(factors, math.Exp(off))
		if worst == nil || off > most {
			worst, most, sign = f, off, math.Log(factor)
		}
	}
	if worst == nil {
		return
	}
	way := "slower"
	if sign > 0 {
		way = "faster"
	}
	fmt.Fprintf(b, "  predictions: off by a factor of %s in the median, at most %s: %s %s %s was %s than predicted\n",
		rateText(Median(factors), true), rateText(math.Exp(most), true), sizeText(worst.asked()), name(worst.Scope), s.algorithm(worst), way)
}

// remarks says below a table what concerns some of its rows.
// The short text leaves out what concerns the precision of single rows.
func (s *sheet) remarks(b *bytes.Buffer, all bool) {
	rows := map[string][]string{}
	var order []string
	for _, f := range s.figures {
		row := s.row(f)
		sentences := f.sentences()
		if f.Void() && !all {
			sentences = append(sentences, fmt.Sprintf("%s: %s, no figure", alarm("WRONG", false), f.wrongElements()))
		}
		for _, r := range sentences {
			if !all && strings.HasPrefix(r, "too few ") {
				continue
			}
			if rows[r] == nil {
				order = append(order, r)
			}
			rows[r] = append(rows[r], row)
		}
	}
	const shown = 3
	outliers, samples := 0, 0
	for _, f := range s.figures {
		if n := f.outliers(); n != nil {
			outliers += *n
			samples += f.Stats.N
		}
	}
	for _, r := range order {
		where := rows[r]
		switch n := len(where); {
		case n == len(s.figures) && n > 1:
			where = []string{"all rows"}
		case n > shown:
			where = append(where[:shown:shown], fmt.Sprintf("and %d more", n-shown))
		}
		fmt.Fprintf(b, "  %s: %s\n", r, strings.Join(where, ", "))
	}
	s.modelOff(b)
	if outliers > 0 && all {
		fmt.Fprintf(b, "  %d of %d samples lie more than 1.5 interquartile ranges outside the quartiles; all are counted in\n", outliers, samples)
	}
}
