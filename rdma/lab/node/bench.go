package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"busbw/collectives/reduce"
	"busbw/rdma"
)

// bar is one comparison with perftest; least bounds ours over theirs.
type bar struct {
	test    rdma.Test
	program string
	column  int // of perftest's line of numbers
	least   float64
}

// bars are the comparisons. perftest prints MiB/s (column 3 is the average), of
// latency µs (column 4 is the median). A count is what takes about half a second.
func bars() []bar {
	bw := func(v rdma.Verb, p string, size, count int) bar {
		return bar{rdma.Test{Verb: v, Size: size, Count: count}, p, 3, 1.0}
	}
	lat := func(v rdma.Verb, p string) bar {
		return bar{rdma.Test{Verb: v, Latency: true, Size: 8, Count: 1000}, p, 4, 1 / 1.1}
	}
	return []bar{
		bw(rdma.Write, "ib_write_bw", 64, 4000), bw(rdma.Write, "ib_write_bw", 64<<10, 400), bw(rdma.Write, "ib_write_bw", 1<<20, 30),
		bw(rdma.Read, "ib_read_bw", 64<<10, 400), bw(rdma.Read, "ib_read_bw", 1<<20, 30),
		bw(rdma.SendRecv, "ib_send_bw", 64<<10, 400), bw(rdma.SendRecv, "ib_send_bw", 1<<20, 30),
		lat(rdma.Write, "ib_write_lat"), lat(rdma.Read, "ib_read_lat"), lat(rdma.SendRecv, "ib_send_lat"),
	}
}

// bench runs every comparison in interleaved rounds and prints medians, spread
// and ratio; process 2 serves.
func bench(o *options, m *meeting) error {
	if o.nodes != 2 || o.ranks != 1 {
		return errors.New("a bench is between two processes of one rank")
	}
	r, s, err := rail(o)
	if err != nil {
		return err
	}
	d, err := rdma.Open(r, s)
	if err != nil {
		return err
	}
	p, err := rdma.NewPair(d, rdma.PairConfig{Rank: o.id - 1, Peer: 2 - o.id, MaxSize: 1 << 20})
	if err != nil {
		return err
	}
	all, err := m.all(p.Hello())
	if err != nil {
		return err
	}
	if err := p.Connect(all[2-o.id]); err != nil {
		return err
	}
	if _, err := m.all(nil); err != nil {
		return err
	}
	for _, b := range bars() {
		if !strings.Contains(b.test.Kind(), o.only) {
			continue
		}
		if err := b.rounds(o, m, p, d, r); err != nil {
			return fmt.Errorf("%s of %d bytes: %w", b.test.Kind(), b.test.Size, err)
		}
	}
	if o.only != "" && o.only != "ring" {
		return nil
	}
	if err := ring(o, m, p); err != nil {
		return err
	}
	return errors.Join(p.Close(), d.Close())
}

// rounds compares one test. Who comes first changes from round to round, so that
// what a busy host does to the second one is done to both.
func (b bar) rounds(o *options, m *meeting, p *rdma.Pair, d *rdma.Device, r rdma.Rail) error {
	var ours, theirs, ratios []float64
	for i := range o.rounds {
		var x, y float64
		for turn := range 2 {
			var err error
			if turn == i%2 {
				x, err = b.ours(o, m, p)
			} else {
				y, err = b.theirs(o, m, d, r)
			}
			if err != nil {
				return err
			}
		}
		if y > 0 {
			ratio := x / y
			if b.test.Latency {
				ratio = y / x
			}
			ours, theirs, ratios = append(ours, x), append(theirs, y), append(ratios, ratio)
		}
	}
	if len(theirs) == 0 {
		return fmt.Errorf("%s failed in all %d rounds", b.program, o.rounds)
	}
	if o.id == 2 {
		return nil
	}
	unit := "MB/s"
	if b.test.Latency {
		unit = "us"
	}
	fmt.Printf("BENCH %-9s %8d B  ours %s %s  perftest %s  median ratio of a round %.2f (%.2f to %.2f), wanted %.2f\n", b.test.Kind(), b.test.Size,
		spread(ours), unit, spread(theirs), median(ratios), slices.Min(ratios), slices.Max(ratios), b.least)
	return nil
}

// spread is a median with the least and the most.
func spread(xs []float64) string {
	return fmt.Sprintf("%6.1f (%.1f to %.1f)", median(xs), slices.Min(xs), slices.Max(xs))
}

