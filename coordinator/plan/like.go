package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"busbw/collectives"
	"busbw/reports"
)

// Of is what the machine's paths predict for a measured figure, without the
// interval; ok is false where it is no figure to predict.
func (m *Machine) Of(f *reports.Figure) (p Prediction, ok bool) {
	path, x, err := pointOf(f)
	if err != nil {
		return p, false
	}
	c := Cluster{Nodes: 1, GPUs: f.Ranks, Chunk: max(1, x.chunk), Channels: x.channels}
	switch {
	case path == "cross":
		c.Nodes, c.GPUs = f.Ranks, 1
	case path == "global" && (f.Nodes < 1 || f.Ranks%f.Nodes != 0):
		return p, false
	case path == "global":
		c.Nodes, c.GPUs = f.Nodes, f.Ranks/f.Nodes
	}
	if c.complete() != nil {
		return p, false
	}
	like := Machine{Cluster: c, Intra: m.Intra, Cross: m.Cross, Measured: m.Measured}
	s, err := like.study(x.op, x.algorithm, x.bytes, c.Nodes)
	if err != nil {
		return p, false
	}
	t, err := s.time(middle, nil)
	p = Prediction{Op: x.op, Algorithm: x.algorithm, Nodes: c.Nodes, Ranks: f.Ranks, Bytes: x.bytes, Seconds: t}
	return p, err == nil
}

// spread is by what factors an algorithm's measured times differ from what its
// fits say; those of all where it was not measured.
func (m *Measured) spread(op collectives.Op, algorithm string) Range {
	if s, ok := m.spreads[caseName(op, algorithm)]; ok {
		return s
	}
	all := Range{Low: 1, High: 1}
	for _, s := range m.spreads {
		all = Range{Low: min(all.Low, s.Low), High: max(all.High, s.High)}
	}
	return all
}

// beyond says in what a prediction goes beyond the measurements: more than twice
// as large, or of a size or algorithm that was not measured.
func (m *Measured) beyond(p Prediction) (why []string) {
	k := where(p.Op, p.Algorithm, p.Nodes == 1)
	switch m.known(p.Op, p.Algorithm, p.Nodes, p.Bytes) {
	case notMeasured:
		why = append(why, k+" was not measured")
	case otherSizes:
		why = append(why, fmt.Sprintf("%s: %s is outside the measured %s to %s", k, reports.SizeText(p.Bytes), reports.SizeText(m.least[k]), reports.SizeText(m.most[k])))
	}
	if p.Ranks > 2*m.Ranks {
		why = append(why, fmt.Sprintf("%d ranks are more than twice the measured %d", p.Ranks, m.Ranks))
	}
	if p.Nodes > 2*max(m.Nodes, 1) {
		why = append(why, fmt.Sprintf("%d nodes are more than twice the measured %d", p.Nodes, m.Nodes))
	}
	return why
}

// knowledge of a case, the best first.
type knowledge int

const (
	thisSize knowledge = iota
	otherSizes
	notMeasured
)

// known says what was measured of an algorithm on one node, or on several.
func (m *Measured) known(op collectives.Op, algorithm string, nodes int, bytes int64) knowledge {
	k := where(op, algorithm, nodes == 1)
	switch most, ok := m.most[k]; {
	case !ok:
		return notMeasured
	case bytes < m.least[k] || bytes > most:
		return otherSizes
	}
	return thisSize
}

// ErrOneSize is a prediction of another size than the only one measured.
var ErrOneSize = errors.New("only messages of one size were measured, which cannot tell latency from bandwidth: measure small and large sizes")

// one says why a size cannot be predicted: α and B of a path that it takes are
// not known one by one.
func (m *Machine) one(op collectives.Op, algorithm string, bytes int64, nodes int) error {
	if m.Measured == nil {
		return nil
	}
	for _, path := range []string{"intra", "cross"} {
		if path == "cross" && nodes*m.GPUs <= m.NVLink.Domain || path == "intra" && m.NVLink.Domain == 1 {
			continue
		}
		ranks := min(nodes*m.GPUs, m.NVLink.Domain)
		if path == "cross" {
			ranks = (nodes*m.GPUs + m.NVLink.Domain - 1) / m.NVLink.Domain
		}
		w := m.Measured.way(path, op, algorithm, ranks)
		if w == nil || !w[0].Single {
			continue
		}
		for k, most := range m.Measured.most {
			if strings.HasPrefix(k, op.String()+" ") && bytes <= 2*most && 2*bytes >= m.Measured.least[k] {
				return nil
			}
		}
		return fmt.Errorf("%s %s of %s: %s: %w", op, algorithm, reports.SizeText(bytes), path, ErrOneSize)
	}
	return nil
}

