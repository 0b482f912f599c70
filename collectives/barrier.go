package collectives

import "fmt"

// flagsMost is the number of ranks of a process up to which each tells each
// other that it has come to a barrier: one cache line's way from the last to all
// others. For more, one counter costs less.
const flagsMost = 4

// Barrier returns when every member has called it. What the members did before
// has then happened for all.
func (r *Rank) Barrier() error {
	r.run++
	err := r.barrier()
	if err != nil {
		err = fmt.Errorf("rank %d: barrier: %w", r.global(), err)
		r.abort.Set(err)
		return err
	}
	return nil
}

func (r *Rank) barrier() error {
	r.help = false
	at := moment(r.run, 0)
	r.self.word.Store(at)
	if len(r.meet.cells) < len(r.team.Global) {
		return r.barrierOverWire(at)
	}
	if len(r.meet.cells) > flagsMost {
		return r.count(at)
	}
	return r.awaitAll(at)
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

// count is the barrier of many ranks of one process.
func (r *Rank) count(at uint64) error {
	r.self.barriers++
	all := r.self.barriers * uint64(len(r.meet.cells))
	arrived := &r.meet.arrived
	arrived.Add(1)
	w := pause{r: r, q: r.me}
	for i := 0; arrived.Load() < all; i++ {
		if i < r.hub.spins {
			continue
		}
		w.q = (w.q + 1) % int32(len(r.meet.cells))
		for q := range r.meet.cells { // name one that is missing
			if r.meet.cells[q].word.Load() < at {
				w.q = int32(q)
				break
			}
		}
		if err := w.next(); err != nil {
			return err
		}
	}
	r.await.Store(0)
	for q := range r.seen {
		r.seen[q] = max(r.seen[q], at)
	}
	return nil
}

// barrierOverWire has the first rank of each process wait for the others of it,
// then exchange tokens with the first ranks of other processes, at distances
// that double (dissemination: log2 of the processes rounds), then let its own go.
func (r *Rank) barrierOverWire(at uint64) error {
	if r.leads == nil {
		return r.awaitWord(0, at+1) // cell 0 is the first rank
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
