package collectives

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A schedule with a period does the same after ranks are moved by it.
func TestPeriodIsTrue(t *testing.T) {
	with := map[string]bool{}
	each(func(op Op, name string) {
		for _, n := range []int{2, 4, 5, 6, 12, 16} {
			for _, cut := range [][2]int{{1, 1}, {3, 1}, {4, 2}} {
				p := Params{Ranks: n, Pieces: cut[0], Channels: cut[1]}
				if n%4 == 0 {
					p.Nodes = evenNodes(n, 4)
				}
				s := mustNew(t, op, name, p)
				shape := s.Shape()
				if shape.Period == 0 {
					continue
				}
				with[fmt.Sprint(op, " ", name)] = true
				for r := range n {
					to := mod(r+shape.Period, n)
					if s.Len(r) != s.Len(to) {
						t.Fatalf("%s %s %+v: ranks %d and %d have %d and %d steps", op, name, p, r, to, s.Len(r), s.Len(to))
					}
					for i := range s.Len(r) {
						a, b := s.Step(r, i), s.Step(to, i)
						if a.Kind != b.Kind || mod(int(a.Peer)+shape.Period, n) != int(b.Peer) || (a.Chunk-b.Chunk)%int32(shape.Pieces) != 0 {
							t.Fatalf("%s %s %+v step %d: rank %d %+v, rank %d %+v", op, name, p, i, r, a, to, b)
						}
					}
				}
			}
		}
	})
	if len(with) < 12 {
		t.Errorf("only %d algorithms have a period: %v", len(with), with)
	}
}

// aperiodic is a schedule that does not tell its period, so that every rank of it
// is simulated.
type aperiodic struct{ Schedule }

func (a aperiodic) Shape() Shape {
	s := a.Schedule.Shape()
	s.Period = 0
	return s
}

// randomFabric has g ranks a node and, at random, shared NICs, leaves and uplinks.
func randomFabric(rng *rand.Rand, n, g int) Fabric {
	f := Fabric{Intra: Path{{4 << 10, Class{1e-6, 100}}, {0, Class{2e-6, 300}}}, Cross: Uniform(5e-6, 50), Spine: Uniform(9e-6, 40), Node: evenNodes(n, g)}
	if rng.IntN(2) == 0 {
		f.CombineGBps = 200
	}
	if rng.IntN(2) == 0 {
		f.Leaf = evenNodes(n, 2*g)
	}
	return f
}

// One rank of each kind takes as long as all do.
func TestLikesStandForAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	each(func(op Op, name string) {
		for range 12 {
			g := 1 + rng.IntN(4)
			n := 4 * g * (1 + rng.IntN(3))
			p := Params{Ranks: n, Pieces: 1 + rng.IntN(5)}
			p.Channels = 1 + rng.IntN(min(2, p.Pieces))
			f := randomFabric(rng, n, g)
			p.Nodes = f.Node
			s := mustNew(t, op, name, p)
			bytes := int64(n) * 64 * (1 + rng.Int64N(3000))
			got, err := Simulate(op, s, bytes, f)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Simulate(op, aperiodic{s}, bytes, f)
			if err != nil || got != want {
				t.Errorf("%s %s %+v, %d B: %v s; all ranks simulated: %v s, %v", op, name, p, bytes, got, want, err)
			}
		}
	})
}

// With shared ports too, but for who comes first of two that come at the same time.
func TestLikesShareAlike(t *testing.T) {
	const g, k = 4, 8
	f := Fabric{Intra: Uniform(1e-6, 300), Cross: Uniform(5e-6, 50), Node: evenNodes(g*k, g), NIC: evenNodes(g*k, 2), Leaf: evenNodes(g*k, 2*g), UplinkGBps: 60}
	for _, name := range []string{"ring", "rails", "hierarchical", "halving"} {
		s := mustNew(t, AllReduce, name, Params{Ranks: g * k, Nodes: f.Node, Pieces: 8})
		got, err := Simulate(AllReduce, s, g*k<<20, f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Simulate(AllReduce, aperiodic{s}, g*k<<20, f)
		if err != nil || math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: %v s; all ranks simulated: %v s, %v", name, got, want, err)
		}
	}
}

