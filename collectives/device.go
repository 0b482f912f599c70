package collectives

import (
	"errors"
	"fmt"
	"unsafe"

	"busbw/collectives/reduce"
)

// Device does a rank's passes where its buffers are memory of a device, a GPU,
// that this processor does not read. Work is queued, and the rank goes on at
// once: what it tells the others it has done is done when the device gets there,
// so that they, before their devices touch it, have these wait for that mark.
// All of this goes into the queue before a rank's word says so; a queue therefore
// waits only for what is queued already, and cannot get stuck.
type Device interface {
	// Pass queues dst[j] = src[0] op src[1] op … for every j, of so many bytes.
	// Each may be in the rank's buffers or in those of a rank that shares its
	// memory. k is nil for a copy; ranks above 0 divides by them. The slices
	// are the caller's again when it returns.
	Pass(dst, src []unsafe.Pointer, bytes int64, k *reduce.Kernels, ranks int) error
	// Mark names the end of what is queued now by the step. Steps rise within a
	// run. A mark that was overwritten stands for a later one.
	Mark(step int32) error
	// After has what is queued from now on wait for the other's mark.
	After(other Device, step int32) error
	// Drain returns when everything queued is done.
	Drain() error
}

// On puts the rank's buffers on a device: Buffers then names its memory, and
// the rank's link must take and fill such memory. The other ranks of its process
// in this team are on devices too. It comes before Compile.
func (r *Rank) On(d Device) {
	r.dev, r.self.dev = d, d
	r.after = make([]uint64, len(r.meet.cells))
}

// queue is perform on a device.
func (r *Rank) queue(t *task) error {
	src, dst := r.places(&r.hands, t, 0)
	k, ranks := t.p.kernels, 0
	if t.finish {
		ranks = t.p.ranks
	}
	if len(src) == 1 {
		k, ranks = nil, 0
	}
	return r.dev.Pass(dst, src, t.size, k, ranks)
}

// finish divides a result that came over the wire.
func (r *Rank) finish(p *Program, to []byte) error {
	at := [1]unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(to))}
	if r.dev != nil {
		return r.dev.Pass(at[:], at[:], int64(len(to)), p.kernels, p.ranks)
	}
	p.kernels.Finish(at[0], len(to)/p.c.Dtype.Size(), p.ranks)
	return nil
}

// follow has the device's queue wait for what the word says that was awaited
// last of the cell's rank. At the entry into a run and at its end queues are
// empty, and an entry that was passed long ago needs no waiting either.
func (r *Rank) follow(q int32) error {
	word := r.seen[q]
	if step := int32(uint32(word)); word>>32 != r.run || step <= 0 || word == r.after[q] {
		return nil
	} else if other := r.meet.cells[q].dev; other == nil {
		return fmt.Errorf("rank %d has its buffers on no device: %w", r.team.Global[r.meet.locals[q]], errors.ErrUnsupported)
	} else if err := r.dev.After(other, step); err != nil {
		return err
	}
	r.after[q] = word
	return nil
}
