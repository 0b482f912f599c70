package collectives

import (
	"errors"
	"fmt"
	"math"
)

// Simulate predicts how long a schedule takes for S = bytes, in seconds. A rank
// takes messages in the order of its steps; a Combine takes its time after the
// message has arrived, while the port already receives the next. Empty chunks
// cost nothing.
//
// Where ranks are alike, one of each kind is simulated and the time is the same
// (Shape.Period). Blocks that differ in size because they end at cache lines
// would spoil that: beyond some millions of steps they all count as the largest.
func Simulate(op Op, s Schedule, bytes int64, f Fabric) (float64, error) {
	return SimulateWithin(op, s, bytes, f, math.Inf(1))
}

// ErrSlower is a simulation that was given up, since it takes longer than allowed.
var ErrSlower = errors.New("takes longer")

// SimulateWithin is Simulate that gives up with ErrSlower once some rank is busy
// for more than limit seconds: to know that another is faster costs less than to
// know by how much.
func SimulateWithin(op Op, s Schedule, bytes int64, f Fabric, limit float64) (float64, error) {
	shape := s.Shape()
	if err := f.check(shape.Ranks); err != nil {
		return 0, fmt.Errorf("simulate %s: %w", op, err)
	}
	m := newModel(op, s, bytes, f)
	m.limit = limit
	w := walker[arrival]{s: s, period: m.period, send: m.send, receive: m.receive}
	if m.sharedNIC || m.f.UplinkGBps > 0 && m.f.Leaf != nil {
		w.when = m.when
	}
	if err := w.run(); err != nil {
		return 0, fmt.Errorf("simulate %s: %w", op, err)
	}
	seconds := 0.0
	for _, p := range m.ports {
		seconds = max(seconds, p.clock)
	}
	if seconds < math.MaxInt64/1e9 {
		return seconds, nil
	}
	return 0, fmt.Errorf("simulate %s: %.3g s is more than can be counted", op, seconds)
}

// arrival of a message, in seconds: of its first byte, and of its last if the
// receiver takes it at once.
type arrival struct{ first, last float64 }

// port is a rank's state in seconds; index 0 is towards its node, 1 beyond.
type port struct {
	clock                 float64 // end of its last step
	sendFree, receiveFree [2]float64
}

// server is something that ranks share: when each of its directions is free.
type server struct{ out, in float64 }

// message is the cost of a message of one size.
type message struct {
	bytes   float64
	alpha   [ways]float64 // s
	last    [ways]float64 // s from first to last byte
	combine float64
	uplink  float64
}

// model is the machine at work.
type model struct {
	f         Fabric
	limit     float64 // s
	period    int     // 0: all ranks are simulated
	kinds     []message
	kind      []int32 // of chunk c at c modulo the length
	ports     []port
	sharedNIC bool
	nics      map[int]*server
	leaves    map[int]*server
}

// fullSteps is how many steps all ranks together may have where blocks of
// different sizes keep ranks from being alike.
const fullSteps = 4_000_000

func newModel(op Op, s Schedule, bytes int64, f Fabric) *model {
	if f.Spine == nil {
		f.Spine = f.Cross
	}
	shape := s.Shape()
	m := &model{f: f, period: likes(op, s, bytes, &f), nics: map[int]*server{}, leaves: map[int]*server{}}
	chunks := shape.Chunks()
	if m.period > 0 || alike(op, shape, bytes) {
		chunks = shape.Pieces // the first block is a largest one
	}
	m.kind = make([]int32, chunks)
	known := map[int64]int32{}
	for c := range m.kind {
		_, b := shape.Span(op, c, bytes, 1)
		k, ok := known[b]
		if !ok {
			k = int32(len(m.kinds))
			known[b] = k
			m.kinds = append(m.kinds, m.cost(float64(b)))
		}
		m.kind[c] = k
	}
	ranks := shape.Ranks
	if m.period > 0 {
		ranks = m.period
	}
	m.ports = make([]port, ranks)
	seen := map[int]bool{}
	for _, n := range f.NIC {
		m.sharedNIC = m.sharedNIC || seen[n]
		seen[n] = true
	}
	return m
}

// alike says that pieces of the same number are of the same size in all blocks.
func alike(op Op, s Shape, bytes int64) bool {
	return op.Blocked() || op == SendRecv || s.BlockLen(op, bytes, 1)*int64(s.Blocks) == bytes
}

