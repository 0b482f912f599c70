//go:build linux && cgo

package nccl

// #cgo CFLAGS: -O2 -Wall
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "nccl.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"busbw/collectives"
)

// library is the name under which every package installs it.
const library = "libnccl.so.2"

// Open loads the library and tells its version (22304 for 2.23.4). The error is
// ErrAbsent, ErrTooOld, or one of the library's own.
func Open() (version int, err error) {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	var why [256]C.char
	switch C.nccl_load(name, &why[0], C.int(len(why))) {
	case 1:
		return 0, fmt.Errorf("%w: %s; install it, or name its folder in LD_LIBRARY_PATH", ErrAbsent, C.GoString(&why[0]))
	case 2:
		return 0, fmt.Errorf("%w: %s; busbw needs 2.8 or later", ErrTooOld, C.GoString(&why[0]))
	}
	var v C.int
	err = failed("ask for its version", C.nccl_version(&v), nil)
	return int(v), err
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

// Comm is a rank's place in a communicator.
type Comm struct {
	c       C.ncclComm_t
	rank, n int
}

// Join takes rank's place among n. Its thread's current context is the rank's
// GPU. A rank that never comes ends the wait with ctx, and the communicator with it.
func Join(ctx context.Context, n int, id ID, rank int) (*Comm, error) {
	k := &Comm{rank: rank, n: n}
	what := fmt.Sprintf("rank %d of %d: join", rank, n)
	r := C.nccl_init(&k.c, C.int(n), (*C.char)(unsafe.Pointer(&id[0])), C.int(rank))
	if r != C.NCCL_IN_PROGRESS {
		if err := failed(what, r, nil); err != nil {
			return nil, err
		}
	}
	if err := k.settle(ctx, what); err != nil {
		C.nccl_abort(k.c)
		return nil, err
	}
	return k, nil
}

// settle waits until nothing of the communicator is in progress.
func (k *Comm) settle(ctx context.Context, what string) error {
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		var e C.nccl_result
		if err := failed(what, C.nccl_async(k.c, &e), k.c); err != nil {
			return err
		}
		if e != C.NCCL_IN_PROGRESS {
			return failed(what, e, k.c)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("NCCL: %s: not all %d ranks arrived: %w", what, k.n, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// Fault is what went wrong in the communicator since, without waiting.
func (k *Comm) Fault() error {
	var e C.nccl_result
	if err := failed("watch", C.nccl_async(k.c, &e), k.c); err != nil {
		return err
	}
	if e == C.NCCL_IN_PROGRESS {
		return nil
	}
	return failed(fmt.Sprintf("rank %d of %d", k.rank, k.n), e, k.c)
}

// Close leaves when all work is done.
func (k *Comm) Close() error { return failed("leave", C.nccl_destroy(k.c), nil) }

// Abort leaves at once, whatever the others do.
func (k *Comm) Abort() error { return failed("abort", C.nccl_abort(k.c), nil) }

// Queue puts a collective on a stream (a CUstream).
func (k *Comm) Queue(c Call, stream unsafe.Pointer) error {
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
		return k.queueGroup(c, block, t, st)
	}
	runtime.KeepAlive(k)
	return k.checked(c, r)
}

// queueGroup builds the operations that NCCL has only as sends and receives.
func (k *Comm) queueGroup(c Call, block int64, t C.int, st C.nccl_stream) error {
	if err := k.checked(c, C.nccl_group(0)); err != nil {
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
	return k.checked(c, first)
}

// checked waits where a call that does not block is still in progress.
func (k *Comm) checked(c Call, r C.nccl_result) error {
	what := fmt.Sprintf("rank %d of %d: %s", k.rank, k.n, c.Op)
	if r == C.NCCL_IN_PROGRESS {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return k.settle(ctx, what)
	}
	return failed(what, r, k.c)
}
