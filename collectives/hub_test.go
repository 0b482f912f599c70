package collectives

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"busbw/collectives/reduce"
)

// crew runs f on n ranks of one process, each on a goroutine of its own.
func crew(t testing.TB, n int, f func(r *Rank) error) *Abort {
	t.Helper()
	abort := new(Abort)
	hub := NewHub(n, abort)
	var wg sync.WaitGroup
	for me := range n {
		wg.Go(func() {
			r, err := NewRank(Team{Global: ranksTo(n), Me: me}, hub, nil, abort)
			if err == nil {
				err = f(r)
			}
			abort.Set(err)
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		abort.Set(errors.New("stuck for a minute"))
		<-done
	}
	return abort
}

func ranksTo(n int) []int {
	g := make([]int, n)
	for i := range g {
		g[i] = i
	}
	return g
}

func compiled(t testing.TB, r *Rank, c Case, algo string, p Params) *Program {
	t.Helper()
	p.Ranks = len(r.team.Global)
	var err error
	if c.Schedule, err = New(c.Op, algo, p); err != nil {
		t.Fatal(err)
	}
	prog, err := r.Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// TestCellLayout: what different ranks write lies on different pairs of lines,
// also from one cell of an array to the next.
func TestCellLayout(t *testing.T) {
	var c cell
	if unsafe.Sizeof(letter{}) != 64 {
		t.Errorf("a letter has %d bytes", unsafe.Sizeof(letter{}))
	}
	if s := unsafe.Sizeof(c); s%128 != 0 {
		t.Errorf("a cell has %d bytes", s)
	}
	word, claim, seat, mail := unsafe.Offsetof(c.word)/128, unsafe.Offsetof(c.claim)/128, unsafe.Offsetof(c.seat)/128, unsafe.Offsetof(c.mail)/128
	if word == 0 || claim <= word || seat <= claim || mail <= seat || unsafe.Offsetof(c.mailed)/128 < mail {
		t.Errorf("word, claim, seat and mail are on line pairs %d, %d, %d and %d", word, claim, seat, mail)
	}
	if unsafe.Offsetof(c.mail)%64 != 0 {
		t.Errorf("letters start at byte %d of a line", unsafe.Offsetof(c.mail)%64)
	}
}

// TestBarrier: nobody leaves before all have come, also with many more ranks than
// processors.
func TestBarrier(t *testing.T) {
	for _, n := range []int{1, 2, flagsMost + 1, 64} {
		var come atomic.Int64
		abort := crew(t, n, func(r *Rank) error {
			for i := range 30 {
				come.Add(1)
				if err := r.Barrier(); err != nil {
					return err
				}
				if c := come.Load(); c < int64((i+1)*n) {
					return fmt.Errorf("rank %d left barrier %d when %d of %d had come", r.team.Me, i, c, (i+1)*n)
				}
				if err := r.Barrier(); err != nil {
					return err
				}
			}
			return nil
		})
		if err := abort.Err(); err != nil {
			t.Errorf("n=%d: %v", n, err)
		}
	}
}

// TestTeamAgain: a team that is made again goes on where it stopped.
func TestTeamAgain(t *testing.T) {
	abort := new(Abort)
	hub := NewHub(6, abort)
	var wg sync.WaitGroup
	for me := range 6 {
		wg.Go(func() {
			for range 20 {
				for _, team := range []Team{{Global: ranksTo(6), Me: me}, {Global: []int{me % 2, me%2 + 2, me%2 + 4}, Me: me / 2}} {
					r, err := NewRank(team, hub, nil, abort)
					if err != nil {
						t.Error(err)
						return
					}
					p := compiled(t, r, Case{Op: AllReduce, Dtype: reduce.Int64, Count: 1}, "oneshot", Params{})
					out := make([]byte, 8)
					in := []byte{byte(1 + me), 0, 0, 0, 0, 0, 0, 0}
					if err := r.Run(p, Buffers{In: in, Out: out}); err != nil {
						t.Error(err)
						return
					}
					want := 21
					if len(team.Global) == 3 {
						want = 9 + 3*(me%2)
					}
					if int(out[0]) != want {
						t.Errorf("rank %d of %d: sum %d, want %d", me, len(team.Global), out[0], want)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestLettersInTurn: a root that never waits may not overwrite a letter that a
// slow reader has still to read.
func TestLettersInTurn(t *testing.T) {
	const n, runs = 3, 2000
	abort := crew(t, n, func(r *Rank) error {
		p := compiled(t, r, Case{Op: Broadcast, Dtype: reduce.Uint8, Count: 24}, "direct", Params{})
		if !p.quiet {
			return errors.New("24 bytes do not travel as a letter")
		}
		in, out := make([]byte, 24), make([]byte, 24)
		for i := range runs {
			for k := range in {
				in[k] = byte(i + k)
			}
			if err := r.Run(p, Buffers{In: in, Out: out}); err != nil {
				return err
			}
			for k := range out {
				if out[k] != byte(i+k) {
					return fmt.Errorf("rank %d run %d: byte %d is of run %d", r.team.Me, i, k, int(out[k])-k)
				}
			}
			if r.team.Me == 2 && i%50 == 0 {
				time.Sleep(100 * time.Microsecond)
			}
		}
		return nil
	})
	if err := abort.Err(); err != nil {
		t.Error(err)
	}
}

// TestManyRanks: far more ranks than processors, without threads of their own.
func TestManyRanks(t *testing.T) {
	const n = 64
	for _, algo := range []string{"ring", "direct", "tree", "oneshot"} {
		abort := crew(t, n, func(r *Rank) error {
			c := Case{Op: AllReduce, Dtype: reduce.Float, Count: 4000}
			p := compiled(t, r, c, algo, Params{})
			in, out := make([]byte, 16000), make([]byte, 16000)
			reduce.Fill(in, c.Dtype, c.Redop, n, r.team.Me, 0)
			if err := r.Run(p, Buffers{In: in, Out: out}); err != nil {
				return err
			}
			if wrong, at := reduce.Check(out, c.Dtype, c.Redop, n, 0); wrong > 0 {
				return fmt.Errorf("rank %d: %d elements wrong, first %d", r.team.Me, wrong, at)
			}
			return nil
		})
		if err := abort.Err(); err != nil {
			t.Errorf("%s: %v", algo, err)
		}
	}
}

// TestProgressNamesTheCulprit: whoever watches a stuck rank learns whom it waits
// for; the rank gives up when told, and says so as a consequence.
func TestProgressNamesTheCulprit(t *testing.T) {
	cause := errors.New("the node of rank 1 is gone")
	abort := crew(t, 2, func(r *Rank) error {
		if r.team.Me == 1 {
			return nil
		}
		p := compiled(t, r, Case{Op: AllReduce, Dtype: reduce.Float, Count: 1 << 16}, "ring", Params{})
		in, out := make([]byte, 1<<18), make([]byte, 1<<18)
		go func() {
			deadline := time.Now().Add(20 * time.Second)
			for r.Progress().Waiting != 1 && time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
			}
			if p := r.Progress(); p.Waiting != 1 || p.Runs != 1 || p.Step < 0 {
				t.Errorf("progress: %+v", p)
			}
			r.abort.Set(cause)
		}()
		err := r.Run(p, Buffers{In: in, Out: out})
		if !errors.Is(err, ErrAborted) || !strings.Contains(err.Error(), "rank 0: all_reduce: step") || !strings.Contains(err.Error(), "wait for rank 1") {
			t.Errorf("error: %v", err)
		}
		return nil
	})
	if !errors.Is(abort.Err(), cause) {
		t.Errorf("cause: %v", abort.Err())
	}
}

// TestRunAllocatesNothing: letters, fused passes, shared blocks and barriers.
func TestRunAllocatesNothing(t *testing.T) {
	const n, runs = 2, 200
	var before, after runtime.MemStats
	abort := crew(t, n, func(r *Rank) error {
		for _, count := range []int64{2, 1 << 10, 1 << 18} {
			p := compiled(t, r, Case{Op: AllReduce, Dtype: reduce.Float, Redop: reduce.Avg, Count: count}, "ring", Params{Pieces: 2})
			b := Buffers{In: make([]byte, 4*count), Out: make([]byte, 4*count)}
			for i := range runs {
				if err := r.Barrier(); err != nil {
					return err
				}
				if r.team.Me == 0 && i == 10 {
					runtime.ReadMemStats(&before)
				}
				if err := r.Run(p, b); err != nil {
					return err
				}
			}
			if err := r.Barrier(); err != nil {
				return err
			}
			if r.team.Me == 0 {
				runtime.ReadMemStats(&after)
				// The runtime itself allocates now and then; a step that did would show runs times.
				if d := after.Mallocs - before.Mallocs; d > 20 {
					t.Errorf("%d elements: %d allocations in %d runs", count, d, runs-10)
				}
			}
			if err := r.Barrier(); err != nil { // compiling allocates
				return err
			}
		}
		return nil
	})
	if err := abort.Err(); err != nil {
		t.Error(err)
	}
}
