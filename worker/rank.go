package worker

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/reports"
	"busbw/worker/gpu"
	"busbw/worker/nccl"
	"busbw/worker/topo"
)

// rank is one participant: a goroutine on a thread of its own that does what
// it is told, and its part of the current case.
type rank struct {
	global int
	work   chan func()

	link    *collectives.TCPLink // nil until a peer is in another process
	wire    *collectives.Wire    // over link, or over queue pairs
	queues  queues
	seat    *gpu.Seat                 // nil until a case is in GPU memory
	comm    atomic.Pointer[nccl.Comm] // while cases run on NCCL
	staged  *gpu.Link                 // then: to ranks that its GPU does not reach; link is under it
	exec    *collectives.Rank
	current atomic.Pointer[collectives.Rank] // exec, for the heartbeat
	program *collectives.Program
	group   int // index of its group in the case; −1: it has none
	me      int // in the group
	slots   slots
	next    int // slot of the next run

	arrived, finished atomic.Int64 // calls of NCCL in this case

	apart  bool    // the group is on several machines, whose clocks differ
	offset float64 // s from this machine's clock to that of the group's first rank

	seconds []float64 // of each iteration of the last batch
	starts  []float64 // s on the machine's clock, at most maxStarts
}

// maxStarts is how many iterations of a batch tell when they started.
const maxStarts = 256

// newRank starts the rank's thread, kept on one processor: like the devices
// that it stands for, a rank does not move.
func newRank(global int, at topo.Place) *rank {
	k := &rank{global: global, work: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		collectives.Pin(at.Turn, at.CPUs...)
		for f := range k.work {
			f()
		}
	}()
	return k
}

// players are the ranks that are in a group of the current case.
func (r *runner) players() (in []*rank) {
	for _, k := range r.ranks {
		if k.group >= 0 {
			in = append(in, k)
		}
	}
	return in
}

// each runs f on the thread of every rank of the case at once and waits for all. It returns the
// error to report: the run's first if there is one, for it is the cause.
func (r *runner) each(f func(*rank) error) error { return r.on(r.players(), f) }

// on is each for these ranks.
func (r *runner) on(ranks []*rank, f func(*rank) error) error {
	errs := make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, k := range ranks {
		wg.Add(1)
		k.work <- func() {
			defer wg.Done()
			errs[i] = f(k)
		}
	}
	wg.Wait()
	if err := r.abort.Err(); err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// machineClock is the machine's monotonic clock: the same for all processes
// that were booted together.
type machineClock struct {
	start time.Time // with Go's monotonic reading
	at    float64   // s of the machine's clock then
}

// run times a batch on the rank's thread. What it needs is allocated before.
func (k *rank) run(c *liveCase, b coordinator.BatchBody, clock machineClock, abort *collectives.Abort) error {
	k.seconds = make([]float64, b.Iterations)
	k.starts = make([]float64, min(b.Iterations, maxStarts))
	if k.apart {
		if err := k.compareClocks(clock); err != nil {
			return err
		}
	}
	if b.Mode == coordinator.Pipelined {
		if err := k.exec.Barrier(); err != nil {
			return err
		}
	}
	first := -1
	if c.Op == collectives.Broadcast || c.Op == collectives.Scatter {
		first = c.Root // what it sends is what the others wait for
	}
	each := 1 / float64(b.Aggregate)
	t1 := time.Since(clock.start)
	for i := range k.seconds {
		t0 := t1
		if b.Mode == coordinator.BarrierTimed {
			t0 = time.Since(clock.start)
		}
		if b.Mode != coordinator.Pipelined {
			if err := k.exec.BarrierFrom(first); err != nil {
				return err
			}
		}
		if b.Mode == coordinator.Barrier {
			t0 = time.Since(clock.start)
		}
		for range b.Aggregate {
			if err := k.once(c, abort); err != nil {
				return err
			}
		}
		t1 = time.Since(clock.start)
		if i < len(k.starts) {
			k.starts[i] = clock.at + k.offset + t0.Seconds()
		}
		k.seconds[i] = (t1 - t0).Seconds() * each
	}
	return nil
}

// compareClocks finds this machine's offset. It is done for each batch, since
// clocks drift apart by some 50 µs a second. Ranks that are not the first of
// their group in this process leave their starts to the one that is.
func (k *rank) compareClocks(clock machineClock) error {
	offset, ok, err := k.exec.ClockOffset(func() float64 { return clock.at + time.Since(clock.start).Seconds() })
	if err != nil {
		return err
	}
	if k.offset = offset; !ok {
		k.starts = nil
	}
	return nil
}

// once runs the collective on the next buffers.
func (k *rank) once(c *liveCase, abort *collectives.Abort) error {
	b := k.slots.at(k.next)
	if k.next++; k.next == k.slots.count {
		k.next = 0
	}
	return k.collective(c, abort, b)
}

// collective runs the case once on its engine.
func (k *rank) collective(c *liveCase, abort *collectives.Abort, b collectives.Buffers) error {
	if c.nccl {
		return k.queue(c, abort, b)
	}
	return k.exec.Run(k.program, b)
}

// batch runs and times iterations on all ranks.
func (r *runner) batch(b coordinator.BatchBody) (any, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := validBatch(b); err != nil {
		return nil, err
	}
	runtime.GC() // collection is off while ranks run
	if err := r.hushNCCL(r.each(func(k *rank) error { return k.run(r.live, b, r.clock, r.abort) })); err != nil {
		return nil, err
	}
	reply := coordinator.BatchReply{Seconds: make([]float64, b.Iterations)}
	for _, k := range r.ranks {
		if k.group < 0 {
			reply.RankP50 = append(reply.RankP50, 0)
			continue
		}
		for i, s := range k.seconds {
			reply.Seconds[i] = max(reply.Seconds[i], s)
		}
		reply.RankP50 = append(reply.RankP50, reports.Median(k.seconds))
		reply.Starts = addStarts(reply.Starts, k)
	}
	return reply, nil
}

// addStarts merges a rank's starts into those of its group.
func addStarts(all []coordinator.GroupStarts, k *rank) []coordinator.GroupStarts {
	if len(k.starts) == 0 {
		return all
	}
	for _, g := range all {
		if g.Group == k.group {
			for i, s := range k.starts {
				g.First[i], g.Last[i] = min(g.First[i], s), max(g.Last[i], s)
			}
			return all
		}
	}
	last := append([]float64(nil), k.starts...)
	return append(all, coordinator.GroupStarts{Group: k.group, First: k.starts, Last: last})
}
