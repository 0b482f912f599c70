package collectives

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Recorder is a Device that can keep what is queued, to queue all of it again
// with one call: starting a small pass costs more than the pass.
type Recorder interface {
	Device
	// Record has what is queued from now on kept instead of done, with what lead
	// keeps; lead begins with itself. What was queued before is done by then.
	Record(lead Recorder) error
	// Kept ends what a device other than the lead adds.
	Kept() error
	// Recording is what lead and all others have added.
	Recording() (Recording, error)
}

// Recording is work of the ranks of a process, queued by the rank that leads.
type Recording interface {
	Replay() error
	Close() error
}

// replays is what the members of a team agree on, run by run.
type replays struct {
	choice atomic.Uint64 // of the first member: run<<3 | one of …Run
	added  atomic.Uint64 // members that have added their part of a recording, ever
}

const (
	queueRun  = iota + 1 // each queues its own program
	recordRun            // the same, kept
	failedRun            // what was kept cannot be used: queue it, in the next run
	doneRun              // all of it has been done
)

// kept is a recording of one program on one set of buffers, at the first member.
type kept struct {
	p    *Program
	base [][Work + 1]unsafe.Pointer // by cell
	what Recording
}

// Replay has programs that run on devices, all of this process, recorded when
// they first run on some buffers, up to most sets of these, and replayed when they
// do so again. Every member says the same before the first run. Forget comes
// before buffers are freed.
func (r *Rank) Replay(most int) {
	if _, ok := r.dev.(Recorder); ok && len(r.meet.cells) == len(r.team.Global) && len(r.meet.cells) > 1 {
		r.replay = most
	}
}

// Forget frees what was recorded.
func (r *Rank) Forget() (err error) {
	for _, k := range r.kept {
		if cerr := k.what.Close(); err == nil {
			err = cerr
		}
	}
	r.kept = nil
	return err
}

// Replays says how many recordings there are, at the team's first member, and why
// there are no more; nil: there is no reason.
func (r *Rank) Replays() (int, error) { return len(r.kept), r.unkept }

// chosen waits until the first member has chosen one of the words for this run.
func (r *Rank) chosen(wanted ...uint64) (uint64, error) {
	w := pause{r: r}
	for i := 0; ; i++ {
		if c := r.meet.replays.choice.Load(); c>>3 == r.run {
			for _, x := range wanted {
				if c&7 == x {
					r.await.Store(0)
					return x, nil
				}
			}
		}
		if i < r.hub.spins {
			continue
		}
		if err := w.next(); err != nil {
			return 0, err
		}
	}
}

func (r *Rank) choose(c uint64) { r.meet.replays.choice.Store(r.run<<3 | c) }

// again runs the program as a recording of all members' parts. The first of them
// leads: once all have come it decides, and it alone queues what is recorded.
func (r *Rank) again(p *Program) error {
	r.self.word.Store(moment(r.run, 0))
	if r.me != 0 {
		return r.followLead(p)
	}
	for q := range r.meet.cells[1:] {
		if err := r.awaitWord(int32(q+1), moment(r.run, 0)); err != nil {
			return err
		}
	}
	k := r.known(p)
	dev := r.dev.(Recorder)
	if k == nil {
		if r.unkept == nil && len(r.kept) < r.replay {
			r.unkept = dev.Record(dev)
		}
		if r.unkept != nil || len(r.kept) >= r.replay {
			r.choose(queueRun)
			return r.straight(p)
		}
		r.choose(recordRun)
		if err := r.execute(p); err != nil {
			return err
		}
		if err := r.added(); err != nil {
			return err
		}
		what, err := dev.Recording()
		if err != nil {
			r.unkept = err
			r.choose(failedRun)
			r.run++
			return r.straight(p)
		}
		k = &kept{p, r.bases(), what}
		r.kept = append(r.kept, k)
	}
	if err := k.what.Replay(); err != nil {
		return err
	}
	if err := r.dev.Drain(); err != nil {
		return err
	}
	r.choose(doneRun)
	return nil
}

// followLead is again for the others.
func (r *Rank) followLead(p *Program) error {
	c, err := r.chosen(queueRun, recordRun, doneRun)
	if err != nil || c == doneRun {
		return err
	}
	if c == queueRun {
		return r.straight(p)
	}
	dev := r.dev.(Recorder)
	if err := dev.Record(r.meet.cells[0].dev.(Recorder)); err != nil {
		return err
	}
	if err := r.execute(p); err != nil {
		return err
	}
	if err := dev.Kept(); err != nil {
		return err
	}
	r.meet.replays.added.Add(1)
	if c, err = r.chosen(failedRun, doneRun); err == nil && c == failedRun {
		r.run++
		return r.straight(p)
	}
	return err
}

// straight queues the rank's own program and waits until it is done.
func (r *Rank) straight(p *Program) error {
	return errors.Join(r.execute(p), r.dev.Drain())
}

// added waits until every other member has added its part.
func (r *Rank) added() error {
	r.recorded += uint64(len(r.meet.cells) - 1)
	w := pause{r: r}
	for r.meet.replays.added.Load() < r.recorded {
		if err := w.next(); err != nil {
			return err
		}
	}
	r.await.Store(0)
	return nil
}

func (r *Rank) bases() (all [][Work + 1]unsafe.Pointer) {
	for i := range r.meet.cells {
		all = append(all, r.meet.cells[i].base)
	}
	return all
}

// known is the recording of the program on the buffers that all members have now.
func (r *Rank) known(p *Program) *kept {
next:
	for _, k := range r.kept {
		if k.p != p {
			continue
		}
		for i := range k.base {
			if k.base[i] != r.meet.cells[i].base {
				continue next
			}
		}
		return k
	}
	return nil
}

// explainReplay says that an error came while a run was recorded or replayed.
func explainReplay(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (in a recorded run; --no-graph does without)", err)
}
