package collectives

import (
	"fmt"
	"slices"
	"sort"
)

// pushes says whether the sender of step i, within its process, writes the chunk
// into the receiver's buffer, rather than the receiver fetching it. It does so
// where that saves reading: when it has just combined the chunk, or when it sends
// it to several. Both sides ask this one function, and both then check that the
// receiver's place is free from the start (touch.free).
func (t *tracer) pushes(rank, i int) bool {
	s := t.c.Schedule.Step(rank, i)
	if i > 0 {
		prev := t.c.Schedule.Step(rank, i-1)
		if prev.Chunk == s.Chunk && (prev.Kind == Send || prev.Kind == Combine && t.team.local(rank, int(prev.Peer))) {
			return true
		}
	}
	if i+1 < t.c.Schedule.Len(rank) {
		next := t.c.Schedule.Step(rank, i+1)
		return next.Chunk == s.Chunk && next.Kind == Send
	}
	return false
}

// run is how many touches, from the first on, are of one kind (receives in memory
// or sends), on one chunk, and directly behind each other.
func (b *builder) run(ts []touch, kind Kind) int {
	n := 1
	for n < len(ts) && ts[n].Kind == kind && ts[n].Chunk == ts[0].Chunk && ts[n].index == ts[n-1].index+1 && (kind == Send || b.index[ts[n].Peer] >= 0) {
		n++
	}
	return n
}

// fromMemory compiles receives from ranks of the process: a Recv, or as many
// Combines of one chunk as follow each other, then the sends of the result. It
// returns how many touches it took.
func (b *builder) fromMemory(ts []touch) (int, error) {
	n := 1
	if ts[0].Kind == Combine {
		n = b.run(ts, Combine)
	}
	t := &ts[n-1]
	set := placeBits(t.loc, b.alias(t.Chunk))
	to, size := b.own(t.Chunk, t.loc)
	var src []spot
	var rank []int // of each source
	if t.Kind == Combine {
		own, _ := b.own(t.Chunk, ts[0].from)
		src, rank = append(src, own), append(rank, b.me)
	}
	for i := range ts[:n] {
		q := b.partners[int(ts[i].Peer)]
		if q.recvd >= len(q.sends) || q.sends[q.recvd].Chunk != t.Chunk {
			return 0, fmt.Errorf("step %d: rank %d does not send chunk %d", ts[i].index, q.rank, t.Chunk)
		}
		s := &q.sends[q.recvd]
		q.recvd++
		switch {
		case s.note >= 0:
			b.emit(instr{code: awaitNote, cell: q.cell, peer: int32(q.rank), chunk: t.Chunk, note: s.note, steps: b.done()})
			src = append(src, spot{off: int64(s.note), cell: q.cell, where: mail})
		case t.Kind == Recv && s.push && b.pushed(q, s, t):
			b.await(q, int32(s.index+1), t.Chunk)
			b.writer[t.Chunk] = -1
			if t.again {
				b.p.code[len(b.p.code)-1].mark, b.p.code[len(b.p.code)-1].steps = true, int32(t.index+1)
			}
			return 1, nil
		default:
			b.await(q, s.ready, t.Chunk)
			from, _ := b.spot(q.rank, q.cell, t.Chunk, s.loc)
			src = append(src, from)
		}
		rank = append(rank, q.rank)
	}
	b.repay(t.Chunk, set)
	sortBy(src, rank)
	dst := []spot{to}
	if n == len(ts) || t.Kind == Recv || ts[n].Kind != Send || ts[n].Chunk != t.Chunk || ts[n].index != t.index+1 {
		b.task(t, src, dst, size, int32(t.index+1))
		return n, nil
	}
	sent, err := b.sends(ts[n:], &pass{t: t, src: src, dst: dst, size: size})
	return n + sent, err
}

// pushed says whether the partner writes the chunk that we receive as t, sent as
// s, into our buffer: our place must be free, and of our sends that read it the
// partner must have had the last before.
func (b *builder) pushed(q *partner, s, t *touch) bool {
	before := sort.Search(len(q.recvs), func(i int) bool { return q.recvs[i].index >= s.index }) // they are in the order of steps
	return t.free && t.last < int32(before)
}

// pass is a combination that its sends may join.
type pass struct {
	t        *touch
	src, dst []spot
	size     int64
}

