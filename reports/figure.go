package reports

import (
	"fmt"
	"strconv"

	"busbw/collectives"
)

// Figure is what one case showed over all its launches. The samples of one
// launch are correlated, so with several launches the median is that of the
// launches' medians, and so is its interval; the other statistics are of all
// iterations.
type Figure struct {
	Result           // the settings; samples, wrong and notes of the first launch
	Launches int     // that have samples
	Stats    Stats   // times in seconds
	Timed    bool    // Stats is there; those of a prediction hold its time and interval
	Faults   []error // of the launches without a result, in order
}

// skewBound is the share of the time above which ranks that started apart
// measured each other's lateness rather than the network.
const skewBound = 0.10

// Figures merges the launches of each case. Cases stay in the order in which
// they first appear.
func Figures(results []Result) []Figure {
	byCase := map[string][]Result{}
	var order []string
	for _, r := range results {
		k := r.key()
		if byCase[k] == nil {
			order = append(order, k)
		}
		byCase[k] = append(byCase[k], r)
	}
	figures := make([]Figure, len(order))
	for i, k := range order {
		figures[i] = merge(byCase[k])
	}
	loosest(figures)
	return figures
}

// key is the same for results that differ in launch and samples only.
func (r *Result) key() string {
	root := "-"
	if r.Root != nil {
		root = strconv.Itoa(*r.Root)
	}
	return fmt.Sprintf("%q", []string{
		r.Run, r.Op, r.Algorithm, strconv.FormatBool(r.Auto), r.Engine, r.Scope, r.Memory, r.Dtype, r.Redop, root,
		fmt.Sprint(r.Ranks, r.Nodes, r.Groups, r.Pairs, r.Bytes, r.InPlace, r.Aggregate, r.Config), r.Mode,
	})
}

func merge(launches []Result) Figure {
	f := Figure{Result: launches[0]}
	var all, medians []float64
	var notes []string
	var skews []float64
	f.Settled, f.Wrong, f.AtLeast = true, nil, false
	for _, r := range launches {
		if r.Error != "" {
			f.Faults = append(f.Faults, fmt.Errorf("launch %d: %s", r.Launch, r.Error))
		}
		if r.Wrong != nil {
			sum := *r.Wrong
			if f.Wrong != nil {
				sum += *f.Wrong
			}
			f.Wrong, f.AtLeast = &sum, f.AtLeast || r.AtLeast && *r.Wrong > 0
		}
		notes = appendNew(notes, r.Notes...)
		if r.Error != "" || len(r.Seconds) == 0 {
			continue
		}
		if f.Launches == 0 {
			f.Link = r.Link // a launch that failed early does not know it
		}
		f.Launches++
		f.Limit = looser(f.Limit, r.Limit)
		f.Settled = f.Settled && r.Settled
		if r.Skew != nil {
			skews = append(skews, *r.Skew)
		}
		all = append(all, r.Seconds...)
		medians = append(medians, Median(r.Seconds))
	}
	f.Notes, f.Skew = notes, nil
	if len(skews) > 0 {
		f.Skew = new(Median(skews))
	}
	if f.Stats, f.Timed = Describe(all); f.Timed && f.Launches > 1 {
		of, _ := Describe(medians)
		f.Stats.Median, f.Stats.Interval = of.Median, of.Interval
	}
	if !f.Timed && f.Foretold() {
		t := *f.Predicted
		f.Stats, f.Timed = Stats{Min: t, Median: t, Max: t, Interval: f.Expected}, true
		if f.Expected != nil {
			f.Stats.Min, f.Stats.Max = f.Expected[0], f.Expected[1]
		}
	}
	return f
}

func appendNew(list []string, more ...string) []string {
next:
	for _, m := range more {
		for _, l := range list {
			if l == m {
				continue next
			}
		}
		list = append(list, m)
	}
	return list
}

// Void says that the data was wrong, so that the times mean nothing.
func (f *Figure) Void() bool { return f.Result.Wrong != nil && *f.Result.Wrong > 0 }

