package collectives

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// ErrAborted marks errors of ranks that gave up because another one had failed:
// they are consequences, and Abort.Err is the cause.
var ErrAborted = errors.New("another rank has failed")

// Wire is a Link with the count of the spans that were sent on it, which all
// ranks objects over the same Link share.
type Wire struct {
	Link
	sent     []uint64 // by global rank
	expecter Expecter // the link, if it is one
}

// NewWire wraps the link of one rank in a job of so many global ranks.
func NewWire(l Link, ranks int) *Wire {
	e, _ := l.(Expecter)
	return &Wire{Link: l, sent: make([]uint64, ranks), expecter: e}
}

// Rank runs programs as one member of a team. One goroutine uses it; Progress
// may be called from any.
type Rank struct {
	team        Team
	hub         *Hub
	meet        *meet
	abort       *Abort
	wire        *Wire
	me          int32 // cell
	self        *cell
	run         uint64
	seen        []uint64 // by cell: the latest word that this rank knows of
	jobs        uint32   // shared tasks so far
	help        bool     // others' tasks are worth helping with
	cpu         uint64   // as in meet.cpus
	lane, lanes int      // its processor among those of the team in this process
	laned       bool     // and that is sure
	hands       hands    // for its program's tasks
	aside       hands    // for blocks of others' tasks
	program     *Program // that runs, where seats are taken
	next        int      // instruction of it
	leads       []int    // global ranks of the first of each process, where this is one of them; else nil
	lead        int      // its own place there
	token       [2]byte  // what barriers send, never changed, and receive
	dev         Device   // where its buffers are; nil: memory of this processor
	after       []uint64 // by cell: the latest word that the device's queue waits for
	begun       uint64   // programs
	runs        sign     // begun, for Progress
	await       sign     // team rank that a long wait is for + 1; 0: none

	replay   int     // recordings that it may keep; 0: none
	kept     []*kept // at the first member
	recorded uint64  // what replays.added must come to
	unkept   error   // why nothing more is recorded
}

// NewRank makes t.Me's side of a team. hub may be nil if no other member lives
// in this process, wire may be nil if all do. Every member makes its own; the
// same team may be made again later, as often by each member.
func NewRank(t Team, hub *Hub, wire *Wire, abort *Abort) (*Rank, error) {
	if err := t.valid(); err != nil {
		return nil, err
	}
	locals := len(t.locals(t.Me))
	switch {
	case hub == nil && locals > 1:
		return nil, fmt.Errorf("rank %d: %d ranks of its process but no hub for them to meet", t.Global[t.Me], locals)
	case wire == nil && locals < len(t.Global):
		return nil, fmt.Errorf("rank %d: %d ranks of other processes but no link to them", t.Global[t.Me], len(t.Global)-locals)
	case hub == nil:
		hub = NewHub(1, abort)
	}
	if locals == len(t.Global) {
		wire = nil // it has nothing to do for this team
	}
	m := hub.join(t)
	me := m.index[t.Me]
	r := &Rank{team: t, hub: hub, meet: m, abort: abort, wire: wire, me: me, self: &m.cells[me], seen: make([]uint64, len(m.cells))}
	r.run = r.self.word.Load() >> 32
	r.recorded = m.replays.added.Load()
	r.cpu = uint64(2 + Pinned())
	m.cpus[me].Store(r.cpu)
	r.hands.grow(len(m.cells) + 1)
	r.aside.grow(len(m.cells) + 1)
	if leaders := t.leaders(); slices.Contains(leaders, t.Me) {
		r.lead = slices.Index(leaders, t.Me)
		for _, q := range leaders {
			r.leads = append(r.leads, t.Global[q])
		}
	}
	return r, nil
}

// global is the name that the user knows a rank by.
func (r *Rank) global() int { return r.team.Global[r.team.Me] }

// Run runs the program once. When it returns nil, the result is complete and
// nobody needs the buffers any more. An error is final for the whole run: it is
// set in Abort, and no further Run may be tried.
func (r *Rank) Run(p *Program, b Buffers) error {
	r.run++
	r.begun++
	r.runs.Store(r.begun)
	err := p.fits(b)
	if err == nil {
		r.self.base[In], r.self.base[Out], r.self.base[Work] = unsafe.Pointer(unsafe.SliceData(b.In)), unsafe.Pointer(unsafe.SliceData(b.Out)), unsafe.Pointer(unsafe.SliceData(b.Work))
		switch {
		case r.replay > 0:
			err = explainReplay(r.again(p))
		case r.dev != nil: // also after an error: nothing may still use the buffers
			err = errors.Join(r.execute(p), r.dev.Drain())
		default:
			err = r.execute(p)
		}
	}
	if err != nil {
		err = fmt.Errorf("rank %d: %s: %w", r.global(), p.c.Op, err)
		r.abort.Set(err)
		return err
	}
	r.self.word.Store(moment(r.run, -1))
	return nil
}

