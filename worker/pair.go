package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"busbw/coordinator"
	"busbw/rdma"
)

// openPair opens this node's end of a link test; the first rank has it.
func (r *runner) openPair(b coordinator.PairBody) (any, error) {
	if r.mesh == nil {
		return nil, errors.New("a link test, and this node has no RDMA device")
	}
	var reply coordinator.PairReply
	return &reply, r.on(r.ranks[:1], func(k *rank) (err error) {
		q := &k.queues
		if q.pair != nil {
			if err := q.pair.Close(); err != nil {
				return err
			}
			q.pair = nil
		}
		if b.Peer < 0 {
			return nil
		}
		q.pair, err = rdma.NewPair(q.device, rdma.PairConfig{Rank: k.global, Peer: b.Peer, QPs: b.QPs, Depth: b.Depth, MaxSize: b.MaxSize, Abort: r.abort})
		if err == nil {
			reply.Hello = q.pair.Hello()
		}
		return err
	})
}

// joinPair connects it with the peer's end.
func (r *runner) joinPair(b coordinator.PairReply) (any, error) {
	var reply coordinator.JoinReply
	return &reply, r.on(r.ranks[:1], func(k *rank) error {
		p := k.queues.pair
		if p == nil {
			return nil
		}
		if err := p.Connect(b.Hello); err != nil {
			return err
		}
		as, err := p.Attributes()
		reply = described(reply, as)
		return err
	})
}

// testPair measures, or serves the node that does.
func (r *runner) testPair(b coordinator.PairTest) (any, error) {
	t, err := rdma.ParseKind(b.Kind)
	if err != nil {
		return nil, err
	}
	if t.Size, t.Bidirectional = b.Size, b.Both; !(b.Seconds >= 0) || b.Seconds > 24*3600 || b.Count < 0 {
		return nil, fmt.Errorf("a link test of %d messages for %g s", b.Count, b.Seconds)
	}
	var reply coordinator.PairTimes
	return &reply, r.on(r.ranks[:1], func(k *rank) (err error) {
		switch p := k.queues.pair; {
		case p == nil:
		case !b.First:
			err = p.Serve()
		default:
			if reply, err = timePair(p, t, b.Count, b.Seconds); err == nil {
				err = p.End()
			}
		}
		return err
	})
}

const (
	pairRound   = 0.05    // s that a round lasts where its messages are not counted
	pairRounds  = 6       // at least, for an interval of the median
	pairSamples = 100_000 // that are kept at most
	pairDepth   = 256     // messages that fill the queues
)

// runs is one end of a pair that can run a round.
type runs interface {
	Run(rdma.Test) ([]float64, error)
}

// timePair warms up until two rounds agree, three at most, then runs rounds for
// so long. What it keeps of very many samples is an even choice of them.
func timePair(p runs, t rdma.Test, count int, seconds float64) (out coordinator.PairTimes, err error) {
	if t.Count = count; count == 0 {
		t.Count = 8
	}
	last := 0.0
	for range 3 {
		times, err := p.Run(t)
		if err != nil {
			return out, err
		}
		per := mean(times)
		out.Warmup += t.Count
		out.Settled = last > 0 && max(per, last) <= 1.05*min(per, last)
		if last = per; out.Settled {
			break
		}
		if count == 0 {
			t.Count = roundOf(t, per)
		}
	}
	// six rounds are worth ten times the time asked for, not more
	end, late := time.Now().Add(dur(seconds)), time.Now().Add(dur(10*seconds+1))
	for rounds := 0; time.Now().Before(end) || rounds < pairRounds && time.Now().Before(late); rounds++ {
		times, err := p.Run(t)
		if err != nil {
			return out, err
		}
		for i, s := range times {
			if seen := rounds*len(times) + i; seen < pairSamples {
				out.Seconds = append(out.Seconds, s)
			} else if at := rand.IntN(seen + 1); at < pairSamples {
				out.Seconds[at] = s
			}
		}
		out.Messages += t.Count
	}
	return out, nil
}

// roundOf is how many messages a round has: of latency as many as last a
// while, of bandwidth so many that the queues are full, unless that lasts.
func roundOf(t rdma.Test, per float64) int {
	n := int(pairRound / max(per, 1e-9))
	if !t.Latency {
		n = max(n, min(pairDepth, int(10*pairRound/max(per, 1e-9))))
	}
	return min(max(n, 8), 1<<20)
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(max(1, len(xs)))
}

func dur(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
