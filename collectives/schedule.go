package collectives

// Kind is what a step does with its chunk.
type Kind uint8

const (
	// Send gives the chunk, as it stands, to the peer.
	Send Kind = iota
	// Recv overwrites the chunk with what the peer sent.
	Recv
	// Combine reduces what the peer sent into the chunk.
	Combine
)

// String is the kind's name in messages and printed schedules.
func (k Kind) String() string {
	switch k {
	case Send:
		return "send"
	case Recv:
		return "recv"
	}
	return "combine"
}

// Step is one action of one rank. The n-th Send of rank a to rank b meets the
// n-th Recv or Combine of rank b from rank a, and both name the same chunk.
type Step struct {
	Kind        Kind
	Peer, Chunk int32
}

// Shape says how a schedule cuts the buffer. A buffer is Blocks blocks of
// Pieces pieces; chunk c is piece c%Pieces of block c/Pieces. In AllToAll a
// chunk's block is source*ranks+destination, so Blocks is ranks². Chunk c
// travels on channel (c%Pieces)%Channels; 1 ≤ Channels ≤ Pieces.
type Shape struct {
	Ranks, Blocks, Pieces, Channels int
	// Buffered says that some chunk is sent both ways between two ranks before
	// either combines: a Send must then complete without its receiver's help (the
	// data is copied out, or a rewrite of the chunk first takes in what the peer
	// sent). All other schedules also run where a Send completes only once the
	// receiver has taken it and a rewrite waits for that; Check proves it.
	Buffered bool
	// Period is the least number by which ranks can be moved, all at once and round
	// the end, so that they do the same as before but for the block that a chunk is
	// of. 0: there is none. Simulate need not look at more ranks than that.
	Period int
}

// Chunks is how many chunks the buffer has.
func (s Shape) Chunks() int { return s.Blocks * s.Pieces }

// Schedule is an algorithm as data: a pure function of rank and step number.
// It holds no more than a few integers, so that a schedule for 10 000 ranks
// costs nothing; Step is O(1) or O(log ranks).
type Schedule interface {
	Shape() Shape
	Len(rank int) int
	Step(rank, i int) Step
}
