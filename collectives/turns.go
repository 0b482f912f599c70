package collectives

import "cmp"

// turns is a heap of ranks by the time of the send that each wants to make; of
// equal times the lower rank's comes first.
type turns []turn

type turn struct {
	at   float64
	rank int
}

func (a turn) before(b turn) bool {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank)) < 0
}

func (t *turns) push(at float64, rank int) {
	h := append(*t, turn{at, rank})
	for i := len(h) - 1; i > 0 && h[i].before(h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	*t = h
}

// pop takes the first of at least one rank.
func (t *turns) pop() (rank int) {
	h := *t
	rank = h[0].rank
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	*t = h
	return rank
}
