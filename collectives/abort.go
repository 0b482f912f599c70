package collectives

import "sync/atomic"

// Abort holds the first error of a run. Whoever meets an error sets it, and
// every wait of every rank of the process watches it, so that nobody waits for
// a rank that has given up. The zero value is ready; it is never reset: after
// an error the links and the hub are in no state to go on.
type Abort struct {
	first atomic.Pointer[error]
}

// Set records err unless an error is there already, and says whether err is
// the first. A nil err does nothing.
func (a *Abort) Set(err error) bool {
	if err == nil {
		return false
	}
	first := err // a copy, so that only errors are moved to the heap
	return a.first.CompareAndSwap(nil, &first)
}

// Err is the first error, or nil. It costs one atomic load.
func (a *Abort) Err() error {
	if p := a.first.Load(); p != nil {
		return *p
	}
	return nil
}
