//go:build linux && cgo

package gpu

// #cgo noescape gpu_launch
// #cgo nocallback gpu_launch
// #include "cuda.h"
import "C"

import (
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// Stream is a queue of work of a device, done in order.
type Stream struct {
	g *Device
	s C.CUstream
}

// Stream makes a queue that waits for no other.
func (g *Device) Stream() (*Stream, error) {
	s := &Stream{g: g}
	if err := g.failed("make a stream", C.gpu_stream(g.ctx, &s.s)); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the stream when what it holds is done.
func (s *Stream) Close() error {
	return s.g.failed("end a stream", C.gpu_stream_destroy(s.g.ctx, s.s))
}

// Handle is the CUstream, for other libraries.
func (s *Stream) Handle() unsafe.Pointer { return unsafe.Pointer(s.s) }

// Sync returns when everything queued is done. What failed in the meantime fails here.
func (s *Stream) Sync() error { return s.g.failed("finish its work", C.gpu_stream_sync(s.g.ctx, s.s)) }

// Done says whether everything queued is done.
func (s *Stream) Done() (bool, error) {
	r := C.gpu_stream_query(s.g.ctx, s.s)
	if Code(r) == notReady {
		return false, nil
	}
	return true, s.g.failed("finish its work", r)
}

// Event is a point in a stream.
type Event struct {
	g *Device
	e C.CUevent
}

// Event makes one. timed events can be subtracted.
func (g *Device) Event(timed bool) (*Event, error) {
	e := &Event{g: g}
	flags := C.uint(C.CU_EVENT_DISABLE_TIMING)
	if timed {
		flags = 0
	}
	if err := g.failed("make an event", C.gpu_event(g.ctx, &e.e, flags)); err != nil {
		return nil, err
	}
	return e, nil
}

// Close ends the event.
func (e *Event) Close() error { return e.g.failed("end an event", C.gpu_event_destroy(e.g.ctx, e.e)) }

// Sync returns when the work before the event is done.
func (e *Event) Sync() error { return e.g.failed("wait for an event", C.gpu_event_sync(e.g.ctx, e.e)) }

// Since is the time from the event to a later one; both are timed and done.
func (e *Event) Since(start *Event) (time.Duration, error) {
	var ms C.float
	err := e.g.failed("time two events", C.gpu_event_elapsed(e.g.ctx, &ms, start.e, e.e))
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Record puts the event behind what is queued now.
func (s *Stream) Record(e *Event) error {
	return s.g.failed("record an event", C.gpu_event_record(s.g.ctx, e.e, s.s))
}

// Wait lets what is queued from now on wait for the latest record of the event,
// which may be another device's.
func (s *Stream) Wait(e *Event) error {
	return s.g.failed("wait for an event", C.gpu_stream_wait(s.g.ctx, s.s, e.e))
}

func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

var errLength = errors.New("source and destination differ in length")

// CopyIn queues a copy from host memory, which must stay as it is until it is
// done: memory of AllocHost, or of C.
func (s *Stream) CopyIn(dst, src []byte) error {
	if len(dst) != len(src) {
		return errLength
	}
	return s.g.moved("copy in", len(dst), C.gpu_copy_in(s.g.ctx, address(dst), address(src), C.size_t(len(dst)), s.s))
}

// CopyOut queues a copy to host memory, as CopyIn.
func (s *Stream) CopyOut(dst, src []byte) error {
	if len(dst) != len(src) {
		return errLength
	}
	return s.g.moved("copy out", len(dst), C.gpu_copy_out(s.g.ctx, address(dst), address(src), C.size_t(len(dst)), s.s))
}

// Copy queues a copy by the copy engines, within the device or between devices
// with peer access.
func (s *Stream) Copy(dst, src []byte) error {
	if len(dst) != len(src) {
		return errLength
	}
	return s.g.moved("copy", len(dst), C.gpu_copy(s.g.ctx, address(dst), address(src), C.size_t(len(dst)), s.s))
}

// CopyPeer queues a copy between two devices, through host memory where they
// have no peer access.
func (s *Stream) CopyPeer(to *Device, dst []byte, from *Device, src []byte) error {
	if len(dst) != len(src) {
		return errLength
	}
	return s.g.moved("copy between devices", len(dst), C.gpu_copy_peer(s.g.ctx, to.ctx, address(dst), from.ctx, address(src), C.size_t(len(dst)), s.s))
}

// Set queues a fill of every byte with v.
func (s *Stream) Set(b []byte, v byte) error {
	if len(b) == 0 {
		return nil
	}
	return s.g.moved("set", len(b), C.gpu_set(s.g.ctx, address(b), C.uchar(v), C.size_t(len(b)), s.s))
}

// Module is loaded code.
type Module struct {
	g *Device
	m C.CUmodule
}

// Load compiles PTX text for the device.
func (g *Device) Load(ptx string) (*Module, error) {
	text := C.CString(ptx)
	defer C.free(unsafe.Pointer(text))
	const most = 8192
	log := (*C.char)(C.calloc(1, most)) // the driver is handed its address inside C memory
	defer C.free(unsafe.Pointer(log))
	m := &Module{g: g}
	if err := g.failed("load kernels", C.gpu_module(g.ctx, &m.m, unsafe.Pointer(text), log, most)); err != nil {
		if said := C.GoString(log); said != "" {
			err = fmt.Errorf("%w; the compiler said: %s", err, said)
		}
		return nil, err
	}
	return m, nil
}

// Close unloads the code.
func (m *Module) Close() error {
	return m.g.failed("unload kernels", C.gpu_module_unload(m.g.ctx, m.m))
}

// Function is a kernel. It takes one parameter, a struct.
type Function struct {
	name string
	f    C.CUfunction
}

// Function finds a kernel by its name.
func (m *Module) Function(name string) (*Function, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	f := &Function{name: name}
	return f, m.g.failed("find kernel "+name, C.gpu_function(m.g.ctx, &f.f, m.m, text))
}

// Launch queues a kernel. param points to its parameter, without Go pointers; it
// is copied at once.
func (s *Stream) Launch(f *Function, grid, block int, param unsafe.Pointer) error {
	if r := C.gpu_launch(s.g.ctx, f.f, C.uint(grid), C.uint(block), s.s, param); r != 0 {
		return s.g.failed("start kernel "+f.name, r)
	}
	return nil
}
