package collectives

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func listen(t *testing.T, token byte, ranks []int, cfg TCPConfig) *TCPListener {
	t.Helper()
	l, err := ListenTCP(anyPort, [32]byte{token}, ranks, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestTCPConnectFails: the error names both ranks, the address and the reason.
func TestTCPConnectFails(t *testing.T) {
	soon := TCPConfig{Timeout: 300 * time.Millisecond}
	slow := listen(t, 1, []int{9}, soon) // stands for a host that nobody answers on
	slow.ln.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	go func() {
		for {
			c, err := web.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			c.Close()
		}
	}()
	two := soon
	two.Sockets = 2
	for what, c := range map[string]struct {
		peer TCPPeer
		want string
	}{
		"lower never dials":  {TCPPeer{0, anyPort}, "it has not dialled 127.0.0.1:"},
		"nobody listens":     {TCPPeer{9, slow.Addr()}, "nobody listens there"},
		"never answers":      {TCPPeer{9, mute.Addr().(*net.TCPAddr).AddrPort()}, "did not answer the hello"},
		"another program":    {TCPPeer{9, web.Addr().(*net.TCPAddr).AddrPort()}, "what listens there is not busbw"},
		"another run":        {TCPPeer{9, listen(t, 2, []int{9}, soon).Addr()}, "it belongs to another run"},
		"another rank":       {TCPPeer{9, listen(t, 1, []int{8}, soon).Addr()}, "rank 9 does not live there"},
		"other socket count": {TCPPeer{9, listen(t, 1, []int{9}, two).Addr()}, "2 sockets a peer there, 1 here"},
		"itself":             {TCPPeer{5, anyPort}, "is no peer of rank 5"},
	} {
		t.Run(what, func(t *testing.T) {
			l := listen(t, 1, []int{5}, soon)
			_, err := ConnectTCP(context.Background(), l, 5, []TCPPeer{c.peer}, &Abort{})
			var link *LinkError
			if !errors.As(err, &link) || link.Rank != 5 || link.Peer != c.peer.Rank || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want rank 5, peer %d and %q", err, c.peer.Rank, c.want)
			}
		})
	}
}

// TestTCPStrangers: no stranger reaches a rank, and ranks connect while a crowd
// of strangers is at the door.
func TestTCPStrangers(t *testing.T) {
	l := listen(t, 1, []int{3}, TCPConfig{Timeout: 3 * time.Second})
	hello := func(edit func(*tcpHello)) []byte {
		h := tcpHello{version: tcpVersion, sockets: 1, from: 1, to: 3, stripe: 64 << 10, token: [32]byte{1}}
		edit(&h)
		return h.encode()
	}
	for what, c := range map[string]struct {
		say  []byte
		want tcpVerdict // tcpVerdictsN: hang up without a word
	}{
		"garbage":       {[]byte(strings.Repeat("x", 1000)), tcpVerdictsN},
		"web browser":   {[]byte("GET / HTTP/1.1\r\n" + strings.Repeat("\r\n", 40)), tcpVerdictsN},
		"wrong token":   {hello(func(h *tcpHello) { h.token[31] = 1 }), tcpOtherJob},
		"wrong rank":    {hello(func(h *tcpHello) { h.to = 2 }), tcpNotHere},
		"wrong version": {hello(func(h *tcpHello) { h.version = tcpVersion + 1 }), tcpOtherVer},
		"wrong stripe":  {hello(func(h *tcpHello) { h.stripe = 4096 }), tcpOtherCut},
	} {
		t.Run(what, func(t *testing.T) {
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.Write(c.say)
			conn.SetReadDeadline(time.Now().Add(2 * time.Second))
			got, err := io.ReadAll(conn)
			if errors.Is(err, context.DeadlineExceeded) || err != nil && strings.Contains(err.Error(), "timeout") {
				t.Fatalf("the listener does not hang up: %v", err)
			}
			if c.want == tcpVerdictsN {
				if len(got) != 0 {
					t.Fatalf("a stranger is told %q", got)
				}
				return
			}
			if v, _, err := parseTCPReply(got); v != c.want || err != nil {
				t.Fatalf("verdict %d, %v; want %d", v, err, c.want)
			}
		})
	}
	l.mu.Lock()
	if len(l.parked) != 0 {
		t.Errorf("strangers were parked: %v", l.parked)
	}
	l.mu.Unlock()

	// More half-said hellos than the listener has places for, then a rank.
	var first net.Conn
	for range tcpHandshakes + 100 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.Write(tcpHelloMagic)
		if first == nil {
			first = conn
		}
	}
	first.SetReadDeadline(time.Now().Add(tcpHelloTime / 2))
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest stranger keeps its place: %v", err)
	}
	dialler := listen(t, 1, []int{1}, TCPConfig{Timeout: 3 * time.Second})
	var wg sync.WaitGroup
	var errs [2]error
	wg.Go(func() { errs[0] = connectOnce(l, 3, TCPPeer{1, dialler.Addr()}) })
	wg.Go(func() { errs[1] = connectOnce(dialler, 1, TCPPeer{3, l.Addr()}) })
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
}

