// Package linktest is the conformance suite of links and of the hub: whatever
// carries data must pass it. It runs every operation by every algorithm on real
// buffers and looks at every byte of the results.
package linktest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

// Maker makes connected links for the ranks 0 … ranks-1, every one to every
// other, that watch abort. The suite closes them.
type Maker func(t testing.TB, ranks int, abort *collectives.Abort) []collectives.Link

// Store is a device whose memory holds a rank's buffers.
type Store interface {
	collectives.Device
	Alloc(n int64) ([]byte, error) // n is above 0
	Free(span []byte) error
	Put(device, host []byte) error
	Get(host, device []byte) error
}

// Recordings is a Store whose ranks record so many of their runs and replay them.
type Recordings interface{ Recordings() int }

// Kit is what a suite runs on.
type Kit struct {
	Links Maker // nil: the ranks share a process, and need none
	// Stores makes a device for each rank, given to the ranks' links as they
	// need it; nil: memory of this processor. It is called before Links.
	Stores func(t testing.TB, ranks int) []Store
}

// Run holds links to what collectives.Link says, alone and beside a hub.
func Run(t *testing.T, make Maker) { Kit{Links: make}.Apart(t) }

// RunHub holds the hub to the same.
func RunHub(t *testing.T) { Kit{}.Together(t) }

// Apart runs the suite over links, alone and beside a hub.
func (k Kit) Apart(t *testing.T) {
	t.Run("apart", func(t *testing.T) { k.operations(t, 1, []int{1, 2, 3, 4, 5, 8}) })
	t.Run("beside a hub", func(t *testing.T) { k.operations(t, 2, []int{3, 4, 7}) })
	t.Run("groups", func(t *testing.T) { k.groups(t, 1) })
	t.Run("abort", func(t *testing.T) { k.aborted(t, 1) })
	t.Run("large", func(t *testing.T) { k.large(t, 1) })
}

// Together runs it on ranks of one process.
func (k Kit) Together(t *testing.T) {
	t.Run("operations", func(t *testing.T) { k.operations(t, 0, []int{1, 2, 3, 4, 5, 8, 13}) })
	t.Run("groups", func(t *testing.T) { k.groups(t, 0) })
	t.Run("abort", func(t *testing.T) { k.aborted(t, 0) })
	t.Run("large", func(t *testing.T) { k.large(t, 0) })
}

// kinds are the mixtures of type and operator that the cases take in turn: all
// sizes, all operators, and the average, which has a step of its own.
func kinds() []collectives.Case {
	return []collectives.Case{
		{Dtype: reduce.Float, Redop: reduce.Sum}, {Dtype: reduce.Float, Redop: reduce.Avg}, {Dtype: reduce.Int8, Redop: reduce.Sum},
		{Dtype: reduce.Double, Redop: reduce.Max}, {Dtype: reduce.Half, Redop: reduce.Avg}, {Dtype: reduce.Int32, Redop: reduce.Prod},
		{Dtype: reduce.BFloat16, Redop: reduce.Sum}, {Dtype: reduce.Uint64, Redop: reduce.Min}, {Dtype: reduce.F8E4M3, Redop: reduce.Sum},
	}
}

// operations runs every operation by every algorithm at several sizes.
func (k Kit) operations(t *testing.T, perNode int, ranks []int) {
	for _, n := range ranks {
		if len(ranks) > 1 && n > 4 && (testing.Short() || k.Stores != nil && n != 8) {
			continue
		}
		if len(ranks) > 1 && k.Stores != nil && testing.Short() && (n < 2 || n > 3) {
			continue // an even and an odd number show what differs; stand-ins take long
		}
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			w := k.world(t, n, perNode)
			turn := 0
			for _, op := range collectives.Ops() {
				for _, name := range collectives.Algorithms(op) {
					for _, count := range k.counts(n) {
						if op.Blocked() {
							count *= int64(n)
						}
						turn++
						if !w.try(t, op, name, count, turn) {
							return
						}
					}
				}
			}
		})
	}
}

// Ranks runs every operation on so many ranks of one process.
func (k Kit) Ranks(t *testing.T, n int) { k.operations(t, 0, []int{n}) }

// counts are the sizes, in elements. What stands in for a device is slow.
func (k Kit) counts(n int) []int64 {
	if k.Stores != nil {
		return []int64{int64(n) - 1, 5003}
	}
	if testing.Short() {
		return []int64{0, 1, int64(n) - 1, 13, 20011}
	}
	return []int64{0, 1, int64(n) - 1, 13, 1009, 60013}
}

// try runs one case, in place too where there is that, and says whether the
// world can go on.
func (w *world) try(t *testing.T, op collectives.Op, name string, count int64, turn int) bool {
	t.Helper()
	p := collectives.Params{Ranks: w.n, Root: turn % w.n, Nodes: w.nodes, Pieces: 1 + turn%3, Channels: 1 + turn%2}
	s, err := collectives.New(op, name, p)
	if err != nil {
		if name == "hierarchical" || name == "rails" { // wants equal nodes
			return true
		}
		t.Errorf("%s %s: %v", op, name, err)
		return true
	}
	c := kinds()[turn%len(kinds())]
	c.Op, c.Root, c.Count, c.Schedule = op, p.Root, count, s
	for _, c.InPlace = range []bool{false, true} {
		if c.InPlace && !op.HasInPlace() {
			continue
		}
		if err := w.run(t, c, 2); err != nil {
			t.Errorf("%s %s n=%d count=%d %s %s root=%d pieces=%d in place %t: %v", op, name, w.n, count, c.Dtype, c.Redop, p.Root, p.Pieces, c.InPlace, err)
			return w.abort.Err() == nil
		}
	}
	return true
}

