package collectives

import "busbw/collectives/reduce"

// Case is one collective as it is run: what, on how much, by which schedule.
// All members of a team compile equal cases.
type Case struct {
	Op    Op
	Dtype reduce.Dtype
	Redop reduce.Op
	Root  int
	// Count is the elements of S, the size that place.go's table speaks of.
	Count    int64
	InPlace  bool
	Schedule Schedule
}

// place is Place for the case: where a chunk lives at a rank.
func (c *Case) place(rank, chunk int) (in, out Span) {
	return Place(c.Op, c.Schedule.Shape(), rank, c.Root, chunk, c.Count, c.Dtype.Size())
}

// small says whether chunks are so small that they travel as letters.
func (c *Case) small() bool {
	s := c.Schedule.Shape()
	for chunk := range s.Chunks() {
		if _, n := s.Span(c.Op, chunk, c.Count, c.Dtype.Size()); n*int64(c.Dtype.Size()) > letterBytes {
			return false
		}
	}
	return true
}

// touch is what one step does to the memory of its rank. It follows from the
// schedule alone, so that every rank knows it of every other and nothing of it
// has to be told at run time.
type touch struct {
	Step
	index int   // of the step in its rank's schedule
	loc   Where // Send: where the chunk is read; Recv, Combine: where it is written
	from  Where // Combine: where the rank's own operand is
	ready int32 // Send: how many steps must be done before the chunk may be read
	note  int32 // Send to a rank of the same process: which letter carries it; −1: none
	push  bool  // Send: the sender writes it into the receiver's buffer (see fuse.go)
	free  bool  // Recv: nothing else of the rank is in the way of a push from the entry on
	last  int32 // Recv: of the rank's earlier sends to the peer, the last that reads the landing place; −1: none
	again bool  // Recv: the chunk is read again by a later step
}

// chunkState is where one rank's copy of a chunk is while its steps are traced.
type chunkState struct {
	loc     Where
	lent    uint8 // bit w: some send may still be reading the chunk in w
	busy    bool  // some step is in the way of a push
	written int32 // steps done when it was last written; 0: never
	note    int32 // its letter, −1: none yet
	recv    int32 // index in touches of its last Recv, −1: none
	reader  int32 // the peer of the sends that read its landing place, −1: none, −2: several
	last    int32
}

// tracer follows a rank through its schedule.
type tracer struct {
	c     *Case
	team  *Team
	small bool
}

// notes counts the letters that rank would write: one for each state of a chunk
// that it sends within its process.
func (t *tracer) notes(rank int) int {
	n := 0
	sent := make([]bool, t.c.Schedule.Shape().Chunks())
	for i := range t.c.Schedule.Len(rank) {
		s := t.c.Schedule.Step(rank, i)
		switch {
		case s.Kind != Send:
			sent[s.Chunk] = false
		case !sent[s.Chunk] && t.team.local(rank, int(s.Peer)):
			sent[s.Chunk] = true
			n++
		}
	}
	return n
}

// trace returns the touches of the steps that rank has with the peer (with all
// peers if peer is negative), in order, and where each chunk ends up.
func (t *tracer) trace(rank, peer int) (touches []touch, final []chunkState) {
	post := t.small && t.notes(rank) <= letters
	notes := int32(0)
	state := make([]chunkState, t.c.Schedule.Shape().Chunks())
	for i := range state {
		state[i] = chunkState{loc: In, note: -1, recv: -1, reader: -1, last: -1}
	}
	sends := make([]int32, len(t.team.Global)) // so far, to each rank
	for i := range t.c.Schedule.Len(rank) {
		s := t.c.Schedule.Step(rank, i)
		st := &state[s.Chunk]
		in, out := t.c.place(rank, int(s.Chunk))
		if out.Len == 0 {
			continue // an empty chunk is nobody's concern
		}
		alias := t.c.InPlace && in.Where == In && out.Where == Out
		x := touch{Step: s, index: i, note: -1, last: -1}
		mine := peer < 0 || int(s.Peer) == peer
		if s.Kind == Send {
			x.loc, x.ready = st.loc, st.written
			if st.recv >= 0 {
				touches[st.recv].again = true
			}
			if local := t.team.local(rank, int(s.Peer)); local && post {
				if st.note < 0 {
					st.note = notes
					notes++
				}
				x.note = st.note
			} else {
				st.lent |= placeBits(st.loc, alias)
				x.push = local && t.pushes(rank, i)
				if placeBits(st.loc, alias)&placeBits(out.Where, alias) != 0 {
					if st.reader == -1 || st.reader == s.Peer {
						st.reader, st.last = s.Peer, sends[s.Peer]
					} else {
						st.reader = -2
					}
				}
			}
			sends[s.Peer]++
			if mine {
				touches = append(touches, x)
			}
			continue
		}
		x.loc = out.Where
		if s.Kind == Combine {
			x.from = st.loc
			x.loc = dodge(st.lent, st.loc, out.Where, alias)
		}
		x.free = !st.busy && (st.reader == -1 || st.reader == s.Peer)
		x.last = st.last
		st.loc, st.note, st.busy, st.written, st.recv = x.loc, -1, true, int32(i+1), -1
		st.lent &^= placeBits(x.loc, alias)
		if mine {
			if s.Kind == Recv {
				st.recv = int32(len(touches))
			}
			touches = append(touches, x)
		}
	}
	return touches, state
}

// placeBits is the set of places that change when w is written; In and Out are the
// same memory where a chunk is in place.
func placeBits(w Where, alias bool) uint8 {
	if alias && (w == In || w == Out) {
		return 1<<In | 1<<Out
	}
	return 1 << w
}

// dodge chooses where a Combine writes. Two ranks that give each other the
// chunk they are about to combine would each wait for the other to have read it;
// so where a chunk is lent, the result goes to its place in Work instead.
func dodge(lent uint8, from, home Where, alias bool) Where {
	switch {
	case home != Out || lent&placeBits(Out, alias) == 0:
		return home
	case lent&placeBits(Work, alias) == 0 || from == Out:
		return Work
	}
	return home
}
