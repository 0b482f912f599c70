package plan

import (
	"math"
	"slices"

	"busbw/collectives"
)

// point is one measured case of a path: all its ranks are alike and talk over the
// same kind of path.
type point struct {
	op        collectives.Op
	algorithm string
	ranks     int
	pieces    int
	channels  int
	chunk     int64 // bytes, the most a message may have
	apart     bool  // each rank on a node of its own
	bytes     int64
	message   int64 // bytes of its largest message
	seconds   float64
	a, g      float64 // ∂t/∂α; ∂t/∂(1/B), s per s/GB
}

func (p *point) schedule() (collectives.Schedule, error) {
	params := collectives.Params{Ranks: p.ranks, Pieces: p.pieces, Channels: p.channels}
	if p.apart {
		params.Nodes = by(p.ranks, func(r int) int { return r })
	}
	return collectives.New(p.op, p.algorithm, params)
}

// simulate is the time on a path of α (s) and 1/B (s/GB).
func (p *point) simulate(alpha, g float64) (float64, error) {
	s, err := p.schedule()
	if err != nil {
		return 0, err
	}
	return collectives.Simulate(p.op, s, p.bytes, collectives.Fabric{Intra: collectives.Uniform(alpha, 1/g)})
}

// largeMessage is a size from which on bandwidth counts for more than latency.
const largeMessage = 16 << 10

// least is 1/B of a path so fast that only latency counts, s/GB.
const least = 1e-6

// weigh sets the derivatives at α and 1/B. Time is the largest of many sums of
// latencies and bytes over bandwidth, so these are whole numbers of latencies and
// bytes on the critical path.
func (p *point) weigh(alpha, g float64) error {
	alpha = max(alpha, 1e-9)
	const little = 1e-3
	t, err := p.simulate(alpha, g)
	if err != nil {
		return err
	}
	ta, err := p.simulate(alpha*(1+little), g)
	if err != nil {
		return err
	}
	p.a = (ta - t) / (alpha * little)
	p.g = max(0, t-p.a*alpha) / g // t is homogeneous in α and 1/B
	return nil
}

// fit finds a path's α and B, by segments of message size where one line does not
// do, so that the sum of squared relative errors is least.
func fit(points []point) (Way, error) {
	slices.SortStableFunc(points, func(a, b point) int { return int(min(max(a.bytes-b.bytes, -1), 1)) })
	for i := range points {
		if err := points[i].weigh(1e-6, 1); err != nil {
			return nil, err
		}
	}
	if oneMessage(points) {
		b, err := single(points)
		return Way{b}, err
	}
	var cuts []int
	for range 3 { // α and B decide what is critical, which decides α and B
		cuts = segments(points)
		for i, from := range cuts[:len(cuts)-1] {
			alpha, g := line(points[from:cuts[i+1]], -1)
			for j := from; j < cuts[i+1]; j++ {
				if err := points[j].weigh(alpha, g); err != nil {
					return nil, err
				}
			}
		}
	}
	var w Way
	for i, from := range cuts[:len(cuts)-1] {
		part := points[from:cuts[i+1]]
		w = append(w, band(part))
	}
	return w, nil
}

// band is a segment with its uncertainty: the fit without any one of its points
// (a jackknife), and by how much that changes the points' times.
func band(part []point) Band {
	alpha, g := line(part, -1)
	b := Band{UpTo: part[len(part)-1].message, Alpha: Range{Low: alpha, High: alpha}, GBps: Range{Low: 1 / g, High: 1 / g}}
	change := Range{Low: 1, High: 1}
	for left := range part {
		rest := slices.Concat(part[:left], part[left+1:])
		if len(part) < 3 || oneMessage(rest) {
			continue // they could not tell α from B
		}
		a1, g1 := line(part, left)
		b.Alpha = Range{Low: min(b.Alpha.Low, a1), High: max(b.Alpha.High, a1)}
		b.GBps = Range{Low: min(b.GBps.Low, 1/g1), High: max(b.GBps.High, 1/g1)}
		for _, p := range part {
			if t := alpha*p.a + g*p.g; t > 0 {
				ratio := (a1*p.a + g1*p.g) / t
				change = Range{Low: min(change.Low, ratio), High: max(change.High, ratio)}
			}
		}
	}
	for e, by := range map[end]float64{best: change.Low, middle: 1, worst: change.High} {
		b.At[e] = collectives.Class{Alpha: alpha * by, GBps: 1 / (g * by)}
	}
	return b
}

// oneMessage says that all have messages of the same size: then many pairs of α
// and B say the same.
func oneMessage(points []point) bool {
	for _, p := range points {
		if p.message != points[0].message {
			return false
		}
	}
	return true
}

