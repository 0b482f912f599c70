package coordinator

import (
	"context"

	"busbw/reports"
)

// A limit that something else disturbed while it was measured is too low, and
// what is above it shows that. Then the limits are measured again, and the
// larger figures count from then on. Data in caches is above the memory's rate
// rightly: measuring again is given up after mostFutile tries that raised
// nothing.
const (
	mostFutile = 1
	raised     = 1.05
	aboveLimit = 1.05 // what noise explains (reports shows it from there on, too)
)

// Known is what launches on the same nodes have measured of their limits.
type Known struct {
	replies []LimitsReply // by node: the largest
	futile  int           // tries to raise a limit that raised none
}

// again raises the limit of a result that is above it, where it was only
// disturbed.
func (s *Sweep) again(ctx context.Context, c Case, res *reports.Result) error {
	for s.Known.futile < mostFutile && !s.gpu && above(c, res) {
		had := res.Limit.GBps
		if _, err := s.limits(ctx, s.opened); err != nil {
			return err
		}
		if res.Limit = s.bound(c); res.Limit == nil || res.Limit.GBps < raised*had {
			s.Known.futile++
		}
	}
	return nil
}

// above says that a result is above a limit that was measured.
func above(c Case, res *reports.Result) bool {
	if res.Limit == nil || !res.Limit.Measured() || len(res.Seconds) == 0 || res.Wrong != nil && *res.Wrong > 0 {
		return false
	}
	factor, ok := c.op.BusFactor(res.Ranks)
	return ok && factor*float64(res.Bytes)/reports.Median(res.Seconds)/1e9 > aboveLimit*res.Limit.GBps
}

// larger keeps the best that each node ever measured.
func (s *Sweep) larger(now []LimitsReply) {
	if s.Known.replies == nil {
		s.Known.replies = now
		return
	}
	for i, r := range now {
		m := &s.Known.replies[i]
		if r.MemoryGBps != nil && (m.MemoryGBps == nil || *r.MemoryGBps > *m.MemoryGBps) {
			m.MemoryGBps, m.MemoryHow = r.MemoryGBps, r.MemoryHow+", measured again during the run"
		}
		if r.LoopbackGBps != nil && (m.LoopbackGBps == nil || *r.LoopbackGBps > *m.LoopbackGBps) {
			m.LoopbackGBps, m.LoopbackHow = r.LoopbackGBps, r.LoopbackHow+", measured again during the run"
		}
	}
}
