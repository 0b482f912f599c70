package pairs

import (
	"errors"
	"testing"

	"busbw/reports"
)

// A launch that lost a node is begun again without it: only the last counts.
// Wrong data is no measurement.
func TestFromResults(t *testing.T) {
	one, wrong := 1, int64(3)
	result := func(launch int, hosts []string, bytes int64, root *int, seconds float64) reports.Result {
		return reports.Result{Run: "r", Launch: launch, Scope: Scope, Hosts: hosts, Bytes: bytes, Root: root, Pairs: []reports.Pair{{A: 0, B: 1, Rail: 2}}, RankP50: []float64{seconds / 2, seconds}}
	}
	bad := result(1, []string{"a", "c"}, 1<<20, nil, 1)
	bad.Wrong = &wrong
	table, notes, err := FromResults([]reports.Result{
		{Scope: "global"}, result(0, []string{"a", "b", "c"}, 1<<20, nil, 1),
		result(1, []string{"a", "c"}, 8, nil, 5e-6), result(1, []string{"a", "c"}, 1<<30, nil, 0.5), result(1, []string{"a", "c"}, 1<<30, &one, 0.25), bad,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Nodes) != 2 || table.Rails != 3 || len(table.Latency) != 1 || len(table.Bandwidth) != 2 || len(notes) != 1 {
		t.Fatalf("%+v, %q", table, notes)
	}
	back := table.Bandwidth[1]
	if back.A != 1 || back.B != 0 || back.Way != OneWay || back.Rail != 2 || !back.Alone || back.Value < 4.29 || back.Value > 4.3 {
		t.Errorf("%+v; want 4.29 GB/s from the second node to the first", back)
	}
	if _, _, err := FromResults([]reports.Result{{Scope: "global"}}); !errors.Is(err, ErrNoPairs) {
		t.Errorf("no pairs: %v", err)
	}
}
