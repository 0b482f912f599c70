package plan

import (
	"fmt"
	"math"

	"busbw/collectives"
)

// Machine is a cluster with what is known of its paths.
type Machine struct {
	Cluster
	Intra, Cross Way       // as described; nil: not
	Measured     *Measured // goes before the description; nil: nothing was
}

// Way is a path by message size, as it is at best, most likely and at worst.
type Way []Band

// Band is a segment of a Way: messages of up to UpTo bytes.
type Band struct {
	UpTo        int64
	At          [3]collectives.Class // by end
	Alpha, GBps Range                // s; of single numbers, where At moves both at once
	// Single: only messages of one size were measured, which cannot tell α from B.
	Single bool
}

// Described is the machine of a description alone.
func (c *Cluster) Described() *Machine {
	m := &Machine{Cluster: *c}
	one := func(latency, gbps, efficiency Range, n float64) Way {
		if !gbps.given() {
			return nil
		}
		b := Band{Alpha: latency.times(1e-6), GBps: Range{Low: gbps.Low * efficiency.Low * n, High: gbps.High * efficiency.High * n}}
		for e := range b.At {
			b.At[e] = collectives.Class{Alpha: end(e).of(b.Alpha, false), GBps: end(e).of(b.GBps, true)}
		}
		return Way{b}
	}
	m.Intra = one(c.NVLink.Latency, c.NVLink.GBps, c.NVLink.Efficiency, 1)
	m.Cross = one(c.NIC.Latency, c.NIC.GBps, c.NIC.Efficiency, float64(max(1, c.NICs/c.GPUs))) // several NICs of one GPU work as one
	return m
}

// farther is the way with so many µs more.
func (w Way) farther(us Range) Way {
	out := append(Way(nil), w...)
	for i := range out {
		for e := range out[i].At {
			out[i].At[e].Alpha += end(e).of(us, false) * 1e-6
		}
	}
	return out
}

func (r Range) times(x float64) Range { return Range{Low: r.Low * x, High: r.High * x} }

// end is where in their ranges all numbers are taken.
type end int

const (
	best end = iota
	middle
	worst
)

// of is the number; fast says that a high one makes things fast.
func (e end) of(r Range, fast bool) float64 {
	switch {
	case r.Low == r.High:
		return r.Low
	case e == middle && r.Low <= 0:
		return (r.Low + r.High) / 2
	case e == middle:
		return math.Sqrt(r.Low) * math.Sqrt(r.High)
	case (e == best) == fast:
		return r.High
	}
	return r.Low
}

func (w Way) path(e end) collectives.Path {
	var p collectives.Path
	for _, b := range w {
		p = append(p, collectives.Segment{UpTo: b.UpTo, Class: b.At[e]})
	}
	return p
}

// way is a path for an algorithm on a number of ranks.
func (m *Machine) way(path string, op collectives.Op, algorithm string, ranks int) (Way, error) {
	described, field := m.Intra, "nvlink.gb_per_s"
	if path == "cross" {
		described, field = m.Cross, "nic.gb_per_s"
	}
	if m.Measured != nil {
		if w := m.Measured.way(path, op, algorithm, ranks); w != nil {
			return w, nil
		}
	}
	if described == nil {
		return nil, fmt.Errorf("%w: %s is missing, and no measurement tells", ErrDescription, field)
	}
	return described, nil
}

// fabric is the machine with so many nodes, as the algorithm sees it.
func (m *Machine) fabric(op collectives.Op, algorithm string, nodes int, e end) (f collectives.Fabric, err error) {
	if err := m.Size(nodes); err != nil {
		return f, err
	}
	ranks, domain := nodes*m.GPUs, m.NVLink.Domain
	f.CombineGBps = e.of(m.CombineGBps, true)
	near, far := Way(nil), Way(nil)
	if domain > 1 {
		if near, err = m.way("intra", op, algorithm, min(ranks, domain)); err != nil {
			return f, err
		}
		f.Intra = near.path(e)
	}
	if ranks <= domain {
		return f, nil
	}
	if far, err = m.way("cross", op, algorithm, (ranks+domain-1)/domain); err != nil {
		return f, err
	}
	f.Cross, f.Node = far.path(e), by(ranks, func(r int) int { return r / domain })
	if domain == 1 {
		f.Intra = f.Cross // there is no path within a node
	}
	ports := min(m.NICs, m.GPUs) // of a node; those of one GPU count as one
	nic := func(r int) int { return r * ports / m.GPUs }
	if ports < m.GPUs {
		f.NIC = by(ranks, nic)
	}
	if m.Leaf.Nodes == 0 {
		return f, nil
	}
	f.Spine = far.farther(m.Leaf.Latency).path(e)
	onLeaf := m.Leaf.Nodes * ports
	leaf := func(r int) int { return r / m.GPUs / m.Leaf.Nodes }
	if m.NIC.Rails {
		onLeaf = m.Leaf.Nodes
		leaf = func(r int) int { return r/m.GPUs/m.Leaf.Nodes*ports + nic(r)%ports }
	}
	f.Leaf = by(ranks, leaf)
	if m.Leaf.Oversubscription > 1 {
		f.UplinkGBps = float64(onLeaf) * f.Cross[len(f.Cross)-1].GBps / m.Leaf.Oversubscription
	}
	return f, nil
}

func by(ranks int, of func(int) int) []int {
	out := make([]int, ranks)
	for r := range out {
		out[r] = of(r)
	}
	return out
}
