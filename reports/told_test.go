package reports

import (
	"bytes"
	"strings"
	"testing"
)

// an imported row: one mean, ranks known or not.
func toldRow(edit func(*Result)) Result {
	r := Result{Format: Format, Run: "log#1", Op: "all_reduce", Engine: "nccl", Memory: "cuda", Dtype: "float", Redop: "sum", Ranks: 8, Groups: 1, Bytes: 1 << 20, Count: 1 << 18,
		Mode: "pipelined", Aggregate: 1, Seconds: []float64{1e-3}, Wrong: new(int64(0)), Source: "imported: nccl-tests", Stated: &Stated{Time: StatedMean, Busbw: new(1.84)}}
	edit(&r)
	return r
}

func rendered(t *testing.T, format string, rs ...Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, format, rs); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What a log does not tell is in no format, neither as 0 nor as a statistic of
// the one number that it has.
func TestWhatALogDoesNotTell(t *testing.T) {
	mean := toldRow(func(*Result) {})
	hung := toldRow(func(r *Result) {
		r.Op, r.Dtype, r.Bytes, r.Count, r.Seconds, r.Wrong, r.Error, r.Stated = "unknown", "", 0, 0, nil, nil, "header and no row", &Stated{}
	})
	unranked := toldRow(func(r *Result) { r.Ranks, r.Bytes, r.Stated.Busbw = 0, 8, new(0.0) })
	untimed := toldRow(func(r *Result) { r.Ranks, r.Seconds, r.Wrong, r.Stated = 0, nil, nil, &Stated{Busbw: new(24.24)} })
	differs := toldRow(func(r *Result) { r.Wrong, r.AtLeast = new(int64(1)), true })
	for _, c := range []struct {
		name        string
		r           Result
		format      string
		want, never string // by "|"
	}{
		{"mean", mean, "table", "TIME: mean, as nccl-tests reports it", "slowest rank|SHARE"},
		{"mean", mean, "detail", "TIME: mean, as nccl-tests reports it|1.000 ms     —    —   —   —        — ", "slowest rank|SHARE:"},
		{"mean", mean, "csv", ",,,0.001,\"mean, as nccl-tests reports it\",,,,,,,,1.048576,", "true"},
		{"mean", mean, "html", "mean, as nccl-tests reports it|All 1 measurements ran", "slowest rank|>: 1 group|settle"},
		{"mean", mean, "nccl", "times: mean, as nccl-tests reports it", "medians"},
		{"mean", mean, "prom", `bytes="1048576"`, `nodes=|Median`},
		{"mean", mean, "json", `"ranks":8`, `"nodes"|"warmup"|"settled"`},
		{"hung", hung, "table", "—    FAILED|TIME: none is told", "0 B"},
		{"hung", hung, "detail", "—          FAILED", "0 B"},
		{"hung", hung, "csv", "unknown,,,nccl,,,cuda,,sum,,8,,1,,,,false", "slowest"},
		{"hung", hung, "junit", `name="unknown size sum 8 ranks"`, "0 B|0 nodes"},
		{"hung", hung, "prom", `busbw_failed_launches{op="unknown"`, `bytes=|nodes=|dtype=`},
		{"hung", hung, "md", "| — |", "0 B"},
		{"hung", hung, "html", "Incomplete", "0 B"},
		{"hung", hung, "nccl", "FAILED an unknown size", "FAILED 0 B"},
		{"hung", hung, "json", `"error":"header and no row"`, `"bytes"|"nodes"`},
		{"unranked", unranked, "table", "8e-06     —", "8e-06     0 "},
		{"unranked", unranked, "csv", ",8,8,", ",0.008388608,0,"},
		{"unranked", unranked, "prom", "busbw_algbw_bytes_per_second", "busbw_busbw_bytes_per_second|ranks="},
		{"untimed", untimed, "detail", "0 failed, 0 with wrong data, 1 without a time", "1 failed"},
		{"untimed", untimed, "html", "No times", "None of the|measurements failed"},
		{"difference", differs, "table", "≥ 1|their number is not told", "1 wrong element"},
		{"difference", differs, "junit", "their number is not told", "1 wrong element"},
		{"difference", differs, "html", "their number is not told", "1 wrong element"},
		{"difference", differs, "csv", ",,1,", ",1,1,"},
		{"difference", differs, "json", `"wrong_at_least":true`, "settled"},
	} {
		got := rendered(t, c.format, c.r)
		for _, w := range strings.Split(c.want, "|") {
			if !strings.Contains(got, w) {
				t.Errorf("%s as %s: no %q in\n%s", c.name, c.format, w, short2(got))
			}
		}
		for _, w := range strings.Split(c.never, "|") {
			if strings.Contains(got, w) {
				t.Errorf("%s as %s: %q in\n%s", c.name, c.format, w, short2(got))
			}
		}
	}
}

func short2(s string) string { return s[:min(len(s), 3000)] }

// The page's short lines tell halves and runs of one operation and size apart,
// and its word names what failed beside what was wrong.
func TestPageTellsApart(t *testing.T) {
	out := toldRow(func(*Result) {})
	in := toldRow(func(r *Result) { r.InPlace = true })
	other := toldRow(func(r *Result) { r.Run = "log#2" })
	hung := toldRow(func(r *Result) { r.Run, r.Bytes, r.Seconds, r.Error = "log#3", 0, nil, "no row" })
	wrong := toldRow(func(r *Result) { r.Run, r.Wrong = "log#4", new(int64(3)) })
	p, err := pageOf([]Result{out, in, other, hung, wrong}, &Around{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"all_reduce, float sum, out of place, nccl, log#1, 1 MiB a rank: 1.84 GB/s.", "all_reduce, float sum, in place, nccl, 1 MiB a rank: 1.84 GB/s.", "all_reduce, float sum, out of place, nccl, log#2, 1 MiB a rank: 1.84 GB/s."}
	if strings.Join(p.Leads, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", p.Leads, want)
	}
	if p.Verdict.Word != "Wrong data, and incomplete" || !strings.Contains(p.Verdict.Why, "1 of 5") || !strings.Contains(p.Verdict.Why, "1 failed") {
		t.Errorf("%+v", p.Verdict)
	}
	if g := p.Runs[0].Groups[0]; len(g.Chart.Dist) != 0 || len(g.Sizes) != 0 || g.Curves != "Time: mean, as nccl-tests reports it." {
		t.Errorf("a spread of one number: %+v, %q", g.Chart.Dist, g.Curves)
	}
	if k := p.Runs[0].Groups[0].Kinds; len(k) != 1 || k[0] != "1 group of 8 ranks" {
		t.Errorf("%q", k)
	}
}

// A comparison of imports says what their times are, and has no size 0 for
// tests that hung.
func TestCompareTold(t *testing.T) {
	hung := toldRow(func(r *Result) { r.Bytes, r.Seconds, r.Error = 0, nil, "no row" })
	c, err := Compare([]Side{{"a", []Result{toldRow(func(*Result) {}), hung}}, {"b", []Result{toldRow(func(r *Result) { r.Run = "log#2" }), hung}}}, CompareOptions{Margin: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"table", "csv", "md"} {
		var b bytes.Buffer
		if err := c.Render(&b, format); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.Contains(got, "0 B") || strings.Contains(got, ",0,a,") || format != "csv" && !strings.Contains(got, "of imports mean, as nccl-tests reports it") {
			t.Errorf("%s", got)
		}
	}
}