// likes is how many ranks stand for all; 0: none do.
func likes(op Op, s Schedule, bytes int64, f *Fabric) int {
	shape := s.Shape()
	period := f.period(shape.Period, shape.Ranks)
	if period > 0 && !alike(op, shape, bytes) && float64(shape.Ranks)*float64(s.Len(0)) <= fullSteps {
		return 0
	}
	return period
}

func (m *model) cost(b float64) message {
	x := message{bytes: b}
	for i, p := range []Path{m.f.Intra, m.f.Cross, m.f.Spine} {
		if len(p) > 0 {
			c := p.of(b)
			x.alpha[i], x.last[i] = c.Alpha, b/(c.GBps*1e9)
		}
	}
	if m.f.CombineGBps > 0 {
		x.combine = b / (m.f.CombineGBps * 1e9)
	}
	if m.f.UplinkGBps > 0 {
		x.uplink = b / (m.f.UplinkGBps * 1e9)
	}
	return x
}

func (m *model) of(st Step) *message { return &m.kinds[m.kind[int(st.Chunk)%len(m.kind)]] }

// like is the rank that stands for r.
func (m *model) like(r int) int {
	if m.period == 0 {
		return r
	}
	return r % m.period
}

// when a rank can send by what it shares with others.
func (m *model) when(rank int, st Step) (at float64, matters bool) {
	way := m.f.way(rank, int(st.Peer))
	if way == intra || way == cross && !m.sharedNIC || m.of(st).bytes == 0 {
		return 0, false
	}
	p := &m.ports[rank]
	return max(p.clock, p.sendFree[1]), true
}

func (m *model) send(rank int, st Step) (arrival, error) {
	x := m.of(st)
	if x.bytes == 0 {
		return arrival{}, nil
	}
	p, way := &m.ports[rank], m.f.way(rank, int(st.Peer))
	free := &p.sendFree[min(way, 1)]
	start := max(p.clock, *free)
	if way == intra || way == cross && !m.sharedNIC {
		*free = start + x.last[way]
		return arrival{start + x.alpha[way], start + x.alpha[way] + x.last[way]}, nil
	}
	// Each thing on the way starts when the first byte is there and it is free,
	// and ends no earlier than the one before.
	first, last := start, start
	pass := func(free *float64, takes float64) {
		first = max(first, *free)
		last = max(last, first+takes)
		*free = first + takes
	}
	if m.sharedNIC {
		pass(&m.at(m.nics, m.f.NIC, rank).out, x.last[way])
	} else {
		last += x.last[way]
	}
	*free = last
	if way == spine && m.f.UplinkGBps > 0 {
		pass(&m.at(m.leaves, m.f.Leaf, rank).out, x.uplink)
		pass(&m.at(m.leaves, m.f.Leaf, m.like(int(st.Peer))).in, x.uplink)
	}
	if m.sharedNIC {
		pass(&m.at(m.nics, m.f.NIC, m.like(int(st.Peer))).in, x.last[way])
	}
	return arrival{first + x.alpha[way], last + x.alpha[way]}, nil
}

func (m *model) at(of map[int]*server, index []int, rank int) *server {
	s := of[index[rank]]
	if s == nil {
		s = &server{}
		of[index[rank]] = s
	}
	return s
}

func (m *model) receive(rank int, st Step, a arrival) error {
	x := m.of(st)
	if x.bytes == 0 {
		return nil
	}
	p, way := &m.ports[rank], m.f.way(rank, int(st.Peer))
	last := a.last
	if way == intra || !m.sharedNIC {
		free := &p.receiveFree[min(way, 1)]
		last = max(last, max(a.first, *free)+x.last[way])
		*free = last
	}
	p.clock = max(p.clock, last)
	if st.Kind == Combine {
		p.clock += x.combine
	}
	if p.clock > m.limit {
		return ErrSlower
	}
	return nil
}

// Steps is how many steps Simulate would walk, which is what its time depends
// on: tens of millions take seconds.
func Steps(op Op, s Schedule, bytes int64, f Fabric) float64 {
	shape := s.Shape()
	if f.check(shape.Ranks) != nil {
		return 0
	}
	period := likes(op, s, bytes, &f)
	if period > 0 {
		return float64(period) * float64(s.Len(0))
	}
	steps := 0.0
	for r := range shape.Ranks {
		steps += float64(s.Len(r))
	}
	return steps
}
