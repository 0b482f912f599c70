package collectives

import (
	"fmt"
	"net"
	"syscall"
	"unsafe"
)

// The calls of the data path. They are raw, because none of them blocks longer
// than it takes to copy tcpBurst bytes; Go's scheduler need not know of them.

// sendSome writes part of p to a socket.
func sendSome(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
		syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// recvSome reads at most n bytes from a socket; 0 is the end of the stream.
func recvSome(fd int, p unsafe.Pointer, n int) (int, syscall.Errno) {
	got, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd), uintptr(p), uintptr(n), syscall.MSG_DONTWAIT, 0, 0)
	return int(got), errno
}

func schedYield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// pollFD is struct pollfd of poll(2).
type pollFD struct {
	fd      int32
	events  int16
	revents int16
}

const (
	pollIn  = 0x1
	pollOut = 0x4
)

// pollFor waits until one of fds is ready or ns nanoseconds are over. It may
// block, so the scheduler is told.
func pollFor(fds []pollFD, ns int64) {
	ts := syscall.NsecToTimespec(ns)
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)), uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// detach takes a connection's descriptor out of Go's poller, which would be
// woken by every segment that arrives.
func detach(c *net.TCPConn) (int, error) {
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd, errno := -1, syscall.Errno(0)
	err = raw.Control(func(p uintptr) {
		var n uintptr
		if n, _, errno = syscall.Syscall(syscall.SYS_FCNTL, p, syscall.F_DUPFD_CLOEXEC, 0); errno == 0 {
			fd = int(n)
		}
	})
	if errno != 0 {
		err = errno
	}
	return fd, err
}

// sockOptions sets what must be set before a connection exists: the window
// scale follows from the buffer's size.
func (c TCPConfig) sockOptions(_, _ string, raw syscall.RawConn) error {
	var err error
	set := func(fd uintptr, opt, v int) {
		if v > 0 && err == nil {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, opt, v)
		}
	}
	cerr := raw.Control(func(fd uintptr) {
		set(fd, syscall.SO_SNDBUF, c.SndBuf)
		set(fd, syscall.SO_RCVBUF, c.RcvBuf)
	})
	if err != nil {
		return fmt.Errorf("socket buffers: %w", err)
	}
	return cerr
}

// tuneLocal gives a connection that does not leave the machine a congestion
// control that does not pace. BBR, the default of some distributions, spaces
// packets by timers; on loopback there is no queue to spare, and it moved 64 MiB
// in 22 ms where Reno took 15. Reno is in every kernel and allowed to everybody
// (net.ipv4.tcp_allowed_congestion_control); where it is refused nothing changes.
func tuneLocal(fd int) {
	syscall.SetsockoptString(fd, syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, "reno")
}

// staysHere says whether a connection's ends are on the same machine.
func staysHere(c net.Conn) bool {
	from, to := c.LocalAddr().(*net.TCPAddr).IP, c.RemoteAddr().(*net.TCPAddr).IP
	return from.Equal(to) || from.IsLoopback() && to.IsLoopback()
}

// fileLimit is the largest number of descriptors that this process may have.
func fileLimit() uint64 {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return r.Cur
}
