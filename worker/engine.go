package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/worker/gpu"
	"busbw/worker/nccl"
)

// engine is NCCL in this process, for the cases that run on it.
type engine struct {
	library nccl.Library // Version 0: not loaded yet
	log     ncclLog
	key     string // of the communicators that the ranks are in
}

// openNCCL loads NCCL and makes the ids of the groups whose first rank is here.
func (r *runner) openNCCL(b coordinator.NCCLBody) (any, error) {
	if len(b.Groups) > r.total() {
		return nil, fmt.Errorf("%d groups of %d ranks", len(b.Groups), r.total())
	}
	if r.gpus.own == nil {
		return nil, errors.New("engine nccl: no GPUs were found here")
	}
	if r.nccl.library.Version == 0 {
		if err := r.loadNCCL(); err != nil {
			return nil, fmt.Errorf("engine nccl: %w", err)
		}
	}
	reply := coordinator.NCCLReply{Version: r.nccl.library.String(), IDs: make([][]byte, len(b.Groups)), Notes: injected(r.root, home(), r.nccl.library.Version)}
	for i, g := range b.Groups {
		if len(g) == 0 || coordinator.NodeOf(r.plan.Nodes, g[0]) != r.plan.Node {
			continue
		}
		id, err := nccl.NewID()
		if err != nil {
			return nil, err
		}
		reply.IDs[i] = id[:]
	}
	return reply, nil
}

// loadNCCL loads the library, once. What has to be set before it reads its
// environment is set before.
func (r *runner) loadNCCL() (err error) {
	if err := r.nccl.log.open(); err != nil {
		return err
	}
	r.nccl.library, err = nccl.Open()
	return err
}

// joinNCCL puts every rank of the case into its group's communicator. refused
// says why this NCCL cannot run the case.
func (r *runner) joinNCCL(ctx context.Context, c *liveCase, b coordinator.CaseBody) (refused string, err error) {
	if len(b.NCCL) != len(c.groups) {
		return "", fmt.Errorf("%d ids for %d groups", len(b.NCCL), len(c.groups))
	}
	compute := slices.MinFunc(r.gpus.own, func(a, b gpu.Info) int { return a.Compute() - b.Compute() }).Compute()
	if err := nccl.Offers(r.nccl.library.Version, compute, len(c.groups[0]), c.Op, c.Dtype, c.Redop); err != nil {
		return err.Error(), nil
	}
	key := fmt.Sprint(b.NCCL)
	if r.nccl.key == key {
		return "", nil
	}
	if err := r.leaveNCCL(); err != nil {
		return "", err
	}
	r.nccl.key = key
	if err := r.nccl.log.joining(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	return "", r.each(func(k *rank) error {
		id := b.NCCL[k.group]
		if len(id) != nccl.IDBytes {
			return fmt.Errorf("rank %d: an id of %d bytes", k.global, len(id))
		}
		comm, err := nccl.Join(ctx, len(c.groups[k.group]), nccl.ID(id), k.me, func() { k.arrived.Add(1) })
		if err == nil {
			k.finished.Add(1)
			k.comm.Store(comm)
		}
		return k.ncclError(r.abort, err)
	})
}

// joinTime is how long the ranks of a communicator wait for each other.
const joinTime = 2 * time.Minute

// leaveNCCL ends the communicators that the ranks are in.
func (r *runner) leaveNCCL() error {
	r.nccl.key = ""
	return r.on(r.ranks, func(k *rank) error {
		if comm := k.comm.Swap(nil); comm != nil {
			return comm.Close()
		}
		return nil
	})
}

// endNCCL is leaveNCCL at the end of the process, whatever others do.
func (r *runner) endNCCL() {
	if r.nccl.library.Version == 0 {
		return
	}
	r.abandon()
	r.nccl.log.close()
}

// abandon aborts the communicators from any thread, so that ranks that wait in
// a call of NCCL come back from it.
func (r *runner) abandon() {
	for _, k := range r.ranks {
		if comm := k.comm.Load(); comm != nil {
			_ = comm.Abort() // there is nobody left to tell
		}
	}
}

// queue runs the case's collective on NCCL and waits for it. The wait ends when
// the communicator reports an error or the run ends; a rank that hangs is found
// by the coordinator, for it does not answer.
func (k *rank) queue(c *liveCase, abort *collectives.Abort, b collectives.Buffers) error {
	call := nccl.Call{Op: c.Op, Dtype: c.Dtype, Redop: c.Redop, Root: c.Root, Count: c.Count, In: b.In, Out: b.Out}
	comm := k.comm.Load()
	if comm == nil {
		return k.ncclError(abort, nccl.ErrGone)
	}
	if err := comm.Queue(c.ctx, call, k.seat.Stream()); err != nil {
		return k.ncclError(abort, err)
	}
	k.arrived.Add(1)
	for i := 1; ; i++ {
		done, err := k.seat.Done()
		if done || err != nil {
			k.finished.Add(1)
			return k.ncclError(abort, err)
		}
		if i%watchEvery != 0 {
			continue
		}
		if err := comm.Fault(); err != nil {
			return k.ncclError(abort, err)
		}
		if err := abort.Err(); err != nil {
			return err
		}
	}
}

// watchEvery is how many looks at the stream lie between two at the communicator.
const watchEvery = 4096

// ncclError says whose error it is. One that follows from another rank's end
// says so, and one that follows from the run's end is not the first.
func (k *rank) ncclError(abort *collectives.Abort, err error) error {
	if err == nil {
		return nil
	}
	var e *nccl.Error
	switch {
	case errors.Is(err, nccl.ErrGone):
		err = fmt.Errorf("%w: %w", collectives.ErrAborted, err)
	case errors.As(err, &e) && e.Consequence():
		err = fmt.Errorf("%w: %w", collectives.ErrPeerClosed, err)
	}
	err = &collectives.LinkError{Rank: k.global, Peer: -1, Link: "nccl", Err: err}
	abort.Set(err)
	return err
}

// ncclProgress is how many calls of NCCL each local rank has made in this case,
// and seen the end of: the first may be to join. −1: it has no part in the case.
func (r *runner) ncclProgress() *coordinator.Progress {
	p := &coordinator.Progress{Rank: r.first}
	for i, k := range r.ranks {
		at, done := k.arrived.Load(), k.finished.Load()
		if p.Arrived, p.Finished = append(p.Arrived, at), append(p.Finished, done); at < 0 {
			continue
		}
		if slowest := p.Finished[p.Rank-r.first]; i == 0 || slowest < 0 || done < slowest {
			p.Rank, p.Iteration = k.global, int(done)
		}
	}
	return p
}

// beginNCCL sets the counts of a case's ranks.
func (r *runner) beginNCCL() {
	for _, k := range r.ranks {
		n := int64(0)
		if k.group < 0 {
			n = -1
		}
		k.arrived.Store(n)
		k.finished.Store(n)
	}
}
