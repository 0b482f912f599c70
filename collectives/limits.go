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
// reach together when they copy memory with stores that bypass the caches.
func MemoryBandwidth(threads int, d time.Duration) (Rate, error) {
	have, err := MemoryAvailable()
	if err != nil {
		return Rate{}, err
	}
	each := min(int64(memoryBytes), have/4) / int64(2*threads) &^ (2<<20 - 1)
	if each < 8<<20 {
		return Rate{}, fmt.Errorf("%d threads have %d bytes each; 8 MiB are too few to be out of the caches", threads, each)
	}
	var moved, nanos atomic.Int64
	var failed Abort
	ready := make(chan struct{})
	var mapped, all sync.WaitGroup
	mapped.Add(threads)
	for i := range threads {
		all.Go(func() {
			runtime.LockOSThread()
			Pin(i) // the thread ends with the goroutine
			b, err := AllocHost(2*each, true)
			failed.Set(err)
			mapped.Done()
			<-ready
			if failed.Err() != nil {
				return
			}
			defer b.Free()
			src, dst := unsafe.Pointer(&b.mem[0]), unsafe.Pointer(&b.mem[each])
			start, n := time.Now(), int64(0)
			for n == 0 || time.Since(start) < d {
				reduce.Copy(dst, src, int(each), true)
				n += 2 * each
			}
			nanos.Add(int64(time.Since(start)))
			moved.Add(n)
		})
	}
	mapped.Wait()
	close(ready)
	all.Wait()
	if err := failed.Err(); err != nil {
		return Rate{}, err
	}
	seconds := float64(nanos.Load()) / float64(threads) / 1e9
	return Rate{float64(moved.Load()) / seconds / 1e9,
		fmt.Sprintf("copy by %d thread(s), read plus write, %d MiB", threads, int64(2*threads)*each>>20)}, nil
}