// Ranks of one rail share their leaf's uplink, all nodes being below one group of
// leaves: a ring that changes rails between nodes brings all of them to one.
func TestLikesShareAnUplink(t *testing.T) {
	const g, k, bytes = 4, 8, 32 << 20
	f := Fabric{Intra: Uniform(0, 1e6), Cross: Uniform(0, 50), Spine: Uniform(0, 50), Node: evenNodes(g*k, g), Leaf: make([]int, g*k), UplinkGBps: 50 * k / 4}
	for r := range f.Leaf {
		f.Leaf[r] = r % g
	}
	got, err := Simulate(AllReduce, mustNew(t, AllReduce, "ring", Params{Ranks: g * k, Nodes: f.Node}), bytes, f)
	if want := 4 * 2 * float64(g*k-1) / (g * k) * bytes / 50e9; err != nil || math.Abs(got-want) > 0.02*want {
		t.Errorf("%v s, %v; want %v s", got, err, want)
	}
}

// Blocks that end at cache lines count as the largest where there are too many
// steps; that is an upper bound, and within a line of the truth.
func TestUnevenBlocksAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("nine million steps: not in -short")
	}
	const n, bytes = 3000, 3000*3000 + 17
	f := Fabric{Intra: Uniform(1e-6, 10)}
	s := mustNew(t, AllReduce, "ring", Params{Ranks: n})
	if s.Len(0)*n <= fullSteps {
		t.Fatal("not large enough to be rounded")
	}
	got, err := Simulate(AllReduce, s, bytes, f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Simulate(AllReduce, aperiodic{s}, bytes, f)
	if err != nil || got < all || got > all*(1+1e-9) {
		t.Errorf("%v s; all ranks simulated: %v s, %v", got, all, err)
	}
}

// Ranks that share a NIC get half of it each; rails uses every NIC, a ring one.
func TestSharedPorts(t *testing.T) {
	const g, k, bytes = 4, 4, 1 << 30
	sim := func(name string, pieces int, f Fabric) float64 {
		t.Helper()
		d, err := Simulate(AllReduce, mustNew(t, AllReduce, name, Params{Ranks: g * k, Nodes: f.Node, Pieces: pieces}), bytes, f)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	f := Fabric{Intra: Uniform(0, 1e6), Cross: Uniform(0, 50), Node: evenNodes(g*k, g)}
	out := 2 * float64(g*k-1) / (g * k) * bytes / 50e9 // of one NIC
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.05*want {
			t.Errorf("%s: %.5f s, want %.5f s", what, got, want)
		}
	}
	near("ring", sim("ring", 1, f), out)
	near("rails", sim("rails", 128, f), out/g)
	hier := 2 * float64(k-1) / k * bytes / g / 50e9
	near("hierarchical", sim("hierarchical", 1, f), hier)
	f.NIC = evenNodes(g*k, 2)
	near("ring, two ranks a NIC", sim("ring", 1, f), out)
	near("rails, two ranks a NIC", sim("rails", 128, f), 2*out/g)
	near("hierarchical, two ranks a NIC", sim("hierarchical", 1, f), 2*hier)
	// Leaves of one node with half of what its NICs could send.
	f.NIC, f.Leaf, f.Spine, f.UplinkGBps = nil, f.Node, Uniform(0, 50), g*50/2
	near("hierarchical, 2:1", sim("hierarchical", 1, f), 2*hier)
	near("ring, 2:1", sim("ring", 1, f), out) // one NIC alone has the uplink
}

func BenchmarkSimulateRing10000(b *testing.B) {
	f := Fabric{Intra: Uniform(1e-6, 400), Cross: Uniform(5e-6, 50), Node: evenNodes(10000, 8)}
	benchmarkSimulate(b, mustNew(b, AllReduce, "ring", Params{Ranks: 10000}), f)
}

func BenchmarkSimulateHierarchical100000(b *testing.B) {
	f := Fabric{Intra: Uniform(1e-6, 400), Cross: Uniform(5e-6, 50), Node: evenNodes(100000, 8)}
	benchmarkSimulate(b, mustNew(b, AllReduce, "hierarchical", Params{Ranks: 100000, Nodes: f.Node, Pieces: 4}), f)
}

func benchmarkSimulate(b *testing.B, s Schedule, f Fabric) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Simulate(AllReduce, s, 1<<30, f); err != nil {
			b.Fatal(err)
		}
	}
}
