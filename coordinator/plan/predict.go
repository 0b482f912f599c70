package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"busbw/collectives"
	"busbw/reports"
)

// Prediction is the time of one operation of one size on so many nodes.
type Prediction struct {
	Op           collectives.Op
	Algorithm    string
	Nodes, Ranks int
	Bytes        int64
	Seconds      float64
	Low, High    float64 // s: with all numbers at the better and at the worse end
	Terms        []Term  // what the time consists of, most first
	Extrapolated []string
	Aside        string // what else there is to know of it
}

// Term is a share of the time: how much of it would go if that were for nothing.
type Term struct {
	Name  string
	Share float64
}

// ErrTooLarge is a simulation that would take too long.
var ErrTooLarge = errors.New("too many steps to simulate")

// Best are the algorithms among which Fastest looks: those of an operation that
// a network can stand. The others send n times the bytes or from all to all.
func Best(op collectives.Op) []string {
	names := collectives.Algorithms(op)
	if op != collectives.AllReduce {
		return names
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "oneshot" || n == "direct" })
}

// Fastest predicts with the algorithm that takes least time. skipped says which
// could not be simulated.
func (m *Machine) Fastest(op collectives.Op, bytes int64, nodes int) (p Prediction, skipped []string, err error) {
	var unfit error
	var all []*study
	for _, name := range m.candidates(op, bytes, nodes) {
		s, err := m.study(op, name, bytes, nodes)
		switch {
		case errors.Is(err, ErrTooLarge):
			skipped = append(skipped, name)
		case errors.Is(err, ErrOneSize):
			unfit = err
		case err != nil:
			return p, nil, err
		default:
			all = append(all, s)
		}
	}
	// The quickest to simulate are mostly the fastest, and tell when to give others up.
	slices.SortStableFunc(all, func(a, b *study) int { return cmp.Compare(a.walked, b.walked) })
	least, known := math.Inf(1), notMeasured
	fastest, guess := math.Inf(1), "" // of all, whatever is known of them
	for _, s := range all {
		now, limit := thisSize, math.Inf(1)
		if m.Measured != nil {
			now = m.Measured.known(op, s.algorithm, nodes, bytes)
		}
		if now >= known {
			limit = least
		}
		t, err := s.within(limit, middle, nil)
		if errors.Is(err, collectives.ErrSlower) {
			continue
		}
		if err != nil {
			return p, nil, err
		}
		if now < known || now == known && t < least {
			least, known, p.Algorithm = t, now, s.algorithm
		}
		if t < fastest {
			fastest, guess = t, s.algorithm
		}
	}
	if p.Algorithm == "" && unfit != nil {
		return p, skipped, unfit
	}
	if p.Algorithm == "" {
		return p, skipped, fmt.Errorf("%s of %d B on %d nodes: %w, whatever the algorithm", op, bytes, nodes, ErrTooLarge)
	}
	wide, err := m.wider(op, p.Algorithm, bytes, nodes, least)
	if err != nil {
		return p, skipped, err
	}
	p, err = wide.Predict(op, p.Algorithm, bytes, nodes)
	if wide.Channels != m.Channels {
		p.Aside = fmt.Sprintf("%s of %s on %d node%s: %s with %d channels; 1 channel would take %s",
			op, reports.SizeText(bytes), nodes, s(nodes), p.Algorithm, wide.Channels, reports.TimeText(least))
	}
	if guess != p.Algorithm {
		p.Aside = fmt.Sprintf("%s of %s on %d node%s: %s could take %s, but less is known of it: measure it (busbw run --algo %s)",
			op, reports.SizeText(bytes), nodes, s(nodes), guess, reports.TimeText(fastest), guess)
	}
	return p, skipped, err
}

// wider is the machine with more channels, if it is free to use them and that
// pays: while one waits for its neighbour others move bytes.
func (m *Machine) wider(op collectives.Op, algorithm string, bytes int64, nodes int, seconds float64) (*Machine, error) {
	const channels, pays = 4, 0.95
	if m.Measured != nil || !m.anyChannels {
		return m, nil
	}
	wide := *m
	wide.Channels = channels
	s, err := wide.study(op, algorithm, bytes, nodes)
	if err == nil {
		_, err = s.within(pays*seconds, middle, nil)
	}
	switch {
	case errors.Is(err, ErrTooLarge), errors.Is(err, collectives.ErrSlower):
		return m, nil
	case err != nil:
		return nil, err
	}
	return &wide, nil
}

// candidates are the algorithms among which Fastest looks: the best, and what was
// measured for this size, at about this scale.
func (m *Machine) candidates(op collectives.Op, bytes int64, nodes int) []string {
	names := Best(op)
	if m.Measured == nil || nodes*m.GPUs > 2*m.Measured.Ranks {
		return names
	}
	for _, name := range collectives.Algorithms(op) {
		if !slices.Contains(names, name) && m.Measured.known(op, name, nodes, bytes) == thisSize {
			names = append(names, name)
		}
	}
	return names
}

