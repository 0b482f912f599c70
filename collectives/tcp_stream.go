package collectives

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"busbw/collectives/reduce"
)

const (
	// tcpMost bounds what is received, bytes, between two looks at the other
	// direction, so that two ranks that send to each other both keep their windows
	// open.
	tcpMost = 256 << 10
	// tcpBurst is the same for what is sent. Every call ends with the kernel
	// delivering what it has, so longer ones cost less: broadcast of 1 MiB between
	// two ranks of a machine took 143 µs with 256 KiB, 120 with 1 MiB.
	tcpBurst = 1 << 20
	// tcpShared is the largest span, bytes, for which both directions share their
	// connections.
	tcpShared = 32 << 10
	// tcpScratch is where bytes land before they are combined: it and its source
	// in the socket fit into a core's second-level cache.
	tcpScratch = 128 << 10
	// tcpCarry is room before the scratch for the start of an element whose rest
	// has not come yet.
	tcpCarry = lineBytes
)

// txPart is a part of a span on its way out.
type txPart struct {
	p    []byte
	span uint64 // the number of the span among those to its peer, from 0
}

// tcpStream is one connection. Its owner, the rank's thread, adds parts to
// send and the part to receive; its driver, the same thread or a helper, moves
// them.
type tcpStream struct {
	fd     int
	peer   *tcpPeer
	driver *tcpHelper // nil: the rank's thread

	mu     sync.Mutex // guards the queue of what is to be sent
	queue  []txPart   // a ring
	first  int
	count  int
	gone   int  // bytes of the first part that have been sent; the driver's
	listed bool // in the driver's list of streams with something to send; the owner's

	// At most one part is being received: want is set by the owner, cleared by
	// the driver.
	want atomic.Bool
	rx   rxPart
	fail atomic.Pointer[error] // of the driver
}

// rxPart is a part of a span on its way in.
type rxPart struct {
	dst, a unsafe.Pointer
	k      *reduce.Kernels // nil: as it comes
	size   int
	got    int // bytes received
	carry  int // of those, the last that do not make an element yet
	rest   [tcpCarry]byte
}

// post adds a part to be sent and says whether it is the only one.
func (s *tcpStream) post(p []byte, span uint64) (only bool) {
	s.mu.Lock()
	if s.count == len(s.queue) {
		ring := make([]txPart, max(8, 2*s.count))
		for i := range s.count {
			ring[i] = s.queue[(s.first+i)&(len(s.queue)-1)]
		}
		s.queue, s.first = ring, 0
	}
	s.queue[(s.first+s.count)&(len(s.queue)-1)] = txPart{p, span}
	s.count++
	only = s.count == 1
	s.mu.Unlock()
	return only
}

// sent says whether nothing of the first n spans is left to be sent.
func (s *tcpStream) sent(n uint64) bool {
	s.mu.Lock()
	done := s.count == 0 || s.queue[s.first].span >= n
	s.mu.Unlock()
	return done
}

// push sends what the socket takes now, at most bytes of it. left says whether
// something remains.
func (s *tcpStream) push(most int) (moved int, left bool, err error) {
	for moved < most {
		s.mu.Lock()
		if s.count == 0 {
			s.mu.Unlock()
			return moved, false, nil
		}
		part := s.queue[s.first].p
		s.mu.Unlock()
		ask := min(len(part)-s.gone, most-moved)
		n, errno := sendSome(s.fd, part[s.gone:s.gone+ask])
		switch {
		case errno == syscall.EAGAIN || errno == syscall.EINTR:
			return moved, true, nil
		case errno != 0:
			return moved, true, s.broken(errno)
		}
		moved += n
		if s.gone += n; s.gone == len(part) {
			s.pop()
		} else if n < ask { // the socket is full: no need to hear it say so
			return moved, true, nil
		}
	}
	return moved, !s.sent(allSpans), nil
}

// allSpans is a number that no count of spans reaches.
const allSpans = ^uint64(0)

// pop takes the first part off the queue.
func (s *tcpStream) pop() {
	s.gone = 0
	s.mu.Lock()
	s.queue[s.first] = txPart{}
	s.first = (s.first + 1) & (len(s.queue) - 1)
	s.count--
	s.mu.Unlock()
}

// pull receives what the socket has of the wanted part, at most bytes of it.
func (s *tcpStream) pull(scratch []byte, most int) (moved int, err error) {
	if !s.want.Load() {
		return 0, nil
	}
	r := &s.rx
	for moved < most {
		n, errno := 0, syscall.Errno(0)
		left := min(r.size-r.got, most-moved)
		if r.k == nil {
			n, errno = recvSome(s.fd, unsafe.Add(r.dst, r.got), left)
		} else {
			left = min(left, len(scratch)-tcpCarry)
			n, errno = recvSome(s.fd, unsafe.Pointer(&scratch[tcpCarry]), left)
		}
		switch {
		case errno == syscall.EAGAIN || errno == syscall.EINTR:
			return moved, nil
		case errno != 0:
			return moved, s.broken(errno)
		case n == 0:
			return moved, s.broken(syscall.ECONNRESET)
		}
		if r.k != nil {
			r.combine(scratch, n)
		}
		moved += n
		if r.got += n; r.got == r.size {
			s.want.Store(false)
			return moved, nil
		}
		if n < left { // the socket is empty: no need to hear it say so
			return moved, nil
		}
	}
	return moved, nil
}

// combine reduces the n bytes that came behind the scratch's margin, with what
// was left of an element before them.
func (r *rxPart) combine(scratch []byte, n int) {
	from := tcpCarry - r.carry
	copy(scratch[from:tcpCarry], r.rest[:r.carry])
	n += r.carry
	done, elem := r.got-r.carry, r.k.Dtype.Size()
	whole := n / elem
	if whole > 0 {
		r.k.Two(unsafe.Add(r.dst, done), unsafe.Add(r.a, done), unsafe.Pointer(&scratch[from]), whole)
	}
	r.carry = n - whole*elem
	copy(r.rest[:], scratch[from+whole*elem:from+n])
}

// broken is the error of a system call on the connection.
func (s *tcpStream) broken(errno syscall.Errno) error {
	var err error = errno
	if errno == syscall.ECONNRESET || errno == syscall.EPIPE {
		err = ErrPeerClosed
	}
	return s.peer.fault(err)
}
