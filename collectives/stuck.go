package collectives

import "fmt"

// stuck describes ranks that wait for each other, or for a rank that has ended.
func (w *walker[P]) stuck() error {
	r := 0
	for w.ranks[r].blocked == notBlocked {
		r++
	}
	// Following who waits for whom ends at the culprit or goes round in a circle.
	for range w.ranks {
		next := w.waitsFor(r)
		if w.ranks[next].blocked == notBlocked {
			break
		}
		r = next
	}
	state, next := w.ranks[r], w.waitsFor(r)
	st := w.s.Step(r, state.at)
	why := fmt.Sprintf("which itself waits at step %d: a deadlock", w.ranks[next].at)
	if w.ranks[next].blocked == notBlocked {
		why = "which has ended"
	}
	if state.blocked == onChunk {
		return fmt.Errorf("rank %d step %d: %s chunk %d waits until rank %d takes what it was sent of the chunk, %s", r, state.at, st.Kind, st.Chunk, next, why)
	}
	return fmt.Errorf("rank %d step %d: %s chunk %d waits for rank %d, %s", r, state.at, st.Kind, st.Chunk, next, why)
}

func (w *walker[P]) waitsFor(r int) int {
	state := w.ranks[r]
	if state.blocked == onPeer {
		return int(state.peer) % w.period
	}
	for _, l := range w.links {
		if int(l.from) != r {
			continue
		}
		for m := l.head; m != none; m = w.messages[m].next {
			if w.messages[m].chunk == state.peer {
				return int(l.to)
			}
		}
	}
	panic("collectives: a rank waits for a send that is not under way")
}
