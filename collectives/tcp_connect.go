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

// tcpDials is how many connections one rank sets up at a time.
const tcpDials = 16

// TCPPeer is a rank and the address of its process's listener.
type TCPPeer struct {
	Rank int
	Addr netip.AddrPort
}

// ConnectTCP connects a rank, which lives where the listener is, with its
// peers: it dials those above it, and those below dial it. All of them must do
// so within the configuration's Timeout. The error is a LinkError that names
// one peer.
func ConnectTCP(ctx context.Context, l *TCPListener, me int, peers []TCPPeer, abort *Abort) (*TCPLink, error) {
	k := &TCPLink{rank: me, abort: abort, listen: l, cfg: l.cfg, scratch: make([]byte, tcpCarry+tcpScratch)}
	for range l.cfg.Threads - 1 {
		k.helpers = append(k.helpers, newTCPHelper())
	}
	if err := k.Connect(ctx, peers); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// Connect adds those of the peers that are not connected yet. After an error
// the link can only be closed.
func (l *TCPLink) Connect(ctx context.Context, peers []TCPPeer) error {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go l.watch(ctx, stop)

	var missing []TCPPeer
	for _, p := range peers {
		switch {
		case p.Rank < 0 || p.Rank >= tcpMaxRank || p.Rank == l.rank:
			return &LinkError{Rank: l.rank, Peer: p.Rank, Link: "tcp", Err: fmt.Errorf("is no peer of rank %d", l.rank)}
		case p.Rank >= len(l.peers):
			l.peers = append(l.peers, make([]*tcpPeer, p.Rank+1-len(l.peers))...)
		}
		if l.peers[p.Rank] == nil {
			missing = append(missing, p)
		}
	}
	each := l.cfg.connections()
	conns := make([]*net.TCPConn, len(missing)*each)
	errs := make([]error, len(conns))
	turns := make(chan struct{}, tcpDials)
	var wg sync.WaitGroup
	for i := range conns {
		p, socket := missing[i/each], i%each
		wg.Go(func() {
			var err error
			if conns[i], err = l.reach(ctx, p, socket, turns, len(conns)); err != nil {
				errs[i] = &LinkError{Rank: l.rank, Peer: p.Rank, Link: "tcp", Addr: p.Addr.String(), Err: err}
				stop(errs[i])
			}
		})
	}
	wg.Wait()
	return l.adopt(missing, conns, worst(context.Cause(ctx), errs))
}

// worst is the error to show: the one that ended the set-up, or, where time
// ran out for all that were missing, the first of these.
func worst(cause error, errs []error) error {
	var link *LinkError
	first, missing := error(nil), 0
	for _, err := range errs {
		if err != nil {
			if missing++; first == nil {
				first = err
			}
		}
	}
	switch {
	case missing == 0:
		return nil
	case errors.As(cause, &link):
		return cause
	case missing > 1:
		return fmt.Errorf("%w (and %d more connections)", first, missing-1)
	}
	return first
}

// watch ends the set-up when the run is aborted.
func (l *TCPLink) watch(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(tcpNap)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := l.abort.Err(); err != nil {
				stop(&LinkError{Rank: l.rank, Peer: -1, Link: "tcp", Err: fmt.Errorf("%w: %v", ErrAborted, err)})
			}
		}
	}
}

// reach gets one connection to the peer.
func (l *TCPLink) reach(ctx context.Context, p TCPPeer, socket int, turns chan struct{}, need int) (*net.TCPConn, error) {
	if p.Rank < l.rank {
		c, err := l.listen.take(ctx, tcpKey{p.Rank, l.rank, socket})
		if err != nil {
			err = fmt.Errorf("no connection within %v: %w", l.cfg.Timeout, err)
		}
		return c, err
	}
	turns <- struct{}{}
	defer func() { <-turns }()
	h := tcpHello{version: tcpVersion, sockets: l.cfg.Sockets, socket: socket, from: l.rank, to: p.Rank, stripe: l.cfg.MinStripe, token: l.listen.token}
	var last error
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		c, again, err := l.dial(ctx, p, h)
		if err == nil {
			return c, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if !again {
			return nil, withFileLimit(last, need)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, fmt.Errorf("no connection within %v: %w", l.cfg.Timeout, last)
		}
	}
}

// dial makes one attempt; again says whether another may succeed.
func (l *TCPLink) dial(ctx context.Context, p TCPPeer, h tcpHello) (c *net.TCPConn, again bool, err error) {
	d := net.Dialer{Control: l.cfg.sockOptions}
	if l.cfg.Source.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: l.cfg.Source.AsSlice(), Zone: l.cfg.Source.Zone()}
	}
	conn, err := d.DialContext(ctx, "tcp", p.Addr.String())
	if err != nil {
		again = !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.EADDRNOTAVAIL)
		if errors.Is(err, syscall.ECONNREFUSED) {
			err = fmt.Errorf("nobody listens there: %w", err)
		}
		return nil, again, err
	}
	if again, err = h.introduce(ctx, conn); err != nil {
		conn.Close()
		return nil, again, err
	}
	return conn.(*net.TCPConn), false, nil
}

// introduce says hello and reads the reply.
func (h tcpHello) introduce(ctx context.Context, c net.Conn) (again bool, err error) {
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	if _, err = c.Write(h.encode()); err != nil {
		return true, fmt.Errorf("hello: %w", err)
	}
	var reply [tcpReplyLen]byte
	if _, err = io.ReadFull(c, reply[:]); err != nil {
		return true, fmt.Errorf("it did not answer the hello: %w", err)
	}
	v, detail, err := parseTCPReply(reply[:])
	if err != nil {
		return false, err
	}
	return v.again(), h.explain(v, detail)
}

// adopt turns connections into streams; on an error it closes them all.
func (l *TCPLink) adopt(peers []TCPPeer, conns []*net.TCPConn, err error) error {
	for i, c := range conns {
		if err != nil {
			if c != nil {
				c.Close()
			}
			continue
		}
		p := peers[i/l.cfg.connections()]
		at := l.peers[p.Rank]
		if at == nil {
			at = &tcpPeer{me: l.rank, rank: p.Rank, addr: p.Addr.String()}
			l.peers[p.Rank] = at
		}
		c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3})
		c.SetNoDelay(true)
		here := staysHere(c)
		var fd int
		if fd, err = detach(c); err != nil {
			err = at.fault(withFileLimit(err, len(conns)))
			continue
		}
		if here {
			tuneLocal(fd)
		}
		s := &tcpStream{fd: fd, peer: at}
		if t := i % l.cfg.Sockets % l.cfg.Threads; t > 0 {
			s.driver = l.helpers[t-1]
			s.driver.add(s)
		}
		at.streams = append(at.streams, s)
	}
	return err
}