func connectOnce(l *TCPListener, me int, p TCPPeer) error {
	k, err := ConnectTCP(context.Background(), l, me, []TCPPeer{p}, &Abort{})
	if err == nil {
		err = k.Close()
	}
	return err
}

// TestTCPReconnect: links are made, widened, closed and made again over the same
// listeners; a peer that comes back before the other end has closed has to wait.
func TestTCPReconnect(t *testing.T) {
	a, b := listen(t, 1, []int{0, 1}, TCPConfig{Sockets: 2}), listen(t, 1, []int{2}, TCPConfig{Sockets: 2})
	at := map[int]TCPPeer{0: {0, a.Addr()}, 1: {1, a.Addr()}, 2: {2, b.Addr()}}
	for round := range 5 {
		var wg sync.WaitGroup
		errs := make([]error, 3)
		for me, l := range map[int]*TCPListener{0: a, 1: a, 2: b} {
			wg.Go(func() {
				errs[me] = func() error {
					k, err := ConnectTCP(context.Background(), l, me, []TCPPeer{at[(me+1)%3]}, &Abort{})
					if me == 0 && err == nil {
						err = k.Connect(context.Background(), []TCPPeer{at[1], at[2]})
					}
					if me != 0 && err == nil {
						err = k.Connect(context.Background(), []TCPPeer{at[0], at[3-me]})
					}
					if err != nil {
						return err
					}
					defer k.Close()
					for q := range 3 {
						if q == me {
							continue
						}
						if err := k.Send(q, []byte{byte(10*me + q)}); err != nil {
							return err
						}
					}
					for q := range 3 {
						var got [1]byte
						if q == me {
							continue
						}
						if err := k.Recv(q, got[:]); err != nil {
							return err
						}
						if got[0] != byte(10*q+me) {
							return fmt.Errorf("rank %d got %d from %d", me, got[0], q)
						}
					}
					return nil
				}()
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

func TestTCPListenFails(t *testing.T) {
	l := listen(t, 1, nil, TCPConfig{})
	if _, err := ListenTCP(l.Addr(), [32]byte{}, nil, TCPConfig{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second listener on a port: %v", err)
	}
	foreign := netip.MustParseAddrPort("192.0.2.1:0") // TEST-NET-1, RFC 5737
	if _, err := ListenTCP(foreign, [32]byte{}, nil, TCPConfig{}); err == nil || !strings.Contains(err.Error(), "no interface of this machine") {
		t.Errorf("foreign address: %v", err)
	}
	for _, cfg := range []TCPConfig{{Sockets: 65}, {Threads: 2}, {MinStripe: 1}, {SndBuf: -1}} {
		if _, err := ListenTCP(anyPort, [32]byte{}, nil, cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func TestTCPAbortEndsConnect(t *testing.T) {
	l, abort := listen(t, 1, []int{1}, TCPConfig{}), &Abort{}
	time.AfterFunc(20*time.Millisecond, func() { abort.Set(errors.New("rank 5 fell over")) })
	err := within(t, 2*time.Second, func() error {
		_, err := ConnectTCP(context.Background(), l, 1, []TCPPeer{{0, anyPort}}, abort)
		return err
	})
	var link *LinkError
	if !errors.As(err, &link) || !link.Consequence() {
		t.Fatalf("got %v, want a consequence of the abort", err)
	}
}
