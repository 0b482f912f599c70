package pairs

import (
	"strings"
	"testing"

	"busbw/reports"
)

// few are figures of three workers of one machine: one way 2.5 GB/s but for
// what the third sends and takes, and both ways whatever is given.
func few(both [3]float64) *Table {
	t := &Table{Nodes: []string{"local0", "local1", "local2"}, Rails: 1, OneMachine: true}
	for i, p := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		v := map[int]float64{0: 2.5, 1: 1.6, 2: 1.62}[i]
		t.Bandwidth = append(t.Bandwidth, Sample{A: p[0], B: p[1], Value: v}, Sample{A: p[1], B: p[0], Value: v * 1.02}, Sample{A: p[0], B: p[1], Way: Both, Value: both[i]})
	}
	return t
}

// The best of three figures is not what is typical, and says nothing of how
// much they scatter.
func TestFewScatter(t *testing.T) {
	r, err := Judge(few([3]float64{2.27, 1.50, 1.57}), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	lv := r.Levels[1]
	if lv.Way != Both || lv.Typical != 1.57 || lv.Noise < 0.3 || !lv.Noisy {
		t.Errorf("%+v; want 1.57 GB/s as typical, scattering by their range", lv)
	}
}

// What scatter or company on one machine leaves open fails nobody, and blames
// no cable where there is none.
func TestFewOnOneMachine(t *testing.T) {
	for _, l := range []Limits{{}, {GBps: 2, BothGBps: 1, Source: "test"}} {
		table := few([3]float64{2.27, 2.20, 2.25})
		table.Latency = []Sample{{A: 0, B: 1, Value: 1e-6}, {A: 0, B: 2, Value: 9e-6}, {A: 1, B: 2, Value: 1e-6}}
		r, err := Judge(table, l)
		if err != nil {
			t.Fatal(err)
		}
		if r.Found() != (l.GBps > 0) {
			t.Errorf("limit %g: found %t: %+v", l.GBps, r.Found(), r.Culprits)
		}
		if l.GBps > 0 && len(r.Culprits) == 0 {
			t.Error("nothing is below the limit")
		}
		for _, c := range r.Culprits {
			text := strings.Join(append(c.Why, c.remedy(), string(c.Kind)), "; ")
			if strings.Contains(text, "cable") || strings.Contains(text, "NIC or") && !strings.Contains(text, "no NIC") || c.Kind == Port {
				t.Errorf("%s %s: %s", c.Kind, c.Subject(), text)
			}
			if l.GBps == 0 && (c.Verdict != reports.Unknown || c.Sure != "low") {
				t.Errorf("%s %s: %s, %s", c.Kind, c.Subject(), c.Verdict, c.Sure)
			}
		}
	}
}

// A clear figure among few machines without a limit is a warning still.
func TestFewMachines(t *testing.T) {
	r, err := Judge(read(t, "1-2 = 25 GB/s\n1-3 = 39 GB/s\n2-3 = 39 GB/s\n"), Limits{})
	if err != nil || !r.Found() {
		t.Errorf("%+v, %v", r, err)
	}
}
