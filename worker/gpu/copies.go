//go:build linux && cgo

package gpu

import (
	"errors"
	"time"
)

// CopyTimes copies n bytes from locked host memory into the device and back,
// one copy after the other, each way for about d, and returns the seconds of
// each by the device's clock. The host memory is that of the calling thread's
// NUMA node.
func (g *Device) CopyTimes(n int64, d time.Duration) (in, out []float64, err error) {
	host, err := g.AllocHost(n)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, host.Free()) }()
	mem, err := g.Alloc(n)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, mem.Free()) }()
	from, to := host.Span(0, n), mem.Span(0, n)
	clear(from) // pages come when they are touched
	if in, err = g.times(d, func(s *Stream) error { return s.CopyIn(to, from) }); err != nil {
		return nil, nil, err
	}
	out, err = g.times(d, func(s *Stream) error { return s.CopyOut(from, to) })
	return in, out, err
}

// PeerTimes copies n bytes from the device's memory into a peer's, as CopyTimes;
// the two must have peer access, which it enables.
func (g *Device) PeerTimes(peer *Device, n int64, d time.Duration) (out []float64, err error) {
	if err := g.EnablePeer(peer); err != nil {
		return nil, err
	}
	mem, err := g.Alloc(n)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mem.Free()) }()
	there, err := peer.Alloc(n)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, there.Free()) }()
	return g.times(d, func(s *Stream) error { return s.CopyPeer(peer, there.Span(0, n), g, mem.Span(0, n)) })
}

// Copies that are thrown away, and how many are kept at least and at most.
const (
	CopyWarmup = 3
	fewCopies  = 6
	manyCopies = 10_000
)

// times does something on a stream of its own again and again.
func (g *Device) times(d time.Duration, do func(*Stream) error) (out []float64, err error) {
	s, err := g.Stream()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	start, err := g.Event(true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, start.Close()) }()
	end, err := g.Event(true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end.Close()) }()
	for until, i := time.Now().Add(d), 0; i < CopyWarmup+fewCopies || time.Now().Before(until) && i < manyCopies; i++ {
		if err := errors.Join(s.Record(start), do(s), s.Record(end), end.Sync()); err != nil {
			return nil, err
		}
		t, err := end.Since(start)
		if err != nil {
			return nil, err
		}
		if i >= CopyWarmup {
			out = append(out, t.Seconds())
		}
	}
	return out, nil
}
