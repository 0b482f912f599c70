package collectives

import (
	"fmt"
	"testing"

	"busbw/collectives/reduce"
)

// A ring of two: what the second half brings may land at once out of place, and
// not in place, where the same memory is sent in the first half.
func TestLandings(t *testing.T) {
	const count = 1 << 18 // of 4 bytes: two halves of 512 KiB
	for _, tc := range []struct {
		op      Op
		name    string
		inPlace bool
		want    []landing
	}{
		{AllReduce, "ring", false, []landing{{0, 512 << 10, spot{0, 0, Out}, 512 << 10}}},
		{AllReduce, "ring", true, nil},
		{Broadcast, "chain", false, []landing{{0, 0, spot{0, 0, Out}, 1 << 20}}},
		{Broadcast, "chain", true, []landing{{0, 0, spot{0, 0, Out}, 1 << 20}}},
		{AllGather, "ring", false, []landing{{0, 0, spot{0, 0, Out}, 512 << 10}}},
		{AllGather, "ring", true, nil}, // sends its own block from within Out
	} {
		s, err := New(tc.op, tc.name, Params{Ranks: 2, Pieces: 1, Channels: 1})
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewRank(Team{Global: []int{0, 1}, Node: []int{0, 1}, Me: 1}, nil, NewWire(nil, 2), new(Abort))
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Compile(Case{Op: tc.op, Dtype: reduce.Float, Redop: reduce.Sum, Count: count, InPlace: tc.inPlace, Schedule: s})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.landings(); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s %s, in place %t: %+v, want %+v", tc.op, tc.name, tc.inPlace, got, tc.want)
		}
	}
}
