package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	"busbw/reports"
)

// Every worker checks itself, and one that is gone is named.
func TestCheckNodes(t *testing.T) {
	l := local(t, 2)
	answered := map[string]error{}
	found, err := l.CheckNodes(t.Context(), l.Workers, 0, 0, func(node string, err error) { answered[node] = err })
	if err != nil || len(answered) != 2 {
		t.Fatalf("%v; answers %v", err, answered)
	}
	for _, want := range []string{"memlock", "clock-offset", "nodes-equal"} {
		if !slices.ContainsFunc(found, func(f reports.Finding) bool { return f.ID == want }) {
			t.Errorf("no finding %s", want)
		}
	}
	for _, f := range found {
		if f.ID == "node-answer" || f.ID == "nodes-distinct" && f.Verdict == reports.Warn {
			t.Errorf("two workers of one machine: %+v", f)
		}
	}
	gone := slices.Clone(l.Workers)
	gone[1].API = l.Workers[0].API // another one's certificate
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found, err = l.CheckNodes(ctx, gone, 0, 400, nil)
	if err != nil || !slices.ContainsFunc(found, func(f reports.Finding) bool {
		return f.ID == "node-answer" && f.Verdict == reports.Fail && f.Node == "local1"
	}) {
		t.Errorf("a node that does not answer is not named: %v", err)
	}
}
