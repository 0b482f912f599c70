//go:build linux && cgo

package gpu

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"busbw/collectives"
)

// pieceBytes is how much of a span moves at once: while a piece is under way,
// the next is copied out of the device.
const pieceBytes = 4 << 20

// Exchange is where ranks of one process meet that have no peer access: they
// hand each other pieces in locked host memory.
type Exchange struct {
	mu    sync.Mutex
	lines map[[2]int]*line // by sender and receiver
	abort *collectives.Abort
}

// NewExchange makes one for the ranks of a process.
func NewExchange(abort *collectives.Abort) *Exchange {
	return &Exchange{lines: map[[2]int]*line{}, abort: abort}
}

// line is the pieces that are under way from one rank to another.
type line struct {
	mu     sync.Mutex
	pieces []piece
}

// piece is so many bytes of a block.
type piece struct {
	b *block
	n int
}

// block is locked host memory that holds one piece. Its receiver gives it back.
type block struct {
	m    *Memory
	size int
	mu   *sync.Mutex // of the owner's free list
	free *[]*block
}

func (b *block) give() {
	if b == nil {
		return // a span that went straight from the device
	}
	b.mu.Lock()
	*b.free = append(*b.free, b)
	b.mu.Unlock()
}

func (x *Exchange) line(from, to int) *line {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.lines[[2]int{from, to}]
	if l == nil {
		l = &line{}
		x.lines[[2]int{from, to}] = l
	}
	return l
}

func (l *line) put(p piece) {
	l.mu.Lock()
	l.pieces = append(l.pieces, p)
	l.mu.Unlock()
}

