package collectives

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"busbw/collectives/reduce"
)

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

// tcpMesh connects n ranks, each behind a listener of its own, as processes are.
func tcpMesh(t testing.TB, n int, cfg TCPConfig) ([]*TCPLink, []*Abort) {
	t.Helper()
	listeners, peers := make([]*TCPListener, n), make([]TCPPeer, n)
	for r := range n {
		l, err := ListenTCP(anyPort, [32]byte{1, 2, 3}, []int{r}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		listeners[r], peers[r] = l, TCPPeer{r, l.Addr()}
	}
	links, aborts := make([]*TCPLink, n), make([]*Abort, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		aborts[r] = &Abort{}
		wg.Go(func() {
			others := append(append([]TCPPeer(nil), peers[:r]...), peers[r+1:]...)
			links[r], errs[r] = ConnectTCP(context.Background(), listeners[r], r, others, aborts[r])
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		t.Cleanup(func() { l.Close() })
	}
	return links, aborts
}

// tcpShapes are configurations in which bytes take different ways.
func tcpShapes() map[string]TCPConfig {
	return map[string]TCPConfig{
		"plain":        {},
		"tiny buffers": {SndBuf: 4096},
		"3 sockets":    {Sockets: 3, MinStripe: 4096},
		"2 threads":    {Sockets: 2, Threads: 2, MinStripe: 1024},
		"4 by 3, tiny": {Sockets: 4, Threads: 3, MinStripe: 64, SndBuf: 4096},
	}
}

// both runs the two sides of a conversation.
func both(t *testing.T, a, b func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- b() }()
	err := errors.Join(a(), <-done)
	if err != nil {
		t.Fatal(err)
	}
}

// TestTCPExchange has two ranks send each other random spans, far more than the
// sockets hold, before either receives.
func TestTCPExchange(t *testing.T) {
	for name, cfg := range tcpShapes() {
		t.Run(name, func(t *testing.T) {
			links, _ := tcpMesh(t, 2, cfg)
			rng := rand.New(rand.NewPCG(1, 2))
			var sizes []int
			for range 40 {
				sizes = append(sizes, rng.IntN(1<<rng.IntN(18)))
			}
			if !strings.Contains(name, "tiny") {
				sizes = append(sizes, 8<<20)
			}
			side := func(me int) error {
				peer := 1 - me
				for i, n := range sizes {
					if err := links[me].Send(peer, pattern(me, i, n)); err != nil {
						return err
					}
				}
				for i, n := range sizes {
					got := make([]byte, n)
					if err := links[me].Recv(peer, got); err != nil {
						return err
					}
					if !bytes.Equal(got, pattern(peer, i, n)) {
						return fmt.Errorf("rank %d: span %d of %d bytes is wrong", me, i, n)
					}
				}
				return links[me].WaitSent(peer, uint64(len(sizes)))
			}
			both(t, func() error { return side(0) }, func() error { return side(1) })
		})
	}
}

func pattern(rank, span, n int) []byte {
	p := make([]byte, n)
	rng := rand.New(rand.NewPCG(uint64(rank), uint64(span)))
	for i := 0; i < n; i += 8 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], rng.Uint64())
		copy(p[i:], w[:])
	}
	return p
}

// TestTCPReduce: elements that arrive in two pieces are put together, for
// every width, with dst apart from a and equal to it.
func TestTCPReduce(t *testing.T) {
	for name, cfg := range tcpShapes() {
		t.Run(name, func(t *testing.T) {
			links, _ := tcpMesh(t, 2, cfg)
			for _, d := range []reduce.Dtype{reduce.Uint8, reduce.Int32, reduce.Uint64} {
				k := reduce.For(d, reduce.Sum)
				for i, n := range []int{0, 8, 4096, 77 * 8, 100_000, 400_008} {
					a, in := pattern(0, i, n), pattern(1, i, n)
					want := sums(a, in, d.Size())
					dst := a
					if i%2 == 0 {
						dst = make([]byte, n)
					}
					both(t, func() error { return links[0].Reduce(1, dst, a, k) }, func() error {
						err := links[1].Send(0, in)
						return errors.Join(err, links[1].WaitSent(0, links[1].peers[0].spans))
					})
					if !bytes.Equal(dst, want) {
						t.Fatalf("%s, %d bytes: sum is wrong", d, n)
					}
				}
			}
		})
	}
}

