package collectives

import (
	"fmt"
	"math/bits"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"busbw/collectives/reduce"
)

// awaitWord returns when the rank of the cell has come as far as want.
func (r *Rank) awaitWord(q int32, want uint64) error {
	if r.seen[q] >= want {
		return nil
	}
	c := &r.meet.cells[q]
	for range r.hub.spins {
		if w := c.word.Load(); w >= want {
			r.seen[q] = w
			return nil
		}
		if r.help && uint32(c.claim.Load()) != 0 {
			r.assist(c, q)
		}
	}
	w := pause{r: r, q: q}
	for {
		if w := c.word.Load(); w >= want {
			r.seen[q] = w
			r.await.Store(0)
			return nil
		}
		if r.help && uint32(c.claim.Load()) != 0 {
			r.assist(c, q)
			continue
		}
		if err := w.next(); err != nil {
			return err
		}
	}
}

// awaitLetter returns when the rank of the cell has written that letter of this
// run. The letter proves that the rank had finished the runs before.
func (r *Rank) awaitLetter(q, note int32) error {
	l := &r.meet.cells[q].mail[r.run&1][note]
	for i := 0; l.run.Load() != r.run; i++ {
		if i < r.hub.spins {
			continue
		}
		w := pause{r: r, q: q}
		for l.run.Load() != r.run {
			if err := w.next(); err != nil {
				return err
			}
		}
		r.await.Store(0)
		break
	}
	r.seen[q] = max(r.seen[q], r.run<<32-1)
	return nil
}

// pause is one long wait.
type pause struct {
	r     *Rank
	q     int32
	count int
	since time.Time
	sleep time.Duration
}

// How a long wait goes on: it gives way to other threads at once, and sleeps
// once it has lasted so long that the waker will not be measured by it.
const (
	yieldFor  = 100 * time.Millisecond
	sleepMost = time.Millisecond
)

// next gives way once. It fails when the run is aborted or the wire fails.
func (w *pause) next() error {
	r := w.r
	if err := r.abort.Err(); err != nil {
		return fmt.Errorf("%w: %v", ErrAborted, err)
	}
	if r.wire != nil && w.count%4 == 0 {
		if err := r.wire.Poll(); err != nil {
			return fmt.Errorf("while waiting for rank %d: %w", r.team.Global[r.meet.locals[w.q]], err)
		}
	}
	if w.sleep > 0 {
		time.Sleep(w.sleep)
		w.sleep = min(2*w.sleep, sleepMost)
		return nil
	}
	w.count++
	if r.hub.gosch || w.count%64 == 0 {
		runtime.Gosched()
	} else {
		syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
	if w.count%256 == 0 {
		switch {
		case w.since.IsZero():
			w.since = time.Now()
		case time.Since(w.since) > yieldFor:
			w.sleep = 20 * time.Microsecond
			r.await.Store(uint64(r.meet.locals[w.q]) + 1)
		}
	}
	return nil
}

// blockSpins is how often the owner of a task looks whether a helper has done its
// block before it gives way: the helper is at it, and it takes a few µs.
const blockSpins = 2000

// perform does a task, together with those who wait for it if it is large.
func (r *Rank) perform(t *task) error {
	if t.block == 0 {
		r.copyPart(&r.hands, t, 0, t.size)
		return nil
	}
	c := r.self
	blocks := int((t.size + t.block - 1) / t.block)
	before := c.taken.Load()
	r.jobs++
	c.work.Store(t)
	c.claim.Store(uint64(r.jobs)<<32 | 1<<blocks - 1)
	mine := 0
	for r.takeBlock(&r.hands, c, t, 0) {
		mine++
	}
	w := pause{r: r, q: r.me}
	for i := 0; c.taken.Load()-before != uint64(blocks-mine); i++ {
		if i > blockSpins {
			if err := w.next(); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeBlock does one block of the cell's open task that nobody has taken,
// looking from block first on. It returns false if there is none.
func (r *Rank) takeBlock(h *hands, c *cell, t *task, first int) bool {
	for {
		v := c.claim.Load()
		open := uint32(v)
		if open == 0 || c.work.Load() != t {
			return false
		}
		b := (bits.TrailingZeros32(bits.RotateLeft32(open, -first)) + first) % maxBlocks
		// The number in the claim's upper half makes this fail if the task has
		// been finished, and another begun, since the claim was read.
		if c.claim.CompareAndSwap(v, v&^(1<<b)) {
			lo := int64(b) * t.block
			r.copyPart(h, t, lo, min(lo+t.block, t.size))
			return true
		}
	}
}

// assist takes blocks of the open task of the cell that this rank waits for,
// from its own share of them on. It says whether there were any.
func (r *Rank) assist(c *cell, q int32) (some bool) {
	t := c.work.Load()
	if t == nil || t.block == 0 {
		return false
	}
	n := len(r.meet.cells)
	blocks := int((t.size + t.block - 1) / t.block)
	first := (int(r.me-q) + n) % n * blocks / n
	for r.takeBlock(&r.aside, c, t, first) {
		c.taken.Add(1)
		some = true
	}
	return some
}

// copyPart does bytes lo to hi of a task.
func (r *Rank) copyPart(h *hands, t *task, lo, hi int64) {
	p := t.p
	src, dst := r.places(h, t, lo)
	n := int(hi-lo) / p.c.Dtype.Size()
	switch {
	case len(src) == 1:
		reduce.CopyAll(dst, src[0], int(hi-lo), t.stream)
	case t.finish:
		p.kernels.CombineAll(dst, src, n, p.ranks, t.stream)
	default:
		p.kernels.Combine(dst, src, n, t.stream)
	}
}

// places is where a task's sources and destinations are, off bytes on.
func (r *Rank) places(h *hands, t *task, off int64) (src, dst []unsafe.Pointer) {
	h.grow(int(max(t.dst-t.src, t.end-t.dst))) // another rank's task may be wider than our own
	src, dst = h.src[:t.dst-t.src], h.dst[:t.end-t.dst]
	for i := range src {
		src[i] = r.find(&t.p.spots[t.src+int32(i)], off)
	}
	for i := range dst {
		dst[i] = r.find(&t.p.spots[t.dst+int32(i)], off)
	}
	return src, dst
}

// find is where a spot is in memory, now, off bytes on.
func (r *Rank) find(s *spot, off int64) unsafe.Pointer {
	c := &r.meet.cells[s.cell]
	if s.where == mail {
		return unsafe.Pointer(&c.mail[r.run&1][s.off].data)
	}
	return unsafe.Add(c.base[s.where], s.off+off)
}
