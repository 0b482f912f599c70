package collectives

import (
	"errors"
	"math"
	"math/bits"
	"strings"
	"testing"
)

// The closed forms of the literature for one piece on a uniform fabric: c is a
// chunk's time on the wire, s the whole buffer's.
func TestSimulateEqualsClosedForms(t *testing.T) {
	const a = 3e-6
	f := Fabric{Intra: Uniform(a, 10)}
	for _, n := range []int{2, 4, 5, 7, 8, 13, 16, 31, 64} {
		bytes := int64(n) * 64 * 1000
		s := float64(bytes) / 10e9 // s
		c, m := s/float64(n), float64(n-1)
		log := float64(bits.Len(uint(n - 1)))
		power := n&(n-1) == 0
		for _, x := range []struct {
			op     Op
			name   string
			pieces int
			want   float64
			when   bool
		}{
			{AllReduce, "ring", 1, 2 * m * (a + c), true},
			{AllGather, "ring", 1, m * (a + c), true},
			{ReduceScatter, "ring", 1, m * (a + c), true},
			{AllReduce, "halving", 1, 2*log*a + 2*m*c, true},
			{AllGather, "halving", 1, log*a + m*c, true},
			{ReduceScatter, "halving", 1, log*a + m*c, true},
			{AllReduce, "doubling", 1, log * (a + s), power},
			{AllReduce, "oneshot", 1, a + m*s, true},
			{AllReduce, "direct", 1, 2*a + 2*m*c, true},
			{AllGather, "direct", 1, a + m*c, true},
			{ReduceScatter, "direct", 1, a + m*c, true},
			{AllToAll, "direct", 1, m * (a + c), true},
			{Gather, "direct", 1, a + m*c, true},
			{Scatter, "direct", 1, a + m*c, true},
			{SendRecv, "direct", 1, a + s, true},
			{Broadcast, "direct", 1, a + m*s, true},
			{Broadcast, "binomial", 1, log * (a + s), power},
			{Reduce, "binomial", 1, log * (a + s), power},
			{Broadcast, "chain", 1, m * (a + s), true},
			{Broadcast, "chain", 10, m*a + (10+m-1)*s/10, true},
			// A full tree: at each level a rank takes two children's messages, one after the other.
			{AllReduce, "tree", 1, 2 * (log - 1) * (a + 2*s), n > 2 && (n+1)&n == 0},
			{Reduce, "chain", 10, m*a + (10+m-1)*s/10, true},
		} {
			if !x.when {
				continue
			}
			sched := mustNew(t, x.op, x.name, Params{Ranks: n, Pieces: x.pieces})
			got, err := Simulate(x.op, sched, bytes, f)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got-x.want) > 1e-9*x.want {
				t.Errorf("%s %s n=%d pieces=%d: %v s, want %v s", x.op, x.name, n, x.pieces, got, x.want)
			}
		}
	}
}

// A deeply pipelined double tree moves S both ways at about the wire's speed and
// needs log n hops: far from the ring's n.
func TestSimulatedTreeIsPipelined(t *testing.T) {
	f := Fabric{Intra: Uniform(5e-6, 10)}
	const bytes = 256 << 20
	s := mustNew(t, AllReduce, "tree", Params{Ranks: 64, Pieces: 512})
	got, err := Simulate(AllReduce, s, bytes, f)
	if err != nil {
		t.Fatal(err)
	}
	// 2S/B: an inner node's port takes S/2 from each child and S/2 from its parent.
	ideal := 2 * bytes / 10e9
	if got < ideal*0.99 || got > ideal*1.1 {
		t.Errorf("tree of 64: %v, want about %.3f s", got, ideal)
	}
	small, err := Simulate(AllReduce, mustNew(t, AllReduce, "tree", Params{Ranks: 64, Pieces: 1}), 64, f)
	if err != nil {
		t.Fatal(err)
	}
	if hops := small / 5e-6; hops < 6 || hops > 13 {
		t.Errorf("tree of 64, 64 B: %v = %.1f hops, want 2 log n at most", small, hops)
	}
	// Broadcast and reduce reach S/B.
	for _, op := range []Op{Broadcast, Reduce} {
		got, err := Simulate(op, mustNew(t, op, "tree", Params{Ranks: 64, Pieces: 512}), bytes, f)
		if err != nil {
			t.Fatal(err)
		}
		if ideal := bytes / 10e9; got < ideal*0.99 || got > ideal*1.1 {
			t.Errorf("%s tree of 64: %v, want about %.3f s", op, got, ideal)
		}
	}
}

