//go:build linux && cgo

package gpu

import (
	"errors"
	"slices"
	"unsafe"

	"busbw/collectives/reduce"
)

// arrive gives the next piece from the peer and what to call when the queue has
// used it.
func (l *Link) arrive(peer, n int, reduce bool) (data []byte, used func() error, err error) {
	if l.here[peer] {
		p, err := l.x.line(peer, l.me).take(l.x.abort, l.Poll)
		if err != nil {
			return nil, nil, l.fail(peer, err)
		}
		if p.n != n {
			return nil, nil, l.fail(peer, errors.New("it sent another length than was to come"))
		}
		return p.b.m.Span(0, int64(n)), func() error {
			err := l.seat.s.Sync()
			p.b.give()
			return err
		}, nil
	}
	l.turn ^= 1
	i := l.turn
	if reduce && l.reach.Register != nil {
		if m, err := l.land(i, n); err != nil {
			return nil, nil, l.fail(peer, err)
		} else if m != nil {
			data = m.Span(0, int64(n))
			if err := l.net.Recv(peer, data); err != nil {
				return nil, nil, err
			}
			return data, func() error { return l.seat.s.Record(l.inAt[i]) }, l.landed(peer)
		}
	}
	if b := l.in[i]; b != nil {
		if err := l.inAt[i].Sync(); err != nil { // what is in it may still be read
			return nil, nil, l.fail(peer, err)
		}
		if b.size < n {
			b.give()
			l.in[i] = nil
		}
	}
	if l.in[i] == nil {
		if l.in[i], err = l.take(n); err != nil {
			return nil, nil, l.fail(peer, err)
		}
	}
	data = l.in[i].m.Span(0, int64(n))
	if err := l.net.Recv(peer, data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return l.seat.s.Record(l.inAt[i]) }, nil
}

// land is device memory for the next piece, which net writes to; nil: it does not.
func (l *Link) land(i, n int) (*Memory, error) {
	if err := l.inAt[i].Sync(); err != nil { // what is in it may still be read
		return nil, err
	}
	if m := l.far[i]; m == nil || m.Size() < int64(n) {
		m, err := l.seat.Alloc(int64(max(n, 1<<16)))
		if err != nil {
			return nil, err
		}
		if l.reach.Register(m) != nil {
			l.reach.Register = nil // the device takes no more: through host memory, then
			return nil, l.seat.Free(m)
		}
		l.far[i] = m
	}
	return l.far[i], nil
}

// landed makes what the network device has written visible to what is queued next.
func (l *Link) landed(peer int) error {
	if err := l.seat.Device.FlushRDMA(); err != nil {
		return l.fail(peer, err)
	}
	return nil
}

// Recv copies the next span into the device, or has it written there.
func (l *Link) Recv(peer int, p []byte) error {
	if l.direct(peer, p) {
		if err := l.seat.s.Sync(); err != nil { // what was there may still be read
			return l.fail(peer, err)
		}
		if err := l.net.Recv(peer, p); err != nil {
			return err
		}
		return l.landed(peer)
	}
	for part := range slices.Chunk(p, l.piece) {
		data, used, err := l.arrive(peer, len(part), false)
		if err != nil {
			return err
		}
		if l.seat.holds(part) {
			err = l.seat.s.CopyIn(part, data)
		} else {
			copy(part, data)
		}
		if err := errors.Join(err, used()); err != nil {
			return l.fail(peer, err)
		}
	}
	return nil
}

// Reduce combines the next span with a; the kernel reads it in host memory.
func (l *Link) Reduce(peer int, dst, a []byte, k *reduce.Kernels) error {
	for at := 0; at < len(dst); at += l.piece {
		n := min(l.piece, len(dst)-at)
		data, used, err := l.arrive(peer, n, true)
		if err != nil {
			return err
		}
		to := [1]unsafe.Pointer{address(dst[at:])}
		from := [2]unsafe.Pointer{address(a[at:]), address(data)}
		err = l.seat.Pass(to[:], from[:], int64(n), k, 0)
		if err := errors.Join(err, used()); err != nil {
			return l.fail(peer, err)
		}
	}
	return nil
}