// sends compiles sends of one chunk that follow each other: those that are
// pushed make one pass, together with the combination before them if there is
// one; the others are posted, or left for the receiver to fetch.
func (b *builder) sends(ts []touch, before *pass) (int, error) {
	n := b.run(ts, Send)
	steps := int32(ts[n-1].index + 1)
	chunk := ts[0].Chunk
	if before == nil {
		from, size := b.own(chunk, ts[0].loc)
		before = &pass{src: []spot{from}, size: size}
	}
	if before.t == nil {
		b.keep(chunk)
	}
	final, partial := true, false
	var later []instr
	posted := int32(-1)
	var pushed []*partner
	for i := range ts[:n] {
		t := &ts[i]
		q := b.partners[int(t.Peer)]
		to := &touch{}
		if q.cell >= 0 || q.recvs != nil {
			if q.sent >= len(q.recvs) || q.recvs[q.sent].Chunk != chunk {
				return 0, fmt.Errorf("step %d: rank %d does not receive chunk %d", t.index, q.rank, chunk)
			}
			to = &q.recvs[q.sent]
			q.sent++
		}
		partial = partial || to.Kind == Combine
		at, size := b.own(chunk, t.loc)
		loan := lent{q: q, bits: placeBits(t.loc, b.alias(chunk)), want: int32(to.index + 1)}
		switch {
		case q.cell < 0:
			b.wired[q.rank]++
			loan.n = b.wired[q.rank]
			later = append(later, instr{code: wireSend, mark: true, peer: t.Peer, chunk: chunk, at: at, size: size, steps: int32(t.index + 1)})
			b.loans[chunk] = append(b.loans[chunk], loan)
			final = false
		case t.note >= 0:
			if t.note != posted {
				later = append(later, instr{code: postNote, peer: -1, chunk: chunk, note: t.note, at: at, size: size, steps: steps})
				posted = t.note
			}
			b.reads(q.cell)
		case t.push && to.Kind == Recv && to.free && to.last < int32(q.recvd):
			spot, _ := b.spot(q.rank, q.cell, chunk, to.loc)
			before.dst = append(before.dst, spot)
			pushed = append(pushed, q)
			final = final && !to.again
		default:
			b.loans[chunk] = append(b.loans[chunk], loan)
			final = false
		}
	}
	if before.t == nil {
		for i := range later {
			later[i].mark = pushed == nil // else what is pushed is still to come
		}
		b.emitAll(later) // first: the wire moves while the copy is made
		later = nil
	}
	for _, q := range pushed {
		b.await(q, 0, chunk)
	}
	if before.t == nil && pushed != nil {
		b.cover(chunk, before)
	}
	if before.dst != nil {
		b.task(before.t, before.src, before.dst, before.size, steps)
		b.p.tasks[len(b.p.tasks)-1].stream = b.p.tasks[len(b.p.tasks)-1].stream && final
	}
	b.emitAll(later)
	if partial {
		b.partial[chunk] = b.writer[chunk] == b.combiner[chunk]
	}
	return n, nil
}

func (b *builder) emitAll(list []instr) {
	for _, in := range list {
		b.emit(in)
	}
}

// reads notes that a cell's rank reads our letters.
func (b *builder) reads(cell int32) {
	b.p.posts = true
	if !slices.Contains(b.p.readers, cell) {
		b.p.readers = append(b.p.readers, cell)
	}
}

// cover lets a copy of our own input to others also make our own result.
func (b *builder) cover(chunk int32, p *pass) {
	in, out := b.c.place(b.me, int(chunk))
	if b.final[chunk].written == 0 && in.Where == In && out.Where == Out && !b.alias(chunk) && !b.covered[chunk] {
		b.covered[chunk] = true
		own, _ := b.own(chunk, Out)
		p.dst = append(p.dst, own)
	}
}

// sortBy puts the sources into the order of their ranks, so that the result has
// the same bits at every rank that combines the same sources.
func sortBy(src []spot, rank []int) {
	for i := 1; i < len(src); i++ {
		for j := i; j > 0 && rank[j] < rank[j-1]; j-- {
			src[j], src[j-1] = src[j-1], src[j]
			rank[j], rank[j-1] = rank[j-1], rank[j]
		}
	}
}
