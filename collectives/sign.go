package collectives

import "sync/atomic"

// sign is a number that one thread at a time writes and others poll. What its writer
// wrote before has happened for whoever reads the new number. It orders nothing
// else: a store does not wait until the other processors have let go of the cache
// line, which is what makes it faster than that of package atomic (on x86-64 by
// the 0.1 µs that a line takes from core to core).
type sign struct{ n uint64 }

func (s *sign) Load() uint64 { return atomic.LoadUint64(&s.n) }

func (s *sign) Store(n uint64) { publish(&s.n, n) }

// Swap writes n if the number is old.
func (s *sign) Swap(old, n uint64) bool { return atomic.CompareAndSwapUint64(&s.n, old, n) }
