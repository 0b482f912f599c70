package collectives

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	// tcpHandshakes is how many strangers may be saying hello at a time; the one
	// that has been at it for longest makes room for the next.
	tcpHandshakes = 1024
	// tcpHelloTime is how long a hello may take.
	tcpHelloTime = 5 * time.Second
)

// TCPListener takes the connections to all ranks of a process. It speaks only
// with who shows the launch's token; nobody else can disturb the ranks.
type TCPListener struct {
	cfg   TCPConfig
	token [32]byte
	hosts map[int]bool // the ranks that live here
	ln    *net.TCPListener

	mu      sync.Mutex
	parked  map[tcpKey]*net.TCPConn // welcome, and not yet taken by their rank; nil: taken
	changed chan struct{}           // closed and replaced when parked or trouble change
	trouble error                   // why connections may be missing
	hellos  [tcpHandshakes]*net.TCPConn
	next    int
}

// tcpKey names one connection of a launch.
type tcpKey struct{ from, to, socket int }

// ListenTCP opens the data port of the process in which the ranks live. Port 0
// is any free port. Every rank of the launch knows the token.
func ListenTCP(addr netip.AddrPort, token [32]byte, ranks []int, cfg TCPConfig) (*TCPListener, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: cfg.sockOptions}
	ln, err := lc.Listen(context.Background(), "tcp", addr.String())
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("tcp: listen on %s: the port is in use by another process", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("tcp: listen on %s: no interface of this machine has that address", addr)
	case err != nil:
		return nil, fmt.Errorf("tcp: listen on %s: %w", addr, withFileLimit(err, 1))
	}
	l := &TCPListener{cfg: cfg, token: token, hosts: map[int]bool{}, ln: ln.(*net.TCPListener),
		parked: map[tcpKey]*net.TCPConn{}, changed: make(chan struct{})}
	for _, r := range ranks {
		l.hosts[r] = true
	}
	go l.accept()
	return l, nil
}

// Addr is the address that peers dial.
func (l *TCPListener) Addr() netip.AddrPort { return l.ln.Addr().(*net.TCPAddr).AddrPort() }

// Close stops listening and drops connections that no rank has taken. Links
// that exist go on.
func (l *TCPListener) Close() error {
	err := l.ln.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, c := range l.parked {
		if c != nil {
			c.Close()
		}
		delete(l.parked, k)
	}
	for _, c := range l.hellos {
		if c != nil {
			c.Close()
		}
	}
	return err
}

func (l *TCPListener) accept() {
	for {
		c, err := l.ln.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // most likely out of descriptors: the waiting ranks say so if it lasts
			l.note(fmt.Errorf("accept: %w", withFileLimit(err, 1)))
			time.Sleep(10 * time.Millisecond)
			continue
		}
		l.mu.Lock()
		slot := l.next % tcpHandshakes
		l.next++
		if old := l.hellos[slot]; old != nil {
			old.Close()
		}
		l.hellos[slot] = c
		l.mu.Unlock()
		go l.greet(c, slot)
	}
}

// greet reads one hello, answers it, and parks the connection if it is welcome.
func (l *TCPListener) greet(c *net.TCPConn, slot int) {
	kept := false
	defer func() {
		l.mu.Lock()
		if l.hellos[slot] == c {
			l.hellos[slot] = nil
		}
		l.mu.Unlock()
		if !kept {
			c.Close()
		}
	}()
	c.SetDeadline(time.Now().Add(tcpHelloTime))
	var buf [tcpHelloLen]byte
	if _, err := io.ReadFull(c, buf[:]); err != nil {
		return
	}
	h, err := parseTCPHello(buf[:])
	if err != nil {
		l.note(fmt.Errorf("refused %s: %w", c.RemoteAddr(), err))
		return
	}
	v, detail := l.judge(h)
	key := tcpKey{h.from, h.to, h.socket}
	if v == tcpWelcome && !l.reserve(key) {
		v = tcpTaken
	}
	_, err = c.Write(encodeTCPReply(v, detail))
	switch {
	case v != tcpWelcome:
		l.note(fmt.Errorf("refused %s: %w", c.RemoteAddr(), h.explain(v, detail)))
	case err != nil:
		l.release(key)
	default:
		c.SetDeadline(time.Time{})
		kept = true
		l.mu.Lock()
		l.parked[key] = c
		l.signal()
		l.mu.Unlock()
	}
}

// reserve takes a place among the parked, so that of two equal hellos one wins.
func (l *TCPListener) reserve(k tcpKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.parked[k]; ok {
		return false
	}
	l.parked[k] = nil
	return true
}

func (l *TCPListener) release(k tcpKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.parked, k)
}

// note keeps the last reason for which a connection did not come about.
func (l *TCPListener) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = err
}

// signal wakes those who wait for connections; the lock is held.
func (l *TCPListener) signal() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// take waits for a connection and hands it to its rank.
func (l *TCPListener) take(ctx context.Context, k tcpKey) (*net.TCPConn, error) {
	for {
		l.mu.Lock()
		c, changed, trouble := l.parked[k], l.changed, l.trouble
		if c != nil {
			l.parked[k] = nil
		}
		l.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if trouble != nil {
				return nil, fmt.Errorf("it has not dialled %s, or was not let in (lately: %w)", l.Addr(), trouble)
			}
			return nil, fmt.Errorf("it has not dialled %s: a firewall, or the wrong interface?", l.Addr())
		}
	}
}

// forget makes room for new connections to a rank whose link is closed.
func (l *TCPListener) forget(rank int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, c := range l.parked {
		if k.to == rank && c == nil {
			delete(l.parked, k)
		}
	}
}

// withFileLimit adds what to do to an error for want of descriptors.
func withFileLimit(err error, need int) error {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return err
	}
	return fmt.Errorf("%w: this process needs %d more descriptors and may have %d (raise the hard limit: ulimit -Hn, LimitNOFILE=)", err, need, fileLimit())
}