// Predict is the time of S = bytes by one algorithm.
func (m *Machine) Predict(op collectives.Op, algorithm string, bytes int64, nodes int) (Prediction, error) {
	p := Prediction{Op: op, Algorithm: algorithm, Nodes: nodes, Ranks: nodes * m.GPUs, Bytes: bytes}
	s, err := m.study(op, algorithm, bytes, nodes)
	if err != nil {
		return p, err
	}
	terms, err := s.terms()
	if err != nil {
		return p, err
	}
	cases := []simulation{{e: best}, {e: middle}, {e: worst}}
	for _, t := range terms {
		cases = append(cases, simulation{middle, t.change})
	}
	times, err := s.times(cases)
	if err != nil {
		return p, err
	}
	p.Low, p.Seconds, p.High = times[0], times[1], times[2]
	p.Terms = shares(terms, times[1], times[3:])
	if m.Measured != nil {
		spread := m.Measured.spread(op, algorithm)
		p.Low, p.High = min(p.Low*spread.Low, p.Seconds), max(p.High*spread.High, p.Seconds)
		if t, ok := m.Measured.times[timed{caseName(op, algorithm), nodes, p.Ranks, bytes}]; ok {
			p.Low, p.High = min(p.Low, t.Low), max(p.High, t.High)
		}
		p.Extrapolated = m.Measured.beyond(p)
	}
	return p, nil
}

// study is one case, ready to be simulated under different assumptions.
type study struct {
	m         *Machine
	op        collectives.Op
	algorithm string
	params    collectives.Params
	bytes     int64
	nodes     int
	pieces    int
	walked    float64 // steps of a simulation
	// few and more are pieces that are simulated instead of all: once a pipeline
	// is full, every further piece takes the same time. 0: all are.
	few, more int
}

// A simulation of this many steps takes some tenths of a second, and of mostSteps
// some seconds.
const (
	fewSteps  = 1_000_000
	mostSteps = 40_000_000
)

func (m *Machine) study(op collectives.Op, algorithm string, bytes int64, nodes int) (*study, error) {
	if bytes < 1 {
		return nil, fmt.Errorf("%s of %d B: want at least 1", op, bytes)
	}
	if err := m.one(op, algorithm, bytes, nodes); err != nil {
		return nil, err
	}
	f, err := m.fabric(op, algorithm, nodes, middle)
	if err != nil {
		return nil, err
	}
	s := &study{m: m, op: op, algorithm: algorithm, bytes: bytes, nodes: nodes}
	s.params = collectives.Params{Ranks: nodes * m.GPUs, Nodes: f.Node, Channels: m.Channels}
	if op == collectives.AllToAll && s.params.Ranks > 40_000 {
		return nil, fmt.Errorf("%s %s: %w", op, algorithm, ErrTooLarge)
	}
	s.pieces = max(collectives.Pieces(op, algorithm, s.params, bytes, m.Chunk), m.Channels)
	steps, err := s.steps(s.pieces, f)
	if err != nil {
		return nil, err
	}
	// A tree is full after about as many pieces as it is deep. Where ranks are alike
	// there are rings, which need not be shortened so.
	full := 4 * int(math.Ceil(math.Log2(float64(s.params.Ranks+1))))
	if sched, _, err := s.schedule(1); err == nil && sched.Shape().Period == 0 && steps > fewSteps && s.pieces > full {
		s.more = max(full, int(fewSteps/steps*float64(s.pieces))) &^ 1
		s.few = s.more / 2 &^ 1
		if steps, err = s.steps(s.more, f); err != nil {
			return nil, err
		}
	}
	if steps > mostSteps {
		return nil, fmt.Errorf("%s %s of %d B on %d nodes: %w (%.0f million)", op, algorithm, bytes, nodes, ErrTooLarge, steps/1e6)
	}
	s.walked = steps
	return s, nil
}

func (s *study) schedule(pieces int) (collectives.Schedule, int64, error) {
	p := s.params
	p.Pieces = pieces
	sched, err := collectives.New(s.op, s.algorithm, p)
	return sched, int64(float64(s.bytes) * float64(pieces) / float64(s.pieces)), err
}

func (s *study) steps(pieces int, f collectives.Fabric) (float64, error) {
	sched, bytes, err := s.schedule(pieces)
	if err != nil {
		return 0, err
	}
	return collectives.Steps(s.op, sched, bytes, f), nil
}

// time simulates the case at one end of the ranges, on a fabric that change has
// altered.
func (s *study) time(e end, change func(*collectives.Fabric)) (float64, error) {
	return s.within(math.Inf(1), e, change)
}

// within gives up with collectives.ErrSlower where that takes longer than limit s.
func (s *study) within(limit float64, e end, change func(*collectives.Fabric)) (float64, error) {
	f, err := s.m.fabric(s.op, s.algorithm, s.nodes, e)
	if err != nil {
		return 0, err
	}
	if change != nil {
		change(&f)
	}
	of := func(pieces int) (float64, error) {
		sched, bytes, err := s.schedule(pieces)
		if err != nil {
			return 0, err
		}
		return collectives.SimulateWithin(s.op, sched, bytes, f, limit)
	}
	if s.more == 0 {
		return of(s.pieces)
	}
	few, err := of(s.few)
	if err != nil {
		return 0, err
	}
	more, err := of(s.more)
	if err != nil {
		return 0, err
	}
	return more + (more-few)/float64(s.more-s.few)*float64(s.pieces-s.more), nil
}
