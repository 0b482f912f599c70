package collectives_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"

	"busbw/collectives"
	"busbw/collectives/linktest"
)

// TestTCPConformance runs every operation over TCP, on one socket and on
// several that hold little.
func TestTCPConformance(t *testing.T) {
	for name, cfg := range map[string]collectives.TCPConfig{
		"plain": {},
		// Smaller buffers than a segment of loopback would make every span wait
		// for a delayed acknowledgement (40 ms).
		"striped, helper thread, small buffers": {Sockets: 3, Threads: 2, MinStripe: 4096, SndBuf: 64 << 10},
	} {
		if testing.Short() && name != "plain" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, func(t testing.TB, ranks int, abort *collectives.Abort) []collectives.Link {
				return tcpLinks(t, ranks, abort, cfg)
			})
		})
	}
}

// tcpLinks connects the ranks of one process, every one to every other.
func tcpLinks(t testing.TB, ranks int, abort *collectives.Abort, cfg collectives.TCPConfig) []collectives.Link {
	t.Helper()
	all := make([]int, ranks)
	for r := range all {
		all[r] = r
	}
	l, err := collectives.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), [32]byte{7}, all, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	links, errs := make([]collectives.Link, ranks), make([]error, ranks)
	var wg sync.WaitGroup
	for me := range all {
		wg.Go(func() {
			var peers []collectives.TCPPeer
			for r := range all {
				if r != me {
					peers = append(peers, collectives.TCPPeer{Rank: r, Addr: l.Addr()})
				}
			}
			links[me], errs[me] = collectives.ConnectTCP(context.Background(), l, me, peers, abort)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return links
}
