package collectives

import (
	"math/rand/v2"
	"testing"
)

// sizes are the elements of a rank's In, Out and S by the table in place.go.
func sizes(op Op, n, rank, root int, count int64) (in, out int64) {
	in, out = count, count
	switch own := count / int64(n); op {
	case AllGather, Gather:
		in = own
	case ReduceScatter, Scatter:
		out = own
	}
	if (op == Broadcast || op == Scatter) && rank != root {
		in = 0
	}
	if (op == Reduce || op == Gather) && rank != root {
		out = 0
	}
	return in, out
}

// The chunks of a rank's In cover it exactly once, and so do those of its Out;
// everything else is inside S.
func TestPlacesCoverEveryBufferOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	each(func(op Op, name string) {
		for range 40 {
			n := 1 + rng.IntN(9)
			p := Params{Ranks: n, Root: rng.IntN(n), Pieces: 1 + rng.IntN(5)}
			elem := 1 << rng.IntN(4)
			count := rng.Int64N(1000)
			if op.Blocked() {
				count = count / int64(n) * int64(n)
			}
			shape := mustNew(t, op, name, p).Shape()
			for rank := range n {
				wantIn, wantOut := sizes(op, n, rank, p.Root, count)
				covered := map[Where][]int{In: make([]int, wantIn), Out: make([]int, wantOut)}
				for c := range shape.Chunks() {
					in, out := Place(op, shape, rank, p.Root, c, count, elem)
					if _, length := shape.Span(op, c, count, elem); in.Len != int(length) || out.Len != int(length) {
						t.Fatalf("%s %s %+v: chunk %d has %d elements in In, %d in Out, %d in S", op, name, p, c, in.Len, out.Len, length)
					}
					for _, span := range []Span{in, out} {
						switch span.Where {
						case Nowhere:
							continue
						case Work:
							if span.Off < 0 || int64(span.Off+span.Len) > count {
								t.Fatalf("%s %s %+v: chunk %d is at %+v of Work, which has %d elements", op, name, p, c, span, count)
							}
							continue
						}
						for i := span.Off; i < span.Off+span.Len; i++ {
							covered[span.Where][i]++
						}
					}
				}
				for where, times := range covered {
					for i, k := range times {
						if k != 1 {
							t.Fatalf("%s %s %+v count %d rank %d: element %d of buffer %d is in %d chunks", op, name, p, count, rank, i, where, k)
						}
					}
				}
			}
		}
	})
}

// A chunk is the same range of the operation's data on both sides: what the
// source's In has at the one offset the receiver's Out must have at the other.
func TestPlacesAgreeBetweenRanks(t *testing.T) {
	const n, count = 4, 4 * 96
	for _, c := range []struct {
		op                         Op
		block, sender, receiver    int
		wantIn, wantOut, wantElems int
	}{
		{AllReduce, 2, 3, 1, 192, 192, 96},
		{Broadcast, 0, 1, 3, 0, 0, 384},
		{AllGather, 2, 2, 0, 0, 192, 96},
		{ReduceScatter, 2, 0, 2, 192, 0, 96},
		{AllToAll, 3*n + 1, 3, 1, 96, 288, 96},
		{Gather, 2, 2, 1, 0, 192, 96},
		{Scatter, 2, 1, 2, 192, 0, 96},
		{SendRecv, 3, 3, 0, 0, 0, 384},
	} {
		name := Algorithms(c.op)[0]
		shape := mustNew(t, c.op, name, Params{Ranks: n, Root: 1}).Shape()
		in, _ := Place(c.op, shape, c.sender, 1, c.block, count, 4)
		_, out := Place(c.op, shape, c.receiver, 1, c.block, count, 4)
		if want := (Span{In, c.wantIn, c.wantElems}); in != want {
			t.Errorf("%s: block %d is at %+v at its sender, want %+v", c.op, c.block, in, want)
		}
		if want := (Span{Out, c.wantOut, c.wantElems}); out != want {
			t.Errorf("%s: block %d is at %+v at its receiver, want %+v", c.op, c.block, out, want)
		}
	}
}

// Where the sizes are free, chunks start on cache lines.
func TestChunksStartOnCacheLines(t *testing.T) {
	shape := Shape{Ranks: 3, Blocks: 3, Pieces: 4, Channels: 1}
	for elem := 1; elem <= 8; elem *= 2 {
		for c := range shape.Chunks() {
			if off, n := shape.Span(AllReduce, c, 10007, elem); n > 0 && off*int64(elem)%lineBytes != 0 {
				t.Errorf("elements of %d bytes: chunk %d starts at element %d", elem, c, off)
			}
		}
	}
	// Sizes beyond 2^32 elements.
	if off, n := shape.Span(AllReduce, shape.Chunks()-1, 3<<40, 4); off+n != 3<<40 || n != 1<<38 {
		t.Errorf("last chunk of 3 Ti elements: offset %d, %d elements", off, n)
	}
}
