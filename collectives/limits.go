package collectives

import (
	"fmt"
	"net"
	"net/netip"
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
	// loopBlock is what one write of LoopbackStream takes.
	loopBlock = 256 << 10
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

// LoopbackStream measures what TCP carries between two threads of this machine
// at addr, both directions added: once with data one way and once both ways at
// the same time. The larger figure counts.
func LoopbackStream(addr netip.Addr, d time.Duration) (Rate, error) {
	one, err := loopback(addr, d/2, false)
	if err != nil {
		return Rate{}, err
	}
	both, err := loopback(addr, d/2, true)
	if err != nil {
		return Rate{}, err
	}
	return Rate{max(one, both), fmt.Sprintf("TCP at %s: %.2f GB/s one way, %.2f GB/s both ways added", addr, one, both)}, nil
}

func loopback(addr netip.Addr, d time.Duration, duplex bool) (gbps float64, err error) {
	ln, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return 0, err
	}
	defer a.Close()
	b, err := ln.Accept()
	if err != nil {
		return 0, err
	}
	defer b.Close()
	var got atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	stream := func(from, to net.Conn) {
		all.Go(func() {
			buf := make([]byte, loopBlock)
			for time.Since(start) < d {
				if _, err := from.Write(buf); err != nil {
					return
				}
			}
			from.(*net.TCPConn).CloseWrite()
		})
		all.Go(func() {
			buf := make([]byte, loopBlock)
			for {
				n, err := to.Read(buf)
				got.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
	}
	stream(a, b)
	if duplex {
		stream(b, a)
	}
	all.Wait()
	return float64(got.Load()) / time.Since(start).Seconds() / 1e9, nil
}
