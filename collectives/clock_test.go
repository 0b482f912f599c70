package collectives

import (
	"math"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// TestClockOffset gives the processes of five ranks clocks that are seconds
// apart, and wants them reconciled to within what a busy machine delays a ping.
func TestClockOffset(t *testing.T) {
	ahead := []float64{0, 5, -3, 7, 7} // s; ranks 3 and 4 share a process
	nodes := []int{0, 1, 2, 3, 3}
	var abort Abort
	var listeners []*TCPListener
	var addrs []netip.AddrPort
	for n := range 4 {
		var ranks []int
		for r, of := range nodes {
			if of == n {
				ranks = append(ranks, r)
			}
		}
		l, err := ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), [32]byte{1}, ranks, TCPConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		listeners, addrs = append(listeners, l), append(addrs, l.Addr())
	}
	hub := NewHub(2, &abort)
	offsets, asked := make([]float64, len(ahead)), make([]bool, len(ahead))
	start := time.Now()
	var all sync.WaitGroup
	for r := range ahead {
		all.Go(func() {
			team := Team{Global: []int{0, 1, 2, 3, 4}, Node: nodes, Me: r}
			var peers []TCPPeer
			for _, p := range team.Peers(nil) {
				peers = append(peers, TCPPeer{Rank: p, Addr: addrs[nodes[p]]})
			}
			link, err := ConnectTCP(t.Context(), listeners[nodes[r]], r, peers, &abort)
			if err != nil {
				t.Error(err)
				return
			}
			defer link.Close()
			k, err := NewRank(team, hub, NewWire(link, len(ahead)), &abort)
			if err != nil {
				t.Error(err)
				return
			}
			now := func() float64 { return time.Since(start).Seconds() + ahead[r] }
			if offsets[r], asked[r], err = k.ClockOffset(now); err != nil {
				t.Error(err)
			}
			if err := k.Barrier(); err != nil { // nobody closes while others still ask
				t.Error(err)
			}
		})
	}
	all.Wait()
	for r, a := range ahead {
		if want := r != 4; asked[r] != want {
			t.Errorf("rank %d: offset known %t, want %t", r, asked[r], want)
		}
		if asked[r] && math.Abs(offsets[r]+a) > 0.2 {
			t.Errorf("rank %d is %v s ahead and was told to add %v", r, a, offsets[r])
		}
	}
}
