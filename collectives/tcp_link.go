package collectives

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"busbw/collectives/reduce"
)

// TCPLink is a Link of one rank over TCP. The rank's thread moves all data
// itself, in raw calls that do not block; where the configuration says so,
// helper threads share the sockets.
type TCPLink struct {
	rank   int
	abort  *Abort
	listen *TCPListener
	cfg    TCPConfig

	peers   []*tcpPeer   // by global rank; nil: not connected
	sending []*tcpStream // of this thread, with something to send
	scratch []byte
	rest    tcpRest
	helpers []*tcpHelper
	closed  bool
}

var _ Link = (*TCPLink)(nil)

// tcpPeer is the other end of a link's connections to one rank.
type tcpPeer struct {
	me, rank int
	addr     string
	streams  []*tcpStream // the first half is that of the lower rank
	spans    uint64
	out, in  int // counts the parts sent and received: which stream is next
}

// lane is the streams for spans of n bytes, sent by the lower of the two ranks
// or by the higher. Small ones share connections, so that what is sent back
// carries the acknowledgement. Large ones have connections for each direction:
// a socket is locked by its owner's call, and packets that come for it meanwhile
// wait; between two ranks that send 1 MiB to each other it cost 10 %.
func (p *tcpPeer) lane(n int, lower bool) []*tcpStream {
	if half := len(p.streams) / 2; n > tcpShared && !lower {
		return p.streams[half:]
	} else {
		return p.streams[:half]
	}
}

func (p *tcpPeer) fault(err error) error {
	return &LinkError{Rank: p.me, Peer: p.rank, Link: "tcp", Addr: p.addr, Err: err}
}

// peer finds a connected peer.
func (l *TCPLink) peer(rank int) (*tcpPeer, error) {
	if rank >= 0 && rank < len(l.peers) && l.peers[rank] != nil {
		return l.peers[rank], nil
	}
	err := errors.New("is not connected")
	if l.closed {
		err = errors.New("the link is closed")
	}
	return nil, &LinkError{Rank: l.rank, Peer: rank, Link: "tcp", Err: err}
}

// Send implements Link. A span that finds its socket free is given to it at once.
func (l *TCPLink) Send(peer int, p []byte) error {
	to, err := l.peer(peer)
	if err != nil {
		return err
	}
	size, parts := l.cfg.stripe(len(p))
	lane := to.lane(len(p), l.rank < peer)
	for i := range parts {
		s := lane[to.out%len(lane)]
		to.out++
		only := s.post(p[i*size:min((i+1)*size, len(p))], to.spans)
		switch {
		case s.driver != nil:
			s.driver.wake()
		case only:
			if _, left, err := s.push(tcpBurst); err != nil {
				return err
			} else if left && !s.listed {
				s.listed = true
				l.sending = append(l.sending, s)
			}
		}
	}
	to.spans++
	return nil
}

// Recv implements Link.
func (l *TCPLink) Recv(peer int, p []byte) error {
	return l.receive(peer, unsafe.Pointer(unsafe.SliceData(p)), nil, len(p), nil)
}

// Reduce implements Link: the bytes are combined as they come.
func (l *TCPLink) Reduce(peer int, dst, a []byte, k *reduce.Kernels) error {
	if len(a) != len(dst) || len(dst)%k.Dtype.Size() != 0 {
		return &LinkError{Rank: l.rank, Peer: peer, Link: "tcp", Err: fmt.Errorf("reduce of %d and %d bytes of %s", len(dst), len(a), k.Dtype)}
	}
	return l.receive(peer, unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(a)), len(dst), k)
}