// What happens inside the node hides behind the ring between nodes, or the other
// way round: one block's reduce-scatter comes before and one block's all-gather
// after. X is a hop between nodes, y a block's traffic inside.
func TestSimulatedHierarchyEqualsItsClosedForm(t *testing.T) {
	const ai, ac, bi, bc = 1e-6, 5e-6, 400e9, 50e9
	for _, c := range []struct{ g, k, block int }{{2, 2, 320e3}, {8, 4, 320e3}, {8, 16, 320e3}, {4, 5, 320e3}, {8, 1, 320e3}, {1, 6, 320e3}, {64, 4, 1 << 20}, {128, 8, 4 << 20}} {
		s := float64(c.g * c.k * c.block)
		f := Fabric{Intra: Uniform(ai, bi/1e9), Cross: Uniform(ac, bc/1e9), Node: evenNodes(c.g*c.k, c.g)}
		got, err := Simulate(AllReduce, mustNew(t, AllReduce, "hierarchical", Params{Ranks: c.g * c.k, Nodes: f.Node}), int64(s), f)
		x, y := ac+float64(c.block)/bc, float64(c.g-1)*float64(c.block)/bi
		want := 2*(y+float64(c.k-1)*max(x, y)) + 2*ai
		if c.g == 1 {
			want -= 2 * ai
		}
		if err != nil || math.Abs(got-want) > 1e-9*want {
			t.Errorf("%d nodes of %d: %v s, %v; want %v s", c.k, c.g, got, err, want)
		}
	}
}

// The planner's bounds: max(T_in, T_out) ≤ T, and no more than that and a block's
// time to begin and to end.
func TestSimulatedHierarchyStaysInItsBounds(t *testing.T) {
	const g, k, bytes = 8, 4, 1 << 30
	f := Fabric{Intra: Uniform(1e-6, 400), Cross: Uniform(5e-6, 50), Node: evenNodes(g*k, g)}
	in := 2 * float64(g-1) / g * bytes / 400e9
	out := 2 * float64(k-1) / k * bytes / g / 50e9
	last := math.Inf(1)
	for _, pieces := range []int{1, 4, 16, 64} {
		d, err := Simulate(AllReduce, mustNew(t, AllReduce, "hierarchical", Params{Ranks: g * k, Nodes: f.Node, Pieces: pieces}), bytes, f)
		if err != nil {
			t.Fatal(err)
		}
		if most := max(in, out) + in/k/float64(pieces) + 2*(k-1)*5e-6 + 2e-6; d < max(in, out) || d > most {
			t.Errorf("%d pieces: %v, want %.5f to %.5f s", pieces, d, max(in, out), most)
		}
		if d > last*(1+1e-9) {
			t.Errorf("%d pieces are slower than fewer: %v", pieces, d)
		}
		last = d
	}
	// A flat ring crosses nodes with 2(n-1)/n of S over one NIC at a time.
	flat, err := Simulate(AllReduce, mustNew(t, AllReduce, "ring", Params{Ranks: g * k}), bytes, f)
	if err != nil || flat < 4*last {
		t.Errorf("flat ring: %v, %v; hierarchical: %.4f s", flat, err, last)
	}
}

// Every NIC is busy from the first hop to the last: each of the 2(n-1) takes as
// long as the piece that goes between nodes.
func TestSimulatedRailsEqualTheirClosedForm(t *testing.T) {
	const ac, bc = 5e-6, 50e9
	for _, c := range [][2]int{{2, 2}, {8, 2}, {8, 3}, {8, 16}, {4, 5}} {
		g, n := c[0], c[0]*c[1]
		const piece = 1 << 20
		f := Fabric{Intra: Uniform(1e-6, 500), Cross: Uniform(ac, bc/1e9), Node: evenNodes(n, g)}
		got, err := Simulate(AllReduce, mustNew(t, AllReduce, "rails", Params{Ranks: n, Nodes: f.Node, Pieces: g}), int64(n*g*piece), f)
		hops := 2 * float64(n-1)
		if err != nil || got < hops*piece/bc || got > hops*(ac+piece/bc) {
			t.Errorf("%d nodes of %d: %v s, %v; want %v to %v s", c[1], g, got, err, hops*piece/bc, hops*(ac+piece/bc))
		}
	}
}

func TestSimulateCountsCombines(t *testing.T) {
	f := Fabric{Intra: Uniform(0, 10)}
	s := mustNew(t, AllReduce, "ring", Params{Ranks: 4})
	free, err := Simulate(AllReduce, s, 4000*64, f)
	if err != nil {
		t.Fatal(err)
	}
	f.CombineGBps = 20
	slow, err := Simulate(AllReduce, s, 4000*64, f)
	if want := free + 3*3.2e-6; err != nil || math.Abs(slow-want) > 1e-9*want {
		t.Errorf("with combining at 20 GB/s: %v, %v; want %v", slow, err, want)
	}
}

