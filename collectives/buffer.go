package collectives

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// HostBuffer is page-aligned memory outside the Go heap. nil is a buffer of no
// bytes.
type HostBuffer struct{ mem []byte }

// AllocHost maps so many bytes and touches every page, so that they lie on the
// NUMA node of the calling thread (first touch, Documentation/admin-guide/mm/
// numa_memory_policy.rst) and no page fault is timed. huge asks for transparent
// huge pages, which the system may decline; without it they are declined here.
func AllocHost(size int64, huge bool) (*HostBuffer, error) {
	if size == 0 {
		return nil, nil
	}
	if size < 0 || int64(int(size)) != size {
		return nil, fmt.Errorf("buffer of %d bytes", size)
	}
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("buffer of %d bytes: mmap: %w", size, err)
	}
	advice := unix.MADV_NOHUGEPAGE
	if huge {
		advice = unix.MADV_HUGEPAGE
	}
	_ = unix.Madvise(mem, advice) // a kernel without huge pages has nothing to advise
	for i := 0; i < len(mem); i += os.Getpagesize() {
		mem[i] = 0
	}
	return &HostBuffer{mem}, nil
}

// Span is n bytes from off.
func (b *HostBuffer) Span(off, n int64) []byte {
	if b == nil {
		return nil
	}
	return b.mem[off : off+n : off+n]
}

// Free unmaps the buffer. No span of it may be used any more.
func (b *HostBuffer) Free() {
	if b != nil && b.mem != nil {
		_ = unix.Munmap(b.mem) // fails only for memory that is not mapped
		b.mem = nil
	}
}

// MemoryAvailable is how many bytes this process can still allocate: what the
// kernel estimates (MemAvailable, Documentation/filesystems/proc.rst) or what
// the tightest cgroup above it leaves (memory.max, admin-guide/cgroup-v2.rst).
func MemoryAvailable() (int64, error) { return memoryAvailable(os.DirFS("/")) }

func memoryAvailable(root fs.FS) (int64, error) {
	b, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("available memory: %w", err)
	}
	have := int64(-1)
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("proc/meminfo: MemAvailable: %w", err)
			}
			have = kib << 10
		}
	}
	if have < 0 {
		return 0, fmt.Errorf("proc/meminfo: no MemAvailable (Linux before 3.14?)")
	}
	return min(have, cgroupLeft(root)), nil
}

// cgroupLeft is what the process's cgroups leave it; a great number where they
// set no limit.
func cgroupLeft(root fs.FS) int64 {
	const none = 1 << 62
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return none
	}
	left := int64(none)
	for line := range strings.Lines(string(b)) {
		at, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue // version 1 hierarchies
		}
		for dir := path.Join("sys/fs/cgroup", at); strings.HasPrefix(dir, "sys/fs/cgroup"); dir = path.Dir(dir) {
			most, err1 := readNumber(root, path.Join(dir, "memory.max"))
			used, err2 := readNumber(root, path.Join(dir, "memory.current"))
			if err1 == nil && err2 == nil {
				left = min(left, max(0, most-used))
			}
		}
	}
	return left
}

// readNumber reads a file that holds one number; "max" is none.
func readNumber(root fs.FS, name string) (int64, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

// PinNear keeps the calling thread on one of the processors of a list of the
// kernel's ("0-15,32"): the n-th of those that the process may use, counted round.
// It does nothing where there is none, or where that is refused.
func PinNear(n int, list string) {
	var all, near, one unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil {
		return
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		lo, err1 := strconv.Atoi(from)
		hi, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			return
		}
		for cpu := max(0, lo); cpu <= min(hi, 8*len(all)*8); cpu++ {
			if all.IsSet(cpu) {
				near.Set(cpu)
			}
		}
	}
	if near.Count() == 0 {
		return
	}
	n %= near.Count()
	for cpu := 0; ; cpu++ {
		if near.IsSet(cpu) {
			if n == 0 {
				one.Set(cpu)
				_ = unix.SchedSetaffinity(0, &one) // as in Pin
				return
			}
			n--
		}
	}
}

// Pin keeps the calling thread on one of the processors that the process may
// use: the n-th of them, counted round. Where some of near are among them, only
// those count. It does nothing where that is refused.
func Pin(n int, near ...int) {
	var all, some, one unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() == 0 {
		return
	}
	for _, cpu := range near {
		if all.IsSet(cpu) {
			some.Set(cpu)
		}
	}
	if some.Count() > 0 {
		all = some
	}
	n %= all.Count()
	for cpu := 0; ; cpu++ {
		if all.IsSet(cpu) {
			if n == 0 {
				one.Set(cpu)
				_ = unix.SchedSetaffinity(0, &one) // a sandbox may forbid it; ranks then move
				return
			}
			n--
		}
	}
}

// Pinned is the processor that the calling thread keeps to, −1 if it may move.
func Pinned() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() != 1 {
		return -1
	}
	cpu := 0
	for !set.IsSet(cpu) {
		cpu++
	}
	return cpu
}
