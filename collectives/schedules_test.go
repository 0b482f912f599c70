package collectives

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// each calls f with every operation and algorithm.
func each(f func(op Op, name string)) {
	for _, op := range Ops() {
		for _, name := range Algorithms(op) {
			f(op, name)
		}
	}
}

func mustNew(t testing.TB, op Op, name string, p Params) Schedule {
	t.Helper()
	s, err := New(op, name, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// evenNodes puts n ranks on nodes of g; nil if that is impossible.
func evenNodes(n, g int) []int {
	if n%g != 0 {
		return nil
	}
	nodes := make([]int, n)
	for r := range nodes {
		nodes[r] = r / g
	}
	return nodes
}

// Every operation, algorithm, number of ranks up to 64, with several pieces,
// channels and roots.
func TestSchedulesAreProved(t *testing.T) {
	each(func(op Op, name string) {
		t.Run(fmt.Sprint(op, "/", name), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= 64; n++ {
				cuts := [][2]int{{1, 1}, {2, 1}, {3, 2}, {4, 4}, {7, 3}}
				if op == AllToAll && n > 24 {
					cuts = cuts[:1] // n³ steps
				}
				for _, cut := range cuts {
					roots := []int{0}
					if op.Rooted() {
						roots = append(roots, n/2, n-1)
					}
					for _, root := range roots {
						p := Params{Ranks: n, Root: root, Pieces: cut[0], Channels: cut[1]}
						prove(t, op, name, p)
						if g := 1 + n/cut[0]%5; (name == "hierarchical" || name == "rails") && n%g == 0 {
							p.Nodes = evenNodes(n, g)
							prove(t, op, name, p)
						}
					}
				}
			}
		})
	})
}

func prove(t *testing.T, op Op, name string, p Params) {
	t.Helper()
	s := mustNew(t, op, name, p)
	if err := Check(op, s, p.Root); err != nil {
		t.Fatalf("%s %s %+v: %v", op, name, p, err)
	}
	shape := s.Shape()
	if shape.Ranks != p.Ranks || shape.Pieces != p.Pieces || shape.Channels != p.Channels {
		t.Fatalf("%s %s %+v: shape %+v", op, name, p, shape)
	}
	if p.Ranks == 1 && s.Len(0) != 0 {
		t.Fatalf("%s %s: one rank has %d steps", op, name, s.Len(0))
	}
}

// Only the schedules that say so need buffered sends.
func TestBufferedIsTrue(t *testing.T) {
	each(func(op Op, name string) {
		s := written(mustNew(t, op, name, Params{Ranks: 5, Pieces: 2}))
		buffered := s.shape.Buffered
		s.shape.Buffered = false
		if err := Check(op, s, 0); (err != nil) != buffered {
			t.Errorf("%s %s says Buffered: %v; with sends that complete when received: %v", op, name, buffered, err)
		}
	})
}

// Random cases beyond, small or large.
func TestRandomSchedulesAreProved(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of large schedules: not in -short")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	each(func(op Op, name string) {
		for range 6 {
			limit := 600
			if op == AllToAll {
				limit = 100
			}
			p := Params{Ranks: 1 + rng.IntN(limit), Pieces: 1 + rng.IntN(3)}
			if name == "oneshot" || name == "direct" && !op.Rooted() {
				p.Ranks = 1 + p.Ranks/2
			}
			p.Root = rng.IntN(p.Ranks)
			p.Channels = 1 + rng.IntN(p.Pieces)
			if g := 1 + rng.IntN(8); name == "hierarchical" || name == "rails" {
				p.Ranks = (p.Ranks + g - 1) / g * g
				p.Nodes = evenNodes(p.Ranks, g)
				rng.Shuffle(p.Ranks, func(i, j int) { p.Nodes[i], p.Nodes[j] = p.Nodes[j], p.Nodes[i] })
			}
			prove(t, op, name, p)
		}
	})
}

// steps counts a rank's sends and receives, and the chunks it sends.
func steps(s Schedule, rank int) (sends, receives, combines int) {
	for i := range s.Len(rank) {
		switch s.Step(rank, i).Kind {
		case Send:
			sends++
		case Recv:
			receives++
		default:
			combines++
		}
	}
	return
}

