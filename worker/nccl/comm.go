//go:build linux && cgo

package nccl

// #cgo CFLAGS: -O2 -Wall
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "nccl.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"busbw/collectives"
)

// Open loads the library and tells which, and its version. The error is
// ErrAbsent, ErrTooOld, or one of the library's own.
func Open() (l Library, err error) {
	var absent []error
	for _, l.Name = range libraries {
		if err = load(l.Name); !errors.Is(err, ErrAbsent) {
			break
		}
		absent = append(absent, err)
	}
	if len(absent) == len(libraries) {
		return Library{}, fmt.Errorf("%w, nor %s; install it, or name its folder in LD_LIBRARY_PATH", absent[0], libraries[1])
	}
	if err != nil {
		return Library{}, err
	}
	var v C.int
	err = failed(l.Name+": ask for its version", C.nccl_version(&v), nil)
	l.Version = int(v)
	return l, err
}

func load(library string) error {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	var why [256]C.char
	switch C.nccl_load(name, &why[0], C.int(len(why))) {
	case 1:
		return fmt.Errorf("%w: %s", ErrAbsent, C.GoString(&why[0]))
	case 2:
		return fmt.Errorf("%w: %s: %s; busbw needs 2.8 or later", ErrTooOld, library, C.GoString(&why[0]))
	}
	return nil
}

func failed(what string, r C.nccl_result, c C.ncclComm_t) error {
	if r == C.NCCL_OK {
		return nil
	}
	return &Error{what, int(r), C.GoString(C.nccl_error_text(r)), C.GoString(C.nccl_last_error(c))}
}

// NewID also starts NCCL's rendezvous in this process, which must live until
// every rank has joined.
func NewID() (id ID, err error) {
	err = failed("make a unique id", C.nccl_unique_id((*C.char)(unsafe.Pointer(&id[0]))), nil)
	return id, err
}

// Comm is a rank's place in a communicator. Its rank's thread uses it; any may
// abort it.
type Comm struct {
	c       C.ncclComm_t
	rank, n int
	gone    atomic.Bool // aborted: NCCL has freed c
	looking sync.Mutex  // held while state looks at c: it is not freed meanwhile
}

// state is what NCCL says of the communicator, which may be NCCL_IN_PROGRESS.
func (k *Comm) state(what string) (e C.nccl_result, err error) {
	k.looking.Lock()
	defer k.looking.Unlock()
	if k.gone.Load() {
		return 0, ErrGone
	}
	return e, failed(what, C.nccl_async(k.c, &e), k.c)
}

// leave says whether it is the first to: nobody looks at c any more.
func (k *Comm) leave() bool {
	k.looking.Lock()
	defer k.looking.Unlock()
	return !k.gone.Swap(true)
}

// failed is of a call on the communicator, which may be aborted meanwhile.
func (k *Comm) failed(what string, r C.nccl_result) error {
	if k.gone.Load() {
		return ErrGone
	}
	return failed(what, r, k.c)
}

// Join takes rank's place among n. Its thread's current context is the rank's
// GPU. A rank that never comes ends the wait with ctx, and the communicator
// with it. begun (nil: none) is called when NCCL has taken the rank's call.
func Join(ctx context.Context, n int, id ID, rank int, begun func()) (*Comm, error) {
	k := &Comm{rank: rank, n: n}
	what := fmt.Sprintf("rank %d of %d: join", rank, n)
	r := C.nccl_init(&k.c, C.int(n), (*C.char)(unsafe.Pointer(&id[0])), C.int(rank))
	if r != C.NCCL_IN_PROGRESS {
		if err := failed(what, r, nil); err != nil {
			return nil, err
		}
	}
	if begun != nil {
		begun()
	}
	if err := k.settle(ctx, what); err != nil {
		return nil, errors.Join(err, k.Abort())
	}
	return k, nil
}

