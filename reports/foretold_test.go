package reports

import (
	"bytes"
	"encoding/csv"
	"errors"
	"slices"
	"strings"
	"testing"
)

// foretold is a prediction of one size.
func foretold(bytes int64, seconds, low, high float64) Result {
	r := sample("global", "ring", 4, bytes)
	r.Seconds, r.Engine, r.Source = nil, "model", "predicted by busbw"
	r.Predicted, r.Expected = &seconds, &[2]float64{low, high}
	return r
}

// A prediction has a time, an interval and a bandwidth, and says what it is.
func TestPredictionIsAResult(t *testing.T) {
	f := Figures([]Result{foretold(4e9, 4, 3, 6)})[0]
	bus, ok := f.Busbw()
	if !ok || bus != 1.5 || f.Launches != 0 || f.Stats.Interval == nil || *f.Stats.Interval != [2]float64{3, 6} {
		t.Errorf("busbw %g %t, %+v", bus, ok, f.Stats)
	}
	if r := f.Remarks(); len(r) != 1 || r[0] != "predicted, not measured" {
		t.Errorf("remarks %q", r)
	}
	for _, format := range Formats() {
		var b bytes.Buffer
		if err := Render(&b, format, []Result{foretold(4e9, 4, 3, 6)}); err != nil || !strings.Contains(b.String(), "predicted") {
			t.Errorf("%s: %v; it does not say that it is a prediction:\n%s", format, err, b.String())
		}
	}
	// Nothing is said of a measurement that there was none of.
	var text, table bytes.Buffer
	if err := errors.Join(Render(&table, "table", []Result{foretold(4e9, 4, 3, 6)}), Render(&text, "csv", []Result{foretold(4e9, 4, 3, 6)})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "TIME: predicted, by the model") {
		t.Errorf("the time is said to be measured:\n%s", table.String())
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatal(err, rows)
	}
	for i, column := range rows[0] {
		if slices.Contains([]string{"settled", "iterations", "outliers", "min_s", "max_s", "p99_s"}, column) && rows[1][i] != "" {
			t.Errorf("%s of a prediction is %q", column, rows[1][i])
		}
	}
	for _, bad := range [][2]float64{{2, 1}, {-1, 1}} {
		r := foretold(8, 1, bad[0], bad[1])
		if r.Check() == nil {
			t.Errorf("expected %v is taken", bad)
		}
	}
}

// The report says where the model is off.
func TestReportSaysWhereTheModelIsOff(t *testing.T) {
	near, far := sample("intra", "ring", 4, 1024, 1, 1, 1, 1, 1, 1), sample("intra", "ring", 4, 4096, 3, 3, 3, 3, 3, 3)
	near.Predicted, far.Predicted = new(1.1), new(1.0)
	var b bytes.Buffer
	if err := Render(&b, "table", []Result{near, far}); err != nil {
		t.Fatal(err)
	}
	if want := "predictions: off by a factor of 2.05 in the median, at most 3.00: 4 KiB intra ring was slower than predicted"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}
