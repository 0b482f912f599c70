package collectives

import "busbw/collectives/reduce"

// emit appends an instruction.
func (b *builder) emit(in instr) {
	if b.first < 0 && in.code != wireSend && in.code != postNote {
		b.first = len(b.p.code)
	}
	b.p.code = append(b.p.code, in)
}

// spot is where this rank, or that of another cell, has the chunk.
func (b *builder) spot(rank int, cell int32, chunk int32, w Where) (spot, int64) {
	in, out := b.c.place(rank, int(chunk))
	size := int64(b.c.Dtype.Size())
	span := out
	switch {
	case w == In:
		span = in
	case w == Work && out.Where != Work: // a result that dodged its place
		off, _ := b.c.Schedule.Shape().Span(b.c.Op, int(chunk), b.c.Count, b.c.Dtype.Size())
		span.Off = int(off)
	}
	s := spot{off: int64(span.Off) * size, cell: cell, where: w}
	n := int64(span.Len) * size
	if cell == b.cell {
		b.p.need[w] = max(b.p.need[w], s.off+n)
	}
	return s, n
}

func (b *builder) own(chunk int32, w Where) (spot, int64) { return b.spot(b.me, b.cell, chunk, w) }

// await makes sure that the partner has done want steps.
func (b *builder) await(q *partner, want, chunk int32) {
	if b.known[q.cell] >= want {
		return
	}
	b.known[q.cell] = want
	b.emit(instr{code: awaitSteps, cell: q.cell, peer: int32(q.rank), chunk: chunk, want: want, steps: b.done()})
}

// done is the steps that are done after the last instruction so far.
func (b *builder) done() int32 {
	if n := len(b.p.code); n > 0 {
		return b.p.code[n-1].steps
	}
	return 0
}

// repay waits until nobody reads the chunk in the places that bits names.
func (b *builder) repay(chunk int32, set uint8) {
	keep := b.loans[chunk][:0]
	for _, l := range b.loans[chunk] {
		switch {
		case l.bits&set == 0:
			keep = append(keep, l)
		case l.q.cell >= 0:
			b.await(l.q, l.want, chunk)
		default:
			b.emit(instr{code: wireSent, peer: int32(l.q.rank), chunk: chunk, n: b.wired[l.q.rank] - l.n, steps: b.done()})
		}
	}
	b.loans[chunk] = keep
}

// alias says whether the chunk's input and result are the same memory.
func (b *builder) alias(chunk int32) bool {
	in, out := b.c.place(b.me, int(chunk))
	return b.c.InPlace && in.Where == In && out.Where == Out
}

// task emits one pass over memory. t is the touch that it performs, nil for a
// plain copy to others.
func (b *builder) task(t *touch, src, dst []spot, size int64, steps int32) {
	p := b.p
	k := task{p: p, src: int32(len(p.spots)), dst: int32(len(p.spots) + len(src)), size: size}
	p.spots = append(append(p.spots, src...), dst...)
	k.end = int32(len(p.spots))
	p.most = max(p.most, len(src), len(dst))
	total := b.c.Count * int64(b.c.Dtype.Size())
	if len(src) > 1 { // in place a destination is a source, and so in the caches
		k.stream = !b.c.InPlace && total >= streamCombine
	} else {
		k.stream = total >= streamCopy
	}
	if b.helpers && size >= shareFrom {
		k.block = roundUp(max(shareBlock, (size+maxBlocks-1)/maxBlocks), pageBytes)
	}
	p.tasks = append(p.tasks, k)
	if t != nil {
		b.writer[t.Chunk] = len(p.code)
		if t.Kind == Combine {
			b.combiner[t.Chunk], b.partial[t.Chunk] = len(p.code), false
		}
	}
	in := instr{code: doTask, mark: true, peer: -1, chunk: -1, task: int32(len(p.tasks) - 1), steps: steps}
	if t != nil {
		in.chunk = t.Chunk
	}
	b.emit(in)
}

