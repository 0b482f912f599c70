package rdma

import (
	"fmt"
	"time"

	"busbw/collectives"
)

// PairConfig says how one end of a link test is laid out; both ends must agree
// on QPs, Depth and MaxSize.
type PairConfig struct {
	Rank, Peer int
	QPs        int // 0: 1
	Depth      int // messages under way on each queue pair; 0: 128, perftest's default
	MaxSize    int // longest message, bytes; 0: 8 MiB
	// Memory is registered memory of the device to use in place of host memory,
	// at least 2 × QPs × MaxSize in whole pages (GPU memory); the caller closes it.
	Memory *Region
	// Dead is how long the peer's device may acknowledge nothing, and the peer
	// complete nothing beyond what a slow link needs for the bytes under way; 0: 10 s.
	Dead  time.Duration
	Abort *collectives.Abort
}

func (c *PairConfig) shaped() error {
	for _, x := range []struct {
		v           *int
		def, lo, hi int
		what        string
	}{{&c.QPs, 1, 1, maxQPs - 1, "queue pairs"}, {&c.Depth, 128, 1, 8192, "messages under way"}, {&c.MaxSize, 8 << 20, 1, 1 << 30, "bytes of a message"}} {
		if *x.v == 0 {
			*x.v = x.def
		}
		if *x.v < x.lo || *x.v > x.hi {
			return fmt.Errorf("link test with %d %s; %d to %d are possible", *x.v, x.what, x.lo, x.hi)
		}
	}
	if c.Dead == 0 {
		c.Dead = 10 * time.Second
	}
	if c.Abort == nil {
		c.Abort = new(collectives.Abort)
	}
	return nil
}