// Holdout is how well a fit on one half of the measurements predicts the other.
type Holdout struct {
	Fitted, Predicted int
	Off               []float64 // |predicted/measured − 1| of each
	Inside            int       // measured times within the predicted interval
	Known             []float64 // how far the interval of each measured median reaches, as a share of it
	Groups            map[string][]float64
}

// Check fits every other size and every other number of ranks (the
// first and the last of each among them) and predicts everything else.
func Check(results []reports.Result) (Holdout, error) {
	h := Holdout{Groups: map[string][]float64{}}
	sizes, ranks := map[int64]bool{}, map[int]bool{}
	var figures []reports.Figure
	for _, f := range reports.Figures(results) {
		if _, _, err := pointOf(&f); err == nil {
			sizes[asked(&f.Result)], ranks[f.Ranks] = true, true
			figures = append(figures, f)
		}
	}
	fitSize, fitRanks := everyOther(sizes), everyOther(ranks)
	var fit []reports.Result
	for _, r := range results {
		if fitSize[asked(&r)] && fitRanks[r.Ranks] {
			fit = append(fit, r)
		}
	}
	m, err := Calibrate(fit, nil)
	if err != nil {
		return h, err
	}
	for _, f := range figures {
		if fitSize[asked(&f.Result)] && fitRanks[f.Ranks] {
			h.Fitted++
			continue
		}
		p, ok := m.Of(&f)
		if !ok {
			continue
		}
		h.Predicted++
		if i := f.Stats.Interval; i != nil {
			h.Known = append(h.Known, max(i[1]-f.Stats.Median, f.Stats.Median-i[0])/f.Stats.Median)
		}
		off := math.Abs(p.Seconds/f.Stats.Median - 1)
		h.Off = append(h.Off, off)
		h.Groups[f.Scope] = append(h.Groups[f.Scope], off)
		if s := m.Measured.spread(p.Op, p.Algorithm); f.Stats.Median >= p.Seconds*s.Low && f.Stats.Median <= p.Seconds*s.High {
			h.Inside++
		}
	}
	return h, nil
}

// asked is the size before it was rounded to whole blocks, so that all operations
// have the same sizes.
func asked(r *reports.Result) int64 { return cmp.Or(r.Asked, r.Bytes) }

// everyOther keeps the first, the third, … and the last.
func everyOther[T cmp.Ordered](all map[T]bool) map[T]bool {
	keep := map[T]bool{}
	sorted := slices.Sorted(maps.Keys(all))
	for i, x := range sorted {
		if i%2 == 0 || i == len(sorted)-1 {
			keep[x] = true
		}
	}
	return keep
}

// Write says it in words.
func (h Holdout) Write(w io.Writer) error {
	if h.Predicted == 0 {
		_, err := fmt.Fprintf(w, "%d results were fitted and none is left to predict: measure more sizes or numbers of ranks\n", h.Fitted)
		return err
	}
	fmt.Fprintf(w, "fitted %d results: every other size and number of ranks; predicted the other %d\n", h.Fitted, h.Predicted)
	var rows [][]string
	row := func(name string, off []float64) {
		sorted := slices.Sorted(slices.Values(off))
		rows = append(rows, []string{name, fmt.Sprint(len(off)), reports.ShareText(reports.Median(off)), reports.ShareText(sorted[(len(sorted)*9+9)/10-1])})
	}
	for _, k := range slices.Sorted(maps.Keys(h.Groups)) {
		row(k, h.Groups[k])
	}
	row("all", h.Off)
	if err := reports.Draw(w, []string{"SCOPE", "PREDICTED", "MEDIAN ERROR", "90 % WITHIN"}, "lrrr", rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d measured times lie in the predicted interval\n", h.Inside, h.Predicted)
	if len(h.Known) > 0 {
		fmt.Fprintf(w, "the measured times themselves are known to ±%s (median of their 95 %% intervals)\n", reports.ShareText(reports.Median(h.Known)))
	}
	return nil
}