// The numbers of the textbooks: chunks sent a rank, in all cases of S/n bytes
// where there are n blocks.
func TestTextbookCounts(t *testing.T) {
	for _, n := range []int{2, 3, 4, 7, 8, 16, 33} {
		for _, c := range []struct {
			op              Op
			name            string
			sends, combines int
		}{
			{AllReduce, "ring", 2 * (n - 1), n - 1},
			{AllReduce, "halving", 2 * (n - 1), n - 1},
			{AllReduce, "direct", 2 * (n - 1), n - 1},
			{AllReduce, "oneshot", n - 1, n - 1},
			{AllGather, "ring", n - 1, 0},
			{AllGather, "halving", n - 1, 0},
			{AllGather, "direct", n - 1, 0},
			{ReduceScatter, "ring", n - 1, n - 1},
			{ReduceScatter, "halving", n - 1, n - 1},
			{ReduceScatter, "direct", n - 1, n - 1},
			{AllToAll, "direct", n - 1, 0},
			{SendRecv, "direct", 1, 0},
		} {
			const pieces = 3
			s := mustNew(t, c.op, c.name, Params{Ranks: n, Pieces: pieces})
			for r := range n {
				sends, receives, combines := steps(s, r)
				if sends != c.sends*pieces || combines != c.combines*pieces || receives != sends-combines {
					t.Errorf("%s %s n=%d rank %d: %d sends, %d receives, %d combines; want %d sends and %d combines, %d pieces each", c.op, c.name, n, r, sends, receives, combines, c.sends, c.combines, pieces)
				}
			}
		}
		// Rooted: every rank but the root takes one copy of S in all.
		for _, name := range Algorithms(Broadcast) {
			s := mustNew(t, Broadcast, name, Params{Ranks: n, Pieces: 4, Root: n - 1})
			r := mustNew(t, Reduce, name, Params{Ranks: n, Pieces: 4, Root: n - 1})
			for rank := range n {
				want := 4
				if rank == n-1 {
					want = 0
				}
				if _, got, _ := steps(s, rank); got != want {
					t.Errorf("broadcast %s n=%d: rank %d receives %d chunks, want %d", name, n, rank, got, want)
				}
				if got, _, _ := steps(r, rank); got != want {
					t.Errorf("reduce %s n=%d: rank %d sends %d chunks, want %d", name, n, rank, got, want)
				}
			}
		}
	}
	// Recursive doubling folds what exceeds a power of two: 2 ranks more.
	s := mustNew(t, AllReduce, "doubling", Params{Ranks: 6})
	for r, want := range []int{3, 3, 2, 2, 1, 1} {
		if got, _, _ := steps(s, r); got != want {
			t.Errorf("doubling n=6: rank %d sends %d, want %d", r, got, want)
		}
	}
	// Hierarchical: only 2(k-1) blocks of S/n a rank cross nodes.
	p := Params{Ranks: 12, Nodes: evenNodes(12, 4)}
	h := mustNew(t, AllReduce, "hierarchical", p)
	for r := range 12 {
		crossing := 0
		for i := range h.Len(r) {
			if st := h.Step(r, i); st.Kind == Send && p.Nodes[st.Peer] != p.Nodes[r] {
				crossing++
			}
		}
		if crossing != 2*(3-1) {
			t.Errorf("hierarchical: rank %d sends %d blocks to other nodes, want 4", r, crossing)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		op   Op
		name string
		p    Params
		want string
	}{
		{AllReduce, "rnig", Params{Ranks: 2}, `unknown algorithm "rnig"; all_reduce has ring, tree, halving, doubling, hierarchical, rails, oneshot, direct`},
		{Broadcast, "halving", Params{Ranks: 2}, `broadcast has no algorithm "halving" (only all_reduce, all_gather, reduce_scatter); it has chain`},
		{Op(77), "ring", Params{Ranks: 2}, "op(77) is not an operation"},
		{AllReduce, "ring", Params{}, "0 ranks; there must be 1 to 1048576"},
		{Broadcast, "chain", Params{Ranks: 2, Root: 2}, "root 2 is not one of the ranks 0 to 1"},
		{Broadcast, "chain", Params{Ranks: 2, Root: -1}, "root -1"},
		{AllReduce, "hierarchical", Params{Ranks: 1 << 31}, "2147483648 ranks"},
		{AllReduce, "hierarchical", Params{Ranks: 5, Nodes: []int{7, 7, 8, 8, 8}}, "node 7 has 2 and node 8 has 3"},
		{AllReduce, "hierarchical", Params{Ranks: 5, Nodes: []int{0}}, "the nodes of 1 ranks are given, but there are 5 ranks"},
		{AllReduce, "ring", Params{Ranks: 2, Pieces: -1}, "-1 pieces"},
		{AllReduce, "ring", Params{Ranks: 2, Channels: -1}, "-1 channels"},
		{AllToAll, "direct", Params{Ranks: 50000}, "more chunks than 2^31"},
	} {
		_, err := New(c.op, c.name, c.p)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s %+v: error %v, want %q", c.op, c.name, c.p, err, c.want)
		}
	}
	if s := mustNew(t, Broadcast, "ring", Params{Ranks: 3}); s.Len(1) != 2 {
		t.Errorf("broadcast ring is not the chain: %d steps", s.Len(1))
	}
}

// Steps must not allocate: there are a hundred thousand a rank.
func TestStepAllocatesNothing(t *testing.T) {
	each(func(op Op, name string) {
		s := mustNew(t, op, name, Params{Ranks: 9, Root: 2, Pieces: 4, Channels: 2})
		var sum int32
		if got := testing.AllocsPerRun(10, func() {
			for i := range s.Len(3) {
				sum += s.Step(3, i).Chunk
			}
		}); got != 0 {
			t.Errorf("%s %s: %v allocations", op, name, got)
		}
	})
}
