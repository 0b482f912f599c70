package collectives

// lineBytes is the alignment of chunks inside a buffer: a cache line, which is
// also one AVX-512 vector, so that kernels start aligned on every chunk.
const lineBytes = 64

// Span is the range of S, in elements, that a chunk covers when S has count
// elements of elemSize bytes. For the blocked operations count is a multiple
// of the ranks and every block has exactly count/ranks elements; sendrecv has
// one block of count elements for each sender (so it starts at 0 of its own S);
// otherwise the blocks divide S and are rounded up to whole cache lines, so that
// the later ones may be shorter or empty. Pieces divide their block in the same
// way. In alltoall the offset is that of the block's destination, its place in
// the sender's buffer.
func (s Shape) Span(op Op, chunk int, count int64, elemSize int) (off, n int64) {
	line := int64(max(1, lineBytes/elemSize))
	block, piece := int64(chunk/s.Pieces), int64(chunk%s.Pieces)
	length := s.BlockLen(op, count, elemSize)
	switch {
	case op == AllToAll:
		block %= int64(s.Ranks)
	case op == SendRecv:
		block = 0
	}
	off = min(block*length, count)
	end := min(off+length, count)
	step := roundUp((length+int64(s.Pieces)-1)/int64(s.Pieces), line)
	from := min(off+piece*step, end)
	return from, min(from+step, end) - from
}

// BlockLen is how many elements a full block has.
func (s Shape) BlockLen(op Op, count int64, elemSize int) int64 {
	switch {
	case op.Blocked():
		return count / int64(s.Ranks)
	case op == SendRecv:
		return count
	}
	blocks := int64(s.Blocks)
	if blocks == 1 {
		return count
	}
	return roundUp((count+blocks-1)/blocks, int64(max(1, lineBytes/elemSize)))
}

// Place says where a chunk lives at a rank. in is the rank's own input for it
// (Nowhere if it has none: then a Send must come after a Recv); out is where the
// chunk is once a step has written it: in Out if the rank's result has it,
// otherwise in Work, at the chunk's offset in S, so that Work never exceeds S. A
// chunk with an input whose out is in Out and that no step writes is copied by
// the rank itself. Offsets are from the start of that buffer, out of place.
func Place(op Op, s Shape, rank, root, chunk int, count int64, elemSize int) (in, out Span) {
	off, n := s.Span(op, chunk, count, elemSize)
	block := chunk / s.Pieces
	at := func(w Where, off int64) Span { return Span{Where: w, Off: int(off), Len: int(n)} }
	length := s.BlockLen(op, count, elemSize)
	within := off - min(int64(block)*length, off) // offset in the chunk's own block, for buffers of one block
	in, out = at(Nowhere, 0), at(Work, off)
	if inputs(op, s, rank, root).has(block) {
		in = at(In, off)
		if op == AllGather || op == Gather {
			in.Off = int(within)
		}
	}
	if outputs(op, s, rank, root).has(block) {
		out = at(Out, off)
		switch op {
		case ReduceScatter, Scatter:
			out.Off = int(within)
		case AllToAll:
			source := int64(block / s.Ranks)
			out.Off = int(source*length + off - int64(block%s.Ranks)*length)
		}
	}
	return in, out
}

// blockSet is count blocks, from first on, stride apart.
type blockSet struct{ first, count, stride int }

func (b blockSet) has(block int) bool {
	d := block - b.first
	return d >= 0 && d%b.stride == 0 && d/b.stride < b.count
}

// inputs is the blocks that the rank's input has.
func inputs(op Op, s Shape, rank, root int) blockSet {
	switch op {
	case AllReduce, Reduce, ReduceScatter:
		return blockSet{0, s.Blocks, 1}
	case Broadcast, Scatter:
		if rank != root {
			return blockSet{0, 0, 1}
		}
		return blockSet{0, s.Blocks, 1}
	case AllToAll:
		return blockSet{rank * s.Ranks, s.Ranks, 1}
	}
	return blockSet{rank, 1, 1} // all_gather, gather, sendrecv: its own
}

// outputs is the blocks that the rank's result has.
func outputs(op Op, s Shape, rank, root int) blockSet {
	switch op {
	case AllReduce, Broadcast, AllGather:
		return blockSet{0, s.Blocks, 1}
	case Reduce, Gather:
		if rank != root {
			return blockSet{0, 0, 1}
		}
		return blockSet{0, s.Blocks, 1}
	case AllToAll:
		return blockSet{rank, s.Ranks, s.Ranks}
	case SendRecv:
		return blockSet{mod(rank-1, s.Ranks), 1, 1} // rank r sends to r+1
	}
	return blockSet{rank, 1, 1} // reduce_scatter, scatter: its own
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
