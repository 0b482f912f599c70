package collectives

import "testing"

// TestRingKeepsItsQueueShort: however many pieces there are, no more than one a
// hop are on their way from a rank, so that what it sends on is still cached.
func TestRingKeepsItsQueueShort(t *testing.T) {
	for _, op := range []Op{AllReduce, AllGather, ReduceScatter} {
		for _, n := range []int{2, 3, 4, 7} {
			s, err := New(op, "ring", Params{Ranks: n, Pieces: 50})
			if err != nil {
				t.Fatal(err)
			}
			hops := n - 1
			if op == AllReduce {
				hops *= 2
			}
			ahead, most := 0, 0
			for i := range s.Len(1) {
				if s.Step(1, i).Kind == Send {
					ahead++
				} else {
					ahead--
				}
				most = max(most, ahead)
			}
			if most > hops+1 {
				t.Errorf("%s, %d ranks: %d sends ahead of the receives, want at most %d", op, n, most, hops+1)
			}
		}
	}
}
