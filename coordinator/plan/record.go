package plan

import (
	"strings"
	"time"

	"busbw/collectives"
	"busbw/reports"
)

// Record is a prediction as a result: reports and comparisons take it, and it
// says that it was not measured. run and source name the plan, now is its time.
func (p *Prediction) Record(run, source string, now time.Time) reports.Result {
	r := reports.Result{
		Format: reports.Format, Time: now.UTC(), Run: run, Op: p.Op.String(), Algorithm: p.Algorithm, Engine: "model", Scope: "global",
		Dtype: "float", Ranks: p.Ranks, Nodes: p.Nodes, Groups: 1, Bytes: p.Bytes, Count: p.Bytes / 4, Mode: "barrier", Aggregate: 1,
		Predicted: &p.Seconds, Expected: &[2]float64{p.Low, p.High}, Source: source,
	}
	if p.Nodes == 1 {
		r.Scope = "intra"
	}
	if p.Op.Reduces() {
		r.Redop = "sum"
	}
	if p.Op.Rooted() {
		r.Root = new(int)
	}
	if p.Op.Blocked() {
		r.Count /= int64(p.Ranks)
	}
	if b := p.bound(); b != "" {
		r.Notes = append(r.Notes, "bound by "+b)
	}
	if p.Aside != "" {
		r.Notes = append(r.Notes, p.Aside)
	}
	if len(p.Extrapolated) > 0 {
		r.Notes = append(r.Notes, "extrapolated: "+strings.Join(p.Extrapolated, "; "))
	}
	return r
}

// Size is S as it can be cut into equal blocks of 16 bytes for so many ranks.
func Size(op collectives.Op, bytes int64, ranks int) int64 {
	if !op.Blocked() {
		return bytes
	}
	block := max(bytes/int64(ranks), 1)
	if block >= 16 {
		block -= block % 16
	}
	return block * int64(ranks)
}