// take waits for the next piece. It calls poll meanwhile.
func (l *line) take(abort *collectives.Abort, poll func() error) (piece, error) {
	for i := 0; ; i++ {
		l.mu.Lock()
		if len(l.pieces) > 0 {
			p := l.pieces[0]
			l.pieces = l.pieces[1:]
			l.mu.Unlock()
			return p, nil
		}
		l.mu.Unlock()
		if err := errors.Join(abort.Err(), poll()); err != nil {
			return piece{}, err
		}
		if runtime.Gosched(); i > 10000 {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// Link carries spans of device memory to where the device cannot copy them
// itself: to ranks of the process without peer access, through an Exchange, and
// to other processes, over a link of host memory. It is a collectives.Link.
type Link struct {
	seat  *Seat
	me    int
	x     *Exchange
	here  map[int]bool     // peers that are in the exchange
	net   collectives.Link // nil: all peers are
	mu    sync.Mutex       // of free
	free  []*block
	all   []*block
	sent  map[int]*sending // by peer in net
	in    [2]*block        // for what arrives from net
	far   [2]*Memory       // instead, where net writes to the device
	inAt  [2]*Event        // when their last piece had been used
	turn  int
	reach Direct
	piece int
}

// direct says that a span needs no staging on its way to or from a peer.
func (l *Link) direct(peer int, p []byte) bool {
	return l.reach.Reaches != nil && len(p) > 0 && !l.here[peer] && l.reach.Reaches(p)
}

// sending is what was handed to net for one peer.
type sending struct {
	spans  uint64   // that the link was given and WaitSent has covered
	ends   []uint64 // of each span since: pieces given to net so far
	pieces uint64
	done   uint64
	held   []*block // of the pieces after done
}

// NewLink makes the link of rank me, whose buffers are the seat's. here lists
// the peers in the exchange; net reaches the others, and may be nil.
func NewLink(seat *Seat, me int, x *Exchange, here []int, net collectives.Link) (*Link, error) {
	l := &Link{seat: seat, me: me, x: x, here: map[int]bool{}, net: net, sent: map[int]*sending{}, piece: pieceBytes}
	for _, p := range here {
		l.here[p] = true
	}
	for i := range l.inAt {
		var err error
		if l.inAt[i], err = seat.Device.Event(false); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// Over puts the link to other processes under it, which the caller has made, in
// place of one that has drained.
func (l *Link) Over(net collectives.Link, reach Direct) error {
	for _, s := range l.sent {
		for _, b := range s.held {
			b.give()
		}
	}
	l.net, l.reach, l.sent = net, reach, map[int]*sending{}
	for i, m := range l.far {
		if m == nil {
			continue
		}
		if reach.Register == nil || reach.Register(m) != nil {
			l.far[i] = nil // what was allocated stays with the seat
		}
	}
	return nil
}

// Here says whether a peer is in the exchange.
func (l *Link) Here(peer int) bool { return l.here[peer] }

// take gives a free block of that size or more.
func (l *Link) take(n int) (*block, error) {
	l.mu.Lock()
	i := slices.IndexFunc(l.free, func(b *block) bool { return b.size >= n && b.size/4 < max(n, 1024) })
	if i >= 0 {
		b := l.free[i]
		l.free = slices.Delete(l.free, i, i+1)
		l.mu.Unlock()
		return b, nil
	}
	l.mu.Unlock()
	size := 4096
	for size < n {
		size *= 2
	}
	m, err := l.seat.Device.AllocHost(int64(size))
	if err != nil {
		return nil, err
	}
	b := &block{m: m, size: size, mu: &l.mu, free: &l.free}
	l.all = append(l.all, b)
	return b, nil
}

// out copies a piece into a block. What the barrier sends is host memory.
func (l *Link) out(b *block, p []byte) ([]byte, error) {
	to := b.m.Span(0, int64(len(p)))
	if !l.seat.holds(p) {
		copy(to, p)
		return to, nil
	}
	return to, errors.Join(l.seat.s.CopyOut(to, p), l.seat.s.Sync())
}

func (l *Link) fail(peer int, err error) error {
	var link *collectives.LinkError
	if err == nil || errors.As(err, &link) {
		return err
	}
	return &collectives.LinkError{Rank: l.me, Peer: peer, Link: "cuda, staged", Err: err}
}

// Send copies the span out of the device and posts it, or posts it as it is.
func (l *Link) Send(peer int, p []byte) error {
	if !l.reach.NoReads && l.direct(peer, p) {
		if err := l.seat.s.Sync(); err != nil { // the network device knows nothing of queues
			return l.fail(peer, err)
		}
		if err := l.net.Send(peer, p); err != nil {
			return err
		}
		s := l.sending(peer)
		s.pieces++
		s.held, s.ends = append(s.held, nil), append(s.ends, s.pieces)
		return nil
	}
	for part := range slices.Chunk(p, l.piece) {
		b, err := l.take(len(part))
		if err != nil {
			return l.fail(peer, err)
		}
		data, err := l.out(b, part)
		if err != nil {
			return l.fail(peer, err)
		}
		if l.here[peer] {
			l.x.line(l.me, peer).put(piece{b, len(part)})
			continue
		}
		if err := l.net.Send(peer, data); err != nil {
			return err
		}
		s := l.sending(peer)
		s.pieces++
		s.held = append(s.held, b)
	}
	if !l.here[peer] {
		s := l.sending(peer)
		s.ends = append(s.ends, s.pieces)
	}
	return nil
}

func (l *Link) sending(peer int) *sending {
	if l.sent[peer] == nil {
		l.sent[peer] = &sending{}
	}
	return l.sent[peer]
}

// WaitSent frees the blocks of spans that have left: the spans themselves were
// free when Send returned.
func (l *Link) WaitSent(peer int, n uint64) error {
	if l.here[peer] {
		return nil
	}
	s := l.sending(peer)
	if n <= s.spans {
		return nil
	}
	end := s.ends[n-s.spans-1]
	if err := l.net.WaitSent(peer, end); err != nil {
		return err
	}
	s.ends, s.spans = s.ends[n-s.spans:], n
	for ; s.done < end; s.done++ {
		s.held[0].give()
		s.held = s.held[1:]
	}
	return nil
}

// Poll moves what other processes sent and take.
func (l *Link) Poll() error {
	if l.net == nil {
		return nil
	}
	return l.net.Poll()
}

// Close closes the link to other processes and frees the blocks; the peers in
// the exchange are done by then.
func (l *Link) Close() error {
	err := l.seat.s.Sync()
	if l.net != nil {
		err = errors.Join(err, l.net.Close())
	}
	for _, b := range l.all {
		err = errors.Join(err, b.m.Free())
	}
	for _, e := range l.inAt {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	return err
}
