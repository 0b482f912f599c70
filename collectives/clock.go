package collectives

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// pings of one clock comparison; the quickest counts, for it was delayed least.
const pings = 16

// ClockOffset returns what to add to this process's clock, in seconds, to get
// that of the team's first member. The first members of the processes compare
// their clocks along the connections that the barrier uses: half of the
// quickest round trip is taken as the way there (as in NTP, RFC 5905). Every
// member must call it at the same point of its program; the other members of a
// process get 0 and ok = false. now reads the clock.
func (r *Rank) ClockOffset(now func() float64) (offset float64, ok bool, err error) {
	leaders := r.team.leaders()
	me := slices.Index(leaders, r.team.Me)
	if me < 0 {
		return 0, false, nil
	}
	first := 0 // distance of the first child
	if me > 0 {
		first = 1 << bits.Len(uint(me))
		if offset, err = r.askClock(r.team.Global[leaders[me-first/2]], now); err != nil {
			return 0, false, fmt.Errorf("rank %d: compare clocks: %w", r.global(), err)
		}
	} else {
		first = 1
	}
	for d := first; me+d < len(leaders); d *= 2 {
		if err := r.tellClock(r.team.Global[leaders[me+d]], now, offset); err != nil {
			return 0, false, fmt.Errorf("rank %d: compare clocks: %w", r.global(), err)
		}
	}
	return offset, true, nil
}

// askClock pings a peer that knows the time.
func (r *Rank) askClock(peer int, now func() float64) (offset float64, err error) {
	var out, in [8]byte
	best := math.Inf(1)
	for range pings {
		t0 := now()
		if err := r.sendNow(peer, out[:]); err != nil {
			return 0, err
		}
		if err := r.wire.Recv(peer, in[:]); err != nil {
			return 0, err
		}
		t1 := now()
		if t1-t0 < best {
			best = t1 - t0
			offset = math.Float64frombits(binary.LittleEndian.Uint64(in[:])) - (t0+t1)/2
		}
	}
	return offset, nil
}

// tellClock answers a peer's pings.
func (r *Rank) tellClock(peer int, now func() float64, offset float64) error {
	var out, in [8]byte
	for range pings {
		if err := r.wire.Recv(peer, in[:]); err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(out[:], math.Float64bits(now()+offset))
		if err := r.sendNow(peer, out[:]); err != nil {
			return err
		}
	}
	return nil
}

// sendNow sends p and waits until it has left.
func (r *Rank) sendNow(peer int, p []byte) error {
	r.wire.sent[peer]++
	if err := r.wire.Send(peer, p); err != nil {
		return err
	}
	return r.wire.WaitSent(peer, r.wire.sent[peer])
}
