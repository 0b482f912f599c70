package collectives

import (
	"unsafe"
)

// Where ranks outnumber processors, the rank that could go on is seldom the one
// that has a processor, and each hop of a ring would cost a switch of threads. So
// there a rank's steps need not be done by its own thread: whoever waits takes
// the next steps of others that are ready. A rank still begins when it is called,
// and ends when its own thread finds it done.
//
// Each processor (a lane) takes the steps of the ranks that are kept to it. But
// where all pass chunks on in a line, as a ring does, it takes the steps on its
// share of the chunks, whosever they are, so that a chunk stays in its caches on
// all its way: a ring of 4 ranks and 64 KiB on 2 processors then takes 12 µs, not 22.

// Who may do a rank's steps.
const (
	seatClosed uint64 = iota // nobody: it is in no program
	seatOpen                 // whoever takes the seat
	seatDone                 // nobody any more: all are done
	seatHeld                 // whoever has it; plus the lane of its thread
)

// aloneLooks is how often a rank looks again, before it gives way, while nobody
// else needs its processor; ownLooks after how many of them it no longer leaves
// steps to the processors whose share they are.
const (
	aloneLooks = 1000
	ownLooks   = 100
)

// hands are room for the places of one task.
type hands struct{ src, dst []unsafe.Pointer }

func (h *hands) grow(n int) {
	if n > len(h.src) {
		h.src, h.dst = make([]unsafe.Pointer, n), make([]unsafe.Pointer, n)
	}
}

// seat is where a thread sits that does the steps of a rank. Only its holder
// touches the Rank's program, its place in it, seen and hands.
type seat struct {
	state sign
	rank  *Rank
	// What it waits for, since it was last left: that the word of a cell is so
	// much, or that its letter, counted from 1, is written. And the lane, counted
	// from 1, of the threads that are to do it.
	waits, want, note, lane sign
}

// take sits down if the seat is open and something seems ready: looking first
// leaves the cache lines where they are.
func (r *Rank) take(s *seat, any bool) bool {
	if s.state.Load() != seatOpen {
		return false
	}
	if c := s.lane.Load(); !any && c != uint64(r.lane+1) {
		return false
	}
	if c := &r.meet.cells[s.waits.Load()]; c.word.Load() < s.want.Load() {
		return false
	} else if note := s.note.Load(); note > 0 && c.mail[r.run&1][note-1].run.Load() != r.run {
		return false
	}
	return s.state.Swap(seatOpen, seatHeld+uint64(r.lane))
}

// together runs the program with the help of whoever waits, and helps others
// while it waits itself.
func (r *Rank) together(p *Program) error {
	if !r.laned {
		r.lane, r.lanes, r.laned = r.meet.lane(r.cpu)
	}
	s := &r.self.seat
	r.program, r.next = p, 0
	s.rank = r
	r.leave(s)
	w, looks := pause{r: r, q: r.me}, 0
	for s.state.Load() != seatDone {
		moved, wanted := r.lend(looks >= ownLooks)
		switch {
		case moved:
			looks = 0
			continue
		case !wanted && looks < aloneLooks:
			looks++
			continue
		}
		looks += 10 // a while
		w.q = int32(s.waits.Load())
		if err := w.next(); err != nil {
			for s.state.Load() != seatDone && !s.state.Swap(seatOpen, seatClosed) { // nobody may use the buffers after this
				schedYield()
			}
			s.state.Store(seatClosed)
			return err
		}
	}
	s.state.Store(seatClosed)
	r.await.Store(0)
	return nil
}

// lend does what any rank can do now, itself first. It says whether there was
// anything, and whether another thread wants this processor: one that has not
// begun, or that is in the middle of a step.
func (r *Rank) lend(any bool) (moved, wanted bool) {
	n := len(r.meet.cells)
	for i := range n {
		q := (int(r.me) + n - i) % n // data mostly comes from below
		c := &r.meet.cells[q]
		if r.take(&c.seat, any) {
			moved = c.seat.rank.advance(r, any) || moved
		}
		if r.meet.cpus[q].Load() == r.cpu {
			at := c.seat.state.Load()
			wanted = wanted || at == seatHeld+uint64(r.lane) || at == seatClosed && c.word.Load() < moment(r.run, -1)
		}
		if r.help && uint32(c.claim.Load()) != 0 {
			moved = r.assist(c, int32(q)) || moved
		}
	}
	return moved, wanted
}

// advance has the thread of by do the steps that are ready and in its share, and
// leaves the seat. It says whether there were any.
func (r *Rank) advance(by *Rank, any bool) (moved bool) {
	p := r.program
	for r.next < len(p.code) {
		in := &p.code[r.next]
		if !any && r.share(in) != by.lane || !r.ready(in) {
			break
		}
		switch in.code {
		case doTask:
			if r.perform(&p.tasks[in.task]) != nil {
				r.leave(&r.self.seat)
				return false // aborted: its own thread will hear of it
			}
		case postNote:
			r.post(in)
		}
		if in.mark {
			r.self.word.Store(moment(r.run, in.steps))
		}
		moved = true
		r.next++
	}
	r.leave(&r.self.seat)
	return moved
}

// leave opens the seat again, or ends the program.
func (r *Rank) leave(s *seat) {
	if r.next == len(r.program.code) {
		r.self.word.Store(moment(r.run, -1))
		s.state.Store(seatDone)
		return
	}
	var want, note uint64
	in := &r.program.code[r.next]
	switch in.code {
	case awaitSteps:
		want = moment(r.run, in.want)
	case awaitNote:
		note = uint64(in.note) + 1
	}
	s.waits.Store(uint64(in.cell))
	s.want.Store(want)
	s.note.Store(note)
	s.lane.Store(uint64(r.share(in) + 1))
	s.state.Store(seatOpen)
}

// share is the lane of the processor that an instruction is for.
func (r *Rank) share(in *instr) int {
	if in.next < 0 {
		return r.lane
	}
	return int(in.next) % r.lanes
}

// ready says whether an instruction would not have to wait.
func (r *Rank) ready(in *instr) bool {
	switch in.code {
	case awaitSteps:
		if want := moment(r.run, in.want); r.seen[in.cell] < want {
			w := r.meet.cells[in.cell].word.Load()
			if w < want {
				return false
			}
			r.seen[in.cell] = w
		}
	case awaitNote:
		if r.meet.cells[in.cell].mail[r.run&1][in.note].run.Load() != r.run {
			return false
		}
		r.seen[in.cell] = max(r.seen[in.cell], r.run<<32-1)
	}
	return true
}

// lane is the place of a processor among those that the ranks keep to, and how
// many these are.
func (m *meet) lane(cpu uint64) (lane, lanes int, sure bool) {
	sure = true
	for i := range m.cpus {
		at, first := m.cpus[i].Load(), true
		for j := range i {
			first = first && m.cpus[j].Load() != at
		}
		if first {
			if at == cpu {
				lane = lanes
			}
			lanes++
		}
	}
	return lane, lanes, sure
}
