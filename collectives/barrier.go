package collectives

import "fmt"

// flagsMost is the number of ranks of a process up to which each tells each
// other that it has come to a barrier, and all leave it as nearly at once as can
// be. For more, or without a processor for each, a round through one rank costs
// less.
const flagsMost = 4

// Barrier returns when every member has called it. What the members did before
// has then happened for all.
func (r *Rank) Barrier() error { return r.meetAll(-1) }

// BarrierFrom is a Barrier that the member of that team rank leaves first, if it
// lives in this process with all others: what it then sends does not wait for a
// processor, nor for the barrier's own message to others. MPI's barriers in
// shared memory do the same for their rank 0.
func (r *Rank) BarrierFrom(first int) error { return r.meetAll(first) }

func (r *Rank) meetAll(first int) error {
	r.run++
	err := r.barrier(first)
	if err != nil {
		err = fmt.Errorf("rank %d: barrier: %w", r.global(), err)
		r.abort.Set(err)
	}
	return err
}

func (r *Rank) barrier(first int) error {
	r.help = false
	at := moment(r.run, 0)
	r.self.word.Store(at)
	cells := len(r.meet.cells)
	switch {
	case cells < len(r.team.Global):
		return r.barrierThrough(0, at) // whoever is on the wire knows the first of each process
	case first >= 0 && first < len(r.meet.index):
		return r.barrierThrough(r.meet.index[first], at)
	case cells <= flagsMost && !r.hub.crowded:
		return r.awaitAll(at)
	}
	return r.barrierThrough(0, at)
}

// awaitAll returns when all ranks of the process are as far as at.
func (r *Rank) awaitAll(at uint64) error {
	for q := range r.meet.cells {
		if int32(q) != r.me {
			if err := r.awaitWord(int32(q), at); err != nil {
				return err
			}
		}
	}
	return nil
}

// barrierThrough has the rank of one cell of each process wait for the others of
// it, then exchange tokens with those of other processes, at distances that
// double (dissemination: log2 of the processes rounds), then let its own go.
func (r *Rank) barrierThrough(through int32, at uint64) error {
	if r.me != through {
		if err := r.awaitWord(through, at+1); err != nil {
			return err
		}
		for q := range r.seen { // it has seen them all
			r.seen[q] = max(r.seen[q], at)
		}
		return nil
	}
	if err := r.awaitAll(at); err != nil {
		return err
	}
	n := len(r.leads)
	for d := 1; d < n; d *= 2 {
		to, from := r.leads[(r.lead+d)%n], r.leads[(r.lead-d+n)%n]
		r.wire.sent[to]++
		if err := r.wire.Send(to, r.token[:1]); err != nil {
			return fmt.Errorf("send to rank %d: %w", to, err)
		}
		if err := r.wire.Recv(from, r.token[1:]); err != nil {
			return fmt.Errorf("receive from rank %d: %w", from, err)
		}
	}
	r.self.word.Store(at + 1)
	// This rank may not use its link for long now, and a token that found the
	// socket full would wait as long.
	for d := 1; d < n; d *= 2 {
		to := r.leads[(r.lead+d)%n]
		if err := r.wire.WaitSent(to, r.wire.sent[to]); err != nil {
			return fmt.Errorf("send to rank %d: %w", to, err)
		}
	}
	return nil
}
