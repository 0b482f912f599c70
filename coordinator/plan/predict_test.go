package plan

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/reports"
)

const small = "nodes: 4\ngpus_per_node: 4\nnvlink: {gb_per_s: 400, efficiency: 1, latency_us: 1}\nnic: {gb_per_s: 50, efficiency: 1, latency_us: 5}\n"

// near fails unless got is within a share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

// One piece of the hierarchy is its closed form, with its terms.
func TestPredictEqualsClosedForm(t *testing.T) {
	m := mustRead(t, small+"chunk_bytes: 1099511627776\n").Described()
	const bytes = 16 * 16000 // too small for two pieces
	p, err := m.Predict(collectives.AllReduce, "hierarchical", bytes, 4)
	if err != nil {
		t.Fatal(err)
	}
	nvlink, nic, in, out := 2*0.75*bytes/400e9, 2*0.75*bytes/4/50e9, 2e-6, 6*5e-6
	nvlink /= 4 // but a block's, before and after the ring, which hides the others
	want := nvlink + nic + in + out
	near(t, "time", p.Seconds, want, 1e-9)
	if p.Low != p.Seconds || p.High != p.Seconds || p.Extrapolated != nil {
		t.Errorf("nothing is uncertain, but %+v", p)
	}
	shares := map[string]float64{"NVLink": nvlink / want, "NIC": nic / want, "latency in nodes": in / want, "latency between nodes": out / want}
	for _, x := range p.Terms {
		near(t, x.Name, x.Share, shares[x.Name], 0.01)
	}
	if len(p.Terms) != 4 || p.Terms[0].Name != "latency between nodes" {
		t.Errorf("terms %v", p.Terms)
	}
}