// fits says whether the buffers are large enough, and whether In and Out
// overlap only where the case says so.
func (p *Program) fits(b Buffers) error {
	for i, have := range [...]int{In: len(b.In), Out: len(b.Out), Work: len(b.Work)} {
		if int64(have) < p.need[i] {
			return fmt.Errorf("%s holds %d bytes, the program needs %d", [...]string{In: "in", Out: "out", Work: "work"}[i], have, p.need[i])
		}
	}
	in, out := uintptr(unsafe.Pointer(unsafe.SliceData(b.In))), uintptr(unsafe.Pointer(unsafe.SliceData(b.Out)))
	if !p.c.InPlace && p.need[In] > 0 && p.need[Out] > 0 && in < out+uintptr(p.need[Out]) && out < in+uintptr(p.need[In]) {
		return errors.New("in and out overlap, but the case is not in place")
	}
	return nil
}

// execute interprets the program.
func (r *Rank) execute(p *Program) error {
	if p.posts {
		if err := r.emptyMail(p); err != nil {
			return err
		}
	}
	if !p.quiet {
		r.self.word.Store(moment(r.run, 0))
	}
	r.help = p.shared
	if err := r.expect(p); err != nil {
		return err
	}
	if p.passes && r.hub.crowded && len(r.meet.cells) == len(r.team.Global) && r.dev == nil {
		return r.together(p)
	}
	for i := range p.code {
		in := &p.code[i]
		var err error
		switch in.code {
		case doTask:
			if r.dev == nil {
				err = r.perform(&p.tasks[in.task])
			} else {
				err = r.queue(&p.tasks[in.task])
			}
		case awaitSteps:
			err = r.awaitWord(in.cell, moment(r.run, in.want))
			if r.dev != nil && err == nil {
				err = r.follow(in.cell)
			}
		case awaitNote:
			err = r.awaitLetter(in.cell, in.note)
		case postNote:
			r.post(in)
		case wireSend:
			peer := r.team.Global[in.peer]
			r.wire.sent[peer]++
			err = r.wire.Send(peer, r.bytes(in.at, in.size))
		case wireSent:
			peer := r.team.Global[in.peer]
			err = r.wire.WaitSent(peer, r.wire.sent[peer]-in.n)
		case wireRecv:
			err = r.wire.Recv(r.team.Global[in.peer], r.bytes(in.at, in.size))
		case wireReduce:
			to := r.bytes(in.at, in.size)
			err = r.wire.Reduce(r.team.Global[in.peer], to, r.bytes(in.a, in.size), p.kernels)
			if err == nil && in.finish {
				err = r.finish(p, to)
			}
		}
		if err != nil {
			return p.explain(r, in, err)
		}
		if in.mark {
			if r.dev != nil {
				if err := r.dev.Mark(in.steps); err != nil {
					return p.explain(r, in, err)
				}
			}
			r.self.word.Store(moment(r.run, in.steps))
		}
	}
	return nil
}

// post writes a letter.
func (r *Rank) post(in *instr) {
	l := &r.self.mail[r.run&1][in.note]
	copy(l.data[:], r.bytes(in.at, in.size))
	l.run.Store(r.run)
}

// emptyMail waits until the letters of the run before the last, which this run
// overwrites, have been read. They nearly always have, and the rank knows it.
func (r *Rank) emptyMail(p *Program) error {
	m := &r.self.mailed[r.run&1]
	for _, q := range m.readers {
		if err := r.awaitWord(q, moment(m.run, -1)); err != nil {
			return fmt.Errorf("letters of an earlier run: %w", err)
		}
	}
	m.run, m.readers = r.run, p.readers
	return nil
}

func (r *Rank) own(s spot) unsafe.Pointer { return unsafe.Add(r.self.base[s.where], s.off) }

func (r *Rank) bytes(s spot, size int64) []byte { return unsafe.Slice((*byte)(r.own(s)), size) }

// explain says at which step, with whom and on what an instruction failed.
func (p *Program) explain(r *Rank, in *instr, err error) error {
	verb := [...]string{doTask: "combine", awaitSteps: "wait for", awaitNote: "receive from", postNote: "send",
		wireSend: "send to", wireSent: "send to", wireRecv: "receive from", wireReduce: "reduce from"}[in.code]
	text := fmt.Sprintf("step %d: %s", in.steps, verb)
	if in.peer >= 0 {
		text += fmt.Sprintf(" rank %d", r.team.Global[in.peer])
	}
	if in.chunk >= 0 {
		text += fmt.Sprintf(" chunk %d", in.chunk)
	}
	return fmt.Errorf("%s: %w", text, err)
}

// Progress is how far a rank is, for those who watch over it.
type Progress struct {
	Runs    uint64 // programs begun
	Step    int    // steps of the schedule that are done in the latest; −1: all
	Waiting int    // global rank of its process that it has been waiting for for long; −1: none
}

// Progress may be called while the rank runs.
func (r *Rank) Progress() Progress {
	p := Progress{Runs: r.runs.Load(), Step: int(int32(uint32(r.self.word.Load()))), Waiting: -1}
	if q := r.await.Load(); q > 0 {
		p.Waiting = r.team.Global[q-1]
	}
	return p
}
