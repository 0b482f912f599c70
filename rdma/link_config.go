package rdma

import (
	"fmt"
	"time"

	"busbw/collectives"
)

// LinkConfig says how a rank's Link is laid out.
type LinkConfig struct {
	Rank  int   // global
	Peers []int // global ranks, each once: only those that the rank's own steps mention

	// Ring is how many bytes each peer may send before this rank takes them; an
	// eighth of it is the longest message, but never more than 128 KiB. 0: 4 MiB,
	// NCCL_BUFFSIZE's default, and less where there are many peers.
	Ring   int
	Window int           // messages that a peer may send before they are taken; 0: 64
	Dead   time.Duration // a peer whose device acknowledges nothing for so long is dead; 0: 10 s
	Abort  *collectives.Abort
	// Put copies host memory into memory of a GPU that the link uses; nil where it
	// uses none. This processor does not read or write such memory itself.
	Put func(to, from []byte) error
}

const (
	defaultRing = 4 << 20
	ringsOfRank = 256 << 20 // bytes that the default rings of one rank take together
	leastRing   = 64 << 10
	mostChunk   = 128 << 10 // what is reduced while the next is under way
	mostRing    = 1 << 30
)

// shaped fills in the defaults and checks the rest.
func (c *LinkConfig) shaped() error {
	if c.Ring == 0 {
		c.Ring = max(leastRing, min(defaultRing, ringsOfRank/max(1, len(c.Peers))))
	}
	if c.Ring < leastRing || c.Ring > mostRing {
		return fmt.Errorf("a ring of %d bytes for each peer; %d to %d are possible", c.Ring, leastRing, mostRing)
	}
	c.Ring &^= 8*ringAlign - 1 // an eighth must begin on a cache line
	if c.Window == 0 {
		c.Window = 64
	}
	if c.Window < 8 || c.Window > maxWindow {
		return fmt.Errorf("a window of %d messages; 8 to %d are possible", c.Window, maxWindow)
	}
	if c.Dead == 0 {
		c.Dead = 10 * time.Second
	}
	if c.Abort == nil {
		c.Abort = new(collectives.Abort)
	}
	seen := map[int]bool{}
	for _, p := range c.Peers {
		if p < 0 || p == c.Rank || seen[p] {
			return fmt.Errorf("rank %d cannot have rank %d as a peer, or has it twice", c.Rank, p)
		}
		seen[p] = true
	}
	return nil
}

// shape is what this side's receiver looks like to its peers.
func (c *LinkConfig) shape(qps int) shape {
	return shape{ring: uint64(c.Ring), chunk: min(uint64(c.Ring)/8, mostChunk), window: uint64(c.Window), qps: uint64(qps)}
}

// announceAt is the shortest message that is worth an announcement; with it
// so few announcements can be under way that the receive queue holds them all
// (see notes).
func (s shape) announceAt() uint64 { return max(s.ring/16, 32<<10) }

// notes is how many control messages a peer may send before this side polls.
// While it does not poll, the peer can take no more than a window of messages
// and a ring of bytes. It reports each quarter of them: 8. It announces spans
// of a sixteenth of its ring at least, 17 that it takes meanwhile and
// maxAnnounced that are still to come. The rest is slack.
const notes = 8 + 17 + maxAnnounced + 7

const (
	signalAt = 16 // every 16th request of a queue pair is signalled at least
	repostAt = 8  // receives that are posted again at once
)

// queueSizes are the entries of one queue pair's send and receive queue. A
// chunk takes one receive, and two sends where adaptive routing may reorder;
// control messages travel on the first queue pair.
func queueSizes(mine, peerMost uint64, qps, lane int) (sends, recvs int) {
	chunks := func(window uint64) int { return (int(window) + qps - 1) / qps }
	sends, recvs = 2*chunks(peerMost)+2*signalAt, chunks(mine)+repostAt
	if lane == 0 {
		sends, recvs = sends+notes, recvs+notes
	}
	return sends, recvs
}
