//go:build linux && cgo

package rdma

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"busbw/collectives"
)

// pairs are two connected ends in this process.
func pairs(t *testing.T, cfg PairConfig) [2]*Pair {
	t.Helper()
	r, s := rail(t, nil)
	var ps [2]*Pair
	for i := range ps {
		d, err := Open(r, s)
		if err != nil {
			t.Fatal(err)
		}
		c := cfg
		c.Rank, c.Peer = i, 1-i
		if ps[i], err = NewPair(d, c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(ps[i].Close(), d.Close()); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	for i := range ps {
		if err := ps[i].Connect(ps[1-i].Hello()); err != nil {
			t.Fatal(err)
		}
	}
	return ps
}

// Every test runs at several sizes, and the bytes of its messages arrive.
func TestPair(t *testing.T) {
	ps := pairs(t, PairConfig{QPs: 2, Depth: 32, MaxSize: 100000})
	served := make(chan error, 1)
	go func() { served <- ps[1].Serve() }()
	for _, verb := range []Verb{Write, Read, SendRecv} {
		for _, size := range []int{1, 8, 4096, 100000} {
			for _, mode := range []Test{{Latency: true, Count: 20}, {Count: 101}, {Bidirectional: true, Count: 70}} {
				tt := mode
				tt.Verb, tt.Size = verb, size
				name := fmt.Sprintf("%s of %d, both ways %t", tt.Kind(), size, tt.Bidirectional)
				from, to := ps[0], ps[1]
				if verb == Read {
					from, to = to, from
				}
				for i := range from.source[:size] {
					from.source[i] = byte(i + size)
				}
				clear(to.target[:size])
				if verb == Read { // a read takes the peer's target to the own source
					copy(from.target, from.source[:size])
					clear(to.source[:size])
				}
				times, err := ps[0].Run(tt)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				want := 1
				if tt.Latency {
					want = tt.Count
				}
				if len(times) != want {
					t.Fatalf("%s: %d times, want %d", name, len(times), want)
				}
				for _, s := range times {
					if s <= 0 || s > 60 { // longer than the run: no time at all
						t.Errorf("%s: %g s", name, s)
					}
				}
				got := to.target[:size]
				if verb == Read {
					got = to.source[:size]
				}
				for i, b := range got[:size-1] { // the last byte is the ping-pong's mark
					if b != byte(i+size) {
						t.Fatalf("%s: byte %d is %d, want %d", name, i, b, byte(i+size))
					}
				}
			}
		}
	}
	if _, err := ps[0].Run(Test{Verb: Write, Size: 100001, Count: 1}); err == nil {
		t.Error("a message longer than the buffer was sent")
	}
	if err := ps[0].End(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

// An end that waits for the other gives up when the run is aborted, and when
// the other does not answer.
func TestPairGivesUp(t *testing.T) {
	abort := new(collectives.Abort)
	ps := pairs(t, PairConfig{Dead: 300 * time.Millisecond, Abort: abort})
	if _, err := ps[0].Run(Test{Verb: Write, Size: 8, Count: 1}); !errors.Is(err, ErrDead) {
		t.Errorf("got %v, want %v", err, ErrDead)
	}
	abort.Set(errors.New("enough"))
	if err := ps[1].Serve(); !errors.Is(err, collectives.ErrAborted) {
		t.Errorf("got %v, want %v", err, collectives.ErrAborted)
	}
}

// A message that takes longer than a dead peer is given is waited for, and a
// peer that is gone meanwhile is found all the same.
func TestPairSlow(t *testing.T) {
	const dead = 50 * time.Millisecond
	ps := pairs(t, PairConfig{Dead: dead, MaxSize: 32 << 20, Depth: 4})
	served := make(chan error, 1)
	go func() { served <- ps[1].Serve() }()
	long := Test{Verb: Write, Size: 32 << 20, Count: 2, Bidirectional: true}
	times, err := ps[0].Run(long)
	if err != nil {
		t.Fatalf("after %v of silence: %v", dead, err)
	}
	if err := errors.Join(ps[0].End(), <-served, ps[1].q.close()); err != nil {
		t.Fatal(err)
	}
	ps[1].q = nil
	start := time.Now()
	if _, err := ps[0].stream(long, true); !errors.Is(err, ErrDead) || ps[0].patience < time.Minute || time.Since(start) > 30*time.Second {
		t.Errorf("after %v of %v: %v, want %v", time.Since(start), ps[0].patience, err, ErrDead)
	}
	if times[0] < dead.Seconds() {
		t.Skipf("a message took only %g s here: it is no slow link", times[0])
	}
}
