package coordinator

import (
	"context"
	"errors"
	"slices"
	"time"

	"busbw/coordinator/pairs"
	"busbw/reports"
)

// PairRounds measures the pairs of a launch's nodes, per rail, each direction
// apart and both at once, and then what the first look leaves open.
type PairRounds struct {
	Sweep   *Sweep // opened
	Request *Request
	Bytes   int64                                  // of a bandwidth test
	Rounds  int                                    // of disjoint pairs; 0: all
	Limits  func(link, memory string) pairs.Limits // of pairs over that link
	Leaf    []string                               // of each node; nil: unknown
	Until   time.Time                              // no measurement begins after it
	// Keep takes each result as it comes; expected is how many are foreseen.
	Keep func(r reports.Result, expected int) error
}

// latencyBytes is a message that says how long the way is, not how wide.
const latencyBytes = 8

// ErrBudget says that time ran out before all rounds were measured.
var ErrBudget = errors.New("the time budget ended before all rounds were measured: what was measured is judged")

// Measure runs the rounds. What was measured before an error is returned
// with it.
func (p *PairRounds) Measure(ctx context.Context) (all []reports.Result, err error) {
	nodes := p.Sweep.Nodes
	rails := nodes[0].Ranks
	for _, n := range nodes {
		rails = min(rails, n.Ranks)
	}
	rounds := pairs.Rounds(len(nodes), p.Rounds)
	tests := []struct {
		way   Direction
		bytes int64
	}{{Both, latencyBytes}, {Forth, p.Bytes}, {Back, p.Bytes}, {Both, p.Bytes}}
	for _, round := range rounds {
		var ps []reports.Pair
		for _, x := range round {
			for rail := range rails {
				ps = append(ps, reports.Pair{A: x[0], B: x[1], Rail: rail})
			}
		}
		for _, t := range tests {
			if time.Now().After(p.Until) {
				return all, ErrBudget
			}
			r, err := p.one(ctx, ps, t.way, t.bytes, len(rounds)*len(tests))
			if err != nil {
				return all, err
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func (p *PairRounds) one(ctx context.Context, ps []reports.Pair, d Direction, bytes int64, expected int) (reports.Result, error) {
	c, err := p.Request.PairCase(p.Sweep.Nodes, ps, d, bytes)
	if err != nil {
		return reports.Result{}, err
	}
	r, err := p.Sweep.Measure(ctx, c)
	if err != nil {
		return r, err
	}
	return r, p.Keep(r, expected)
}

// Settle judges results and measures what the judgement asks for, each alone,
// as often as that adds something and there is time. It returns the table and
// the judgement that it ends with, and the results that it added.
func (p *PairRounds) Settle(ctx context.Context, all []reports.Result) (*pairs.Table, *pairs.Report, []reports.Result, error) {
	for {
		t, notes, err := pairs.FromResults(all)
		if err != nil {
			return nil, nil, all, err
		}
		t.Leaf = p.Leaf
		r, err := pairs.Judge(t, p.Limits(all[0].Link, all[0].Memory))
		if err != nil {
			return t, nil, all, err
		}
		r.Notes = append(r.Notes, notes...)
		more := false
		for _, probe := range r.Next {
			if time.Now().After(p.Until) {
				r.Notes = append(r.Notes, "the time budget ended before all suspects were measured again")
				return t, r, all, nil
			}
			d := Both
			if probe.Way == pairs.OneWay {
				d = Forth
			}
			res, err := p.one(ctx, []reports.Pair{{A: probe.A, B: probe.B, Rail: probe.Rail}}, d, p.Bytes, len(all)+len(r.Next))
			if err != nil {
				return t, r, all, err
			}
			more = more || res.Error == ""
			all = append(slices.Clip(all), res)
		}
		if !more {
			return t, r, all, nil
		}
	}
}
