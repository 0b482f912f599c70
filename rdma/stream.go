package rdma

import "fmt"

// One direction of a connection is a stream of bytes, cut into chunks. A chunk
// is one RDMA write. A staged chunk lands in the receiver's ring; a direct one
// lands in the receiver's own buffer, at the address that it announced for
// that part of the stream. Chunk number i travels on queue pair i mod n, and a
// queue pair keeps order, so both sides know without a word which chunk a
// completion means and where in the ring it lies.
//
// Nothing in this file knows verbs.

const (
	maxChunk     = 1<<24 - 1 // the immediate has 24 bits for the length
	maxWindow    = 4096
	maxAnnounced = 32 // announcements that the sender keeps
	ringAlign    = 64 // staged chunks begin on cache lines: kernels like it
)

// shape is what both directions of a connection have in common.
type shape struct {
	ring   uint64 // bytes of the receiver's ring, a multiple of ringAlign
	chunk  uint64 // most bytes of a chunk, a multiple of ringAlign
	window uint64 // most chunks that the receiver has not taken
	qps    uint64
}

// The immediate of a chunk: bit 31 direct, 30…24 the chunk's number, 23…0 its length.
const (
	immDirect = 1 << 31
	seqMask   = 0x7f
)

func immediate(direct bool, seq, n uint64) uint32 {
	imm := uint32(seq&seqMask)<<24 | uint32(n)
	if direct {
		imm |= immDirect
	}
	return imm
}

func padded(n uint64) uint64 { return (n + ringAlign - 1) &^ (ringAlign - 1) }

// span is a part of the stream that has an address in the receiver's memory.
type span struct {
	start, n, addr uint64
	rkey           uint32
}

// sender is the sending end of a stream.
type sender struct {
	shape
	pos   uint64 // bytes posted
	seq   uint64 // chunks posted
	head  uint64 // bytes of the ring used, padding included, since the start
	acked uint64 // chunks that the receiver has taken
	tail  uint64 // bytes of the ring that it has freed

	announced      [maxAnnounced]span // a ring of first … last
	first, last    uint64
	announcedUntil uint64
}

// chunk is the next write to post.
type chunk struct {
	n      uint64
	imm    uint32
	direct bool
	offset uint64 // in the ring, of a staged chunk
	addr   uint64 // of a direct chunk
	rkey   uint32
}

// next cuts the next chunk off a message of which left bytes remain; unit is
// the most to take. ok is false while the receiver has no room for it.
func (s *sender) next(left, unit uint64) (c chunk, ok bool) {
	if s.seq-s.acked >= s.window {
		return c, false
	}
	c.n = min(left, unit, s.chunk)
	for s.first != s.last && s.announced[s.first%maxAnnounced].end() <= s.pos {
		s.first++
	}
	if s.first != s.last {
		a := &s.announced[s.first%maxAnnounced]
		if a.start <= s.pos {
			c.direct, c.n = true, min(c.n, a.end()-s.pos)
			c.addr, c.rkey = a.addr+(s.pos-a.start), a.rkey
		} else {
			c.n = min(c.n, a.start-s.pos)
		}
	}
	if !c.direct {
		c.offset = s.head % s.ring
		c.n = min(c.n, s.ring-c.offset)
		if s.head+padded(c.n)-s.tail > s.ring {
			return c, false
		}
	}
	c.imm = immediate(c.direct, s.seq, c.n)
	return c, true
}

func (a span) end() uint64 { return a.start + a.n }

// posted records that the chunk is on its way.
func (s *sender) posted(c chunk) {
	s.pos += c.n
	s.seq++
	if !c.direct {
		s.head += padded(c.n)
	}
}

// heard takes in what the receiver says: chunks taken, ring bytes freed, and a
// span that may be written directly (n = 0: none). All of it is checked, for it
// decides where and how much this side writes.
func (s *sender) heard(c control) error {
	if c.Taken < s.acked || c.Taken > s.seq || c.Freed < s.tail || c.Freed > s.head {
		return fmt.Errorf("the peer says that it took %d messages and freed %d bytes; %d to %d and %d to %d are possible", c.Taken, c.Freed, s.acked, s.seq, s.tail, s.head)
	}
	s.acked, s.tail = c.Taken, c.Freed
	if c.Span.n == 0 {
		return nil
	}
	for s.first != s.last && s.announced[s.first%maxAnnounced].end() <= s.pos {
		s.first++
	}
	switch a := c.Span; {
	case a.start < s.announcedUntil || a.end() < a.start || a.addr+a.n < a.addr:
		return fmt.Errorf("the peer announces bytes %d to %d of the stream at %#x, after it had announced up to %d", a.start, a.end(), a.addr, s.announcedUntil)
	case s.last-s.first == maxAnnounced:
		return fmt.Errorf("the peer announces more than %d buffers at once", maxAnnounced)
	}
	s.announced[s.last%maxAnnounced] = c.Span
	s.last++
	s.announcedUntil = c.Span.end()
	return nil
}

