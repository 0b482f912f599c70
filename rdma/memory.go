//go:build linux && cgo

package rdma

// #include "verbs.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Region is memory that a device may reach.
type Region struct {
	Addr       uint64
	Size       uint64
	How        string // "host", "dma-buf", "peer memory"
	LKey, RKey uint32
	mr         *C.struct_rv_mr
}

// gpu says that this processor does not reach the memory.
func (r *Region) gpu() bool { return r.How != "host" }

// access is what the peer and the device may do with a region: writes from
// afar for collectives, reads for link tests.
func (d *Device) access() C.int {
	a := C.int(C.RV_A_LOCAL_WRITE | C.RV_A_REMOTE_WRITE | C.RV_A_REMOTE_READ)
	if d.Settings.RelaxedOrdering > 0 {
		a |= C.RV_A_RELAXED
	}
	return a
}

// Register registers host memory. It must not come from the Go heap, and must
// stay mapped until the region is closed.
func (d *Device) Register(mem []byte) (*Region, error) {
	return d.register(address(mem), uint64(len(mem)), "host")
}

func (d *Device) register(addr, size uint64, how string) (*Region, error) {
	mr, err := C.rv_reg(d.pd, C.uint64_t(addr), C.size_t(size), d.access())
	if mr == nil {
		what := how
		if how == "host" {
			what = "host memory"
		}
		return nil, fmt.Errorf("%s: cannot register %d bytes of %s: %w%s", d.Rail, size, what, err, memlockHint(err, size))
	}
	return newRegion(mr, addr, size, how), nil
}

func newRegion(mr *C.struct_rv_mr, addr, size uint64, how string) *Region {
	return &Region{Addr: addr, Size: size, How: how, LKey: uint32(mr.lkey), RKey: uint32(mr.rkey), mr: mr}
}

// RegisterGPU registers memory of a GPU: through the dma-buf that export makes
// of it (nil: the driver has none), else by its address, which needs
// nvidia_peermem. Every try is reported. When none works the region is nil and
// the data has to be staged through host memory.
func (d *Device) RegisterGPU(addr, size uint64, export func() (fd int, offset uint64, err error)) (*Region, []Attempt) {
	var tried []Attempt
	if export != nil {
		r, err := d.registerDMABuf(addr, size, export)
		if tried = append(tried, Attempt{"dma-buf", err}); err == nil {
			return r, tried
		}
	}
	r, err := d.register(addr, size, "peer memory")
	if errors.Is(err, syscall.EFAULT) || errors.Is(err, syscall.EINVAL) {
		err = fmt.Errorf("%w (nvidia_peermem is not loaded)", err)
	}
	return r, append(tried, Attempt{"peer memory", err})
}

func (d *Device) registerDMABuf(addr, size uint64, export func() (int, uint64, error)) (*Region, error) {
	if err := d.DMABuf(); err != nil {
		return nil, err
	}
	fd, offset, err := export()
	if err != nil {
		return nil, fmt.Errorf("the GPU driver exports no dma-buf: %w", err)
	}
	defer syscall.Close(fd)
	mr, err := C.rv_reg_dmabuf(d.pd, C.uint64_t(offset), C.size_t(size), C.uint64_t(addr), C.int(fd), d.access())
	if mr == nil {
		return nil, fmt.Errorf("%s: cannot register %d bytes of dma-buf: %w", d.Rail, size, err)
	}
	return newRegion(mr, addr, size, "dma-buf"), nil
}

// DMABuf says nil when the device's driver takes dma-bufs. The question is
// asked with a descriptor that is none: one that can take them says EBADF.
func (d *Device) DMABuf() error {
	mr, err := C.rv_reg_dmabuf(d.pd, 0, 4096, 0, -1, C.RV_A_LOCAL_WRITE)
	switch {
	case mr != nil:
		C.rv_dereg(mr)
		return nil
	case err == syscall.EBADF:
		return nil
	case err == syscall.EOPNOTSUPP:
		return fmt.Errorf("%s: the driver takes no dma-buf: %w", d.Rail, err)
	case err == syscall.EPROTONOSUPPORT:
		return fmt.Errorf("%s: the kernel takes no dma-buf (it is older than 5.12): %w", d.Rail, err)
	case err == syscall.ENOSYS:
		return fmt.Errorf("%s: libibverbs takes no dma-buf (rdma-core is older than 34): %w", d.Rail, err)
	}
	return fmt.Errorf("%s: no dma-buf: %w", d.Rail, err)
}

// Close takes the region from the device.
func (r *Region) Close() error {
	if r.mr == nil {
		return nil
	}
	n := C.rv_dereg(r.mr)
	r.mr = nil
	if n != 0 {
		return fmt.Errorf("cannot deregister %d bytes: %w", r.Size, syscall.Errno(n))
	}
	return nil
}

// contains says whether a span lies in the region.
func (r *Region) contains(addr, n uint64) bool {
	return addr-r.Addr < r.Size && n <= r.Size-(addr-r.Addr)
}

// rlimitMemlock is RLIMIT_MEMLOCK (asm-generic/resource.h).
const rlimitMemlock = 8

// memlockHint explains an error that the limit on locked memory makes. want is
// the bytes asked for, 0 where the library asks for its own queues.
func memlockHint(err error, want uint64) string {
	var lim syscall.Rlimit
	if err != syscall.ENOMEM || syscall.Getrlimit(rlimitMemlock, &lim) != nil || lim.Cur == ^uint64(0) || locksFreely() {
		return ""
	}
	s := fmt.Sprintf(" (this process may lock %d bytes, hard limit %d", lim.Cur, lim.Max)
	if want > 0 {
		s += fmt.Sprintf("; this alone needs %d", want)
	}
	return s + ": raise it to unlimited where the ranks are started: LimitMEMLOCK=infinity in the systemd unit, `ulimit -l unlimited` in the shell, --ulimit memlock=-1 or --cap-add IPC_LOCK for a container)"
}

// locksFreely says whether CAP_IPC_LOCK, bit 14 of CapEff in
// /proc/self/status, lifts the limit.
func locksFreely() bool {
	b, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(b), "CapEff:")
	var caps uint64
	_, err := fmt.Sscanf(rest, "%x", &caps)
	return err == nil && caps>>14&1 == 1
}

// mapMemory is zeroed memory that never moves and that the collector does not see.
func mapMemory(n int) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cannot map %d bytes: %w", n, err)
	}
	// fork would make pages that the device writes to copy-on-write (verbs(7), ibv_fork_init).
	if err := syscall.Madvise(b, syscall.MADV_DONTFORK); err != nil {
		syscall.Munmap(b)
		return nil, fmt.Errorf("cannot keep %d bytes from fork: %w", n, err)
	}
	return b, nil
}

func unmapMemory(b []byte) error { return syscall.Munmap(b) }