// With pieces the link goes on while a chunk is combined.
func TestPiecesHideCombines(t *testing.T) {
	f := Fabric{Intra: Uniform(0, 10), CombineGBps: 10}
	var d [2]float64
	for i, pieces := range []int{1, 16} {
		var err error
		if d[i], err = Simulate(AllReduce, mustNew(t, AllReduce, "ring", Params{Ranks: 8, Pieces: pieces}), 64<<20, f); err != nil {
			t.Fatal(err)
		}
	}
	if wire := 14.0 / 8 * (64 << 20) / 10e9; d[1] > 1.1*wire || d[0] < 1.4*wire {
		t.Errorf("ring of 8: %v in one piece, %v in 16; the wire alone takes %.4f s", d[0], d[1], wire)
	}
}

func TestSimulateRefuses(t *testing.T) {
	s := mustNew(t, AllReduce, "ring", Params{Ranks: 4})
	good := Uniform(1e-6, 10)
	for _, c := range []struct {
		f    Fabric
		want string
	}{
		{Fabric{}, "nothing is known of a path"},
		{Fabric{Intra: Uniform(-1e-9, 10)}, "a path of -1e-09 s"},
		{Fabric{Intra: Uniform(0, math.NaN())}, "NaN GB/s"},
		{Fabric{Intra: Uniform(0, 0)}, "0 GB/s"},
		{Fabric{Intra: good, Node: []int{0, 0, 1, 1}}, "nothing is known of a path"},
		{Fabric{Intra: good, Cross: good, Node: []int{0}}, "the nodes of 1 ranks are given, but there are 4 ranks"},
		{Fabric{Intra: good, NIC: []int{0}}, "the NICs of 1 ranks"},
		{Fabric{Intra: good, UplinkGBps: -1}, "uplinks of -1 GB/s"},
		{Fabric{Intra: Uniform(0, 1e-300)}, "more than can be counted"},
	} {
		if _, err := Simulate(AllReduce, s, 1<<20, c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.f, err, c.want)
		}
	}
	broken := program{Shape{Ranks: 2, Blocks: 1, Pieces: 1, Channels: 1}, [][]Step{{{Recv, 1, 0}}, nil}}
	if _, err := Simulate(Broadcast, broken, 64, Fabric{Intra: good}); err == nil {
		t.Error("a schedule that never ends was timed")
	}
}

// Queues stay short: a rank's first sends, though it has a thousand to make.
func TestWalkKeepsQueuesShort(t *testing.T) {
	const n, pieces = 1000, 2
	w := walker[struct{}]{s: mustNew(t, AllGather, "ring", Params{Ranks: n, Pieces: pieces})}
	w.send = func(int, Step) (struct{}, error) { return struct{}{}, nil }
	w.receive = func(int, Step, struct{}) error { return nil }
	if err := w.run(); err != nil {
		t.Fatal(err)
	}
	if most := len(w.messages); most > n*pieces {
		t.Errorf("%d messages were under way at once", most)
	}
}

func BenchmarkSimulateRing1000(b *testing.B) {
	s := mustNew(b, AllReduce, "ring", Params{Ranks: 1000})
	steps := 0
	for r := range 1000 {
		steps += s.Len(r)
	}
	for b.Loop() {
		if _, err := Simulate(AllReduce, s, 1<<30, Fabric{Intra: Uniform(1e-6, 50)}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(steps), "ns/step")
}

func BenchmarkCheckRing512(b *testing.B) {
	s := mustNew(b, AllReduce, "ring", Params{Ranks: 512})
	for b.Loop() {
		if err := Check(AllReduce, s, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// A simulation that is given up is one that takes longer, and no other.
func TestSimulateWithin(t *testing.T) {
	s, err := New(AllReduce, "ring", Params{Ranks: 8, Pieces: 4})
	if err != nil {
		t.Fatal(err)
	}
	f := Fabric{Intra: Uniform(1e-6, 10)}
	all, err := Simulate(AllReduce, s, 1<<20, f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := SimulateWithin(AllReduce, s, 1<<20, f, all); err != nil || got != all {
		t.Errorf("within its own time: %v, %v; want %v", got, err, all)
	}
	for _, limit := range []float64{0, all / 2, all * 0.999} {
		if _, err := SimulateWithin(AllReduce, s, 1<<20, f, limit); !errors.Is(err, ErrSlower) {
			t.Errorf("within %g of %g s: %v", limit, all, err)
		}
	}
}
