package collectives

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"busbw/collectives/reduce"
)

// contest is one measurement of ranks of one process, made as the peers' drivers
// make theirs: barrier, t0, operation, t1, each iteration, on the same buffers.
type contest struct {
	op      Op
	algo    string
	n       int
	bytes   int64
	seconds float64
}

// run returns each iteration's time, that of its slowest rank, sorted.
func (c contest) run() ([]time.Duration, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.n + 2))
	p := Params{Ranks: c.n}
	algo := c.algo
	if algo == "auto" {
		algo = Auto(c.op, p, c.bytes, true)
	}
	p.Pieces = Pieces(c.op, algo, p, c.bytes, 512<<10)
	s, err := New(c.op, algo, p)
	if err != nil {
		return nil, err
	}
	abort := new(Abort)
	hub := NewHub(c.n, abort)
	const most = 20000
	times := make([][]time.Duration, c.n)
	count := 5
	var wg sync.WaitGroup
	for me := range c.n {
		wg.Go(func() {
			runtime.LockOSThread()
			Pin(me)
			abort.Set(func() error {
				team := Team{Me: me}
				for q := range c.n {
					team.Global = append(team.Global, q)
				}
				r, err := NewRank(team, hub, nil, abort)
				if err != nil {
					return err
				}
				prog, err := r.Compile(Case{Op: c.op, Dtype: reduce.Float, Count: c.bytes / 4, InPlace: c.op == Broadcast, Schedule: s})
				if err != nil {
					return err
				}
				var b Buffers
				nin, nout, nwork := prog.Needs()
				for _, a := range []struct {
					p *[]byte
					n int64
				}{{&b.In, nin}, {&b.Out, nout}, {&b.Work, nwork}} {
					h, err := AllocHost(a.n, false)
					if err != nil {
						return err
					}
					defer h.Free()
					*a.p = h.Span(0, a.n)
				}
				if c.op == Broadcast && me == 0 {
					b.Out = b.In
				}
				for phase := range 2 {
					if err := r.Barrier(); err != nil {
						return err
					}
					n := count
					times[me] = make([]time.Duration, n)
					reduce.Fill(b.In, reduce.Float, reduce.Sum, c.n, me, 0)
					start := time.Now()
					for i := range n {
						first := -1
						if c.op == Broadcast {
							first = 0
						}
						if err := r.BarrierFrom(first); err != nil {
							return err
						}
						t0 := time.Since(start)
						if err := r.Run(prog, b); err != nil {
							return err
						}
						times[me][i] = time.Since(start) - t0
					}
					each := time.Since(start).Seconds() / float64(n)
					if c.op == AllReduce {
						if wrong, at := reduce.Check(b.Out, reduce.Float, reduce.Sum, c.n, 0); wrong > 0 {
							return fmt.Errorf("rank %d: %d elements wrong, first %d", me, wrong, at)
						}
					}
					if err := r.Barrier(); err != nil {
						return err
					}
					if me == 0 && phase == 0 {
						count = min(most, max(5, int(c.seconds/each)))
					}
					if err := r.Barrier(); err != nil {
						return err
					}
				}
				return nil
			}())
		})
	}
	wg.Wait()
	if err := abort.Err(); err != nil {
		return nil, err
	}
	slowest := times[0]
	for _, t := range times[1:] {
		for i := range slowest {
			slowest[i] = max(slowest[i], t[i])
		}
	}
	slices.Sort(slowest)
	return slowest, nil
}

// BenchmarkMemory reports the median time of an iteration.
func BenchmarkMemory(b *testing.B) {
	for _, op := range []Op{AllReduce, Broadcast} {
		for _, algo := range append([]string{"auto"}, Algorithms(op)...) {
			for _, n := range []int{2, 4} {
				for _, bytes := range []int64{8, 64 << 10, 1 << 20, 64 << 20} {
					b.Run(fmt.Sprintf("%s/%s/n=%d/%d", op, algo, n, bytes), func(b *testing.B) {
						t, err := contest{op, algo, n, bytes, 0.1}.run()
						if err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(float64(t[len(t)/2].Nanoseconds())/1e3, "p50-µs")
						b.ReportMetric(0, "ns/op")
					})
				}
			}
		}
	}
}

// TestPeerTable prints the lines that run_peers.sh reads, when its caller asks
// for them: BUSBW_PEER_TABLE="ranks sizes collective seconds algorithm".
func TestPeerTable(t *testing.T) {
	f := strings.Fields(os.Getenv("BUSBW_PEER_TABLE"))
	if len(f) != 5 {
		t.Skip("BUSBW_PEER_TABLE does not ask for it")
	}
	n, err := strconv.Atoi(f[0])
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseFloat(f[3], 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		op   Op
	}{{"allreduce", AllReduce}, {"bcast", Broadcast}} {
		if f[2] != "both" && f[2] != c.name {
			continue
		}
		for _, size := range strings.Split(f[1], ",") {
			bytes, err := strconv.ParseInt(size, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			algo := f[4]
			if c.op == Broadcast && algo == "ring" {
				algo = "chain"
			}
			d, err := contest{c.op, algo, n, bytes, seconds}.run()
			if err != nil {
				t.Fatal(err)
			}
			var sum time.Duration
			for _, x := range d {
				sum += x
			}
			us := func(d time.Duration) float64 { return float64(d) / 1e3 }
			mean := us(sum) / float64(len(d))
			bus := float64(bytes) / mean / 1e3
			factor, _ := c.op.BusFactor(n)
			fmt.Printf("busbw,memory-%s,%s,%d,%d,%.3f,%.4f,%.4f,%.3f,%.3f,%d\n", f[4], c.name, n, bytes, mean, bus, bus*factor, us(d[len(d)/2]), us(d[0]), len(d))
		}
	}
}
