package collectives

import (
	"fmt"
	"net/netip"
	"time"
)

// TCPConfig is how a process's TCP links behave. The zero value is usable.
type TCPConfig struct {
	// Source is the local address that connections leave from, so that traffic
	// stays on the network that was chosen; unset: the kernel's choice.
	Source netip.Addr
	// Sockets is the number of connections over which a span to a peer is cut:
	// NCCL_SOCKET_NTHREADS × NCCL_NSOCKS_PERTHREAD. 0 means 1. Each direction has
	// as many.
	Sockets int
	// Threads share the sockets of a link: the rank's own thread and Threads−1
	// helpers. 0 means 1.
	Threads int
	// SndBuf and RcvBuf are the sockets' buffers in bytes (NCCL_SOCKET_SNDBUF,
	// NCCL_SOCKET_RCVBUF); 0: the kernel's choice, which grows with the flow.
	SndBuf, RcvBuf int
	// MinStripe is the least that a cut span puts on one socket, bytes; 0 means
	// 64 KiB (NCCL's NCCL_SOCKET_MIN_TASKSIZE). All ranks must have the same.
	MinStripe int
	// Timeout bounds setting up the connections. 0 means 10 s.
	Timeout time.Duration
}

// checked fills in what is unset and says what cannot be.
func (c TCPConfig) checked() (TCPConfig, error) {
	c.Sockets, c.Threads = max(c.Sockets, 1), max(c.Threads, 1)
	if c.MinStripe == 0 {
		c.MinStripe = 64 << 10
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	switch {
	case c.Sockets > tcpMaxSocket:
		return c, fmt.Errorf("tcp: %d sockets a peer; at most %d are possible", c.Sockets, tcpMaxSocket)
	case c.Threads > c.Sockets:
		return c, fmt.Errorf("tcp: %d threads for %d sockets; each thread needs a socket", c.Threads, c.Sockets)
	case c.MinStripe < lineBytes || c.MinStripe > 1<<30:
		return c, fmt.Errorf("tcp: stripes of %d bytes; %d to 1 GiB are possible", c.MinStripe, lineBytes)
	case c.SndBuf < 0 || c.RcvBuf < 0 || c.SndBuf > 1<<30 || c.RcvBuf > 1<<30:
		return c, fmt.Errorf("tcp: socket buffers of %d and %d bytes; at most 1 GiB is possible", c.SndBuf, c.RcvBuf)
	}
	return c, nil
}

// connections is how many there are between two ranks.
func (c *TCPConfig) connections() int { return 2 * c.Sockets }

// stripe is how a span of n bytes is cut: into parts of size bytes, the last
// shorter, that go to one socket after the other. Whole cache lines, so that no
// element is cut in two.
func (c *TCPConfig) stripe(n int) (size, parts int) {
	if c.Sockets == 1 || n <= c.MinStripe {
		return n, min(n, 1)
	}
	each := (n + c.Sockets - 1) / c.Sockets
	size = max(c.MinStripe, (each+lineBytes-1)/lineBytes*lineBytes)
	return size, (n + size - 1) / size
}
