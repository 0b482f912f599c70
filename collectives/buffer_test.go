package collectives

import (
	"runtime"
	"testing"
	"testing/fstest"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestHostBuffer(t *testing.T) {
	b, err := AllocHost(10000, true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	s := b.Span(4096, 100)
	if len(s) != 100 || cap(s) != 100 || uintptr(unsafe.Pointer(&s[0]))%4096 != 0 {
		t.Errorf("span of %d, capacity %d at %p", len(s), cap(s), &s[0])
	}
	if e, err := AllocHost(0, false); err != nil || e.Span(0, 0) != nil {
		t.Errorf("no bytes: %v, %v", e, err)
	}
	if _, err := AllocHost(-1, false); err == nil {
		t.Error("negative size accepted")
	}
}

func TestMemoryAvailable(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	root := fstest.MapFS{
		"proc/meminfo":                      file("MemTotal:  1000 kB\nMemAvailable:  800 kB\n"),
		"proc/self/cgroup":                  file("1:cpu:/x\n0::/a/b\n"),
		"sys/fs/cgroup/a/b/memory.max":      file("max\n"),
		"sys/fs/cgroup/a/b/memory.current":  file("5\n"),
		"sys/fs/cgroup/a/memory.max":        file("300000\n"),
		"sys/fs/cgroup/a/memory.current":    file("100000\n"),
		"sys/fs/cgroup/unrelated/something": file(""),
	}
	if n, err := memoryAvailable(root); err != nil || n != 200000 {
		t.Errorf("%d, %v; want what the cgroup above leaves", n, err)
	}
	delete(root, "sys/fs/cgroup/a/memory.max")
	if n, err := memoryAvailable(root); err != nil || n != 800<<10 {
		t.Errorf("%d, %v; want MemAvailable", n, err)
	}
	root["proc/meminfo"] = file("MemTotal: 1000 kB\n")
	if n, err := memoryAvailable(root); err == nil {
		t.Errorf("no MemAvailable gave %d", n)
	}
}

// A thread goes to the processors that are near, if it may, else to any.
func TestPinNear(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		t.Skip("one processor only")
	}
	var last int
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			last = cpu
		}
	}
	for _, tc := range []struct {
		n    int
		near []int
		want int // −1: any one
	}{{0, []int{last}, last}, {5, []int{last, 1000}, last}, {0, []int{1000}, -1}, {0, nil, -1}} {
		at := make(chan unix.CPUSet)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			Pin(tc.n, tc.near...)
			var set unix.CPUSet
			unix.SchedGetaffinity(0, &set)
			at <- set
		}()
		if got := <-at; got.Count() != 1 || tc.want >= 0 && !got.IsSet(tc.want) {
			t.Errorf("Pin(%d, %v): on %d processors", tc.n, tc.near, got.Count())
		}
	}
}