// keep notes that what wrote the chunk will be read again: it belongs in the caches.
func (b *builder) keep(chunk int32) {
	if w := b.writer[chunk]; w >= 0 && b.p.code[w].code == doTask {
		b.p.tasks[b.p.code[w].task].stream = false
	}
}

// fromWire compiles a receive from another process.
func (b *builder) fromWire(t *touch) {
	b.repay(t.Chunk, placeBits(t.loc, b.alias(t.Chunk)))
	to, size := b.own(t.Chunk, t.loc)
	in := instr{code: wireRecv, mark: true, peer: t.Peer, chunk: t.Chunk, at: to, size: size, steps: int32(t.index + 1)}
	b.writer[t.Chunk] = len(b.p.code)
	if t.Kind == Combine {
		in.code = wireReduce
		in.a, _ = b.own(t.Chunk, t.from)
		b.combiner[t.Chunk], b.partial[t.Chunk] = len(b.p.code), false
	}
	b.emit(in)
}

// settle ends the program: results that dodged their place are moved there, and
// nobody may still be reading our buffers.
func (b *builder) settle() {
	steps := int32(b.c.Schedule.Len(b.me))
	for chunk := range b.final {
		if _, out := b.c.place(b.me, chunk); b.final[chunk].loc == Work && out.Where == Out && out.Len > 0 {
			b.repay(int32(chunk), placeBits(Out, b.alias(int32(chunk))))
			from, size := b.own(int32(chunk), Work)
			to, _ := b.own(int32(chunk), Out)
			b.task(nil, []spot{from}, []spot{to}, size, steps)
		}
	}
	want := make([]int32, len(b.known))
	wired := make([]bool, b.p.ranks)
	for _, loans := range b.loans {
		for _, l := range loans {
			if l.q.cell < 0 {
				wired[l.q.rank] = true
			} else {
				want[l.q.cell] = max(want[l.q.cell], l.want)
			}
		}
	}
	for q := range b.p.ranks {
		switch cell := b.index[q]; {
		case wired[q]:
			b.emit(instr{code: wireSent, peer: int32(q), chunk: -1, steps: steps})
		case cell >= 0 && want[cell] > 0:
			b.await(b.partners[q], want[cell], -1)
		}
	}
}

// finishing has the last combination of each chunk divide by the ranks, where
// the operator is the average.
func (b *builder) finishing() {
	if b.c.Redop != reduce.Avg || !b.c.Op.Reduces() {
		return
	}
	for chunk, at := range b.combiner {
		if at < 0 || b.partial[chunk] {
			continue
		}
		if in := &b.p.code[at]; in.code == doTask {
			b.p.tasks[in.task].finish = true
		} else {
			in.finish = true
		}
	}
}

// ownCopies moves inputs that are results as they stand. It happens where the
// rank would first wait, after it has given the others what they wait for.
func (b *builder) ownCopies() {
	at := b.first
	if at < 0 {
		at = len(b.p.code)
	}
	rest := append([]instr(nil), b.p.code[at:]...)
	b.p.code = b.p.code[:at]
	var from, to spot
	var size int64
	flush := func() {
		if size > 0 {
			b.task(nil, []spot{from}, []spot{to}, size, b.done())
		}
		size = 0
	}
	for chunk := range b.final {
		in, out := b.c.place(b.me, chunk)
		if in.Where != In || out.Where != Out || out.Len == 0 || b.final[chunk].written > 0 || b.covered[chunk] || b.alias(int32(chunk)) {
			continue
		}
		f, n := b.own(int32(chunk), In)
		t, _ := b.own(int32(chunk), Out)
		if size == 0 || f.off != from.off+size || t.off != to.off+size {
			flush()
			from, to = f, t
		}
		size += n
	}
	flush()
	b.p.code = append(b.p.code, rest...)
}
