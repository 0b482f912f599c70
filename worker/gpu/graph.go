//go:build linux && cgo

package gpu

// #include "cuda.h"
import "C"

import (
	"errors"
	"fmt"
	"sync"

	"busbw/collectives"
)

// recording is what several seats queue, kept as one graph. The driver does not
// say that several threads may add to a graph at once, so they do so in turn.
type recording struct {
	mu   sync.Mutex
	lead *Seat
}

// Graph is work of one or several seats that one call queues again.
type Graph struct {
	s *Stream
	x C.CUgraphExec
}

// Record keeps what is queued from now on instead of doing it: with lead's,
// which began to record before, or, where lead is the seat itself, as the
// beginning. ErrUnsupported: this driver cannot.
func (q *Seat) Record(lead collectives.Recorder) error {
	l, ok := lead.(*Seat)
	if !ok {
		return fmt.Errorf("%s: recorded with a rank on no GPU: %w", q.Device.Info, errors.ErrUnsupported)
	}
	if q.fork == nil {
		var err error
		if q.fork, err = q.Device.Event(false); err != nil {
			return err
		}
	}
	if l == q {
		r := C.gpu_capture_begin(q.Device.ctx, q.s.s)
		if err := q.Device.failed("begin a graph", r); err != nil {
			if Code(r) == notSupported {
				err = fmt.Errorf("%w: %w (graphs came with CUDA 11.4)", errors.ErrUnsupported, err)
			}
			return err
		}
		q.kept = &recording{lead: q}
		return q.s.Record(q.fork)
	}
	if l.kept == nil {
		return fmt.Errorf("%s: %s records nothing that it could join", q.Device.Info, l.Device.Info)
	}
	q.kept = l.kept
	q.kept.mu.Lock()
	defer q.kept.mu.Unlock()
	return q.s.Wait(l.fork) // the driver takes a stream in that waits for an event of the graph
}

// Kept ends what the seat adds to the lead's recording.
func (q *Seat) Kept() error {
	k := q.kept
	q.kept = nil
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.Join(q.s.Record(q.fork), k.lead.s.Wait(q.fork))
}

// Recording ends the lead's recording, when all others have ended theirs.
func (q *Seat) Recording() (collectives.Recording, error) {
	q.kept = nil
	g := &Graph{s: q.s}
	if err := q.Device.failed("make a graph", C.gpu_capture_end(q.Device.ctx, q.s.s, &g.x)); err != nil {
		return nil, err
	}
	return g, nil
}

// Replay queues all of it, behind what the lead's queue holds.
func (g *Graph) Replay() error {
	return g.s.g.failed("launch a graph", C.gpu_graph_launch(g.s.g.ctx, g.x, g.s.s))
}

// Close frees it; it is not queued any more.
func (g *Graph) Close() error {
	return g.s.g.failed("free a graph", C.gpu_graph_destroy(g.s.g.ctx, g.x))
}

// turn is held while the seat adds to a recording that is others' too.
func (q *Seat) turn() *sync.Mutex {
	if q.kept == nil {
		return &q.alone
	}
	return &q.kept.mu
}
