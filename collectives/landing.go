package collectives

// Expecter is a Link that writes a span straight to its place when it hears of
// the place early enough.
type Expecter interface {
	// Expect says that after skip more bytes from peer, counted from what Recv
	// and Reduce have taken so far, Recv will be called with exactly p, and that
	// p may be written from now on. It is a hint: the link may ignore it.
	Expect(peer int, skip uint64, p []byte) error
}

// landing is a span that a program receives into memory that nothing before it
// reads or writes, so that it may arrive as soon as the program runs.
type landing struct {
	peer int32
	skip uint64 // bytes that the program takes from the peer before it
	at   spot
	size int64
}

const (
	landFrom = 32 << 10 // bytes: shorter spans are sent before an announcement arrives
	mostLand = 8        // of one peer: links keep few
	landScan = 1 << 10  // instructions that are looked at: the first spans matter
)

// landings finds them. It is only asked of a rank that is alone in its process:
// others may read or write its buffers on their own account.
func (p *Program) landings() []landing {
	var out []landing
	var used []extent
	taken, found := map[int32]uint64{}, map[int32]int{}
	for i := range min(len(p.code), landScan) {
		in := &p.code[i]
		switch in.code {
		case doTask:
			t := &p.tasks[in.task]
			for _, s := range p.spots[t.src:t.end] {
				used = append(used, p.extent(s, t.size))
			}
		case wireReduce:
			used = append(used, p.extent(in.at, in.size), p.extent(in.a, in.size))
			taken[in.peer] += uint64(in.size)
		case wireRecv:
			e := p.extent(in.at, in.size)
			if in.size >= landFrom && found[in.peer] < mostLand && !e.meets(used) {
				out = append(out, landing{in.peer, taken[in.peer], in.at, in.size})
				found[in.peer]++
			}
			used = append(used, e)
			taken[in.peer] += uint64(in.size)
		case wireSend, postNote:
			used = append(used, p.extent(in.at, in.size))
		}
	}
	return out
}

// extent is a range of bytes of one buffer.
type extent struct {
	where    Where
	from, to int64
	all      bool // of the buffer
}

func (p *Program) extent(s spot, n int64) extent {
	e := extent{where: s.where, from: s.off, to: s.off + n}
	if p.c.InPlace && s.where == In { // the same memory as Out; where, depends on the operation
		e.where = Out
		e.all = p.c.Op == AllGather || p.c.Op == ReduceScatter
	}
	return e
}

func (e extent) meets(used []extent) bool {
	for _, u := range used {
		if u.where == e.where && (u.all || e.all || u.from < e.to && e.from < u.to) {
			return true
		}
	}
	return false
}

// expect tells the link of the program's landings.
func (r *Rank) expect(p *Program) error {
	for i := range p.landing {
		l := &p.landing[i]
		if err := r.wire.expecter.Expect(r.team.Global[l.peer], l.skip, r.bytes(l.at, l.size)); err != nil {
			return err
		}
	}
	return nil
}
