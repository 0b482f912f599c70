//go:build linux && cgo

package rdma

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

// rail is the first active port of this machine. The laboratory (rdma/lab) has
// one; where there is none the test is skipped.
func rail(t testing.TB, env map[string]string) (Rail, Settings) {
	t.Helper()
	s, _, err := ParseSettings(env)
	if err != nil {
		t.Fatal(err)
	}
	if err := Available(); err != nil {
		t.Skip(err)
	}
	hcas, err := HCAs(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	rails, passed := Rails(hcas, s)
	if len(rails) == 0 {
		t.Skip("no active RDMA port", passed)
	}
	return rails[0], s
}

// links are the connected links of n ranks in this process, for one test.
func links(t testing.TB, n int, env map[string]string, cfg LinkConfig) []*Link {
	t.Helper()
	ls := open(t, n, env, cfg)
	for i, l := range ls {
		d := l.q.dev
		t.Cleanup(func() {
			if err := errors.Join(l.Close(), d.Close()); err != nil {
				t.Errorf("rank %d: close: %v", i, err)
			}
		})
	}
	return ls
}

func open(t testing.TB, n int, env map[string]string, cfg LinkConfig) []*Link {
	t.Helper()
	r, s := rail(t, env)
	ls := make([]*Link, n)
	for i := range ls {
		d, err := Open(r, s)
		if err != nil {
			t.Fatal(err)
		}
		c := cfg
		c.Rank, c.Peers = i, nil
		for j := range n {
			if j != i {
				c.Peers = append(c.Peers, j)
			}
		}
		if ls[i], err = NewLink(d, c); err != nil {
			t.Fatal(err)
		}
	}
	for i := range ls {
		for j := range ls {
			if i == j {
				continue
			}
			h, err := ls[j].Hello(i)
			if err == nil {
				err = ls[i].Connect(j, h)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return ls
}

// memory is registered memory of a link.
func memory(t testing.TB, l *Link, n int) []byte {
	t.Helper()
	b, err := mapMemory(n)
	if err == nil {
		err = l.Register(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// each runs f for every rank on a thread of its own, and fails on the first error.
func each(t testing.TB, ls []*Link, f func(rank int, l *Link) error) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(ls))
	for i, l := range ls {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			errs[i] = f(i, l)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Two ranks exchange messages of every interesting length in both directions
// at once, from and to registered and other memory, received and reduced, over
// one queue pair and several, in every mode that changes the path of a byte.
func TestLinkExchange(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  map[string]string
		cfg  LinkConfig
	}{
		{"defaults", nil, LinkConfig{}},
		{"small ring", nil, LinkConfig{Ring: leastRing, Window: 8}},
		{"four queue pairs", map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "4"}, LinkConfig{Ring: 256 << 10}},
		{"three, split", map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "3", "NCCL_IB_SPLIT_DATA_ON_QPS": "1"}, LinkConfig{Ring: 256 << 10}},
		{"adaptive routing", map[string]string{"NCCL_IB_ADAPTIVE_ROUTING": "1", "NCCL_IB_QPS_PER_CONNECTION": "2", "NCCL_IB_AR_THRESHOLD": "1000"}, LinkConfig{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ls := links(t, 2, tc.env, tc.cfg)
			const size = 1 << 20
			var reg [2][]byte
			for i, l := range ls {
				reg[i] = memory(t, l, 2*size)
			}
			k := reduce.For(reduce.Uint32, reduce.Sum)
			each(t, ls, func(rank int, l *Link) error {
				other := 1 - rank
				rng := rand.New(rand.NewPCG(7, 7)) // the same choices on both sides
				out, in := reg[rank][:size], reg[rank][size:]
				heap, own := make([]byte, size), make([]byte, size)
				sent := uint64(0)
				for round, n := range []int{0, 4, 8, 252, 256, 260, 4096, 65536, 65540, 0, 300000, 8, size, 32768, 131072 + 64, size - 4} {
					fromHeap, toHeap, combine := rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(2) == 0
					src, dst := out, in
					if fromHeap {
						src = heap
					}
					if toHeap {
						dst = own
					}
					if err := l.WaitSent(other, sent); err != nil {
						return err
					}
					fill(src[:n], rank, round)
					parts := 1 + rng.IntN(5)
					clear(dst[:n])
					for i := 0; !combine && rng.IntN(2) == 0 && i < parts; i++ { // some of the first parts, all or none
						if err := l.Expect(other, uint64(cut(n, i, parts)), dst[cut(n, i, parts):cut(n, i+1, parts)]); err != nil {
							return err
						}
					}
					for i := range parts {
						if err := l.Send(other, src[cut(n, i, parts):cut(n, i+1, parts)]); err != nil {
							return err
						}
						sent++
					}
					for i := range parts {
						p := dst[cut(n, i, parts):cut(n, i+1, parts)]
						var err error
						if combine {
							err = l.Reduce(other, p, p, k)
						} else {
							err = l.Recv(other, p)
						}
						if err != nil {
							return err
						}
					}
					want := make([]byte, n)
					fill(want, other, round)
					if !bytes.Equal(dst[:n], want) {
						return fmt.Errorf("rank %d, round %d: %d bytes came out wrong (from heap %t, to heap %t, combined %t)", rank, round, n, fromHeap, toHeap, combine)
					}
				}
				return l.WaitSent(other, sent)
			})
		})
	}
}

// cut is where part i of n bytes begins, at a multiple of four.
func cut(n, i, parts int) int {
	if i == parts {
		return n
	}
	return n / parts * i &^ 3
}

func fill(b []byte, rank, round int) {
	for i := range b {
		b[i] = byte(i*7 + i>>9 + 31*rank + round)
	}
}

// A rank that waits for a peer that sends nothing gives up when the run is aborted.
func TestLinkAbort(t *testing.T) {
	abort := new(collectives.Abort)
	ls := links(t, 2, nil, LinkConfig{Abort: abort})
	cause := errors.New("rank 7 has had enough")
	time.AfterFunc(50*time.Millisecond, func() { abort.Set(cause) })
	err := ls[0].Recv(1, make([]byte, 100))
	var le *collectives.LinkError
	if !errors.As(err, &le) || !le.Consequence() || !strings.Contains(err.Error(), cause.Error()) {
		t.Errorf("got %v", err)
	}
}

// A peer whose queue pairs are gone is found by the rank that waits for it,
// though it sends nothing, and though the device would retry for ever.
func TestLinkDeadPeer(t *testing.T) {
	ls := links(t, 2, nil, LinkConfig{Dead: 500 * time.Millisecond})
	if err := ls[1].free(); err != nil {
		t.Fatal(err)
	}
	ls[1].q, ls[1].peers, ls[1].whole, ls[1].memory = nil, nil, nil, nil
	start := time.Now()
	err := ls[0].Recv(1, make([]byte, 100))
	t.Logf("after %v: %v", time.Since(start), err)
	var done *Completion
	if !errors.Is(err, ErrDead) && !(errors.As(err, &done) && done.Status == statusExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v to find out", took)
	}
}

// What the settings ask for is what the device says of the queue pairs.
func TestLinkAttributes(t *testing.T) {
	ls := links(t, 2, map[string]string{"NCCL_IB_TIMEOUT": "18", "NCCL_IB_RETRY_CNT": "5", "NCCL_IB_TC": "41", "NCCL_IB_QPS_PER_CONNECTION": "2", "NCCL_IB_GID_INDEX": "1"}, LinkConfig{})
	as, err := ls[0].Attributes(1)
	if err != nil {
		t.Fatal(err)
	}
	if len(as) != 2 {
		t.Fatalf("%d queue pairs, want 2", len(as))
	}
	for lane, a := range as {
		a.MTU, a.SL = 0, 0 // the port's, and what Soft-RoCE does not keep
		if want := (Attributes{State: 3, GIDIndex: 1, TrafficClass: 41, Timeout: 18, Retries: 5, RNRRetries: 7, RNRTimer: 12, Remote: ls[1].byRank[0].hello.QPs[lane].Num}); a != want {
			t.Errorf("queue pair %d: %+v, want %+v", lane, a, want)
		}
	}
}
