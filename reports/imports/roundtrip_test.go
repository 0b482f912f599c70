package imports

import (
	"bytes"
	"math"
	"testing"

	"busbw/reports"
)

// What --format nccl writes is read as the results that it was written from.
func TestReadsWhatWeWrite(t *testing.T) {
	var all []reports.Result
	for _, op := range []string{"all_reduce", "all_gather", "broadcast"} {
		for _, bytes := range []int64{1 << 10, 1 << 20, 1 << 30} {
			for _, inPlace := range []bool{false, true} {
				r := reports.Result{Format: 1, Run: "r", Op: op, Algorithm: "ring", Engine: "native", Scope: "global", Link: "tcp", Memory: "host", Dtype: "float",
					Ranks: 4, Nodes: 2, Groups: 1, Bytes: bytes, Count: bytes / 4, InPlace: inPlace, Mode: "barrier", Aggregate: 1, Warmup: 5, Settled: true,
					Seconds: []float64{float64(bytes)/12.5e9 + 20e-6}, Wrong: new(int64(0)), Hosts: []string{"node-a", "node-b"}, Source: "busbw test"}
				if op == "all_reduce" {
					r.Redop = "sum"
				}
				if op == "all_gather" {
					r.Count /= 4
				}
				if op == "broadcast" {
					r.Root = new(1)
				}
				all = append(all, r)
			}
		}
	}
	var b bytes.Buffer
	if err := reports.Render(&b, "nccl", all); err != nil {
		t.Fatal(err)
	}
	text, got := importText(t, b.String())
	if len(text.Worlds) != 3 || len(got) != len(all) || len(text.Warnings) > 0 || text.Bad() {
		t.Fatalf("%d of %d records, %+v\n%s", len(got), len(all), text, b.String())
	}
	for i, r := range got {
		w := all[i]
		if r.Op != w.Op || r.Bytes != w.Bytes || r.Count != w.Count || r.InPlace != w.InPlace || r.Ranks != w.Ranks || r.Nodes != w.Nodes || r.Redop != w.Redop ||
			(r.Root == nil) != (w.Root == nil) || *r.Wrong != 0 || math.Abs(r.Seconds[0]-w.Seconds[0]) > 1e-3*w.Seconds[0] {
			t.Errorf("got %+v\nwant %+v", r, w)
		}
	}
	for _, w := range text.Worlds {
		if w.OpFrom != "named in the text" || w.Ranks != [2]int{4, 4} || w.State != Complete {
			t.Errorf("%+v", w)
		}
	}
}
