package collectives

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// No chunk exceeds what was asked for, no program is too long.
func TestPiecesBoundsChunksAndPrograms(t *testing.T) {
	each(func(op Op, name string) {
		for _, n := range []int{1, 2, 3, 8, 64, 1000} {
			for _, bytes := range []int64{0, 8, 64 << 10, 1 << 20, 1 << 30, 64 << 30} {
				const chunk = 1 << 20
				p := Params{Ranks: n, Channels: 1}
				bytes = bytes / int64(n) * int64(n)
				p.Pieces = Pieces(op, name, p, bytes, chunk)
				s := mustNew(t, op, name, p)
				most, longest := int64(0), 0
				for c := range min(s.Shape().Chunks(), 1000) {
					_, b := s.Shape().Span(op, c, bytes, 1)
					most = max(most, b)
				}
				one := p
				one.Pieces = 1
				plain := mustNew(t, op, name, one)
				shortest := 0
				for r := range n {
					longest, shortest = max(longest, s.Len(r)), max(shortest, plain.Len(r))
				}
				if longest > maxSteps && p.Pieces > 1 {
					t.Errorf("%s %s n=%d, %d B: %d pieces make %d steps", op, name, n, bytes, p.Pieces, longest)
				}
				if most > chunk && (p.Pieces+1)*shortest <= maxSteps {
					t.Errorf("%s %s n=%d, %d B: %d pieces leave chunks of %d B", op, name, n, bytes, p.Pieces, most)
				}
				if p.Pieces > 1 && bytes < minPiece {
					t.Errorf("%s %s n=%d: %d pieces for %d B", op, name, n, p.Pieces, bytes)
				}
			}
		}
	})
	if got := Pieces(AllReduce, "nonsense", Params{Ranks: 2}, 1<<30, 1); got != 1 {
		t.Errorf("%d pieces of a schedule that does not exist", got)
	}
	if got := Pieces(AllReduce, "ring", Params{Ranks: 2, Channels: 4}, 1<<20, math.MaxInt64); got != 4 {
		t.Errorf("4 channels get %d pieces", got)
	}
	if got := Pieces(AllReduce, "ring", Params{Ranks: 2, Channels: 4}, 1<<10, math.MaxInt64); got != 1 {
		t.Errorf("4 channels get %d pieces of 1 KiB", got)
	}
	// A pipeline has pieces even where no chunk is too large.
	if got := Pieces(Broadcast, "chain", Params{Ranks: 9}, 1<<20, math.MaxInt64); got != 16 {
		t.Errorf("a chain of 9 ranks gets %d pieces, want 2 for each of 8 hops", got)
	}
}

// Auto always names an algorithm that the operation has and that works.
func TestAutoNamesAnAlgorithm(t *testing.T) {
	for _, op := range Ops() {
		for _, n := range []int{1, 2, 3, 64} {
			for _, bytes := range []int64{0, 1, 4 << 10, 32 << 10, 1 << 20, math.MaxInt64} {
				for _, local := range []bool{false, true} {
					name := Auto(op, Params{Ranks: n}, bytes, local)
					if !slices.Contains(Algorithms(op), name) {
						t.Errorf("%s n=%d %d B local=%v: %q", op, n, bytes, local, name)
					}
				}
			}
		}
	}
	for _, c := range []struct {
		n     int
		bytes int64
		local bool
		want  string
	}{
		{2, 8, true, "oneshot"}, {2, 64 << 20, true, "direct"},
		{2, 8, false, "oneshot"}, {4, 8, false, "doubling"}, {4, 64 << 20, false, "ring"},
	} {
		if got := Auto(AllReduce, Params{Ranks: c.n}, c.bytes, c.local); got != c.want {
			t.Errorf("all_reduce n=%d %d B local=%v: %s, want %s", c.n, c.bytes, c.local, got, c.want)
		}
	}
}

// Names are unique, documented and fit an output column.
func TestAlgorithmsAreListedWell(t *testing.T) {
	each(func(op Op, name string) {
		if doc := Describe(op, name); doc == "" || strings.ContainsAny(doc, "\n.") {
			t.Errorf("%s %s: description %q", op, name, doc)
		}
		if len(name) > 12 || name != strings.ToLower(name) {
			t.Errorf("%s: name %q", op, name)
		}
	})
	for _, op := range Ops() {
		names := Algorithms(op)
		slices.Sort(names)
		if len(names) == 0 || len(slices.Compact(names)) != len(Algorithms(op)) {
			t.Errorf("%s: algorithms %v", op, names)
		}
	}
	if Describe(Broadcast, "ring") != Describe(Broadcast, "chain") {
		t.Error("the alias has another description")
	}
}
