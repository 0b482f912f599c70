package collectives

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// LoopbackStream measures what TCP carries between two threads of this machine
// at addr, both directions added: in turn with data one way and both ways at
// the same time, the best of at least two turns each. The larger figure counts:
// a limit that was disturbed is none. Turns go on, up to loopbackTurns, while
// the figures contradict each other. The sockets are set as those of a TCPLink,
// and the threads do nothing but send and receive blocks that stay in their
// caches.
func LoopbackStream(addr netip.Addr, d time.Duration) (Rate, error) {
	var one, both float64
	for turn := 0; turn < 2 || turn < loopbackTurns && disturbed(one, both); turn++ {
		for _, duplex := range []bool{false, true} {
			gbps, err := loopback(addr, d/4, duplex)
			if err != nil {
				return Rate{}, err
			}
			if duplex {
				both = max(both, gbps)
			} else {
				one = max(one, gbps)
			}
		}
	}
	how := fmt.Sprintf("TCP at %s: %.2f GB/s one way, %.2f GB/s both ways added", addr, one, both)
	if disturbed(one, both) {
		how += "; these contradict each other: something else used the machine"
	}
	return Rate{max(one, both), how}, nil
}

const loopbackTurns = 6

// disturbed says that both directions carried less than half of what one did,
// which nothing but other load explains.
func disturbed(one, both float64) bool { return both < one/2 }

func loopback(addr netip.Addr, d time.Duration, duplex bool) (gbps float64, err error) {
	fds, err := tcpPair(addr)
	if err != nil {
		return 0, fmt.Errorf("loopback stream at %s: %w", addr, err)
	}
	var got atomic.Int64
	var errs [2]error
	var all sync.WaitGroup
	var stop atomic.Bool
	for side, fd := range fds {
		all.Go(func() {
			runtime.LockOSThread()
			Pin(side) // the thread ends with the goroutine
			buf := make([]byte, tcpMost)
			for !stop.Load() && errs[side] == nil {
				sent, received := 0, 0
				if duplex || side == 0 {
					sent, errs[side] = tried(sendSome(fd, buf))
				}
				if errs[side] == nil && (duplex || side == 1) {
					received, errs[side] = tried(recvSome(fd, unsafe.Pointer(&buf[0]), len(buf)))
				}
				if got.Add(int64(received)); sent+received == 0 {
					schedYield()
				}
			}
		})
	}
	gbps = bestWindow(&got, d)
	stop.Store(true)
	all.Wait()
	for _, fd := range fds {
		syscall.Close(fd)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return 0, fmt.Errorf("loopback stream at %s: %w", addr, err)
	}
	return gbps, nil
}

// tried is the result of a call that moves nothing where it would block.
func tried(n int, errno syscall.Errno) (int, error) {
	switch errno {
	case 0:
		return n, nil
	case syscall.EAGAIN, syscall.EINTR:
		return 0, nil
	}
	return 0, errno
}

// tcpPair is the two ends of a connection of this process to itself.
func tcpPair(addr netip.Addr) (fds [2]int, err error) {
	ln, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return fds, err
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return fds, err
	}
	defer a.Close()
	b, err := ln.Accept()
	if err != nil {
		return fds, err
	}
	if fds[0], err = detach(a.(*net.TCPConn)); err != nil {
		b.Close()
		return fds, err
	}
	if fds[1], err = detach(b.(*net.TCPConn)); err != nil {
		syscall.Close(fds[0])
		return fds, err
	}
	for _, fd := range fds {
		tuneLocal(fd)
	}
	return fds, nil
}
