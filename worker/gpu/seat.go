//go:build linux && cgo

package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

// Seat is a rank's place on a device: its buffers, and the queue that its work
// goes through. It is a collectives.Device. One goroutine uses it; several seats
// may share a device.
type Seat struct {
	Device *Device
	s      *Stream
	k      *Kernels
	marks  [64]*Event
	mem    []*Memory  // what Alloc has given out
	host   *Memory    // for Put, Get, Fill and Check
	dev    *Memory    // for Fill and Check
	kept   *recording // nil: what is queued is done
	fork   *Event     // of recordings
	alone  sync.Mutex // never waited for: what turn gives where nothing is kept
}

// seatBytes is the locked memory through which Put and Get move what is larger.
const seatBytes = 1 << 20

// Seat takes a place on the device.
func (g *Device) Seat() (*Seat, error) {
	q := &Seat{Device: g}
	if err := q.take(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// take makes what a seat has; Close frees it, as far as it came.
func (q *Seat) take() (err error) {
	g := q.Device
	if q.s, err = g.Stream(); err != nil {
		return err
	}
	if q.k, err = g.Kernels(); err != nil {
		return err
	}
	for i := range q.marks {
		if q.marks[i], err = g.Event(false); err != nil {
			return err
		}
	}
	if q.host, err = g.AllocHost(seatBytes); err != nil {
		return err
	}
	q.dev, err = g.Alloc(seatBytes)
	return err
}

// Target is the compute capability that the seat's kernels were made for.
func (q *Seat) Target() int { return q.k.Target }

// Reach lets the seat's kernels read and write another device's memory; false
// with the reason if the two have no peer access.
func (q *Seat) Reach(other *Device) (bool, string, error) {
	if other.Ordinal == q.Device.Ordinal {
		return true, "", nil
	}
	can, _, err := q.Device.CanAccess(other)
	switch {
	case err != nil:
		return false, "", err
	case !can:
		return false, "the driver offers no peer access", nil
	}
	err = q.Device.EnablePeer(other)
	if errors.Is(err, NoPeerAccess) || errors.Is(err, tooManyPeers) || errors.Is(err, Code(101)) { // the last, too, where a bridge or an IOMMU is in the way
		return false, err.Error(), nil
	}
	return err == nil, "", err
}

// Alloc gives the rank device memory.
func (q *Seat) Alloc(size int64) (*Memory, error) {
	m, err := q.Device.Alloc(size)
	if err == nil {
		q.mem = append(q.mem, m)
	}
	return m, err
}

// Free takes memory of Alloc back.
func (q *Seat) Free(m *Memory) error {
	q.mem = slices.DeleteFunc(q.mem, func(x *Memory) bool { return x == m })
	return m.Free()
}

// holds says whether a span is memory of this seat.
func (q *Seat) holds(b []byte) bool {
	return slices.ContainsFunc(q.mem, func(m *Memory) bool { return m.Holds(b) })
}

// Pass queues a combination; a plain copy goes to the copy engines.
func (q *Seat) Pass(dst, src []unsafe.Pointer, bytes int64, k *reduce.Kernels, ranks int) error {
	if bytes == 0 {
		return nil
	}
	mu := q.turn()
	mu.Lock()
	defer mu.Unlock()
	switch {
	case k != nil:
		return q.k.Combine(q.s, k.Dtype, k.Op, dst, src, bytes, ranks)
	case len(dst) == 1:
		return q.s.Copy(unsafe.Slice((*byte)(dst[0]), bytes), unsafe.Slice((*byte)(src[0]), bytes))
	}
	return q.k.Combine(q.s, reduce.Uint8, reduce.Sum, dst, src, bytes, 0) // one source, read once
}

// Mark names the end of what is queued.
func (q *Seat) Mark(step int32) error {
	mu := q.turn()
	mu.Lock()
	defer mu.Unlock()
	return q.s.Record(q.marks[int(step)%len(q.marks)])
}

// After has what comes wait for another seat's mark.
func (q *Seat) After(other collectives.Device, step int32) error {
	o, ok := other.(*Seat)
	if !ok {
		return fmt.Errorf("%s: a peer on no GPU: %w", q.Device.Info, errors.ErrUnsupported)
	}
	if o == q {
		return nil
	}
	mu := q.turn()
	mu.Lock()
	defer mu.Unlock()
	return q.s.Wait(o.marks[int(step)%len(o.marks)])
}

// Drain returns when everything queued is done.
func (q *Seat) Drain() error { return q.s.Sync() }

// Put copies host memory of any kind into device memory, and Get the other way.
func (q *Seat) Put(to, from []byte) error {
	for len(from) > 0 {
		n := copy(q.host.Span(0, seatBytes), from)
		if err := errors.Join(q.s.CopyIn(to[:n], q.host.Span(0, int64(n))), q.s.Sync()); err != nil {
			return err
		}
		to, from = to[n:], from[n:]
	}
	return nil
}

func (q *Seat) Get(to, from []byte) error {
	for len(from) > 0 {
		n := min(len(from), seatBytes)
		part := q.host.Span(0, int64(n))
		if err := errors.Join(q.s.CopyOut(part, from[:n]), q.s.Sync()); err != nil {
			return err
		}
		copy(to, part)
		to, from = to[n:], from[n:]
	}
	return nil
}

// Done says whether everything queued is done.
func (q *Seat) Done() (bool, error) { return q.s.Done() }

// Stream is the CUstream that the seat's work is queued on, for other libraries.
func (q *Seat) Stream() unsafe.Pointer { return q.s.Handle() }

// Set fills device memory with a byte.
func (q *Seat) Set(b []byte, v byte) error { return errors.Join(q.s.Set(b, v), q.s.Sync()) }

// Fill repeats a period, at most half a MiB of host memory, over device memory.
func (q *Seat) Fill(b, period []byte) error {
	if len(b) == 0 {
		return nil
	}
	d := q.dev.Span(0, int64(len(period)))
	return errors.Join(q.Put(d, period), q.k.Fill(q.s, b, d), q.s.Sync())
}

// Check compares device memory with a period of whole elements, repeated. It
// gives the number of wrong elements and the index of the first; −1: none.
func (q *Seat) Check(b, period []byte, elem int) (wrong, first int64, err error) {
	if len(b) == 0 {
		return 0, -1, nil
	}
	d, result := q.dev.Span(0, int64(len(period))), q.dev.Span(seatBytes-16, 16)
	answer := binary.LittleEndian.AppendUint64(make([]byte, 8), ^uint64(0))
	err = errors.Join(q.Put(d, period), q.Put(result, answer), q.k.Check(q.s, b, d, elem, result), q.Get(answer, result))
	return int64(binary.LittleEndian.Uint64(answer)), int64(binary.LittleEndian.Uint64(answer[8:])), err
}

// Close gives the seat up, with everything that was allocated for it.
func (q *Seat) Close() (err error) {
	if q.s != nil {
		err = q.s.Sync()
	}
	for _, e := range append(q.marks[:], q.fork) {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	for _, m := range append(q.mem, q.host, q.dev) {
		err = errors.Join(err, m.Free())
	}
	if q.k != nil {
		err = errors.Join(err, q.k.Close())
	}
	if q.s != nil {
		err = errors.Join(err, q.s.Close())
	}
	return err
}
