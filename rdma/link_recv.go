//go:build linux && cgo

package rdma

import (
	"fmt"
	"unsafe"

	"busbw/collectives/reduce"
)

// Recv fills b with the next bytes of the peer's stream. A long b in registered
// memory whose data has not come yet is announced, so that the rest of it is
// written straight to its place.
func (l *Link) Recv(rank int, b []byte) error {
	p, err := l.ready(rank)
	if err != nil {
		return err
	}
	tell := true
	return l.take(p, uint64(len(b)), func(done, n, offset uint64, direct bool) error {
		switch {
		case n > 0 && !direct && l.onGPU(b[done:done+n]) != nil:
			return l.cfg.Put(b[done:done+n], p.inbox[offset:offset+n])
		case n > 0 && !direct:
			copy(b[done:done+n], p.inbox[offset:offset+n])
		case n > 0 && p.rx.landing(n) != address(b[done:]):
			return l.blame(p, fmt.Errorf("bytes came to %#x that belong to %#x: Expect and Recv disagree", p.rx.landing(n), address(b[done:])))
		case n == 0 && tell:
			tell = false
			return l.announce(p, p.rx.pos, b[done:])
		}
		return nil
	})
}

// Expect implements collectives.Expecter.
func (l *Link) Expect(rank int, skip uint64, b []byte) error {
	p, err := l.ready(rank)
	if err != nil {
		return err
	}
	return l.announce(p, p.rx.pos+skip, b)
}

// Reduce does dst = a op the next bytes of the peer's stream, straight from the ring.
func (l *Link) Reduce(rank int, dst, a []byte, k *reduce.Kernels) error {
	p, err := l.ready(rank)
	if err != nil {
		return err
	}
	size := uint64(k.Dtype.Size())
	return l.take(p, uint64(len(dst)), func(done, n, offset uint64, direct bool) error {
		if n%size != 0 || direct {
			return l.blame(p, fmt.Errorf("the peer sent %d bytes of %s, direct %t: both sides disagree on the schedule", n, k.Dtype, direct))
		}
		if n > 0 {
			k.Two(unsafe.Pointer(&dst[done]), unsafe.Pointer(&a[done]), unsafe.Pointer(&p.inbox[offset]), int(n/size))
		}
		return nil
	})
}

// take goes through the next bytes of a stream, chunk by chunk: use is told how
// many bytes are done, and where the next n are; n is 0, once a wait, when they
// have not come yet.
func (l *Link) take(p *peer, size uint64, use func(done, n, offset uint64, direct bool) error) error {
	w := l.waiting(p)
	for done := uint64(0); done < size; {
		n, offset, direct, ok, err := p.rx.peek(size - done)
		if err != nil {
			return l.fail(l.blame(p, err))
		}
		if !ok {
			// look before telling the peer anything: mostly the data is there
			if seen, err := l.progress(1); err != nil {
				return err
			} else if seen {
				continue
			}
		}
		if err := use(done, n, offset, direct); err != nil {
			return err
		}
		if !ok {
			if err := w.step(); err != nil {
				return err
			}
			continue
		}
		p.rx.took(n, direct)
		done += n
		if p.rx.due() && !p.ctrl {
			p.ctrl = true
			if err := l.pump(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// announce offers b as the place for the bytes from start on of the stream,
// when it is worth a message, the device may write there, and there is room to
// say it: it is only a way to save a copy.
func (l *Link) announce(p *peer, start uint64, b []byte) error {
	n := uint64(len(b))
	if n < p.rx.announceAt() || !p.rx.mayAnnounce(start) || l.q.room(p.base) < 1 {
		return nil
	}
	r := l.region(address(b), n)
	if r == nil {
		return nil
	}
	if err := l.control(p, span{start: start, n: n, addr: address(b), rkey: r.RKey}); err != nil {
		return err
	}
	return l.flush()
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