// ours is a round of our own: MB/s, or the median in µs.
func (b bar) ours(o *options, m *meeting, p *rdma.Pair) (v float64, err error) {
	if o.id == 2 {
		err = p.Serve()
	} else {
		var times []float64
		if times, err = p.Run(b.test); err == nil {
			v = float64(b.test.Size) / times[0] / 1e6
			if b.test.Latency {
				v = median(times) * 1e6
			}
			err = p.End()
		}
	}
	if err == nil {
		_, err = m.all(nil)
	}
	return v, err
}

// theirs is a round of perftest, with the same size, count and depth; 0: it failed.
func (b bar) theirs(o *options, m *meeting, d *rdma.Device, r rdma.Rail) (float64, error) {
	host, _, err := net.SplitHostPort(o.hub)
	if err != nil {
		return 0, err
	}
	args := []string{"-d", r.HCA.Name, "-i", strconv.Itoa(r.Port.Num), "-x", strconv.Itoa(d.GID.Index), "-s", strconv.Itoa(b.test.Size), "-n", strconv.Itoa(b.test.Count), "-F"}
	if !b.test.Latency {
		args = append(args, "-t", "128")
	}
	if o.id == 2 {
		args = append(args, host)
	}
	out, err := exec.Command(b.program, args...).CombinedOutput()
	for try := 1; o.id == 2 && err != nil && try < 20 && strings.Contains(string(out), "Couldn't connect"); try++ {
		time.Sleep(200 * time.Millisecond) // the server has no way to say that it listens
		out, err = exec.Command(b.program, args...).CombinedOutput()
	}
	if err != nil { // it fails now and then in emulation; the round does without it
		fmt.Printf("%s %s: %v\n%s", b.program, strings.Join(args, " "), err, out)
		out = nil
	}
	all, err := m.all(out)
	if err != nil || len(all[0]) == 0 || len(all[1]) == 0 {
		return 0, err
	}
	// The client, process 2, is the one that measures.
	for line := range strings.Lines(string(all[1])) {
		f := strings.Fields(line)
		if len(f) > b.column && f[0] == strconv.Itoa(b.test.Size) {
			v, err := strconv.ParseFloat(f[b.column], 64)
			if err == nil && !b.test.Latency {
				v *= float64(1<<20) / 1e6
			}
			return v, err
		}
	}
	return 0, fmt.Errorf("%s printed no line of numbers:\n%s", b.program, all[1])
}

// ring compares the ring all-reduce of 1 MiB on two ranks with the bandwidth of
// each direction of the link, both at once, at 512 KiB a message: what such a
// ring does on the wire. They take turns. Beside them is what the reductions of
// a rank take by themselves, which in emulation is much.
func ring(o *options, m *meeting, p *rdma.Pair) error {
	w, err := newWorld(o, m)
	if err != nil {
		return err
	}
	link := bar{test: rdma.Test{Verb: rdma.Write, Bidirectional: true, Size: 512 << 10, Count: 40}}
	pieces := []int{1, 2, 4}
	var both, reducing []float64
	half := make([]float32, (512<<10)/4)
	sum := reduce.For(reduce.Float, reduce.Sum)
	moved, share := make([][]float64, len(pieces)), make([][]float64, len(pieces))
	var reduces []*allReduce
	for _, n := range pieces {
		a, err := newAllReduce(w, 1<<20, n)
		if err != nil {
			return err
		}
		reduces = append(reduces, a)
	}
	for range o.rounds {
		v, err := link.ours(o, m, p)
		if err != nil {
			return err
		}
		both = append(both, v)
		start := time.Now()
		for range 10 {
			at := unsafe.Pointer(&half[0])
			sum.Two(at, at, at, len(half))
		}
		reducing = append(reducing, time.Since(start).Seconds()*1e3/10)
		for i, a := range reduces {
			took, err := a.run(10)
			if err != nil {
				return err
			}
			busbw := float64(1<<20) / median(took).Seconds() / 1e6 // of two ranks it is S/t
			moved[i], share[i] = append(moved[i], busbw), append(share[i], busbw/v)
		}
	}
	for i, n := range pieces {
		if o.id == 1 {
			fmt.Printf("BENCH ring all_reduce 1 MiB, %d pieces: %s MB/s, link both ways %s: median ratio of a round %.2f (%.2f to %.2f), wanted 0.80; reducing 512 KiB takes %s ms\n", n,
				spread(moved[i]), spread(both), median(share[i]), slices.Min(share[i]), slices.Max(share[i]), spread(reducing))
		}
	}
	if err := w.close(); err != nil {
		return err
	}
	_, err = m.all(nil)
	return err
}

func median[T cmp.Ordered](xs []T) T {
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/2]
}
