//go:build linux && cgo

package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

// deaf is a seat that, switched on, does not wait for the marks that it should.
type deaf struct {
	*Seat
	on bool
}

func (d *deaf) After(other collectives.Device, step int32) error {
	if d.on {
		return nil
	}
	return d.Seat.After(other.(*deaf).Seat, step)
}
func (d *deaf) Record(lead collectives.Recorder) error { return d.Seat.Record(lead.(*deaf).Seat) }

// team is ranks on GPUs that run a small AllReduce, for tests that look closer
// than the suite.
type team struct {
	ranks []*collectives.Rank
	bufs  []collectives.Buffers
	progs []*collectives.Program
	seats []*deaf
	took  time.Duration // the last run
}

const teamCount = 5000

func newTeam(t *testing.T, n, most int, deafs ...int) *team {
	t.Helper()
	old := runtime.GOMAXPROCS(n + 2)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
	hub := collectives.NewHub(n, new(collectives.Abort))
	var global []int
	for i := range n {
		global = append(global, i)
	}
	sched, err := collectives.New(collectives.AllReduce, "ring", collectives.Params{Ranks: n})
	ok(t, err)
	m := &team{}
	for i, q := range seats(t, n, true) {
		m.seats = append(m.seats, &deaf{q.Seat, slices.Contains(deafs, i)})
		r, err := collectives.NewRank(collectives.Team{Global: global, Me: i}, hub, nil, hub.Abort)
		ok(t, err)
		r.On(m.seats[i])
		r.Replay(most)
		m.ranks = append(m.ranks, r)
	}
	c := collectives.Case{Op: collectives.AllReduce, Dtype: reduce.Float, Redop: reduce.Sum, Count: teamCount, Schedule: sched}
	m.progs, m.bufs = make([]*collectives.Program, n), make([]collectives.Buffers, n)
	ok(t, m.each(func(i int) (err error) {
		if m.progs[i], err = m.ranks[i].Compile(c); err != nil {
			return err
		}
		_, _, work := m.progs[i].Needs()
		in, err := m.seats[i].Alloc(4 * teamCount)
		if err != nil {
			return err
		}
		out, err := m.seats[i].Alloc(4 * teamCount)
		if err != nil {
			return err
		}
		w, err := m.seats[i].Alloc(max(work, 4))
		m.bufs[i] = collectives.Buffers{In: in.Span(0, in.Size()), Out: out.Span(0, out.Size()), Work: w.Span(0, work)}
		return err
	}))
	return m
}

func (m *team) each(do func(i int) error) error {
	errs := make([]error, len(m.ranks))
	var all sync.WaitGroup
	for i := range m.ranks {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// run fills, runs and compares, and tells how many driver calls the run took.
func (m *team) run(turn int) (calls int, err error) {
	n := len(m.ranks)
	ready := m.each(func(i int) error {
		return errors.Join(m.seats[i].Set(m.bufs[i].Out, 0xa5), m.seats[i].Fill(m.bufs[i].In, reduce.Input(reduce.Float, reduce.Sum, n, (i+turn)%n, 0, 4*teamCount)))
	})
	before, began := driverCalls(), time.Now()
	err = errors.Join(ready, m.each(func(i int) error { return m.ranks[i].Run(m.progs[i], m.bufs[i]) }))
	calls, m.took = driverCalls()-before, time.Since(began)
	want := reduce.Result(reduce.Float, reduce.Sum, n, 0, 4*teamCount)
	return calls, errors.Join(err, m.each(func(i int) error {
		wrong, first, err := m.seats[i].Check(m.bufs[i].Out, want, 4)
		if wrong > 0 {
			err = fmt.Errorf("rank %d: %d wrong elements, the first %d", i, wrong, first)
		}
		return err
	}))
}

// driverCalls is how many the stand-in has counted, live what is made and not
// freed: contexts held, streams, events, modules, memory, graphs.
func driverCalls() int { return counted(failed("", -1)) }
func live() int        { return counted(failed("", -2)) }

func counted(err error) int {
	var e *Error
	if errors.As(err, &e) {
		n, _ := strconv.Atoi(e.Name)
		return n
	}
	return 0
}

// A wait that is left out is found: the stand-in's streams and graphs do what is
// declared and nothing more.
func TestMissingWaitIsFound(t *testing.T) {
	for _, most := range []int{0, 1} {
		for _, deafs := range [][]int{{0, 1, 2}, {1}} {
			t.Run(fmt.Sprintf("%d recordings, ranks %v", most, deafs), func(t *testing.T) {
				if !onFake(t, "FAKECUDA_DEVICES=3", "FAKECUDA_LAZY=1") {
					return
				}
				m := newTeam(t, 3, most, deafs...)
				for turn := range 8 {
					if _, err := m.run(turn); err != nil {
						return
					}
				}
				t.Error("ranks that do not wait for others were right 8 times")
			})
		}
	}
}

// A recorded run takes two calls of the driver and two of its context, however
// many ranks and steps there are; new buffers are recorded anew; the results are
// those of this run's inputs.
func TestRecordedRunsTakeFewCalls(t *testing.T) {
	if !onFake(t, "FAKECUDA_DEVICES=4") {
		return
	}
	const n = 4
	queued, recorded := newTeam(t, n, 0), newTeam(t, n, 1)
	var calls [2]int
	for turn := range 3 {
		for i, m := range []*team{queued, recorded} {
			var err error
			if calls[i], err = m.run(turn); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("AllReduce of %d ranks by a ring: %d driver calls queued, %d recorded", n, calls[0], calls[1])
	if calls[1] != 4 || calls[0] < 2*n*2*(n-1) {
		t.Errorf("%d and %d driver calls", calls[0], calls[1])
	}
	if k, err := recorded.ranks[0].Replays(); k != 1 || err != nil {
		t.Errorf("%d recordings, %v", k, err)
	}
	swapped := recorded.bufs[2]
	recorded.bufs[2].In, recorded.bufs[2].Out = swapped.Out, swapped.In
	if many, err := recorded.run(0); err != nil || many < calls[0]/2 {
		t.Errorf("other buffers: %d calls, %v; want that they are not taken for those recorded", many, err)
	}
	recorded.bufs[2] = swapped
	if few, err := recorded.run(1); err != nil || few != calls[1] {
		t.Errorf("the first buffers again: %d calls, %v", few, err)
	}
	for _, r := range recorded.ranks {
		ok(t, r.Forget())
	}
}
