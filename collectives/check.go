package collectives

import (
	"errors"
	"fmt"
	"iter"
)

// maxStates bounds how many chunks' contents Check follows at once (16 bytes
// each). A schedule with more is walked once for each part of its chunks.
const maxStates = 1 << 24

// maxDetail is the most ranks for which a failed Check says whose input is
// wrong: that needs a counter for each pair of ranks.
const maxDetail = 4096

// held is what a chunk holds at a rank: how many inputs, and the sum of their
// tags modulo 2^64. As tags are pseudo-random, two different multisets of inputs
// with the same count have the same sum with probability 2^-64.
type held struct {
	sum   uint64
	count int64
}

// tag is splitmix64 (Steele, Lea and Flood, 2014) of the rank.
func tag(rank int) uint64 {
	z := (uint64(rank) + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

var errNotHeld = errors.New("the rank does not hold the chunk")

// Check proves that a schedule does the operation: run with every rank's input
// in place, in whatever order the ranks proceed, it ends, every message meets
// its receive, and every chunk of every result holds exactly the inputs it
// should, each once. Unless the schedule's shape says Buffered, it also proves
// that no rank waits for ever where a send completes only when it is received.
func Check(op Op, s Schedule, root int) error {
	shape := s.Shape()
	switch {
	case shape.Ranks < 1 || shape.Blocks < 1 || shape.Pieces < 1 || shape.Channels < 1 || shape.Channels > shape.Pieces:
		return fmt.Errorf("%s: %d ranks, %d blocks, %d pieces, %d channels is not a shape", op, shape.Ranks, shape.Blocks, shape.Pieces, shape.Channels)
	case op.Rooted() && (root < 0 || root >= shape.Ranks):
		return fmt.Errorf("%s: root %d is not one of the %d ranks", op, root, shape.Ranks)
	case op == AllToAll && shape.Blocks != shape.Ranks*shape.Ranks, op != AllToAll && (op.Blocked() || op == SendRecv) && shape.Blocks != shape.Ranks:
		return fmt.Errorf("%s of %d ranks cannot have %d blocks", op, shape.Ranks, shape.Blocks)
	}
	window := max(1, maxStates/shape.Ranks)
	for from := 0; from < shape.Chunks(); from += window {
		if err := checkChunks(op, s, root, from, min(from+window, shape.Chunks())); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	return nil
}

// checkChunks follows the contents of the chunks in [from, until).
func checkChunks(op Op, s Schedule, root, from, until int) error {
	shape := s.Shape()
	n, width := shape.Ranks, until-from
	state := make([]held, n*width)
	for r := range n {
		mine := held{tag(r), 1}
		for c := range inputs(op, shape, r, root).chunks(shape, from, until) {
			state[r*width+c-from] = mine
		}
	}
	at := func(rank int, st Step) *held {
		if c := int(st.Chunk); c >= from && c < until {
			return &state[rank*width+c-from]
		}
		return nil
	}
	w := walker[held]{s: s, synchronous: !shape.Buffered}
	w.send = func(rank int, st Step) (held, error) {
		h := at(rank, st)
		if h == nil {
			return held{}, nil
		}
		if h.count == 0 {
			return held{}, errNotHeld
		}
		return *h, nil
	}
	w.receive = func(rank int, st Step, load held) error {
		switch h := at(rank, st); {
		case h == nil:
		case st.Kind == Recv:
			*h = load
		case h.count == 0:
			return errNotHeld
		default:
			*h = held{h.sum + load.sum, h.count + load.count}
		}
		return nil
	}
	if err := w.run(); err != nil {
		return err
	}
	var all held
	for r := range n {
		all = held{all.sum + tag(r), all.count + 1}
	}
	for r := range n {
		for c := range outputs(op, shape, r, root).chunks(shape, from, until) {
			want := all
			if !op.Reduces() {
				want = held{tag(source(op, shape, root, c/shape.Pieces)), 1}
			}
			if got := state[r*width+c-from]; got != want {
				return explain(op, s, root, r, c, got)
			}
		}
	}
	return nil
}

// chunks yields the chunks in [from, until) of the blocks.
func (b blockSet) chunks(s Shape, from, until int) iter.Seq[int] {
	return func(yield func(int) bool) {
		skip := max(0, (from/s.Pieces-b.first)/b.stride)
		for i := skip; i < b.count; i++ {
			first := (b.first + i*b.stride) * s.Pieces
			if first >= until {
				return
			}
			for c := max(first, from); c < min(first+s.Pieces, until); c++ {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// source is the rank whose input a block of a copying operation is.
func source(op Op, s Shape, root, block int) int {
	switch op {
	case Broadcast, Scatter:
		return root
	case AllToAll:
		return block / s.Ranks
	}
	return block // all_gather, gather, sendrecv
}

// explain walks once more with a counter per input for the one chunk that is
// wrong, to say whose input is lost, doubled or misplaced.
func explain(op Op, s Schedule, root, rank, chunk int, got held) error {
	shape := s.Shape()
	n, block := shape.Ranks, chunk/shape.Pieces
	if n > maxDetail {
		return fmt.Errorf("rank %d chunk %d holds %d inputs, or not those it should", rank, chunk, got.count)
	}
	state := make([][]int32, n)
	for r := range n {
		state[r] = make([]int32, n)
		if inputs(op, shape, r, root).has(block) {
			state[r][r] = 1
		}
	}
	w := walker[[]int32]{s: s}
	w.send = func(r int, st Step) ([]int32, error) {
		if int(st.Chunk) != chunk {
			return nil, nil
		}
		return append([]int32(nil), state[r]...), nil
	}
	w.receive = func(r int, st Step, load []int32) error {
		if int(st.Chunk) != chunk {
			return nil
		}
		if st.Kind == Recv {
			clear(state[r])
		}
		for i, k := range load {
			state[r][i] += k
		}
		return nil
	}
	if err := w.run(); err != nil {
		return err
	}
	for i, k := range state[rank] {
		if want := op.Reduces() || i == source(op, shape, root, block); want && k != 1 {
			return fmt.Errorf("rank %d chunk %d holds rank %d's input %d times, wants once", rank, chunk, i, k)
		} else if !want && k != 0 {
			return fmt.Errorf("rank %d chunk %d holds rank %d's input %d times, wants none", rank, chunk, i, k)
		}
	}
	return fmt.Errorf("rank %d chunk %d: the inputs' tags add up wrongly, though every input is there once", rank, chunk)
}
