package collectives

import "busbw/collectives/reduce"

// Link carries spans of bytes between one rank and its peers on the wire
// (ranks of the same process meet in memory and need none). A span that one
// side sends is received with the same length by the other: both know the
// schedule, so nothing is framed. One goroutine, locked to its thread, uses a
// Link. Every call that waits gives up with an error when the run's Abort is
// set, and keeps posted sends moving while it waits.
type Link interface {
	// Send posts p to peer behind everything posted before, and returns at
	// once. p must not change until WaitSent has covered it.
	Send(peer int, p []byte) error
	// WaitSent returns when the first n spans ever sent to peer may be rewritten.
	WaitSent(peer int, n uint64) error
	// Recv fills p with the next len(p) bytes from peer: the span of one Send,
	// for both sides go through the same spans.
	Recv(peer int, p []byte) error
	// Reduce does dst = a op (the next len(dst) bytes from peer); dst may be a.
	Reduce(peer int, dst, a []byte, k *reduce.Kernels) error
	// Poll moves what can be moved without waiting. The executor calls it while
	// it waits for a rank of its own process.
	Poll() error
	Close() error
}
