package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"busbw/collectives"
	"busbw/collectives/linktest"
	"busbw/collectives/reduce"
	"busbw/rdma"
)

// world is this process's part of a job: its ranks, each with a link to every
// rank of the other processes.
type world struct {
	o       *options
	m       *meeting
	n       int // ranks in all
	first   int // of this process
	abort   *collectives.Abort
	hub     *collectives.Hub
	devices []*rdma.Device
	links   []*rdma.Link
	ranks   []*collectives.Rank
}

func rail(o *options) (rdma.Rail, rdma.Settings, error) {
	s, _, err := rdma.ParseSettings(o.rails)
	if err != nil {
		return rdma.Rail{}, s, err
	}
	hcas, err := rdma.HCAs(os.DirFS("/"))
	if err != nil {
		return rdma.Rail{}, s, err
	}
	rails, passed := rdma.Rails(hcas, s)
	if len(rails) == 0 {
		return rdma.Rail{}, s, fmt.Errorf("no RDMA port to use: %v", passed)
	}
	return rails[0], s, nil
}

func newWorld(o *options, m *meeting) (*world, error) {
	w := &world{o: o, m: m, n: o.nodes * o.ranks, first: (o.id - 1) * o.ranks, abort: new(collectives.Abort)}
	w.hub = collectives.NewHub(o.ranks, w.abort)
	r, s, err := rail(o)
	if err != nil {
		return nil, err
	}
	team := collectives.Team{}
	var far []int
	for g := range w.n {
		team.Global, team.Node = append(team.Global, g), append(team.Node, g/o.ranks)
		if g < w.first || g >= w.first+o.ranks {
			far = append(far, g)
		}
	}
	hellos := map[int]map[int][]byte{} // by rank, by peer
	for i := range o.ranks {
		d, err := rdma.Open(r, s)
		if err != nil {
			return nil, err
		}
		l, err := rdma.NewLink(d, rdma.LinkConfig{Rank: w.first + i, Peers: far, Abort: w.abort, Dead: 3 * time.Second})
		if err != nil {
			return nil, err
		}
		w.devices, w.links = append(w.devices, d), append(w.links, l)
		mine := map[int][]byte{}
		for _, p := range far {
			if mine[p], err = l.Hello(p); err != nil {
				return nil, err
			}
		}
		hellos[w.first+i] = mine
	}
	if err := w.connect(hellos, far); err != nil {
		return nil, err
	}
	for i := range o.ranks {
		team.Me = w.first + i
		x, err := collectives.NewRank(team, w.hub, collectives.NewWire(w.links[i], w.n), w.abort)
		if err != nil {
			return nil, err
		}
		w.ranks = append(w.ranks, x)
	}
	return w, nil
}

func (w *world) connect(hellos map[int]map[int][]byte, far []int) error {
	b, err := json.Marshal(hellos)
	if err != nil {
		return err
	}
	all, err := w.m.all(b)
	if err != nil {
		return err
	}
	for _, b := range all {
		if err := json.Unmarshal(b, &hellos); err != nil {
			return err
		}
	}
	for i, l := range w.links {
		for _, p := range far {
			if err := l.Connect(p, hellos[p][w.first+i]); err != nil {
				return err
			}
		}
		if i == 0 {
			as, err := l.Attributes(far[0])
			if err != nil {
				return err
			}
			fmt.Printf("queue pairs of rank %d: %+v\n", w.first, as)
		}
	}
	_, err = w.m.all(nil)
	return err
}

// each runs f on every rank of this process.
func (w *world) each(f func(i int, r *collectives.Rank) error) error {
	var wg sync.WaitGroup
	for i, r := range w.ranks {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			w.abort.Set(f(i, r))
		})
	}
	wg.Wait()
	return w.abort.Err()
}

func (w *world) close() error {
	var errs []error
	for i := range w.links {
		errs = append(errs, w.links[i].Close(), w.devices[i].Close())
	}
	return errors.Join(errs...)
}

// collect runs every operation by every algorithm and checks every byte.
func collect(o *options, m *meeting) error {
	w, err := newWorld(o, m)
	if err != nil {
		return err
	}
	kinds := []collectives.Case{
		{Dtype: reduce.Float, Redop: reduce.Sum}, {Dtype: reduce.BFloat16, Redop: reduce.Avg}, {Dtype: reduce.Int8, Redop: reduce.Sum},
		{Dtype: reduce.Double, Redop: reduce.Max}, {Dtype: reduce.Uint64, Redop: reduce.Min},
	}
	cases := 0
	for _, op := range collectives.Ops() {
		for _, name := range collectives.Algorithms(op) {
			for _, count := range []int64{1, 1009, 100003} {
				if op.Blocked() {
					count *= int64(w.n)
				}
				c := kinds[cases%len(kinds)]
				c.Op, c.Count, c.Root = op, count, cases%w.n
				nodes := make([]int, w.n)
				for g := range nodes {
					nodes[g] = g / o.ranks
				}
				if c.Schedule, err = collectives.New(op, name, collectives.Params{Ranks: w.n, Root: c.Root, Nodes: nodes, Pieces: 1 + cases%3, Channels: 1}); err != nil {
					return fmt.Errorf("%s %s: %w", op, name, err)
				}
				for _, c.InPlace = range []bool{false, true} {
					if c.InPlace && !op.HasInPlace() {
						continue
					}
					if err := w.each(func(i int, r *collectives.Rank) error { return linktest.RunOn(r, c, w.n, w.first+i, 1) }); err != nil {
						return fmt.Errorf("%s %s of %d × %s, in place %t: %w", op, name, count, c.Dtype, c.InPlace, err)
					}
					cases++
				}
			}
		}
	}
	fmt.Printf("%d cases on %d ranks, 0 wrong\n", cases, w.n)
	if err := w.close(); err != nil {
		return err
	}
	_, err = m.all(nil)
	return err
}
