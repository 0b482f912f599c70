package reports

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"
	"time"
)

// column is one column of the CSV text: its heading, with the unit, and its
// value; an empty value is one that is absent.
type column struct {
	heading string
	value   func(r *Result, f *Figure) string
}

// columns lists them in order. A row is one record (one launch).
func columns() []column {
	return []column{
		{"time", func(r *Result, _ *Figure) string {
			if r.Time.IsZero() {
				return ""
			}
			return r.Time.UTC().Format(time.RFC3339Nano)
		}},
		{"run", func(r *Result, _ *Figure) string { return r.Run }},
		{"launch", func(r *Result, _ *Figure) string { return strconv.Itoa(r.Launch) }},
		{"op", func(r *Result, _ *Figure) string { return r.Op }},
		{"algorithm", func(r *Result, _ *Figure) string { return r.Algorithm }},
		{"auto", func(r *Result, _ *Figure) string { return unlessTold(r, strconv.FormatBool(r.Auto)) }},
		{"engine", func(r *Result, _ *Figure) string { return r.Engine }},
		{"scope", func(r *Result, _ *Figure) string { return r.Scope }},
		{"link", func(r *Result, _ *Figure) string { return r.Link }},
		{"memory", func(r *Result, _ *Figure) string { return r.Memory }},
		{"dtype", func(r *Result, _ *Figure) string { return r.Dtype }},
		{"redop", func(r *Result, _ *Figure) string { return r.Redop }},
		{"root", func(r *Result, _ *Figure) string { return integer(r.Root) }},
		{"ranks", func(r *Result, _ *Figure) string { return positive(r.Ranks) }},
		{"nodes", func(r *Result, _ *Figure) string { return positive(r.Nodes) }},
		{"groups", func(r *Result, _ *Figure) string { return positive(r.Groups) }},
		{"bytes", func(r *Result, _ *Figure) string { return sizeIf(r, r.Bytes) }},
		{"asked_bytes", func(r *Result, _ *Figure) string { return sizeIf(r, r.asked()) }},
		{"count", func(r *Result, _ *Figure) string { return positive(r.Count) }},
		{"in_place", func(r *Result, _ *Figure) string { return strconv.FormatBool(r.InPlace) }},
		{"mode", func(r *Result, _ *Figure) string { return r.Mode }},
		{"aggregate", func(r *Result, _ *Figure) string { return positive(r.Aggregate) }},
		{"warmup", func(r *Result, _ *Figure) string {
			if r.Warmup > 0 {
				return strconv.Itoa(r.Warmup)
			}
			return unlessTold(r, "0")
		}},
		{"settled", func(r *Result, _ *Figure) string { return unlessTold(r, strconv.FormatBool(r.Settled)) }},
		{"iterations", func(r *Result, _ *Figure) string {
			if n := r.iterations(); n > 0 {
				return strconv.FormatInt(n, 10)
			}
			return unlessTold(r, "0")
		}},
		{"time_s", func(_ *Result, f *Figure) string { return known(f.Stats.Median, f.Timed) }},
		{"time_is", func(_ *Result, f *Figure) string {
			if !f.Timed {
				return ""
			}
			return f.timeIs()
		}},
		{"min_s", func(_ *Result, f *Figure) string { least, _ := f.extremes(); return decimal(least) }},
		{"median_s", func(_ *Result, f *Figure) string { return known(f.Stats.Median, f.Timed && f.isMedian()) }},
		{"median_low_s", func(_ *Result, f *Figure) string { return bound(f.Stats.Interval, 0) }},
		{"median_high_s", func(_ *Result, f *Figure) string { return bound(f.Stats.Interval, 1) }},
		{"p99_s", func(_ *Result, f *Figure) string { return decimal(f.p99()) }},
		{"max_s", func(_ *Result, f *Figure) string { _, most := f.extremes(); return decimal(most) }},
		{"outliers", func(_ *Result, f *Figure) string { return integer(f.outliers()) }},
		{"algbw_gb_per_s", func(_ *Result, f *Figure) string { return known(f.Algbw()) }},
		{"busbw_gb_per_s", func(_ *Result, f *Figure) string { return known(f.Busbw()) }},
		{"limit", func(r *Result, _ *Figure) string {
			if r.Limit == nil {
				return ""
			}
			return r.Limit.Name
		}},
		{"limit_gb_per_s", func(r *Result, _ *Figure) string {
			if r.Limit == nil {
				return ""
			}
			return decimal(&r.Limit.GBps)
		}},
		{"limit_share", func(_ *Result, f *Figure) string { return known(f.Share()) }},
		{"predicted_s", func(r *Result, _ *Figure) string { return decimal(r.Predicted) }},
		{"skew_s", func(r *Result, _ *Figure) string { return decimal(r.Skew) }},
		{"wrong", func(r *Result, _ *Figure) string {
			if r.AtLeast {
				return ""
			}
			return integer(r.Wrong)
		}},
		{"wrong_at_least", func(r *Result, _ *Figure) string { return integer(r.Wrong) }},
		{"notes", func(_ *Result, f *Figure) string { return strings.Join(f.Remarks(), "; ") }},
		{"error", func(r *Result, _ *Figure) string { return r.Error }},
		{"source", func(r *Result, _ *Figure) string { return r.Source }},
	}
}

func csvText(b *bytes.Buffer, results []Result, _ bool) error {
	cols := columns()
	row := make([]string, len(cols))
	for i, c := range cols {
		row[i] = c.heading
	}
	w := csv.NewWriter(b)
	if err := w.Write(row); err != nil {
		return err
	}
	for _, r := range results {
		f := merge([]Result{r})
		for i, c := range cols {
			row[i] = prose(c.value(&r, &f))
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// unlessTold is a value that records of other tools' texts do not have.
func unlessTold(r *Result, value string) string {
	if r.Stated != nil || r.Foretold() {
		return ""
	}
	return value
}

func sizeIf(r *Result, bytes int64) string {
	if !r.sized() {
		return ""
	}
	return strconv.FormatInt(bytes, 10)
}

func known(v float64, ok bool) string {
	if !ok {
		return ""
	}
	return decimal(&v)
}

func bound(interval *[2]float64, i int) string {
	if interval == nil {
		return ""
	}
	return decimal(&interval[i])
}

// decimal is the shortest text that reads back as the same number.
func decimal(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// positive is a count of which 0 says that it is not known.
func positive[T int | int64](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

func integer[T int | int64](v *T) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(int64(*v), 10)
}
