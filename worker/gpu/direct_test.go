//go:build linux && cgo

package gpu

import (
	"encoding/binary"
	"errors"
	"testing"

	"busbw/collectives"
	"busbw/collectives/linktest"
)

// nic is a link to other processes that reads and writes device memory by itself,
// as a network device does: whatever the rank's queue still holds, it does not
// wait for it. TCP is what it is made of.
type nic struct {
	collectives.Link
	seat   *Seat
	s      *Stream
	direct int // spans of device memory that it has moved
	read   int // of these, read
	kept   []*Memory
}

func (n *nic) pinned(size int) ([]byte, error) {
	m, err := n.seat.Device.AllocHost(int64(size))
	n.kept = append(n.kept, m)
	return m.Span(0, int64(size)), err
}

func (n *nic) Send(peer int, p []byte) error {
	if len(p) == 0 || !n.seat.holds(p) {
		return n.Link.Send(peer, p)
	}
	n.direct, n.read = n.direct+1, n.read+1
	host, err := n.pinned(len(p))
	if err != nil {
		return err
	}
	if err := errors.Join(n.s.CopyOut(host, p), n.s.Sync()); err != nil {
		return err
	}
	return n.Link.Send(peer, host)
}

func (n *nic) Recv(peer int, p []byte) error {
	if len(p) == 0 || !n.seat.holds(p) {
		return n.Link.Recv(peer, p)
	}
	n.direct++
	host, err := n.pinned(len(p))
	if err != nil {
		return err
	}
	return errors.Join(n.Link.Recv(peer, host), n.s.CopyIn(p, host), n.s.Sync())
}

func (n *nic) Close() error {
	err := n.Link.Close()
	for _, m := range n.kept {
		err = errors.Join(err, m.Free())
	}
	return errors.Join(err, n.s.Close())
}

// flow makes a stream of bytes of a link of messages, as queue pairs are one: who
// receives need not ask for the lengths that were sent. Each message goes behind
// its length.
type flow struct {
	collectives.Link
	rest map[int][]byte // of a peer's last message
}

func (f *flow) Send(peer int, p []byte) error {
	return errors.Join(f.Link.Send(peer, binary.LittleEndian.AppendUint32(nil, uint32(len(p)))), f.Link.Send(peer, p))
}

func (f *flow) WaitSent(peer int, n uint64) error { return f.Link.WaitSent(peer, 2*n) }

func (f *flow) Recv(peer int, p []byte) error {
	for len(p) > 0 {
		if len(f.rest[peer]) == 0 {
			var n [4]byte
			if err := f.Link.Recv(peer, n[:]); err != nil {
				return err
			}
			f.rest[peer] = make([]byte, binary.LittleEndian.Uint32(n[:]))
			if err := f.Link.Recv(peer, f.rest[peer]); err != nil {
				return err
			}
		}
		n := copy(p, f.rest[peer])
		p, f.rest[peer] = p[n:], f.rest[peer][n:]
	}
	return nil
}

// A network device that reaches GPU memory sees what the schedule says and
// nothing earlier: it waits for no queue, so the link has to.
func TestDirectConformance(t *testing.T) {
	if !onFake(t, "FAKECUDA_DEVICES=4", "FAKECUDA_LAZY=1", "FAKECUDA_MEM=512") {
		return
	}
	var now []*store
	moved := 0
	linktest.Kit{
		Stores: func(t testing.TB, ranks int) (s []linktest.Store) {
			now = seats(t, ranks, true)
			for _, q := range now {
				s = append(s, q)
			}
			return s
		},
		Links: func(t testing.TB, ranks int, abort *collectives.Abort) (links []collectives.Link) {
			nets := tcp(t, ranks, abort)
			for me, q := range now {
				s, err := q.Device.Stream()
				ok(t, err)
				n := &nic{Link: &flow{nets[me], map[int][]byte{}}, seat: q.Seat, s: s}
				l, err := NewLink(q.Seat, me, NewExchange(abort), nil, nil)
				ok(t, err)
				l.piece = 100_000
				ok(t, l.Over(n, Direct{Reaches: q.Seat.holds, NoReads: me == 0, Register: func(*Memory) error {
					if me%2 == 1 { // that device takes the buffers and no more
						return errors.New("no more")
					}
					return nil
				}}))
				t.Cleanup(func() {
					moved += n.direct
					if me == 0 && n.read > 0 {
						t.Errorf("%d spans of device memory were read, that must not be", n.read)
					}
				})
				links = append(links, l)
			}
			return links
		},
	}.Apart(t)
	t.Cleanup(func() {
		if moved < 1000 {
			t.Errorf("%d spans went straight", moved)
		}
	})
}

// giver is a link from which a byte comes again and again.
type giver struct {
	collectives.Link
	b byte
}

func (g giver) Recv(_ int, p []byte) error {
	for i := range p {
		p[i] = g.b
	}
	return nil
}

// What is queued reads memory as it was before the network device wrote to it.
func TestDirectWaitsForReaders(t *testing.T) {
	if !onFake(t, "FAKECUDA_LAZY=1") {
		return
	}
	q := seats(t, 1, false)[0]
	m, err := q.Seat.Alloc(8192)
	ok(t, err)
	s, err := q.Device.Stream()
	ok(t, err)
	l, err := NewLink(q.Seat, 0, NewExchange(new(collectives.Abort)), nil, nil)
	ok(t, err)
	ok(t, l.Over(&nic{Link: giver{b: 9}, seat: q.Seat, s: s}, Direct{Reaches: q.Seat.holds}))
	x, y := m.Span(0, 4096), m.Span(4096, 4096)
	ok(t, q.Seat.Set(x, 1))
	ok(t, q.s.Copy(y, x))
	ok(t, l.Recv(1, x))
	got := make([]byte, 2)
	ok(t, q.Get(got[:1], y[:1]))
	ok(t, q.Get(got[1:], x[:1]))
	if got[0] != 1 || got[1] != 9 {
		t.Errorf("the copy has %d, the memory %d; want 1 and 9", got[0], got[1])
	}
}