// settle waits until nothing of the communicator is in progress.
func (k *Comm) settle(ctx context.Context, what string) error {
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		e, err := k.state(what)
		if err != nil {
			return err
		}
		if e != C.NCCL_IN_PROGRESS {
			return k.failed(what, e)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("NCCL: %s: not all %d ranks arrived: %w", what, k.n, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// Fault is what went wrong in the communicator since, without waiting.
func (k *Comm) Fault() error {
	e, err := k.state("watch")
	if err != nil {
		return err
	}
	if e == C.NCCL_IN_PROGRESS {
		return nil
	}
	return k.failed(fmt.Sprintf("rank %d of %d", k.rank, k.n), e)
}

// Close leaves when all work is done.
func (k *Comm) Close() error {
	if !k.leave() {
		return ErrGone
	}
	return failed("leave", C.nccl_destroy(k.c), nil)
}

// Abort leaves at once, whatever the others do; a call that is under way on
// another thread comes back. The second time it does nothing.
func (k *Comm) Abort() error {
	if !k.leave() {
		return nil
	}
	return failed("abort", C.nccl_abort(k.c), nil)
}

// Queue puts a collective on a stream (a CUstream). Where NCCL has to connect
// ranks first, that is over when Queue returns, or ctx is.
func (k *Comm) Queue(ctx context.Context, c Call, stream unsafe.Pointer) error {
	if k.gone.Load() {
		return ErrGone
	}
	in, out := unsafe.Pointer(unsafe.SliceData(c.In)), unsafe.Pointer(unsafe.SliceData(c.Out))
	t, o := C.int(dtypes[c.Dtype].id), C.int(redops[c.Redop].id)
	all, block := C.size_t(c.Count), c.Count/int64(k.n)
	b, st := C.size_t(block), C.nccl_stream(stream)
	var r C.nccl_result
	switch c.Op {
	case collectives.AllReduce:
		r = C.nccl_all_reduce(in, out, all, t, o, k.c, st)
	case collectives.Broadcast:
		r = C.nccl_broadcast(in, out, all, t, C.int(c.Root), k.c, st)
	case collectives.Reduce:
		r = C.nccl_reduce(in, out, all, t, o, C.int(c.Root), k.c, st)
	case collectives.AllGather:
		r = C.nccl_all_gather(in, out, b, t, k.c, st)
	case collectives.ReduceScatter:
		r = C.nccl_reduce_scatter(in, out, b, t, o, k.c, st)
	default:
		return k.queueGroup(ctx, c, block, t, st)
	}
	runtime.KeepAlive(k)
	return k.checked(ctx, c, r)
}

// queueGroup builds the operations that NCCL has only as sends and receives.
func (k *Comm) queueGroup(ctx context.Context, c Call, block int64, t C.int, st C.nccl_stream) error {
	if err := k.checked(ctx, c, C.nccl_group(0)); err != nil {
		return err
	}
	size := block * int64(c.Dtype.Size())
	var first C.nccl_result
	send := func(to int, from []byte, n int64) {
		if r := C.nccl_send(unsafe.Pointer(unsafe.SliceData(from)), C.size_t(n), t, C.int(to), k.c, st); first == 0 {
			first = r
		}
	}
	receive := func(from int, into []byte, n int64) {
		if r := C.nccl_recv(unsafe.Pointer(unsafe.SliceData(into)), C.size_t(n), t, C.int(from), k.c, st); first == 0 {
			first = r
		}
	}
	at := func(b []byte, i int) []byte { return b[int64(i)*size : int64(i+1)*size] }
	switch c.Op {
	case collectives.AllToAll:
		for p := range k.n {
			send(p, at(c.In, p), block)
			receive(p, at(c.Out, p), block)
		}
	case collectives.Gather:
		send(c.Root, c.In, block)
		for p := range k.n {
			if k.rank == c.Root {
				receive(p, at(c.Out, p), block)
			}
		}
	case collectives.Scatter:
		for p := range k.n {
			if k.rank == c.Root {
				send(p, at(c.In, p), block)
			}
		}
		receive(c.Root, c.Out, block)
	case collectives.SendRecv:
		send((k.rank+1)%k.n, c.In, c.Count)
		receive((k.rank+k.n-1)%k.n, c.Out, c.Count)
	}
	if end := C.nccl_group(1); first == 0 || first == C.NCCL_IN_PROGRESS {
		first = end
	}
	return k.checked(ctx, c, first)
}

// checked waits where a call that does not block is still in progress.
func (k *Comm) checked(ctx context.Context, c Call, r C.nccl_result) error {
	if r == C.NCCL_OK {
		return nil
	}
	what := fmt.Sprintf("rank %d of %d: %s", k.rank, k.n, c.Op)
	if r == C.NCCL_IN_PROGRESS {
		return k.settle(ctx, what)
	}
	return k.failed(what, r)
}
