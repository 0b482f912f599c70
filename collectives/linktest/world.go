package linktest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

// patience is how long a collective of a test may take before it counts as stuck.
const patience = 60 * time.Second

// world is a set of ranks, each with a goroutine of its own while it runs.
type world struct {
	n     int
	nodes []int // process of each rank; nil: one process
	hubs  map[int]*collectives.Hub
	wires []*collectives.Wire // nil: no link
	links []collectives.Link
	abort *collectives.Abort
}

// newWorld makes n ranks. perNode of them share a process and meet in a hub; 0:
// all. make is not called if nobody needs a link.
func newWorld(t testing.TB, n, perNode int, make Maker) *world {
	procs := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(procs, n+2)) // as those who run ranks do
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	w := &world{n: n, hubs: map[int]*collectives.Hub{}, abort: new(collectives.Abort)}
	if perNode <= 0 {
		perNode = n
	}
	for r := range n {
		w.nodes = append(w.nodes, r/perNode)
		if r%perNode == 0 {
			w.hubs[r/perNode] = collectives.NewHub(min(perNode, n-r), w.abort)
		}
	}
	if perNode < n {
		w.links = make(t, n, w.abort)
		for _, l := range w.links {
			w.wires = append(w.wires, collectives.NewWire(l, n))
		}
	}
	t.Cleanup(func() {
		for r, l := range w.links {
			if err := l.Close(); err != nil {
				t.Errorf("rank %d: close: %v", r, err)
			}
		}
	})
	return w
}

// rank makes the rank's side of a team of global ranks.
func (w *world) rank(global []int, me int) (*collectives.Rank, error) {
	team := collectives.Team{Global: global, Me: me}
	for _, g := range global {
		team.Node = append(team.Node, w.nodes[g])
	}
	var wire *collectives.Wire
	if w.wires != nil {
		wire = w.wires[global[me]]
	}
	return collectives.NewRank(team, w.hubs[w.nodes[global[me]]], wire, w.abort)
}

// all runs f on every rank at once, each locked to its thread as links ask, and
// returns the run's first error.
func (w *world) all(t testing.TB, f func(rank int) error) error {
	t.Helper()
	errs := make([]error, w.n)
	var wg sync.WaitGroup
	for r := range w.n {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if errs[r] = f(r); errs[r] != nil {
				w.abort.Set(errs[r])
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		w.abort.Set(fmt.Errorf("stuck for %v", patience))
		<-done
	}
	if err := w.abort.Err(); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// memory is the buffers of one rank for one case, with guards behind them.
type memory struct {
	in, out, work  []byte
	guards, before [][]byte
}

const guardBytes = 64

func (m *memory) alloc(n int64) []byte {
	b := bytes.Repeat([]byte{0xEE}, int(n)+guardBytes)
	m.guards = append(m.guards, b[n:])
	return b[:n:n]
}

// newMemory lays out the buffers of a case as place.go's table says.
func newMemory(c collectives.Case, ranks, rank int, work int64) *memory {
	m := &memory{}
	size := int64(c.Dtype.Size())
	in, out := lengths(c, ranks, rank)
	switch {
	case c.InPlace && c.Op == collectives.AllGather:
		m.out = m.alloc(out * size)
		m.in = m.out[int64(rank)*in*size:][:in*size]
	case c.InPlace && c.Op == collectives.ReduceScatter:
		m.in = m.alloc(in * size)
		m.out = m.in[int64(rank)*out*size:][:out*size]
	case c.InPlace:
		m.in = m.alloc(max(in, out) * size)
		m.out = m.in
	default:
		m.in, m.out = m.alloc(in*size), m.alloc(out*size)
	}
	m.work = m.alloc(work)
	return m
}

// lengths is how many elements a rank's in and out have.
func lengths(c collectives.Case, ranks, rank int) (in, out int64) {
	s, block := c.Count, c.Count/int64(ranks)
	atRoot := func(n int64) int64 {
		if rank == c.Root {
			return n
		}
		return 0
	}
	switch c.Op {
	case collectives.Broadcast:
		return atRoot(s), s
	case collectives.Reduce:
		return s, atRoot(s)
	case collectives.AllGather:
		return block, s
	case collectives.ReduceScatter:
		return s, block
	case collectives.Gather:
		return block, atRoot(s)
	case collectives.Scatter:
		return atRoot(s), block
	}
	return s, s
}

// fill writes a rank's input.
func (m *memory) fill(c collectives.Case, ranks, rank int) {
	for i := range m.out {
		m.out[i] = 0xEE
	}
	if c.Op.Reduces() {
		reduce.Fill(m.in, c.Dtype, c.Redop, ranks, rank, 0)
	} else {
		stamp(m.in, rank, 0)
	}
	m.before = [][]byte{bytes.Clone(m.in)}
}

// stamp writes bytes that tell the source and the place.
func stamp(b []byte, source, first int) {
	for i := range b {
		x := uint32(first+i+1) * 2654435761
		b[i] = byte(x>>24) ^ byte(x>>13) ^ byte(source*37+1)
	}
}

// check compares a rank's result with what the operation means.
func (m *memory) check(c collectives.Case, ranks, rank int) error {
	for i, g := range m.guards {
		if bytes.Count(g, []byte{0xEE}) != len(g) {
			return fmt.Errorf("rank %d: wrote behind the end of buffer %d", rank, i)
		}
	}
	if !c.InPlace && !bytes.Equal(m.in, m.before[0]) {
		return fmt.Errorf("rank %d: the input has changed", rank)
	}
	if c.Op.Reduces() {
		if len(m.out) == 0 || c.Op == collectives.Reduce && rank != c.Root {
			return nil
		}
		first := int64(0)
		if c.Op == collectives.ReduceScatter {
			first = int64(rank) * c.Count / int64(ranks)
		}
		if wrong, at := reduce.Check(m.out, c.Dtype, c.Redop, ranks, first); wrong != 0 {
			return fmt.Errorf("rank %d: %d of %d elements are wrong, the first is %d", rank, wrong, len(m.out)/c.Dtype.Size(), at)
		}
		return nil
	}
	if len(m.out) == 0 {
		return nil
	}
	want := make([]byte, len(m.out))
	block := int(c.Count) / ranks * c.Dtype.Size()
	switch c.Op {
	case collectives.Broadcast:
		stamp(want, c.Root, 0)
	case collectives.SendRecv:
		stamp(want, (rank+ranks-1)%ranks, 0)
	case collectives.Scatter:
		stamp(want, c.Root, rank*block)
	case collectives.AllToAll:
		for q := range ranks {
			stamp(want[q*block:][:block], q, rank*block)
		}
	default:
		for q := range ranks {
			stamp(want[q*block:][:block], q, 0)
		}
	}
	if c.Op == collectives.Gather && rank != c.Root {
		return nil
	}
	if !bytes.Equal(m.out, want) {
		at := 0
		for m.out[at] == want[at] {
			at++
		}
		return fmt.Errorf("rank %d: byte %d of %d is wrong", rank, at, len(want))
	}
	return nil
}
