package collectives

import "time"

const (
	// tcpSpin is how long a wait keeps looking before it sleeps: longer than the
	// ranks of a measurement differ, short beside anything that a user waits for.
	tcpSpin = 200 * time.Microsecond
	// tcpNap is the first sleep of a wait; data ends it early, an Abort does not.
	// Each further one is twice as long, up to tcpNapMost: hundreds of ranks that
	// woke every 2 ms would keep a core busy with that alone.
	tcpNap     = 2 * time.Millisecond
	tcpNapMost = 32 * time.Millisecond
	// tcpBusy is how long a yield takes, at least, if another thread has run
	// meanwhile (alone it takes some 0.4 µs).
	tcpBusy = 3 * time.Microsecond
)

// tcpRest is how a thread passes the time while nothing moves. It looks again
// at once where it has a processor to itself, and gives way after every look
// where it has not, which it tells from the time that giving way takes.
type tcpRest struct {
	looks   int
	since   time.Time // of the first pause; zero: none yet
	nap     time.Duration
	crowded int // the number of looks for which others are taken to want the processor
	fds     []pollFD
}

// begin is called when something has moved.
func (r *tcpRest) begin() { r.looks, r.since, r.nap = 0, time.Time{}, tcpNap }

// spin returns true if the thread should look again, false if it should sleep.
func (r *tcpRest) spin() bool {
	r.looks++
	if r.crowded == 0 && r.looks%8 != 0 {
		return true
	}
	before := time.Now()
	if r.since.IsZero() {
		r.since = before
	} else if before.Sub(r.since) > tcpSpin {
		return false
	}
	schedYield()
	if time.Since(before) > tcpBusy {
		r.crowded = 64
	} else if r.crowded > 0 {
		r.crowded--
	}
	return true
}

// sleep waits until one of the descriptors is ready or a nap is over.
func (r *tcpRest) sleep() {
	if len(r.fds) == 0 { // what is awaited is a helper's work
		pollFor(nil, int64(50*time.Microsecond))
		return
	}
	pollFor(r.fds, int64(r.nap))
	r.nap = min(2*r.nap, tcpNapMost)
}