// single is what messages of one size tell: about half of their time for each of
// α and B where nothing says which it is, and half or twice as much at the ends.
func single(points []point) (Band, error) {
	a, g := 0.0, 0.0
	for _, p := range points {
		a, g = a+p.a/p.seconds, g+p.g/p.seconds
	}
	n := float64(len(points))
	c := collectives.Class{Alpha: n / (2 * a), GBps: 1 / max(n/(2*max(g, least)), least)}
	scale, err := scale(points, Way{{At: [3]collectives.Class{middle: c}}})
	b := Band{UpTo: math.MaxInt64, Single: true}
	for e, by := range map[end]float64{best: scale / 2, middle: scale, worst: 2 * scale} {
		b.At[e] = collectives.Class{Alpha: c.Alpha * by, GBps: c.GBps / by}
	}
	return b, err
}

// scale is by how much the points take longer than on a way.
func scale(points []point, w Way) (float64, error) {
	sum := 0.0
	for i := range points {
		p := &points[i]
		c := w.of(p.message).At[middle]
		t, err := p.simulate(c.Alpha, 1/c.GBps)
		if err != nil {
			return 1, err
		}
		sum += math.Log(p.seconds / t)
	}
	return math.Exp(sum / float64(len(points))), nil
}

// borrow makes a way from points of one message size by scaling that of all to
// their times. Since nobody knows whether α or B is what differs, the ends are
// those of all, scaled and not scaled.
func borrow(points, all []point) (Way, error) {
	w, err := fit(slices.Clone(all))
	if err != nil {
		return nil, err
	}
	scale, err := scale(points, w)
	if err != nil {
		return nil, err
	}
	for i := range w {
		b := &w[i]
		for e, by := range map[end]float64{best: min(1, scale), middle: scale, worst: max(1, scale)} {
			b.At[e].Alpha *= by
			b.At[e].GBps /= by
		}
		ends := func(x Range) Range { return Range{Low: x.Low * min(1, scale), High: x.High * max(1, scale)} }
		b.Alpha = ends(b.Alpha)
		b.GBps = Range{Low: b.GBps.Low / max(1, scale), High: b.GBps.High / min(1, scale)}
	}
	return w, nil
}

// line is the best α (s) and 1/B (s/GB), neither negative, without point left.
func line(points []point, left int) (alpha, g float64) {
	var aa, ag, gg, a1, g1 float64
	one := true // message size: then α and B cannot be told apart, and B is for both
	for i, p := range points {
		if i == left {
			continue
		}
		a, g := p.a/p.seconds, p.g/p.seconds
		one = one && p.message == points[0].message
		aa, ag, gg, a1, g1 = aa+a*a, ag+a*g, gg+g*g, a1+a, g1+g
	}
	if det := aa*gg - ag*ag; !one && det > 1e-9*aa*gg {
		alpha, g = (a1*gg-g1*ag)/det, (g1*aa-a1*ag)/det
	}
	switch {
	case alpha > 0 && g > 0:
	case gg > 0 && (aa == 0 || one && points[0].message > largeMessage || g1*g1/gg >= a1*a1/aa): // the better one alone
		alpha, g = 0, g1/gg
	case aa > 0:
		alpha, g = a1/aa, 0
	}
	return max(alpha, 0), max(g, least)
}

func misfit(points []point) float64 {
	alpha, g := line(points, -1)
	sum := 0.0
	for _, p := range points {
		e := (alpha*p.a+g*p.g)/p.seconds - 1
		sum += e * e
	}
	return sum
}

// segments cuts points, sorted by size, where their message sizes differ, into
// one to three parts of at least three points (all, if there are fewer). A cut
// must pay for its parameters (Schwarz's criterion, errors of 1 % counting as none).
func segments(points []point) []int {
	const least = 3
	n := len(points)
	whole := []int{0, n}
	score := func(cuts []int) float64 {
		sum := 0.0
		for i, from := range cuts[:len(cuts)-1] {
			sum += misfit(points[from:cuts[i+1]])
		}
		return float64(n)*math.Log(sum/float64(n)+1e-4) + 3*float64(len(cuts)-1)*math.Log(float64(n))
	}
	var at []int
	for i := least; i <= n-least; i++ {
		if points[i].message > points[i-1].message {
			at = append(at, i)
		}
	}
	top, cuts := score(whole), whole
	try := func(c ...int) {
		if s := score(c); s < top {
			top, cuts = s, c
		}
	}
	for i, a := range at {
		try(0, a, n)
		for _, b := range at[i+1:] {
			if b-a >= least {
				try(0, a, b, n)
			}
		}
	}
	return cuts
}
