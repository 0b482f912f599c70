package worker

import (
	"errors"
	"fmt"

	"busbw/coordinator"
	"busbw/worker/gpu"
)

// Where starting kernels takes longer than running them, what ranks queue for a
// size is recorded as a CUDA graph for each of a few sets of buffers.
const (
	graphBytes = 4 << 20 // a few µs of a GPU's memory bandwidth
	graphSets  = 16      // NCCL takes as few, so that both find the caches alike
)

// forget frees what the rank has recorded.
func (k *rank) forget() error {
	if k.exec == nil {
		return nil
	}
	return k.exec.Forget()
}

// launched is how the case's passes were started on GPUs.
func (r *runner) launched() map[string]string {
	if r.live == nil || r.gpus.islands == nil || r.live.nccl {
		return nil
	}
	for _, k := range r.players() {
		switch n, why := k.exec.Replays(); {
		case n > 0:
			return map[string]string{"gpu launch": "graph"}
		case why != nil:
			return map[string]string{"gpu launch": "each pass: " + why.Error()}
		}
	}
	return map[string]string{"gpu launch": "each pass"}
}

// allocateGPU is allocate in GPU memory: every rank has what its GPU has free,
// shared with the other ranks on it.
func (r *runner) allocateGPU(c *liveCase, b coordinator.CaseBody) (refused string, err error) {
	players := r.players()
	on := map[int]int64{} // ranks of each GPU
	for _, k := range players {
		on[k.seat.Device.Ordinal]++
	}
	for _, k := range players {
		free, err := k.seat.Device.Free()
		if err != nil {
			return "", err
		}
		have := free/10*9/on[k.seat.Device.Ordinal] + k.slots.held()
		k.next = 0
		k.slots.plan(k, c, b.Rotate, 1) // each GPU has caches of its own
		if k.slots.bytes() > have && b.Rotate {
			k.slots.plan(k, c, false, 1)
		}
		if need := k.slots.bytes(); need > have {
			r.live = nil
			return fmt.Sprintf("rank %d needs %.1f GiB for %s of %d bytes and %s has %.1f GiB for it", k.global, gib(need), c.Op, c.Count*int64(c.Dtype.Size()), k.seat.Device, gib(have)), nil
		}
	}
	err = r.each(func(k *rank) error {
		if k.slots.grown() > k.slots.bytes() { // what an earlier case needed may stand in the way
			k.slots.free()
		}
		return k.slots.allocate(b.Huge, k.seat)
	})
	if errors.Is(err, gpu.OutOfMemory) {
		r.live = nil
		return err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	return "", r.registerGPUs()
}

// grown is what the regions take once each is as large as it must be.
func (s *slots) grown() int64 {
	n := int64(s.count)
	return max(s.in.size, n*s.strideIn) + max(s.out.size, n*s.strideOut) + max(s.work.size, n*s.strideWork)
}
