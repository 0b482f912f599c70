//go:build linux && cgo

package nccl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"busbw/collectives"
	"busbw/collectives/reduce"
	"busbw/worker/gpu"
)

// TestHardware holds this machine's NCCL, on a rank for each of its GPUs, to what
// the stand-in is held to (make test-gpu).
func TestHardware(t *testing.T) {
	if os.Getenv("BUSBW_GPU") == "" {
		t.Skip("make test-gpu runs it")
	}
	n, err := hardware(t, os.Stdout)
	switch {
	case errors.Is(err, gpu.ErrAbsent) || errors.Is(err, gpu.ErrNoDevice) || errors.Is(err, ErrAbsent):
		fmt.Printf("no NCCL to test: %v\n", err)
	case err != nil:
		t.Error(err)
	}
	fmt.Printf("%d run\n", n)
}

// The suite itself runs on the stand-ins.
func TestHardwareSuite(t *testing.T) {
	for _, cc := range []string{"FAKECUDA_CC=90", "FAKECUDA_CC=80"} { // the second has no reductions of 8-bit floats
		t.Run(cc, func(t *testing.T) {
			if !onFake(t, "FAKECUDA_DEVICES=3", cc) {
				return
			}
			var out bytes.Buffer
			if n, err := hardware(t, &out); err != nil || n != len(collectives.Ops()) || bytes.Count(out.Bytes(), []byte("\n")) != n+2 {
				t.Errorf("%d run, %v:\n%s", n, err, out.String())
			}
		})
	}
}

// hardware prints a table, and tells how many rows it has.
func hardware(t *testing.T, out io.Writer) (rows int, err error) {
	d, err := gpu.Open()
	if err != nil {
		return 0, err
	}
	all, err := d.Devices()
	if err != nil {
		return 0, err
	}
	l, err := Open()
	if err != nil {
		return 0, err
	}
	ranks := len(all)
	fmt.Fprintf(out, "| NCCL %s, %d ranks on %d × %s | result |\n|---|---|\n", l, ranks, len(all), all[0].Name)
	for _, op := range collectives.Ops() {
		cases := 0
		world(t, ranks, func(k *Comm, seat *gpu.Seat) error {
			for _, dtype := range reduce.Dtypes() {
				for _, redop := range reduce.Ops() {
					if !op.Reduces() && redop != reduce.Sum || Offers(l.Version, all[0].Compute(), ranks, op, dtype, redop) != nil {
						continue
					}
					count := int64(ranks) * 5000
					n := count * int64(dtype.Size()) // more than some operations use
					in, err := seat.Alloc(n)
					if err != nil {
						return err
					}
					res, err := seat.Alloc(n)
					if err != nil {
						return err
					}
					c := Call{Op: op, Dtype: dtype, Redop: redop, Root: ranks - 1, Count: count, In: in.Span(0, n), Out: res.Span(0, n)}
					switch op {
					case collectives.AllGather, collectives.Gather:
						c.In = in.Span(0, n/int64(ranks))
					case collectives.ReduceScatter, collectives.Scatter:
						c.Out = res.Span(0, n/int64(ranks))
					}
					if err := once(k, seat, c); err != nil {
						return fmt.Errorf("%s %s %s, rank %d: %w", op, dtype, redop, k.rank, err)
					}
					if err := errors.Join(seat.Free(in), seat.Free(res)); err != nil {
						return err
					}
					if k.rank == 0 {
						cases++
					}
				}
			}
			return nil
		})
		rows++
		fmt.Fprintf(out, "| %s | %d element types and reductions, 0 wrong |\n", op, cases)
	}
	return rows, nil
}
