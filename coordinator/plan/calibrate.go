package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"busbw/collectives"
	"busbw/reports"
)

// Measured is what was learnt from measurements. What ranks share without our
// knowing it (cores, memory, switches) shows as α and B that change with their
// number, so there is a fit for each number of ranks; between two of them a path
// is interpolated, and beyond the largest it stays as it is.
type Measured struct {
	Fits         []Fit
	Ranks, Nodes int              // of the largest group; of the run with most
	least, most  map[string]int64 // bytes, by case and whether that was between nodes
	spreads      map[string]Range // of measured over predicted times
	times        map[timed]Range  // what was measured, s
	Passed       []string         // what could not be used, and why
}

// Fit is a path as one algorithm on a number of ranks saw it.
type Fit struct {
	Path      string // "intra" or "cross"
	Op        collectives.Op
	Algorithm string // "": all operations and algorithms
	Ranks     int
	Points    int
	// Borrowed: of one size of message only, from which α and B cannot be told
	// apart; they are those of all together, scaled to its times.
	Borrowed bool
	Way      Way
}

// timed is a case as it was measured, on so many nodes of equal numbers of ranks.
type timed struct {
	name         string
	nodes, ranks int
	bytes        int64
}

// ErrNothing is results in which there is nothing to calibrate from.
var ErrNothing = errors.New("nothing to calibrate from")

// Calibrate makes a machine like the one that the results were measured on.
// layout is how large predictions assume it to be; nil: as measured.
func Calibrate(results []reports.Result, layout *Cluster) (*Machine, error) {
	m := &Measured{least: map[string]int64{}, most: map[string]int64{}, spreads: map[string]Range{}, times: map[timed]Range{}}
	perNode := 1
	paths := map[string][]point{}
	var figures []reports.Figure
	for _, f := range reports.Figures(results) {
		path, p, err := pointOf(&f)
		if err != nil {
			m.pass(err.Error())
			continue
		}
		figures = append(figures, f)
		m.Ranks, m.Nodes = max(m.Ranks, f.Ranks), max(m.Nodes, f.Nodes)
		if path == "intra" {
			perNode = max(perNode, f.Ranks)
		} else if f.Nodes > 0 {
			perNode = max(perNode, f.Ranks*f.Groups/f.Nodes)
		}
		m.note(&f, path, &p)
		k := where(p.op, p.algorithm, path == "intra")
		if m.most[k] == 0 || p.bytes < m.least[k] {
			m.least[k] = p.bytes
		}
		m.most[k] = max(m.most[k], p.bytes)
		if path != "global" {
			paths[path] = append(paths[path], p)
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w: no result of scope intra or cross was timed, right and of a known algorithm", ErrNothing)
	}
	for _, path := range []string{"intra", "cross"} {
		if err := m.fit(path, paths[path]); err != nil {
			return nil, err
		}
	}
	c := layout
	if c == nil {
		c = &Cluster{Name: "as measured", Nodes: max(1, m.Nodes), GPUs: perNode}
		if err := c.complete(); err != nil {
			return nil, fmt.Errorf("%w: the results tell of a cluster that cannot be: %w", ErrNothing, err)
		}
	}
	machine := c.Described()
	machine.Measured = m
	machine.Spread(figures)
	return machine, nil
}

// note keeps what was measured, for the intervals of predictions of the same.
func (m *Measured) note(f *reports.Figure, path string, p *point) {
	k := timed{caseName(p.op, p.algorithm), f.Nodes, p.ranks, p.bytes}
	switch path {
	case "intra":
		k.nodes = 1
	case "cross":
		k.nodes = p.ranks
	}
	t, ok := m.times[k]
	if !ok {
		t = Range{Low: p.seconds, High: p.seconds}
	}
	m.times[k] = Range{Low: min(t.Low, p.seconds), High: max(t.High, p.seconds)}
}

// Spread notes how far predictions are off for figures.
func (m *Machine) Spread(figures []reports.Figure) {
	for _, f := range figures {
		p, ok := m.Of(&f)
		if !ok || p.Seconds <= 0 {
			continue
		}
		k, off := caseName(p.Op, p.Algorithm), f.Stats.Median/p.Seconds
		s, there := m.Measured.spreads[k]
		if !there {
			s = Range{Low: 1, High: 1}
		}
		m.Measured.spreads[k] = Range{Low: min(s.Low, off), High: max(s.High, off)}
	}
}

func caseName(op collectives.Op, algorithm string) string { return op.String() + " " + algorithm }

// where is a case with the kind of paths that it was measured on: what an
// algorithm does within a node tells little of what it does between nodes.
func where(op collectives.Op, algorithm string, inside bool) string {
	if inside {
		return caseName(op, algorithm) + " within a node"
	}
	return caseName(op, algorithm) + " between nodes"
}

func (m *Measured) pass(why string) {
	if !slices.Contains(m.Passed, why) && len(m.Passed) < 20 {
		m.Passed = append(m.Passed, why)
	}
}

// pointOf is what a figure tells, and of which path: "intra", "cross", or
// "global" for both.
func pointOf(f *reports.Figure) (path string, p point, err error) {
	if !f.Timed || f.Void() || f.Foretold() || f.Stats.Median <= 0 {
		return "", p, errors.New("failed, untimed, wrong or predicted results")
	}
	if p.op, err = collectives.ParseOp(f.Op); err != nil {
		return "", p, err
	}
	if p.algorithm, err = collectives.Resolve(p.op, f.Algorithm); err != nil {
		return "", p, err
	}
	const mostRanks = 1024
	if f.Ranks < 2 || f.Ranks > mostRanks || f.Bytes < 1 {
		return "", p, fmt.Errorf("results of 0 B, of one rank or of more than %d", mostRanks)
	}
	path = f.Scope
	switch {
	case path != "intra" && path != "cross" && path != "global":
		return "", p, fmt.Errorf("results of scope %q", path)
	case path == "global" && f.Nodes == 1:
		path = "intra"
	case path == "global" && f.Nodes == f.Ranks:
		path = "cross"
	}
	p.ranks, p.bytes, p.seconds, p.apart = f.Ranks, f.Bytes, f.Stats.Median, path == "cross"
	chunk, channels := int64(512<<10), 1
	if n, err := strconv.ParseInt(f.Config["NCCL_BUFFSIZE"], 10, 64); err == nil && n >= 8 && n <= 1<<40 {
		chunk = n / 8
	}
	if n, err := strconv.Atoi(f.Config["NCCL_MIN_CTAS"]); err == nil && n >= 1 && n <= maxChannels {
		channels = n
	}
	params := collectives.Params{Ranks: p.ranks, Channels: channels}
	if p.apart {
		params.Nodes = by(p.ranks, func(r int) int { return r })
	}
	p.channels, p.chunk = channels, chunk
	p.pieces = max(channels, collectives.Pieces(p.op, p.algorithm, params, p.bytes, chunk))
	s, err := p.schedule()
	if err != nil {
		return "", p, err
	}
	if collectives.Steps(p.op, s, p.bytes, collectives.Fabric{Intra: collectives.Uniform(0, 1)}) > fewSteps {
		return "", p, errors.New("results with too many steps to calibrate from")
	}
	_, p.message = s.Shape().Span(p.op, 0, p.bytes, 1)
	return path, p, nil
}

// fit fits a path: for each operation, algorithm and number of ranks, and for
// all that a number of ranks did.
func (m *Measured) fit(path string, points []point) error {
	type key struct {
		op        collectives.Op
		algorithm string
		ranks     int
	}
	groups := map[key][]point{}
	for _, p := range points {
		groups[key{p.op, p.algorithm, p.ranks}] = append(groups[key{p.op, p.algorithm, p.ranks}], p)
		groups[key{0, "", p.ranks}] = append(groups[key{0, "", p.ranks}], p)
	}
	for k, ps := range groups {
		f := Fit{Path: path, Op: k.op, Algorithm: k.algorithm, Ranks: k.ranks, Points: len(ps)}
		all := groups[key{0, "", k.ranks}]
		var err error
		if f.Borrowed = k.algorithm != "" && oneMessage(ps) && !oneMessage(all); f.Borrowed {
			f.Way, err = borrow(ps, all)
		} else {
			f.Way, err = fit(ps)
		}
		if err != nil {
			return fmt.Errorf("fit of %s %s %s: %w", path, k.op, k.algorithm, err)
		}
		m.Fits = append(m.Fits, f)
	}
	slices.SortFunc(m.Fits, func(a, b Fit) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Algorithm, b.Algorithm), cmp.Compare(a.Ranks, b.Ranks))
	})
	return nil
}