// run runs the case so many times, the ranks meeting only where the collective
// itself makes them, and checks every result.
func (w *world) run(t testing.TB, c collectives.Case, times int) error {
	t.Helper()
	global := everyone(w.n)
	return w.all(t, func(me int) error {
		r, err := w.rank(global, me)
		if err != nil {
			return err
		}
		return w.runOn(r, c, w.n, me, me, times)
	})
}

func everyone(n int) []int {
	g := make([]int, n)
	for i := range g {
		g[i] = i
	}
	return g
}

// RunOn runs a case so many times on one rank, whose peers do the same, and
// checks every byte of its results.
func RunOn(r *collectives.Rank, c collectives.Case, ranks, me, times int) error {
	return runOn(r, c, ranks, me, times, nil)
}

func (w *world) runOn(r *collectives.Rank, c collectives.Case, ranks, me, global, times int) error {
	if w.stores == nil {
		return runOn(r, c, ranks, me, times, nil)
	}
	return runOn(r, c, ranks, me, times, w.stores[global])
}

func runOn(r *collectives.Rank, c collectives.Case, ranks, me, times int, s Store) error {
	if s != nil {
		r.On(s)
	}
	if x, ok := s.(Recordings); ok {
		r.Replay(x.Recordings())
	}
	p, err := r.Compile(c)
	if err != nil {
		return err
	}
	in, out, work := p.Needs()
	m, err := newMemory(c, ranks, me, work, s)
	if err != nil {
		return err
	}
	if int(in) > len(m.in) || int(out) > len(m.out) {
		return fmt.Errorf("rank %d: the program needs %d and %d bytes, place.go gives %d and %d", me, in, out, len(m.in), len(m.out))
	}
	for range times {
		m.fill(c, ranks, me)
		if err := m.toDevice(); err != nil {
			return err
		}
		if err := r.Run(p, collectives.Buffers{In: m.where(m.in), Out: m.where(m.out), Work: m.where(m.work)}); err != nil {
			return err
		}
		if err := m.fromDevice(); err != nil {
			return err
		}
		if err := m.check(c, ranks, me); err != nil {
			return err
		}
	}
	if err := r.Barrier(); err != nil {
		return err
	}
	if err := r.Forget(); err != nil {
		return err
	}
	return m.free()
}

// groups runs two teams at once on the same hub and links, with barriers.
func (k Kit) groups(t *testing.T, perNode int) {
	w := k.world(t, 4, perNode)
	err := w.all(t, func(g int) error {
		r, err := w.rank([]int{g % 2, g%2 + 2}, g/2)
		if err != nil {
			return err
		}
		for i := range 20 {
			s, err := collectives.New(collectives.AllReduce, "ring", collectives.Params{Ranks: 2, Pieces: 2})
			if err != nil {
				return err
			}
			c := collectives.Case{Op: collectives.AllReduce, Count: int64(100 + 3000*i*(1+g%2)), Dtype: reduce.Int32, Schedule: s}
			if err := w.runOn(r, c, 2, g/2, g, 1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// aborted lets one rank die instead of taking part: all others must give up.
func (k Kit) aborted(t *testing.T, perNode int) {
	for _, name := range []string{"ring", "tree", "direct"} {
		w := k.world(t, 3, perNode)
		s, err := collectives.New(collectives.AllReduce, name, collectives.Params{Ranks: 3})
		if err != nil {
			t.Fatal(err)
		}
		c := collectives.Case{Op: collectives.AllReduce, Count: 1 << 20, Dtype: reduce.Float, Schedule: s}
		cause := errors.New("rank 2 is gone")
		var since [3]time.Duration
		err = w.all(t, func(me int) error {
			r, err := w.rank(everyone(3), me)
			if err != nil {
				return err
			}
			if me == 2 {
				time.Sleep(300 * time.Millisecond) // long enough for the waits to have become patient
				w.abort.Set(cause)
				return nil
			}
			start := time.Now()
			err = w.runOn(r, c, 3, me, me, 1)
			since[me] = time.Since(start)
			if err == nil {
				return fmt.Errorf("rank %d finished without rank 2", me)
			}
			return nil
		})
		if !errors.Is(err, cause) {
			t.Errorf("%s: %v", name, err)
		}
		for me, d := range since {
			if d > 5*time.Second {
				t.Errorf("%s: rank %d gave up only after %v", name, me, d)
			}
		}
	}
}

// large moves enough that neither side can hold it: both directions at once,
// in pieces and whole.
func (k Kit) large(t *testing.T, perNode int) {
	w := k.world(t, 2, perNode)
	count := int64(5<<20 + 7)
	if k.Stores != nil || testing.Short() {
		count = 300_007
	}
	for _, name := range []string{"ring", "direct", "halving", "doubling", "oneshot"} {
		for _, pieces := range []int{1, 16} {
			s, err := collectives.New(collectives.AllReduce, name, collectives.Params{Ranks: 2, Pieces: pieces})
			if err != nil {
				t.Fatal(err)
			}
			for _, inPlace := range []bool{false, true} {
				c := collectives.Case{Op: collectives.AllReduce, Count: count, Dtype: reduce.Float, Redop: reduce.Avg, Schedule: s, InPlace: inPlace}
				if err := w.run(t, c, 2); err != nil {
					t.Fatalf("%s in %d pieces, in place %t: %v", name, pieces, inPlace, err)
				}
			}
		}
	}
}