// Algbw is S over the median time, GB/s; ok is false where nothing valid was
// timed, for one rank, which sends to nobody, and for a size of 0.
func (f *Figure) Algbw() (gbps float64, ok bool) {
	if !f.Timed || f.Void() || f.Ranks == 1 || f.Bytes == 0 || f.Stats.Median <= 0 {
		return 0, false
	}
	return float64(f.Bytes) / f.Stats.Median / 1e9, true
}

// Busbw is Algbw times the operation's factor, as nccl-tests defines it; ok is
// also false for an operation whose factor is not known. Of an import whose
// operation, ranks or time are not known it is what the text says.
func (f *Figure) Busbw() (gbps float64, ok bool) {
	if alg, ok := f.Algbw(); ok {
		if op, err := collectives.ParseOp(f.Op); err == nil {
			if factor, ok := op.BusFactor(f.Ranks); ok {
				return alg * factor, true
			}
		}
	}
	// A printed 0.00 is rounded: what it stands for is not known.
	if f.Stated == nil || f.Stated.Busbw == nil || *f.Stated.Busbw == 0 || f.Void() || f.Ranks == 1 || f.Bytes == 0 || f.Launches > 1 {
		return 0, false
	}
	return *f.Stated.Busbw, true
}

// Skewed says that ranks started too far apart for a verdict.
func (f *Figure) Skewed() bool {
	return f.Timed && f.Skew != nil && *f.Skew > skewBound*f.Stats.Median
}

// Remarks are the figure's notes and what its own numbers make doubtful.
func (f *Figure) Remarks() []string {
	remarks := append([]string(nil), f.Notes...)
	if !f.Timed {
		return remarks
	}
	if f.Foretold() {
		return append(remarks, "predicted, not measured")
	}
	if len(f.Faults) > 0 {
		remarks = append(remarks, fmt.Sprintf("%d of %d launches failed: %v", len(f.Faults), len(f.Faults)+f.Launches, f.Faults[0]))
	}
	if f.unsettled() {
		remarks = append(remarks, "not settled")
	}
	if f.Skewed() {
		remarks = append(remarks, fmt.Sprintf("skew > %.0f %%: no verdict", 100*skewBound))
	}
	if u := f.NVLink; u != nil && u.Share != nil {
		remarks = append(remarks, fmt.Sprintf("NVLink %.0f %% busy", 100**u.Share))
	}
	if share, ok := f.Share(); ok && share > limitBound {
		remark := "above the limit that was measured"
		if more, why := f.aboveLimit(); share <= more {
			remark = "above the wire, as it may be: " + why
		}
		remarks = append(remarks, remark)
	}
	if why := f.unreliable(); why != "" {
		remarks = append(remarks, why)
	}
	if f.Stats.Interval == nil && !f.summarised() {
		what := "samples"
		if f.Launches > 1 {
			what = "launches"
		}
		remarks = append(remarks, fmt.Sprintf("too few %s for an interval (want %d)", what, minForInterval))
	}
	return remarks
}

// Off is how far the prediction beside a measurement is off, as a factor: 2 is
// twice the measured time. ok is false where there is no such pair.
func (f *Figure) Off() (factor float64, ok bool) {
	if !f.Timed || f.Void() || f.Foretold() || f.Predicted == nil || f.Stats.Median <= 0 || *f.Predicted <= 0 {
		return 0, false
	}
	return *f.Predicted / f.Stats.Median, true
}

// Found says whether results hold something that makes a run's exit code 3:
// wrong data.
func Found(results []Result) bool {
	for i := range results {
		if w := results[i].Wrong; w != nil && *w > 0 {
			return true
		}
	}
	return false
}

// wanted is the algorithm that was asked for.
func (r *Result) wanted() string {
	if r.Auto {
		return "auto"
	}
	return r.Algorithm
}

// asked is the size under which rows of different scopes meet.
func (r *Result) asked() int64 {
	if r.Asked > 0 {
		return r.Asked
	}
	return r.Bytes
}
