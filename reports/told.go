package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// What the text of another tool does not tell is not known: it is neither 0
// nor what a measurement of busbw's own would have there.

// sized says that the record's size is known. Of an imported test that failed
// before its first row it may not be.
func (r *Result) sized() bool { return r.Bytes > 0 || r.Stated == nil || r.Error == "" }

// row names a row of a sheet in a sentence.
func (s *sheet) row(f *Figure) string {
	size := "size not told"
	if f.sized() {
		size = f.size()
	}
	return strings.Join(strings.Fields(size+" "+name(f.Scope)+" "+s.algorithm(f)), " ")
}

// size is the record's size for people.
func (r *Result) size() string {
	if !r.sized() {
		return none
	}
	return sizeText(r.asked())
}

// sizeBytes is the size in bytes, as nccl-tests names it.
func (r *Result) sizeBytes() string {
	if !r.sized() {
		return "an unknown size"
	}
	return fmt.Sprintf("%d B", r.Bytes)
}

// groups is "2 x 4 ranks".
func (r *Result) groups() string {
	if r.Ranks == 0 {
		return "ranks unknown"
	}
	return fmt.Sprintf("%d x %d ranks", max(r.Groups, 1), r.Ranks)
}

// summarised says that the figure's times are not samples: the text of another
// tool has one number for all iterations of a launch.
func (f *Figure) summarised() bool { return f.Stated != nil && f.Timed && f.Stats.N <= f.Launches }

// unsettled says that the warm-up is known not to have settled.
func (f *Figure) unsettled() bool { return !f.Settled && f.Stated == nil }

// extremes are the least and the greatest time of an iteration; nil where
// they are not known.
func (f *Figure) extremes() (least, most *float64) {
	switch {
	case !f.Timed || f.Foretold():
		return nil, nil
	case !f.summarised():
		return &f.Stats.Min, &f.Stats.Max
	case f.Launches == 1:
		return f.Stated.Min, f.Stated.Max
	}
	return nil, nil
}

// p99 of the iterations; nil where it is not known.
func (f *Figure) p99() *float64 {
	if f.summarised() && f.Launches == 1 {
		return f.Stated.P99
	}
	return f.Stats.P99
}

// outliers among the iterations; nil where they are not known.
func (f *Figure) outliers() *int {
	if !f.Timed || f.Foretold() || f.summarised() {
		return nil
	}
	return &f.Stats.Outliers
}

// iterations is how many were timed; 0 where that is not told.
func (r *Result) iterations() int64 {
	if r.Stated != nil && len(r.Seconds) <= 1 {
		return r.Stated.Iterations
	}
	return int64(len(r.Seconds))
}

// ownTime is what the times of busbw's own measurements are.
const ownTime = "median of the slowest rank"

// timeIs says what the figure's time is.
func (f *Figure) timeIs() string {
	switch {
	case f.Foretold():
		return "predicted"
	case !f.summarised() && f.Stated == nil:
		return ownTime
	case !f.summarised():
		return "median of the iterations that " + f.tool() + " lists"
	}
	return cmp.Or(prose(f.Stated.Time), "one number for all iterations") + ", as " + f.tool() + " reports it"
}

// isMedian says that the figure's time is a median of iterations.
func (f *Figure) isMedian() bool { return !f.summarised() || f.Stated.Time == StatedMedian }

// What another tool's time can be.
const (
	StatedMean   = "mean"
	StatedMedian = "median"
)

// tool is the program whose text an imported record is from.
func (r *Result) tool() string {
	return cmp.Or(name(strings.TrimPrefix(r.Source, "imported: ")), "another tool")
}

// timesAre says what the times of all figures are, each kind once.
func timesAre(figures []Figure) string {
	var kinds []string
	for i := range figures {
		if f := &figures[i]; f.Timed && !f.Foretold() && len(kinds) <= maxKinds {
			kinds = appendNew(kinds, f.timeIs())
		}
	}
	switch {
	case len(kinds) == 0 && len(figures) > 0 && figures[0].Stated != nil:
		return "none is told"
	case len(kinds) == 0 && slices.ContainsFunc(figures, func(f Figure) bool { return f.Foretold() }):
		return "predicted, by the model"
	case len(kinds) == 0:
		return ownTime
	}
	return strings.Join(kinds, "; or ")
}

func (s *sheet) timesAre() string {
	var figures []Figure
	for _, f := range s.figures {
		figures = append(figures, *f)
	}
	return timesAre(figures)
}

// wrongText is how many elements were wrong, as far as that is known.
func (f *Figure) wrongText() string {
	switch {
	case f.Wrong == nil:
		return none
	case f.AtLeast && *f.Wrong > 0:
		return fmt.Sprintf("≥ %d", *f.Wrong)
	}
	return fmt.Sprint(*f.Wrong)
}

// wrongElements is that in words.
func (f *Figure) wrongElements() string {
	if f.AtLeast {
		return "wrong elements, their number is not told"
	}
	return fmt.Sprintf("%d wrong element%s", *f.Wrong, plural(int(min(*f.Wrong, 2))))
}

// imported is a record without the fields that its text did not tell.
type imported struct {
	Result
	Ranks     *int   `json:"ranks,omitempty"`
	Nodes     *int   `json:"nodes,omitempty"`
	Groups    *int   `json:"groups,omitempty"`
	Bytes     *int64 `json:"bytes,omitempty"`
	Count     *int64 `json:"count,omitempty"`
	Aggregate *int   `json:"aggregate,omitempty"`
	Warmup    *int   `json:"warmup,omitempty"`
	Settled   *bool  `json:"settled,omitempty"`
}

func (r *Result) importedJSON() ([]byte, error) {
	out := imported{Result: *r, Ranks: notZero(r.Ranks), Nodes: notZero(r.Nodes), Groups: notZero(r.Groups), Bytes: &r.Bytes, Count: notZero(r.Count), Aggregate: notZero(r.Aggregate), Warmup: notZero(r.Warmup)}
	if !r.sized() {
		out.Bytes = nil
	}
	if r.Settled {
		out.Settled = &r.Settled
	}
	return json.Marshal(out)
}

func notZero[T int | int64](v T) *T {
	if v == 0 {
		return nil
	}
	return &v
}
