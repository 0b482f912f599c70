//go:build linux && cgo

package nccl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/collectives/reduce"
	"busbw/worker/gpu"
	"busbw/worker/gpu/gputest"
	"busbw/worker/nccl/nccltest"
)

// onFake runs the calling test in a process that finds both fakes.
func onFake(t *testing.T, env ...string) bool {
	return gputest.OnFake(t, "../gpu", append(env, gputest.Libraries+nccltest.Library(t, "."))...)
}

// world runs each rank's part on a thread with a seat on a GPU.
func world(t *testing.T, n int, do func(k *Comm, seat *gpu.Seat) error) {
	t.Helper()
	d, err := gpu.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(); err != nil {
		t.Fatal(err)
	}
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() { errs[rank] = play(d, n, id, rank, do) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func play(d *gpu.Driver, n int, id ID, rank int, do func(k *Comm, seat *gpu.Seat) error) error {
	runtime.LockOSThread() // the GPU's context is current on it; it ends with the goroutine
	all, err := d.Devices()
	if err != nil {
		return err
	}
	g, err := d.Device(rank % len(all))
	if err != nil {
		return err
	}
	seat, err := g.Seat()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	k, err := Join(ctx, n, id, rank, nil)
	if err != nil {
		return err
	}
	if err := do(k, seat); err != nil { // the others must not wait
		return errors.Join(err, k.Abort())
	}
	return k.Close()
}

// Every operation, type and reduction gives exactly what the native engine's
// checks want, in and out of place.
func TestOperations(t *testing.T) {
	if !onFake(t, "FAKECUDA_DEVICES=3") {
		return
	}
	const n, count = 3, 3 * 1024 * 5
	type result struct{ in, out int } // in units of a block
	sizes := map[collectives.Op]result{
		collectives.AllReduce: {3, 3}, collectives.Broadcast: {3, 3}, collectives.Reduce: {3, 3}, collectives.AllGather: {1, 3}, collectives.ReduceScatter: {3, 1},
		collectives.AllToAll: {3, 3}, collectives.Gather: {1, 3}, collectives.Scatter: {3, 1}, collectives.SendRecv: {3, 3},
	}
	for _, op := range collectives.Ops() {
		world(t, n, func(k *Comm, seat *gpu.Seat) error {
			for _, dtype := range reduce.Dtypes() {
				for _, redop := range reduce.Ops() {
					if !op.Reduces() && redop != reduce.Sum {
						continue
					}
					block := int64(count / n * dtype.Size())
					in, err := seat.Alloc(int64(sizes[op].in) * block)
					if err != nil {
						return err
					}
					out, err := seat.Alloc(int64(sizes[op].out) * block)
					if err != nil {
						return err
					}
					c := Call{Op: op, Dtype: dtype, Redop: redop, Root: 1, Count: count, In: in.Span(0, in.Size()), Out: out.Span(0, out.Size())}
					if err := once(k, seat, c); err != nil {
						return fmt.Errorf("%s %s %s, rank %d: %w", op, dtype, redop, k.rank, err)
					}
					if err := errors.Join(seat.Free(in), seat.Free(out)); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

func once(k *Comm, seat *gpu.Seat, c Call) error {
	input := reduce.Source(c.Dtype, k.rank, 0, len(c.In))
	if c.Op.Reduces() {
		input = reduce.Input(c.Dtype, c.Redop, k.n, k.rank, 0, len(c.In))
	}
	if err := errors.Join(seat.Set(c.Out, 0xa5), seat.Fill(c.In, input), k.Queue(context.Background(), c, seat.Stream()), seat.Drain()); err != nil {
		return err
	}
	block := c.Count / int64(k.n)
	bytes := block * int64(c.Dtype.Size())
	check := func(out []byte, want []byte) error {
		wrong, first, err := seat.Check(out, want, c.Dtype.Size())
		if err == nil && wrong > 0 {
			err = fmt.Errorf("%d wrong elements, first %d", wrong, first)
		}
		return err
	}
	source := func(out []byte, rank int, from int64) error {
		return check(out, reduce.Source(c.Dtype, rank, from, len(out)))
	}
	switch c.Op {
	case collectives.AllReduce:
		return check(c.Out, reduce.Result(c.Dtype, c.Redop, k.n, 0, len(c.Out)))
	case collectives.Reduce:
		if k.rank != c.Root {
			return nil
		}
		return check(c.Out, reduce.Result(c.Dtype, c.Redop, k.n, 0, len(c.Out)))
	case collectives.ReduceScatter:
		return check(c.Out, reduce.Result(c.Dtype, c.Redop, k.n, int64(k.rank)*block, len(c.Out)))
	case collectives.Broadcast:
		return source(c.Out, c.Root, 0)
	case collectives.Scatter:
		return source(c.Out, c.Root, int64(k.rank)*block)
	case collectives.SendRecv:
		return source(c.Out, (k.rank+k.n-1)%k.n, 0)
	}
	if c.Op == collectives.Gather && k.rank != c.Root {
		return nil
	}
	for i := range k.n {
		from := int64(0)
		if c.Op == collectives.AllToAll {
			from = int64(k.rank) * block
		}
		if err := source(c.Out[int64(i)*bytes:int64(i+1)*bytes], i, from); err != nil {
			return err
		}
	}
	return nil
}

// A wrong bit is found.
func TestWrong(t *testing.T) {
	if !onFake(t, "FAKENCCL_WRONG=all_reduce") {
		return
	}
	world(t, 2, func(k *Comm, seat *gpu.Seat) error {
		m, err := seat.Alloc(2048)
		if err != nil {
			return err
		}
		err = once(k, seat, Call{Op: collectives.AllReduce, Dtype: reduce.Float, Redop: reduce.Sum, Count: 256, In: m.Span(0, 1024), Out: m.Span(1024, 1024)})
		if err == nil || !strings.Contains(err.Error(), "1 wrong elements, first 0") {
			return fmt.Errorf("a wrong bit gave %v", err)
		}
		return nil
	})
}

// A rank that never comes ends the wait, and the others with a word.
func TestMissingRank(t *testing.T) {
	if !onFake(t, "FAKENCCL_HANG=1") {
		return
	}
	d, err := gpu.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(); err != nil {
		t.Fatal(err)
	}
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	g, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Seat(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Join(ctx, 2, id, 0, nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not all 2 ranks arrived") {
		t.Error(err)
	}
	id[127] ^= 1
	var e *Error
	if _, err := Join(t.Context(), 2, id, 0, nil); !errors.As(err, &e) || e.Code != 4 || !strings.Contains(err.Error(), "unique id damaged") {
		t.Error(err)
	}
}

// Two ranks on one GPU are refused, and the library's own words tell which.
func TestTwoRanksOnOneGPU(t *testing.T) {
	if !onFake(t, "FAKECUDA_DEVICES=1") {
		return
	}
	d, err := gpu.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(); err != nil {
		t.Fatal(err)
	}
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	var errs [2]error
	var all sync.WaitGroup
	for rank := range errs {
		all.Go(func() {
			errs[rank] = play(d, len(errs), id, rank, func(*Comm, *gpu.Seat) error { return errors.New("it joined") })
		})
	}
	all.Wait()
	for rank, err := range errs {
		var e *Error
		if !errors.As(err, &e) || e.Code != 5 || !strings.Contains(err.Error(), "Duplicate GPU detected") || !strings.Contains(err.Error(), "one GPU in two ranks") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// A thread without a GPU's context cannot join.
func TestNoContext(t *testing.T) {
	if !onFake(t) {
		return
	}
	if _, err := gpu.Open(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(); err != nil {
		t.Fatal(err)
	}
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := Join(t.Context(), 1, id, 0, nil); !errors.As(err, &e) || e.Code != 1 {
		t.Error(err)
	}
}

// Without the library the error says so and what to do.
func TestAbsent(t *testing.T) {
	if !gputest.OnFake(t, "../gpu") {
		return
	}
	switch _, err := Open(); {
	case err == nil:
		t.Skip("this machine has a real NCCL")
	case !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "LD_LIBRARY_PATH"):
		t.Error(err)
	}
}

func TestVersions(t *testing.T) {
	for v, want := range map[int]string{2708: "2.7.8", 20805: "2.8.5", 22304: "2.23.4"} {
		if got := VersionText(v); got != want {
			t.Errorf("%d: %s, want %s", v, got, want)
		}
	}
	if err := Offers(22304, 90, 8, collectives.AllReduce, reduce.F8E4M3, reduce.Sum); err == nil || !strings.Contains(err.Error(), "2.24.0") {
		t.Error(err)
	}
	if err := Offers(20900, 90, 8, collectives.AllReduce, reduce.Float, reduce.Avg); err == nil {
		t.Error("avg before 2.10")
	}
	if err := Offers(22400, 100, 8, collectives.Reduce, reduce.F8E5M2, reduce.Avg); err != nil {
		t.Error(err)
	}
	if err := Offers(22400, 80, 8, collectives.AllReduce, reduce.F8E5M2, reduce.Sum); err == nil || !strings.Contains(err.Error(), "9.0 and later, not 8.0") {
		t.Error(err)
	}
	for _, n := range []int{512, 1000} { // of which 1/n is 2⁻⁹, the least that f8e4m3 has
		if err := Offers(22400, 90, n, collectives.AllReduce, reduce.F8E4M3, reduce.Avg); err != nil {
			t.Error(n, err)
		}
	}
	if err := Offers(22400, 90, 1024, collectives.AllReduce, reduce.F8E4M3, reduce.Avg); err == nil || !strings.Contains(err.Error(), "by 1/1024") {
		t.Error(err)
	}
	for _, op := range []reduce.Op{reduce.Sum, reduce.Max} {
		if err := Offers(22400, 90, 1024, collectives.AllReduce, reduce.F8E4M3, op); err != nil {
			t.Error(op, err)
		}
	}
	if err := Offers(22400, 90, 1<<16, collectives.Reduce, reduce.F8E5M2, reduce.Avg); err != nil {
		t.Error(err)
	}
	if err := Offers(22400, 90, 1<<17, collectives.Reduce, reduce.F8E5M2, reduce.Avg); err == nil {
		t.Error("1/2¹⁷ is no f8e5m2")
	}
	for _, op := range []collectives.Op{collectives.AllGather, collectives.Broadcast, collectives.AllToAll} {
		if err := Offers(22400, 80, 8, op, reduce.F8E5M2, reduce.Avg); err != nil {
			t.Error(op, err)
		}
	}
}
