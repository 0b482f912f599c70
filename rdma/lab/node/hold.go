package main

import (
	"fmt"
	"time"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

// allReduce is the ring in registered buffers, out of place.
type allReduce struct {
	w        *world
	c        collectives.Case
	buffers  []*collectives.HostBuffer
	programs []*collectives.Program
}

func newAllReduce(w *world, bytes int64, pieces int) (*allReduce, error) {
	a := &allReduce{w: w, c: collectives.Case{Op: collectives.AllReduce, Dtype: reduce.Float, Redop: reduce.Sum, Count: bytes / 4}}
	var err error
	if a.c.Schedule, err = collectives.New(collectives.AllReduce, "ring", collectives.Params{Ranks: w.n, Pieces: pieces, Channels: 1}); err != nil {
		return nil, err
	}
	for i, r := range w.ranks {
		b, err := collectives.AllocHost(2*bytes, false)
		if err != nil {
			return nil, err
		}
		if err := w.links[i].Register(b.Span(0, 2*bytes)); err != nil {
			return nil, err
		}
		p, err := r.Compile(a.c)
		if err != nil {
			return nil, err
		}
		a.buffers, a.programs = append(a.buffers, b), append(a.programs, p)
	}
	return a, nil
}

// run runs it so many times on all ranks of this process, checks the last
// result, and returns the shortest and the usual time of rank 0 of them.
func (a *allReduce) run(times int) (took []time.Duration, err error) {
	bytes := a.c.Count * 4
	took = make([]time.Duration, times)
	err = a.w.each(func(i int, r *collectives.Rank) error {
		in, out := a.buffers[i].Span(0, bytes), a.buffers[i].Span(bytes, bytes)
		rank := a.w.first + i
		reduce.Fill(in, a.c.Dtype, a.c.Redop, a.w.n, rank, 0)
		for n := range times {
			if err := r.Barrier(); err != nil {
				return err
			}
			start := time.Now()
			if err := r.Run(a.programs[i], collectives.Buffers{In: in, Out: out}); err != nil {
				return err
			}
			if i == 0 {
				took[n] = time.Since(start)
			}
		}
		if wrong, at := reduce.Check(out, a.c.Dtype, a.c.Redop, a.w.n, 0); wrong != 0 {
			return fmt.Errorf("rank %d: %d elements are wrong, the first is %d", rank, wrong, at)
		}
		return nil
	})
	return took, err
}

// hold runs a collective until something breaks, which is what is wanted, or
// the time is up, which is not.
func hold(o *options, m *meeting) error {
	w, err := newWorld(o, m)
	if err != nil {
		return err
	}
	a, err := newAllReduce(w, 256<<10, 1)
	if err != nil {
		return err
	}
	start := time.Now()
	for runs := 0; time.Since(start) < o.limit; runs += 10 {
		if _, err := a.run(10); err != nil {
			fmt.Printf("%d runs were good\n", runs)
			return err
		}
		if runs == 0 {
			fmt.Println("HOLDING")
		}
	}
	return nil
}