// receiver is the receiving end of a stream.
type receiver struct {
	shape
	pos               uint64             // bytes taken
	seq               uint64             // chunks taken
	head              uint64             // bytes of the ring taken, padding included
	toldSeq, toldHead uint64             // what the sender was told of these
	open              [maxAnnounced]span // announced; a ring of first … last
	first, last       uint64
	next              []uint64 // of each queue pair: the number of the chunk that it brings next
	there             []uint32 // immediates of the chunks that have come, by number mod window; 0: not there
}

func newReceiver(s shape) receiver {
	r := receiver{shape: s, next: make([]uint64, s.qps), there: make([]uint32, s.window)}
	for i := range r.next {
		r.next[i] = uint64(i)
	}
	return r
}

// arrive takes in that queue pair q brought a chunk.
func (r *receiver) arrive(q int, imm uint32) error {
	seq := r.next[q]
	n := uint64(imm & maxChunk)
	if seq-r.seq >= r.window || uint32(seq&seqMask) != imm>>24&seqMask || n == 0 || n > r.chunk {
		return fmt.Errorf("message %#x on queue pair %d does not fit: it should be number %d, %d are taken", imm, q, seq, r.seq)
	}
	r.next[q] += r.qps
	r.there[seq%r.window] = imm
	return nil
}

// peek is the next chunk, when it has come: its length, and, when staged, its
// offset in the ring. left is what remains of the message that it belongs to.
func (r *receiver) peek(left uint64) (n, offset uint64, direct, ok bool, err error) {
	imm := r.there[r.seq%r.window]
	if imm == 0 {
		return 0, 0, false, false, nil
	}
	n, offset, direct = uint64(imm&maxChunk), r.head%r.ring, imm&immDirect != 0
	switch {
	case n > left:
		err = fmt.Errorf("the peer sent %d bytes where %d are left of the message: both sides disagree on a size", n, left)
	case direct && r.landing(n) == 0:
		err = fmt.Errorf("the peer wrote bytes %d to %d of the stream directly, for which no buffer was announced", r.pos, r.pos+n)
	case !direct && offset+n > r.ring:
		err = fmt.Errorf("the peer wrote %d bytes at %d of a ring of %d", n, offset, r.ring)
	}
	return n, offset, direct, err == nil, err
}

// took frees the chunk that peek showed.
func (r *receiver) took(n uint64, direct bool) {
	r.there[r.seq%r.window] = 0
	r.seq++
	r.pos += n
	if !direct {
		r.head += padded(n)
	}
}

// due says that the sender should hear of the room that it has again: at a
// quarter, so that it never waits for the last of it.
func (r *receiver) due() bool {
	return r.head-r.toldHead >= r.ring/4 || r.seq-r.toldSeq >= (r.window+3)/4
}

// landing is the address that was announced for the next n bytes; 0: none was.
func (r *receiver) landing(n uint64) uint64 {
	r.close()
	if a := r.open[r.first%maxAnnounced]; r.first != r.last && a.start <= r.pos && r.pos+n <= a.end() {
		return a.addr + (r.pos - a.start)
	}
	return 0
}

// close forgets the announcements that lie behind.
func (r *receiver) close() {
	for r.first != r.last && r.open[r.first%maxAnnounced].end() <= r.pos {
		r.first++
	}
}

// mayAnnounce says whether a span that begins at start can be announced:
// announcements follow each other in the order of the stream, and are few.
func (r *receiver) mayAnnounce(start uint64) bool {
	r.close()
	return r.last-r.first < maxAnnounced-1 && (r.last == 0 || start >= r.open[(r.last-1)%maxAnnounced].end())
}

// told is the state that a control message carries; it counts as sent.
func (r *receiver) told(a span) control {
	r.toldSeq, r.toldHead = r.seq, r.head
	if a.n > 0 {
		r.open[r.last%maxAnnounced] = a
		r.last++
	}
	return control{Taken: r.seq, Freed: r.head, Span: a}
}