// What is not known exactly makes an interval.
func TestInterval(t *testing.T) {
	m := mustRead(t, "nodes: 1\ngpus_per_node: 8\nnvlink: {gb_per_s: [200, 400], efficiency: [0.5, 1], latency_us: 0}\n").Described()
	p, err := m.Predict(collectives.AllReduce, "ring", 8<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	wire := 2 * 7.0 / 8 * (8 << 20) / 1e9
	near(t, "low", p.Low, wire/400, 1e-9)
	near(t, "time", p.Seconds, wire/200, 1e-9)
	near(t, "high", p.High, wire/100, 1e-9)
}

// Half of the NICs, an uplink that is too thin, another rail: each costs what it must.
func TestDescribedSharing(t *testing.T) {
	free := strings.NewReplacer("gb_per_s: 400", "gb_per_s: 1000000", "latency_us: 1", "latency_us: 0", "latency_us: 5", "latency_us: 0").Replace(small)
	time := func(text, algorithm string, nodes int) float64 {
		t.Helper()
		p, err := mustRead(t, free+text).Described().Predict(collectives.AllReduce, algorithm, 1<<30, nodes)
		if err != nil {
			t.Fatal(err)
		}
		return p.Seconds
	}
	whole := time("", "hierarchical", 4)
	near(t, "half of the NICs", time("nics_per_node: 2\n", "hierarchical", 4), 2*whole, 0.05)
	near(t, "twice the NICs", time("nics_per_node: 8\n", "ring", 4), time("", "ring", 4)/2, 0.05)
	near(t, "leaves of one node, 4:1", time("leaf: {nodes: 1, oversubscription: 4}\n", "hierarchical", 4), 4*whole, 0.1)
	near(t, "leaves of all nodes", time("leaf: {nodes: 4, oversubscription: 4}\n", "hierarchical", 4), whole, 1e-9)
	near(t, "nothing shared 1:1", time("leaf: {nodes: 1, oversubscription: 1}\n", "hierarchical", 4), whole, 1e-9)
	// Each rank of a node talks to its like: on one group of rails no uplink is used.
	c := mustRead(t, small+"leaf: {nodes: 4, oversubscription: 8}\n")
	c.NIC.Rails = true
	m := c.Described()
	for _, name := range []string{"hierarchical", "rails"} {
		p, err := m.Predict(collectives.AllReduce, name, 1<<28, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range p.Terms {
			if x.Name == "leaf uplinks" {
				t.Errorf("%s: the uplinks take %.0f %% on one group of rails", name, 100*x.Share)
			}
		}
	}
}

// Once the pipeline is full every piece takes as long, so some stand for all.
func TestSteadyPiecesStandForAll(t *testing.T) {
	m := mustRead(t, small).Described()
	for op, name := range map[collectives.Op]string{collectives.AllReduce: "tree", collectives.Broadcast: "chain", collectives.Reduce: "tree"} {
		s, err := m.study(op, name, 1<<28, 4)
		if err != nil {
			t.Fatal(err)
		}
		s.few, s.more = 0, 0
		all, err := s.time(middle, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.few, s.more = 16, 32
		some, err := s.time(middle, nil)
		if err != nil {
			t.Fatal(err)
		}
		near(t, name, some, all, 0.002)
	}
}

func TestFastestIsTheLeast(t *testing.T) {
	m := mustRead(t, small).Described()
	p, skipped, err := m.Fastest(collectives.AllReduce, 1<<20, 4)
	if err != nil || skipped != nil {
		t.Fatal(err, skipped)
	}
	for _, name := range Best(collectives.AllReduce) {
		q, err := m.Predict(collectives.AllReduce, name, 1<<20, 4)
		if err != nil || q.Seconds < p.Seconds {
			t.Errorf("%s: %v, %v; the fastest is said to be %s: %v", name, q.Seconds, err, p.Algorithm, p.Seconds)
		}
	}
	if _, err := m.Predict(collectives.AllToAll, "direct", 1<<20, 1<<14); !errors.Is(err, ErrTooLarge) {
		t.Errorf("all-to-all of 65536 ranks: %v", err)
	}
}

// A prediction becomes a result that reports take and that says what it is.
func TestRecord(t *testing.T) {
	p := Prediction{Op: collectives.AllGather, Algorithm: "ring", Nodes: 2, Ranks: 4, Bytes: 4096, Seconds: 2, Low: 1, High: 3,
		Terms: []Term{{"NIC", 0.9}}, Extrapolated: []string{"4 ranks are more than twice the measured 1"}}
	r := p.Record("id", "predicted by busbw test", time.Unix(1, 0))
	if err := r.Check(); err != nil || !r.Foretold() || r.Count != 256 || r.Redop != "" {
		t.Errorf("%v, %+v", err, r)
	}
	f := reports.Figures([]reports.Result{r})[0]
	if bus, ok := f.Busbw(); !ok || math.Abs(bus-0.75*4096/2/1e9) > 1e-15 {
		t.Errorf("busbw %v %v", bus, ok)
	}
	if notes := strings.Join(r.Notes, " "); !strings.Contains(notes, "bound by NIC 90 %") || !strings.Contains(notes, "extrapolated: 4 ranks") {
		t.Errorf("notes %q", notes)
	}
}

// Communication hides behind computation as far as both last.
func TestStep(t *testing.T) {
	for _, c := range []struct{ overlap, compute, communication, want float64 }{
		{0, 1, 0.5, 0.5}, {1, 1, 0.5, 0}, {1, 1, 3, 2}, {0.5, 1, 1, 0.5}, {0.5, 1, 4, 3}, {0.5, 0, 4, 4},
	} {
		s := Step{Compute: time.Duration(c.compute * 1e9), Overlap: c.overlap}
		near(t, "exposed", s.Exposed(c.communication)+1, c.want+1, 1e-12)
	}
	for _, bad := range []Step{{}, {Bytes: 1, Buckets: 2}, {Bytes: 8, Buckets: 1, Overlap: 1.1}, {Bytes: 8, Buckets: 1, Overlap: math.NaN()}, {Bytes: 8, Buckets: 1, Compute: -1}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// Best uses several channels where one waits for latency and none is prescribed.
func TestFastestTriesChannels(t *testing.T) {
	const slow = "nodes: 16\ngpus_per_node: 2\nnvlink: {gb_per_s: 400, efficiency: 1, latency_us: 1}\nnic: {gb_per_s: 50, efficiency: 1, latency_us: 5}\n"
	const size = 16 << 20
	free, _, err := mustRead(t, slow).Described().Fastest(collectives.AllReduce, size, 16)
	if err != nil {
		t.Fatal(err)
	}
	one, _, err := mustRead(t, slow+"channels: 1\n").Described().Fastest(collectives.AllReduce, size, 16)
	if err != nil {
		t.Fatal(err)
	}
	if free.Seconds > 0.95*one.Seconds || !strings.Contains(free.Aside, "with 4 channels; 1 channel would take") || one.Aside != "" {
		t.Errorf("free: %g s %q; one channel: %g s %q", free.Seconds, free.Aside, one.Seconds, one.Aside)
	}
}
