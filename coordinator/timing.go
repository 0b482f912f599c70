package coordinator

import (
	"context"
	"fmt"
	"time"

	"busbw/reports"
)

// time warms up and takes the samples.
func (s *Sweep) time(ctx context.Context, c Case, res *reports.Result) error {
	per, err := s.warm(ctx, res)
	if err != nil {
		return err
	}
	if res.Memory != memoryHost {
		if _, err := ask[struct{}](ctx, s, KindMark, func(int) any { return struct{}{} }, grace); err != nil {
			return err
		}
	}
	n := s.req.Iterations
	if n == 0 {
		n = min(max(int(s.req.Time.Seconds()/max(per, 1e-9)), 10), 20000)
	}
	ranks := make([][]float64, total(s.Nodes)) // medians of each batch
	var starts []skew
	for n > 0 {
		// No batch lasts much over two seconds, so that an interruption is quick.
		k := min(n, max(1, int(2/max(per, 1e-9))))
		b, err := s.batch(ctx, k, per)
		if err != nil {
			return err
		}
		res.Seconds = append(res.Seconds, b.seconds...)
		for i, m := range b.ranks {
			ranks[i] = append(ranks[i], m)
		}
		starts = append(starts, b.starts...)
		n -= k
	}
	for _, g := range c.groups {
		for _, r := range g {
			res.RankP50 = append(res.RankP50, reports.Median(ranks[r]))
		}
	}
	res.Skew = medianSkew(starts)
	return nil
}

// warm runs iterations that are thrown away: as many as asked for, or until
// the medians of two windows in a row agree within 5 %. It returns the time
// that one iteration takes.
func (s *Sweep) warm(ctx context.Context, res *reports.Result) (per float64, err error) {
	first, err := s.batch(ctx, 1, 0)
	if err != nil {
		return 0, err
	}
	agg := float64(s.req.Aggregate) // collectives in an iteration; seconds are of one
	per, res.Warmup = first.seconds[0]*agg, 1
	if s.req.Warmup >= 0 { // as many as were asked for, the first among them
		var last float64
		for left, half := s.req.Warmup-1, (s.req.Warmup+1)/2; left > 0; left -= half {
			half = min(half, left)
			b, err := s.batch(ctx, half, per)
			if err != nil {
				return 0, err
			}
			last, per = per, reports.Median(b.seconds)*agg
			res.Settled = res.Warmup > 1 && agree(per, last)
			res.Warmup += half
		}
		return per, nil
	}
	budget := time.Now().Add(max(4*s.req.Time, time.Second))
	for last, i := 0.0, 0; i < 12 && (i < 2 || time.Now().Before(budget)); i++ {
		k := min(max(int(0.01/max(per, 1e-9)), 3), 1000)
		b, err := s.batch(ctx, k, per)
		if err != nil {
			return 0, err
		}
		res.Warmup += k
		per = reports.Median(b.seconds) * agg
		if res.Settled = last > 0 && agree(per, last); res.Settled {
			break
		}
		last = per
	}
	return per, nil
}

// agree says whether two windows' medians are within 5 % of each other.
func agree(a, b float64) bool { return max(a, b) <= 1.05*min(a, b) }

// measured is a batch with the nodes' answers merged.
type measured struct {
	seconds []float64 // slowest rank of all nodes, each iteration
	ranks   []float64 // median of each global rank
	starts  []skew
}

func (s *Sweep) batch(ctx context.Context, iters int, per float64) (m measured, err error) {
	body := BatchBody{Iterations: iters, Mode: s.req.Mode, Aggregate: s.req.Aggregate}
	timeout := s.req.Timeout
	if timeout == 0 {
		timeout = grace + time.Duration(20*per*float64(iters)*float64(time.Second))
	}
	replies, err := ask[BatchReply](ctx, s, KindBatch, func(int) any { return body }, timeout)
	if err != nil {
		return m, err
	}
	m.seconds = make([]float64, iters)
	for i, r := range replies {
		if len(r.Seconds) != iters || len(r.RankP50) != s.Nodes[i].Ranks {
			return m, fmt.Errorf("node %s answered with %d samples of %d ranks; want %d of %d", s.Nodes[i].Host, len(r.Seconds), len(r.RankP50), iters, s.Nodes[i].Ranks)
		}
		for j, t := range r.Seconds {
			m.seconds[j] = max(m.seconds[j], t)
		}
		m.ranks = append(m.ranks, r.RankP50...)
		for _, g := range r.Starts {
			m.starts = append(m.starts, skew{node: i, GroupStarts: g})
		}
	}
	return m, nil
}
