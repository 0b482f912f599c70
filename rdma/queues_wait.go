//go:build linux && cgo

package rdma

// #include "verbs.h"
import "C"

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// How a wait goes on when nothing comes: it polls inside C, then gives the
// processor to others between polls, then sleeps on the completion channel.
const (
	looks    = 100 // polls of one call into C
	spinFor  = 20 * time.Microsecond
	yieldFor = 2 * time.Millisecond
	sleepFor = 5 * time.Millisecond // at most; the run's Abort is looked at in between
)

// A link test looks on without a rest while its messages are under way, in calls
// into C that last so long. In short ones it would come back to Go all the time,
// and where there is one processor Go's monitor then wakes every 20 µs to give
// that to others: between two machines it took 3 times as long for a message.
const watchFor = 50 * time.Millisecond

// rest is what a wait that has seen nothing for so long does between two
// polls; false: it has gone on for long enough to sleep.
func rest(idle time.Duration) bool {
	if idle < yieldFor && idle >= spinFor {
		syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
	return idle < yieldFor
}

// sleep waits for a completion in the kernel. look must take in what came
// before the queue was armed, for that makes no event.
func (q *queues) sleep(most time.Duration, look func() (seen bool, err error)) error {
	if r := C.rv_arm(q.cq); r != 0 {
		return fmt.Errorf("%s: cannot arm the completion queue: %w", q.dev.Rail, syscall.Errno(r))
	}
	if seen, err := look(); seen || err != nil {
		return err
	}
	fd := [1]struct {
		fd              int32
		events, revents int16
	}{{fd: int32(q.cq.channel.fd), events: 1}} // POLLIN
	ts := syscall.NsecToTimespec(int64(most))
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fd)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	C.rv_disarm(q.cq)
	return nil
}
