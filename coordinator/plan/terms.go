package plan

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"busbw/collectives"
)

// simulation is a run of the model: at one end of what is known, on a fabric that
// change has altered, if it is there.
type simulation struct {
	e      end
	change func(*collectives.Fabric)
}

// times runs simulations side by side.
func (s *study) times(all []simulation) ([]float64, error) {
	times, errs := make([]float64, len(all)), make([]error, len(all))
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, x := range all {
		free <- struct{}{}
		wait.Go(func() {
			times[i], errs[i] = s.time(x.e, x.change)
			<-free
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return times, nil
}

// little is by how much a term is made slower to see its share.
const little = 1e-4

// slowed is a part of the fabric that can be made a little slower.
type slowed struct {
	name   string
	change func(*collectives.Fabric)
}

// terms are what the time can consist of. It is a sum along the critical path of
// latencies and of bytes over bandwidths: to make one kind of them a little slower
// shows how much of it is there.
func (s *study) terms() ([]slowed, error) {
	f, err := s.m.fabric(s.op, s.algorithm, s.nodes, middle)
	if err != nil {
		return nil, err
	}
	slower := func(p collectives.Path, alpha, gbps float64) collectives.Path {
		out := slices.Clone(p)
		for i := range out {
			out[i].Alpha *= alpha
			out[i].GBps /= gbps
		}
		return out
	}
	const more = 1 + little
	near, far := s.m.NVLink.Domain > 1, f.Node != nil
	inside, outside := "link in the node", "link between nodes"
	if s.m.Measured == nil {
		inside, outside = "NVLink", "NIC"
	}
	var terms []slowed
	for _, t := range []struct {
		there bool
		slowed
	}{
		{near, slowed{inside, func(f *collectives.Fabric) { f.Intra = slower(f.Intra, 1, more) }}},
		{far, slowed{outside, func(f *collectives.Fabric) {
			f.Cross, f.Spine = slower(f.Cross, 1, more), slower(f.Spine, 1, more)
		}}},
		{f.UplinkGBps > 0, slowed{"leaf uplinks", func(f *collectives.Fabric) { f.UplinkGBps /= more }}},
		{near, slowed{"latency in nodes", func(f *collectives.Fabric) { f.Intra = slower(f.Intra, more, 1) }}},
		{far, slowed{"latency between nodes", func(f *collectives.Fabric) {
			f.Cross, f.Spine = slower(f.Cross, more, 1), slower(f.Spine, more, 1)
		}}},
		{f.CombineGBps > 0, slowed{"reduction", func(f *collectives.Fabric) { f.CombineGBps /= more }}},
	} {
		if t.there {
			terms = append(terms, t.slowed)
		}
	}
	return terms, nil
}

// shares are the terms' parts of the time, most first. Where two are equally
// critical either makes it slower, so that together they would be more than all.
func shares(terms []slowed, seconds float64, slow []float64) (all []Term) {
	sum := 0.0
	for i, t := range terms {
		if share := (slow[i] - seconds) / seconds / little; share >= 0.005 {
			all = append(all, Term{t.name, share})
			sum += share
		}
	}
	for i := range all {
		all[i].Share /= max(1, sum)
	}
	slices.SortStableFunc(all, func(a, b Term) int { return cmp.Compare(b.Share, a.Share) })
	return all
}
