//go:build linux && cgo

package gpu

import (
	"net/netip"
	"sync"
	"testing"

	"busbw/collectives"
	"busbw/collectives/linktest"
)

// store is a seat as the conformance suite uses it.
type store struct {
	*Seat
	spans map[*byte]*Memory
}

func (s *store) Alloc(n int64) ([]byte, error) {
	m, err := s.Seat.Alloc(n)
	if err != nil {
		return nil, err
	}
	b := m.Span(0, n)
	s.spans[&b[0]] = m
	return b, nil
}

func (s *store) Free(b []byte) error {
	m := s.spans[&b[0]]
	delete(s.spans, &b[0])
	return s.Seat.Free(m)
}

// recorder is a store whose ranks record what they do.
type recorder struct {
	*store
	most int
}

func (s *recorder) Recordings() int { return s.most }

func (s *recorder) Record(lead collectives.Recorder) error {
	return s.Seat.Record(lead.(*recorder).Seat)
}

func (s *recorder) After(other collectives.Device, step int32) error {
	return s.Seat.After(other.(*recorder).Seat, step)
}

// After unwraps what the suite wrapped.
func (s *store) After(other collectives.Device, step int32) error {
	return s.Seat.After(other.(*store).Seat, step)
}

// seats makes a seat for each rank, on as many devices as there are, in turn.
func seats(t testing.TB, ranks int, peers bool) (out []*store) {
	d := open(t)
	all, err := d.Devices()
	ok(t, err)
	var devices []*Device
	for i := range all {
		devices = append(devices, device(t, i))
	}
	for r := range ranks {
		q, err := devices[r%len(devices)].Seat()
		ok(t, err)
		t.Cleanup(func() { ok(t, q.Close()) })
		for _, o := range devices {
			if peers {
				if yes, why, err := q.Reach(o); !yes || err != nil {
					t.Fatal(why, err)
				}
			}
		}
		out = append(out, &store{q, map[*byte]*Memory{}})
	}
	return out
}

// Ranks on GPUs with peer access pass what ranks in memory pass.
func TestPeerConformance(t *testing.T) {
	if !onFake(t, "FAKECUDA_DEVICES=3", "FAKECUDA_JITTER=60") { // some share a device
		return
	}
	linktest.Kit{Stores: func(t testing.TB, ranks int) (s []linktest.Store) {
		for _, q := range seats(t, ranks, true) {
			s = append(s, q)
		}
		return s
	}}.Together(t)
}

// What no event declares does not hold: where a stream does nothing before it has
// to, and where a graph's nodes go in any order, results are right all the same.
func TestOnlyWhatIsDeclared(t *testing.T) {
	for _, c := range []struct {
		name  string
		most  int // recordings
		ranks []int
		env   []string
	}{
		{"queued, lazy", 0, []int{5}, []string{"FAKECUDA_LAZY=1"}},
		{"recorded", 2, []int{2, 5}, []string{"FAKECUDA_LAZY=1"}},
		{"not to be recorded", 2, []int{3}, []string{"FAKECUDA_GRAPH=801", "FAKECUDA_LAZY=1"}},
		{"recorded in vain", 2, []int{3}, []string{"FAKECUDA_FAIL=cuGraphInstantiateWithFlags:1:2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !onFake(t, append(c.env, "FAKECUDA_DEVICES=3")...) {
				return
			}
			kit := linktest.Kit{Stores: func(t testing.TB, ranks int) (s []linktest.Store) {
				for _, q := range seats(t, ranks, true) {
					s = append(s, &recorder{q, c.most})
				}
				return s
			}}
			for _, n := range c.ranks {
				kit.Ranks(t, n)
			}
		})
	}
}

// Without peer access data goes through host memory, and over TCP to other
// processes; beside ranks that have it, too.
func TestStagedConformance(t *testing.T) {
	for _, net := range []bool{false, true} {
		t.Run(map[bool]string{false: "through host memory", true: "over TCP"}[net], func(t *testing.T) {
			if !onFake(t, "FAKECUDA_DEVICES=8", "FAKECUDA_P2P=pairs") {
				return
			}
			stagedKit(net, true).Apart(t)
		})
	}
}

// stagedKit has ranks on the devices in turn, without peer access, but for pairs
// of neighbours where these are to have it; with net four ranks are a process.
func stagedKit(net, pairs bool) linktest.Kit {
	var now []*store
	return linktest.Kit{
		Stores: func(t testing.TB, ranks int) (s []linktest.Store) {
			now = seats(t, ranks, false)
			for i, q := range now {
				if j := i ^ 1; pairs && j < ranks {
					if yes, why, err := q.Reach(now[j].Device); !yes || err != nil {
						t.Fatal(why, err)
					}
				}
				s = append(s, q)
			}
			return s
		},
		Links: func(t testing.TB, ranks int, abort *collectives.Abort) (links []collectives.Link) {
			var nets []collectives.Link
			if net {
				nets = tcp(t, ranks, abort)
			}
			x := NewExchange(abort)
			for me, q := range now {
				var here []int
				var under collectives.Link
				for p := range ranks {
					if !net || p/4 == me/4 {
						here = append(here, p)
					}
				}
				if net {
					under = nets[me]
				}
				l, err := NewLink(q.Seat, me, x, here, under)
				ok(t, err)
				l.piece = 100_000 // so that spans take several
				links = append(links, l)
			}
			return links
		},
	}
}

// tcp connects the ranks of one process, every one to every other.
func tcp(t testing.TB, ranks int, abort *collectives.Abort) []collectives.Link {
	t.Helper()
	var all []int
	for r := range ranks {
		all = append(all, r)
	}
	l, err := collectives.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), [32]byte{7}, all, collectives.TCPConfig{})
	ok(t, err)
	t.Cleanup(func() { l.Close() })
	links, errs := make([]collectives.Link, ranks), make([]error, ranks)
	var wg sync.WaitGroup
	for me := range all {
		wg.Go(func() {
			var peers []collectives.TCPPeer
			for p := range all {
				if p != me {
					peers = append(peers, collectives.TCPPeer{Rank: p, Addr: l.Addr()})
				}
			}
			links[me], errs[me] = collectives.ConnectTCP(t.Context(), l, me, peers, abort)
		})
	}
	wg.Wait()
	for _, err := range errs {
		ok(t, err)
	}
	return links
}
