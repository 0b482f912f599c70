package collectives

import (
	"fmt"

	"busbw/collectives/reduce"
)

// Sizes from which on things are done differently; measured on a 2-core AVX-512 machine
// with 2 MiB of L2 a core (docs/performance.md).
const (
	streamCombine = 1 << 20  // S from which combined results bypass the caches
	streamCopy    = 4 << 20  // S from which copies do
	shareFrom     = 64 << 10 // bytes of a task from which on waiting ranks help
	shareBlock    = 32 << 10 // the least that is worth handing over
	maxBlocks     = 32       // of a shared task: as many as a claim has bits
	pageBytes     = 4096     // blocks are whole pages
)

// partner is what the compiling rank must know of another's program: the steps
// that the two have with each other.
type partner struct {
	rank         int
	cell         int32 // −1: on the wire
	sends, recvs []touch
	sent, recvd  int // of ours, so far: our n-th send meets recvs[n]
}

// lent is a send that may still be reading a chunk.
type lent struct {
	q    *partner
	bits uint8
	want int32  // cell's steps after which it has been read
	n    uint64 // sends on the wire
}

// builder compiles one program.
type builder struct {
	tracer
	p        *Program
	me       int
	cell     int32
	index    []int32 // cell of each team rank
	partners map[int]*partner
	loans    map[int32][]lent // by chunk
	known    []int32          // by cell: steps that this program has awaited already; −1: none
	final    []chunkState
	covered  []bool // chunks whose own copy a task makes by the way
	writer   []int  // by chunk: the instruction that wrote its present state, −1: none
	combiner []int  // by chunk: its last combining instruction, −1: none
	partial  []bool // by chunk: what that made was sent to be combined further
	wired    map[int]uint64
	first    int  // index of the first instruction that may block, −1: none yet
	helpers  bool // ranks that wait may take part in a task
}

func (r *Rank) compile(c Case) (*Program, error) {
	if err := c.check(len(r.team.Global)); err != nil {
		return nil, err
	}
	p := &Program{c: c, ranks: len(r.team.Global)}
	if c.Op.Reduces() {
		p.kernels = reduce.For(c.Dtype, c.Redop)
	}
	chunks := c.Schedule.Shape().Chunks()
	b := &builder{tracer: tracer{c: &p.c, team: &r.team, small: c.small() && r.dev == nil}, p: p, me: r.team.Me, cell: r.me, index: r.meet.index,
		partners: map[int]*partner{}, loans: map[int32][]lent{}, known: make([]int32, len(r.meet.cells)),
		covered: make([]bool, chunks), writer: make([]int, chunks), combiner: make([]int, chunks), partial: make([]bool, chunks), wired: map[int]uint64{}, first: -1, helpers: len(r.meet.cells) > 1 && r.dev == nil}
	for i := range b.known {
		b.known[i] = -1
	}
	for i := range b.writer {
		b.writer[i], b.combiner[i] = -1, -1
	}
	if err := b.meetPartners(); err != nil {
		return nil, err
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	p.passes = p.passesOn()
	p.lookAhead(b.line())
	if r.wire != nil && r.wire.expecter != nil && len(r.meet.cells) == 1 && r.dev == nil {
		p.landing = p.landings()
	}
	return p, nil
}

// meetPartners traces every rank that this one has steps with.
func (b *builder) meetPartners() error {
	s := b.c.Schedule
	b.p.quiet = true
	for i := range s.Len(b.me) {
		t := s.Step(b.me, i)
		q := int(t.Peer)
		if q < 0 || q >= b.p.ranks || q == b.me || t.Chunk < 0 || int(t.Chunk) >= len(b.writer) {
			return fmt.Errorf("step %d: peer %d chunk %d does not exist", i, t.Peer, t.Chunk)
		}
		if b.partners[q] != nil {
			continue
		}
		p := &partner{rank: q, cell: b.index[q]}
		b.partners[q] = p
		// Of a rank on the wire only whether it combines matters, and that only
		// for the average: it tells which result is the last.
		if p.cell < 0 && b.c.Redop != reduce.Avg {
			continue
		}
		touches, _ := b.trace(q, b.me)
		for _, t := range touches {
			if t.Kind == Send {
				p.sends = append(p.sends, t)
				b.p.quiet = b.p.quiet && (p.cell < 0 || t.note >= 0)
			} else {
				p.recvs = append(p.recvs, t)
			}
		}
	}
	return nil
}

// line says whether the rank has all chunks from one other rank at most, and gives
// them to one at most.
func (b *builder) line() bool {
	from, to := 0, 0
	for _, q := range b.partners {
		from, to = from+min(1, len(q.sends)), to+min(1, len(q.recvs))
	}
	return from <= 1 && to <= 1
}

// build walks the rank's own steps, grouping those that make one pass.
func (b *builder) build() error {
	touches, final := b.trace(b.me, -1)
	b.final = final
	for i := range touches {
		t := &touches[i]
		if t.Kind == Send && b.index[t.Peer] >= 0 && t.note < 0 {
			b.p.quiet = false
		}
		_, size := b.own(t.Chunk, t.loc)
		b.p.shared = b.p.shared || size >= shareFrom && b.helpers
	}
	for i := 0; i < len(touches); {
		var n int
		var err error
		switch t := &touches[i]; {
		case t.Kind == Send:
			n, err = b.sends(touches[i:], nil)
		case b.index[t.Peer] < 0:
			n = 1
			b.fromWire(t)
		default:
			n, err = b.fromMemory(touches[i:])
		}
		if err != nil {
			return err
		}
		i += n
	}
	b.settle()
	b.finishing()
	b.ownCopies()
	return nil
}
