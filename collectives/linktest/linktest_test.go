package linktest

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

func TestHub(t *testing.T) { RunHub(t) }

// TestStrictLink runs the suite on the least that a link may do: nothing leaves
// before the receiver takes it, so that a program which waits for its sends too
// early, or waits for all of them, gets stuck.
func TestStrictLink(t *testing.T) { Run(t, strictLinks) }

// strict is a link whose receivers copy from the sender's memory.
type strict struct {
	me    int
	lines [][]*line // by sender and receiver
	abort *collectives.Abort
}

// line is one direction between two ranks.
type line struct {
	posted chan []byte
	taken  atomic.Uint64
}

func strictLinks(_ testing.TB, ranks int, abort *collectives.Abort) []collectives.Link {
	lines := make([][]*line, ranks)
	var links []collectives.Link
	for a := range ranks {
		lines[a] = make([]*line, ranks)
		for b := range ranks {
			lines[a][b] = &line{posted: make(chan []byte, 1<<12)}
		}
		links = append(links, &strict{me: a, lines: lines, abort: abort})
	}
	return links
}

func (s *strict) Send(peer int, p []byte) error {
	select {
	case s.lines[s.me][peer].posted <- p:
		return nil
	default:
		return fmt.Errorf("more than %d spans wait for rank %d", 1<<12, peer)
	}
}

func (s *strict) WaitSent(peer int, n uint64) error {
	for s.lines[s.me][peer].taken.Load() < n {
		if err := s.abort.Err(); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return nil
}

func (s *strict) take(peer int, n int, use func(p []byte)) error {
	l := s.lines[peer][s.me]
	for {
		select {
		case p := <-l.posted:
			if len(p) != n {
				return fmt.Errorf("rank %d sent %d bytes, rank %d wants %d", peer, len(p), s.me, n)
			}
			use(p)
			l.taken.Add(1)
			return nil
		default:
			if err := s.abort.Err(); err != nil {
				return err
			}
			runtime.Gosched()
		}
	}
}

func (s *strict) Recv(peer int, p []byte) error {
	return s.take(peer, len(p), func(q []byte) { copy(p, q) })
}

func (s *strict) Reduce(peer int, dst, a []byte, k *reduce.Kernels) error {
	return s.take(peer, len(dst), func(q []byte) {
		k.Two(unsafe.Pointer(&dst[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&q[0]), len(dst)/k.Dtype.Size())
	})
}

func (s *strict) Poll() error { return nil }

func (s *strict) Close() error { return nil }
