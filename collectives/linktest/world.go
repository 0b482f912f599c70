package linktest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

// patience is how long a collective of a test may take before it counts as stuck.
const patience = 60 * time.Second

// world is a set of ranks, each with a goroutine of its own while it runs.
type world struct {
	n      int
	nodes  []int // process of each rank; nil: one process
	hubs   map[int]*collectives.Hub
	wires  []*collectives.Wire // nil: no link
	links  []collectives.Link
	stores []Store // nil: no devices
	abort  *collectives.Abort
}

// world makes n ranks. perNode of them share a process and meet in a hub; 0:
// all. Links are not made if nobody needs one.
func (k Kit) world(t testing.TB, n, perNode int) *world {
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
	if k.Stores != nil {
		w.stores = k.Stores(t, n)
	}
	if perNode < n {
		w.links = k.Links(t, n, w.abort)
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
	store          Store
	areas          []area // on the device
}

// area is a buffer with its guard, here and on the device.
type area struct{ host, device []byte }

const guardBytes = 64

func (m *memory) alloc(n int64) []byte {
	b := bytes.Repeat([]byte{0xEE}, int(n)+guardBytes)
	m.guards = append(m.guards, b[n:])
	m.areas = append(m.areas, area{host: b})
	return b[:n:n]
}

// place gives every buffer memory on the device.
func (m *memory) place(s Store) (err error) {
	m.store = s
	for i := range m.areas {
		if m.areas[i].device, err = s.Alloc(int64(len(m.areas[i].host))); err != nil {
			return err
		}
	}
	return nil
}

// where is where the rank has a buffer.
func (m *memory) where(b []byte) []byte {
	if m.store == nil || len(b) == 0 {
		return b
	}
	for _, a := range m.areas {
		if off := uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&a.host[0])); off < uintptr(len(a.host)) {
			return a.device[off:][:len(b):len(b)]
		}
	}
	panic("linktest: a buffer in no area")
}

func (m *memory) toDevice() error {
	for _, a := range m.areas {
		if m.store != nil {
			if err := m.store.Put(a.device, a.host); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) fromDevice() error {
	for _, a := range m.areas {
		if m.store != nil {
			if err := m.store.Get(a.host, a.device); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) free() error {
	for _, a := range m.areas {
		if m.store != nil {
			if err := m.store.Free(a.device); err != nil {
				return err
			}
		}
	}
	return nil
}

// newMemory lays out the buffers of a case as place.go's table says.
func newMemory(c collectives.Case, ranks, rank int, work int64, s Store) (*memory, error) {
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
	if s != nil {
		return m, m.place(s)
	}
	return m, nil
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
