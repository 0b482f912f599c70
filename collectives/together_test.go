package collectives

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"busbw/collectives/reduce"
)

// resultsOf runs a case a few times on ranks of one process, which take their steps
// together where lanes is above 0, and returns what each rank has at last.
func resultsOf(t *testing.T, c Case, n, lanes int) ([][]byte, error) {
	t.Helper()
	abort := new(Abort)
	hub := NewHub(n, abort)
	hub.crowded = lanes > 0
	out := make([][]byte, n)
	var wg sync.WaitGroup
	for me := range n {
		wg.Go(func() {
			abort.Set(func() error {
				r, err := NewRank(Team{Global: ranksTo(n), Me: me}, hub, nil, abort)
				if err != nil {
					return err
				}
				if lanes > 0 {
					r.cpu = uint64(2 + me%lanes)
					r.meet.cpus[me].Store(r.cpu)
				}
				p, err := r.Compile(c)
				if err != nil {
					return err
				}
				in, dst, work := p.Needs()
				b := Buffers{In: make([]byte, in), Out: make([]byte, dst), Work: make([]byte, work)}
				random := rand.New(rand.NewPCG(uint64(me), 1))
				for i := range b.In {
					b.In[i] = byte(random.Uint32())
				}
				for i := range 3 {
					if i == 1 { // with a barrier between, and without
						if err := r.BarrierFrom(c.Root); err != nil {
							return err
						}
					}
					if err := r.Run(p, b); err != nil {
						return err
					}
				}
				out[me] = b.Out
				return nil
			}())
		})
	}
	wg.Wait()
	return out, abort.Err()
}

// TestTogether: whoever does a rank's steps, the results are the same.
func TestTogether(t *testing.T) {
	ranks := []int{3, 4}
	if testing.Short() {
		ranks = []int{4}
	}
	turn := 0
	for _, n := range ranks {
		each(func(op Op, name string) {
			for _, count := range []int64{1, 300, 70000} {
				turn++
				p := Params{Ranks: n, Root: turn % n, Pieces: 1 + turn%4}
				if name == "hierarchical" || name == "rails" {
					p.Nodes = evenNodes(n, 1)
				}
				if !op.Rooted() {
					p.Root = 0
				}
				if op.Blocked() {
					count *= int64(n)
				}
				c := Case{Op: op, Dtype: reduce.Int32, Redop: reduce.Sum, Root: p.Root, Count: count, Schedule: mustNew(t, op, name, p)}
				want, err := resultsOf(t, c, n, 0)
				if err != nil {
					t.Fatalf("%s %s n=%d: %v", op, name, n, err)
				}
				got, err := resultsOf(t, c, n, 1+turn%3)
				if err != nil {
					t.Fatalf("%s %s n=%d together: %v", op, name, n, err)
				}
				for me := range n {
					if !bytes.Equal(want[me], got[me]) {
						t.Fatalf("%s %s n=%d count=%d pieces=%d: rank %d has another result together", op, name, n, count, p.Pieces, me)
					}
				}
			}
		})
	}
}

// TestTogetherAborted: ranks that take each other's steps give up when one does
// not come, and name it.
func TestTogetherAborted(t *testing.T) {
	const n = 4
	abort := new(Abort)
	hub := NewHub(n, abort)
	hub.crowded = true
	cause := errors.New("one is missing")
	ready := make(chan *Rank, n)
	var wg sync.WaitGroup
	errs := make([]error, n)
	for me := range n - 1 {
		wg.Go(func() {
			r, err := NewRank(Team{Global: ranksTo(n), Me: me}, hub, nil, abort)
			if err != nil {
				t.Error(err)
				return
			}
			p := compiled(t, r, Case{Op: AllReduce, Dtype: reduce.Float, Count: 40000}, "ring", Params{})
			in, out, work := p.Needs()
			ready <- r
			errs[me] = r.Run(p, Buffers{In: make([]byte, in), Out: make([]byte, out), Work: make([]byte, work)})
		})
	}
	var waiting []*Rank
	for range n - 1 {
		waiting = append(waiting, <-ready)
	}
	for deadline := time.Now().Add(20 * time.Second); !slices.ContainsFunc(waiting, func(r *Rank) bool { return r.Progress().Waiting == n-1 }); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("nobody says that it waits for the missing rank")
			break
		}
	}
	abort.Set(cause)
	wg.Wait()
	for me, err := range errs[:n-1] {
		if !errors.Is(err, ErrAborted) {
			t.Errorf("rank %d: %v", me, fmt.Sprint(err))
		}
	}
}