// way is a path for an algorithm on a number of ranks; nil where nothing of the
// path was measured.
func (m *Measured) way(path string, op collectives.Op, algorithm string, ranks int) Way {
	var below, above *Fit
	for i := range m.Fits {
		switch f := &m.Fits[i]; {
		case f.Path != path || f.Op != op || f.Algorithm != algorithm:
		case f.Ranks <= ranks:
			below = f // sorted by ranks
		case above == nil:
			above = f
		}
	}
	switch {
	case below == nil && above == nil && algorithm != "":
		return m.way(path, 0, "", ranks)
	case below == nil && above == nil:
		return nil
	case below == nil:
		return above.Way
	case above == nil || below.Ranks == ranks:
		return below.Way
	}
	share := math.Log(float64(ranks)/float64(below.Ranks)) / math.Log(float64(above.Ranks)/float64(below.Ranks))
	return between(below.Way, above.Way, share)
}

// between interpolates two ways, size by size.
func between(v, w Way, share float64) Way {
	var upTo []int64
	for _, b := range slices.Concat(v[:len(v)-1], w[:len(w)-1]) {
		upTo = append(upTo, b.UpTo)
	}
	slices.Sort(upTo)
	upTo = append(slices.Compact(upTo), math.MaxInt64)
	mix := func(x, y float64) float64 {
		if x <= 0 || y <= 0 {
			return x + share*(y-x)
		}
		return math.Exp(math.Log(x) + share*(math.Log(y)-math.Log(x)))
	}
	var out Way
	for _, n := range upTo {
		a, b := v.of(n), w.of(n)
		c := Band{UpTo: n, Single: a.Single || b.Single}
		for e := range c.At {
			c.At[e] = collectives.Class{Alpha: mix(a.At[e].Alpha, b.At[e].Alpha), GBps: mix(a.At[e].GBps, b.At[e].GBps)}
		}
		out = append(out, c)
	}
	return out
}

func (w Way) of(message int64) Band {
	for _, b := range w[:len(w)-1] {
		if message <= b.UpTo {
			return b
		}
	}
	return w[len(w)-1]
}