func sums(a, b []byte, size int) []byte {
	out := make([]byte, len(a))
	for i := 0; i < len(a); i += size {
		switch size {
		case 1:
			out[i] = a[i] + b[i]
		case 4:
			binary.LittleEndian.PutUint32(out[i:], binary.LittleEndian.Uint32(a[i:])+binary.LittleEndian.Uint32(b[i:]))
		case 8:
			binary.LittleEndian.PutUint64(out[i:], binary.LittleEndian.Uint64(a[i:])+binary.LittleEndian.Uint64(b[i:]))
		}
	}
	return out
}

// within fails the test if do takes longer than d.
func within(t *testing.T, d time.Duration, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		t.Fatalf("still waiting after %v", d)
		return nil
	}
}

func TestTCPAbortEndsEveryWait(t *testing.T) {
	for name, cfg := range map[string]TCPConfig{"one thread": {}, "helpers": {Sockets: 2, Threads: 2, MinStripe: 64}} {
		for what, wait := range map[string]func(l *TCPLink) error{
			"recv": func(l *TCPLink) error { return l.Recv(1, make([]byte, 1<<20)) },
			"reduce": func(l *TCPLink) error {
				return l.Reduce(1, make([]byte, 8), make([]byte, 8), reduce.For(reduce.Float, reduce.Sum))
			},
			"sent": func(l *TCPLink) error {
				return errors.Join(l.Send(1, make([]byte, 64<<20)), l.WaitSent(1, 1))
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				links, aborts := tcpMesh(t, 2, cfg)
				cause := errors.New("rank 5 fell over")
				time.AfterFunc(20*time.Millisecond, func() { aborts[0].Set(cause) })
				err := within(t, 30*time.Second, func() error { return wait(links[0]) })
				var link *LinkError
				if !errors.As(err, &link) || !link.Consequence() || !errors.Is(err, ErrAborted) || !strings.Contains(err.Error(), cause.Error()) {
					t.Fatalf("got %v, want a consequence of %v", err, cause)
				}
			})
		}
	}
}

func TestTCPDeadPeer(t *testing.T) {
	for name, cfg := range map[string]TCPConfig{"one thread": {}, "helpers": {Sockets: 2, Threads: 2, MinStripe: 64}} {
		for what, wait := range map[string]func(l *TCPLink) error{
			"recv": func(l *TCPLink) error { return l.Recv(0, make([]byte, 1<<20)) },
			"sent": func(l *TCPLink) error {
				return errors.Join(l.Send(0, make([]byte, 64<<20)), l.WaitSent(0, 1))
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				links, _ := tcpMesh(t, 2, cfg)
				closed := make(chan struct{})
				time.AfterFunc(20*time.Millisecond, func() { defer close(closed); links[0].Close() })
				err := within(t, 30*time.Second, func() error { return wait(links[1]) })
				<-closed
				var link *LinkError
				if !errors.As(err, &link) || link.Rank != 1 || link.Peer != 0 || !link.Consequence() || !errors.Is(err, ErrPeerClosed) {
					t.Fatalf("got %v, want that peer rank 0 closed the connection", err)
				}
				if want := fmt.Sprintf("rank 1: tcp: peer rank 0 (%s) closed the connection", links[0].listen.Addr()); !strings.HasPrefix(err.Error(), want) {
					t.Fatalf("got %q, want %q", err, want)
				}
			})
		}
	}
}

func TestTCPMisuse(t *testing.T) {
	links, _ := tcpMesh(t, 2, TCPConfig{})
	l := links[0]
	for what, err := range map[string]error{
		"send to itself":        l.Send(0, nil),
		"send to nobody":        l.Send(-1, nil),
		"receive from stranger": l.Recv(9, nil),
		"wait for the future":   l.WaitSent(1, 1),
		"unequal lengths":       l.Reduce(1, make([]byte, 8), make([]byte, 4), reduce.For(reduce.Float, reduce.Sum)),
		"half an element":       l.Reduce(1, make([]byte, 6), make([]byte, 6), reduce.For(reduce.Float, reduce.Sum)),
	} {
		var link *LinkError
		if !errors.As(err, &link) || link.Consequence() {
			t.Errorf("%s: got %v, want a LinkError that is a cause", what, err)
		}
	}
	l.Close()
	if err := l.Send(1, nil); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("send on a closed link: %v", err)
	}
}
