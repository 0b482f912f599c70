package collectives

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"busbw/collectives/reduce"
)

// Rate is a measured limit of this machine.
type Rate struct {
	GBps float64
	How  string
}

const (
	// memoryBytes is what MemoryBandwidth moves through, all threads together:
	// beyond what the caches of one socket hold.
	memoryBytes = 512 << 20
)

// MemoryBandwidth measures the traffic, read plus written, that so many threads
// reach together when they copy memory with stores that bypass the caches: the
// best of several windows, because a limit that was disturbed is none.
func MemoryBandwidth(threads int, d time.Duration) (Rate, error) {
	have, err := MemoryAvailable()
	if err != nil {
		return Rate{}, err
	}
	each := min(int64(memoryBytes), have/4) / int64(2*threads) &^ (2<<20 - 1)
	if each < 8<<20 {
		return Rate{}, fmt.Errorf("%d threads have %d bytes each; 8 MiB are too few to be out of the caches", threads, each)
	}
	var moved atomic.Int64
	var failed Abort
	var mapped, all sync.WaitGroup
	var stop atomic.Bool
	mapped.Add(threads)
	for i := range threads {
		all.Go(func() {
			runtime.LockOSThread()
			Pin(i) // the thread ends with the goroutine
			b, err := AllocHost(2*each, true)
			failed.Set(err)
			mapped.Done()
			if failed.Err() != nil {
				return
			}
			defer b.Free()
			const piece = 2 << 20 // divides each
			for at := int64(0); !stop.Load(); at = (at + piece) % each {
				reduce.Copy(unsafe.Pointer(&b.mem[each+at]), unsafe.Pointer(&b.mem[at]), piece, true)
				moved.Add(2 * piece)
			}
		})
	}
	mapped.Wait()
	best := bestWindow(&moved, d)
	stop.Store(true)
	all.Wait()
	if err := failed.Err(); err != nil {
		return Rate{}, err
	}
	who := "one thread"
	if threads != 1 {
		who = fmt.Sprintf("%d threads", threads)
	}
	return Rate{best, fmt.Sprintf("copy by %s, read plus write, %d MiB", who, int64(2*threads)*each>>20)}, nil
}

// windows is how many parts of a limit's measuring time are looked at apart.
const windows = 5

// bestWindow watches a count of bytes for d and returns the fastest window's
// rate, GB/s.
func bestWindow(bytes *atomic.Int64, d time.Duration) (best float64) {
	at, had := time.Now(), bytes.Load()
	for range windows {
		time.Sleep(d / windows)
		now, have := time.Now(), bytes.Load()
		best = max(best, float64(have-had)/now.Sub(at).Seconds()/1e9)
		at, had = now, have
	}
	return best
}
