package worker

import (
	"testing"

	"busbw/rdma"
)

// steady is a pair whose messages take the same time, except the first round.
type steady struct {
	per    float64
	rounds []rdma.Test
}

func (s *steady) Run(t rdma.Test) ([]float64, error) {
	s.rounds = append(s.rounds, t)
	n := 1
	if t.Latency {
		n = t.Count
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = s.per
		if len(s.rounds) == 1 {
			out[i] *= 3
		}
	}
	return out, nil
}

func TestTimePair(t *testing.T) {
	s := &steady{per: 1e-3}
	got, err := timePair(s, rdma.Test{Verb: rdma.Write, Size: 8}, 0, 0)
	if err != nil || len(got.Seconds) != pairRounds || got.Seconds[0] != 1e-3 || !got.Settled {
		t.Errorf("%d samples, settled %t, %v; want %d rounds after a warm-up that settles", len(got.Seconds), got.Settled, err, pairRounds)
	}
	if n := s.rounds[len(s.rounds)-1].Count; n != pairDepth || got.Messages != pairRounds*n {
		t.Errorf("%d messages of 1 ms in a round, %d in all", n, got.Messages)
	}
	s = &steady{per: 1e-6}
	got, err = timePair(s, rdma.Test{Verb: rdma.Write, Latency: true, Size: 8}, 0, 0)
	if err != nil || len(got.Seconds) != pairSamples || got.Messages <= pairSamples {
		t.Errorf("%d samples of %d messages, %v; want %d", len(got.Seconds), got.Messages, err, pairSamples)
	}
	s = &steady{per: 1}
	if got, _ = timePair(s, rdma.Test{Verb: rdma.Read, Size: 8}, 3, 0); s.rounds[3].Count != 3 || got.Messages != 3*pairRounds {
		t.Errorf("-n 3: rounds %+v", s.rounds)
	}
}