func (l *TCPLink) receive(peer int, dst, a unsafe.Pointer, n int, k *reduce.Kernels) error {
	from, err := l.peer(peer)
	if err != nil {
		return err
	}
	size, parts := l.cfg.stripe(n)
	lane, at := from.lane(n, peer < l.rank), from.in
	for i := range parts {
		s := lane[(at+i)%len(lane)]
		r := &s.rx
		r.dst, r.a, r.k = unsafe.Add(dst, i*size), nil, k
		if k != nil {
			r.a = unsafe.Add(a, i*size)
		}
		r.size, r.got, r.carry = min(size, n-i*size), 0, 0
		s.want.Store(true)
		if s.driver != nil {
			s.driver.wake()
		}
	}
	from.in += parts
	l.rest.begin()
	for {
		moved, open := 0, false
		for i := range parts {
			s := lane[(at+i)%len(lane)]
			if s.driver == nil {
				m, err := s.pull(l.scratch, tcpMost)
				if err != nil {
					return err
				}
				moved += m
			} else if err := s.fail.Load(); err != nil {
				return *err
			}
			open = open || s.want.Load()
		}
		if !open {
			return nil
		}
		m, err := l.pushAll()
		if err != nil {
			return err
		}
		if err := l.pause(from, moved+m); err != nil {
			return err
		}
	}
}

// pushAll lets every stream of this thread send a little of what it has.
func (l *TCPLink) pushAll() (moved int, err error) {
	keep := l.sending[:0]
	for i, s := range l.sending {
		m, left, err := s.push(tcpBurst)
		if err != nil {
			l.sending = append(keep, l.sending[i:]...)
			return moved, err
		}
		moved += m
		if s.listed = left; left {
			keep = append(keep, s)
		}
	}
	l.sending = keep
	return moved, nil
}

// WaitSent implements Link.
func (l *TCPLink) WaitSent(peer int, n uint64) error {
	to, err := l.peer(peer)
	if err != nil {
		return err
	}
	if n > to.spans {
		return to.fault(fmt.Errorf("wait for span %d, but only %d were sent", n, to.spans))
	}
	l.rest.begin()
	for {
		done := true
		for _, s := range to.streams {
			if s.driver != nil {
				if err := s.fail.Load(); err != nil {
					return *err
				}
			}
			done = done && s.sent(n)
		}
		if done {
			return nil
		}
		moved, err := l.pushAll()
		if err != nil {
			return err
		}
		if err := l.pause(to, moved); err != nil {
			return err
		}
	}
}

// Poll implements Link.
func (l *TCPLink) Poll() error {
	_, err := l.pushAll()
	return err
}

// pause is the end of one round of a wait for the peer.
func (l *TCPLink) pause(p *tcpPeer, moved int) error {
	if moved > 0 {
		l.rest.begin()
		return nil
	}
	if err := l.abort.Err(); err != nil {
		return p.fault(fmt.Errorf("%w: %v", ErrAborted, err))
	}
	if l.rest.spin() {
		return nil
	}
	fds := l.rest.fds[:0]
	for _, s := range p.streams {
		if s.driver == nil && s.want.Load() {
			fds = append(fds, pollFD{fd: int32(s.fd), events: pollIn})
		}
	}
	for _, s := range l.sending {
		fds = append(fds, pollFD{fd: int32(s.fd), events: pollOut})
	}
	l.rest.fds = fds
	l.rest.sleep()
	return nil
}

// Close closes the connections. What was posted and is not covered by a
// WaitSent may be lost.
func (l *TCPLink) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	for _, h := range l.helpers {
		h.stop()
	}
	for _, p := range l.peers {
		if p == nil {
			continue
		}
		for _, s := range p.streams {
			syscall.Close(s.fd)
		}
	}
	l.peers, l.sending = nil, nil
	l.listen.forget(l.rank)
	return nil
}

// Streams says how many sockets carry a span to a peer and how many threads, the
// rank's own among them, move their data; 0 before there is a peer.
func (l *TCPLink) Streams() (sockets, threads int) {
	for _, p := range l.peers {
		if p != nil {
			return len(p.streams) / 2, 1 + len(l.helpers)
		}
	}
	return 0, 0
}
