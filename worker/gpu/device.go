//go:build linux && cgo

package gpu

// #include "cuda.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Device is a GPU with its primary context, which every library of this process
// that uses the device shares.
type Device struct {
	Info
	dev     C.CUdevice
	ctx     C.CUcontext
	flushes bool // what network devices have written is visible only after a flush, and there is one
}

// Device opens a device by its number.
func (d *Driver) Device(ordinal int) (*Device, error) {
	info, err := describe(ordinal)
	if err != nil {
		return nil, err
	}
	g := &Device{Info: info}
	// Drivers before CUDA 11.3 know neither attribute, nor the call.
	var can, orders C.int
	g.flushes = C.gpu_attribute(&can, C.CU_ATTR_RDMA_FLUSH_OPTIONS, C.CUdevice(ordinal)) == 0 && can&C.CU_FLUSH_BY_HOST != 0 &&
		C.gpu_attribute(&orders, C.CU_ATTR_RDMA_WRITES_ORDERING, C.CUdevice(ordinal)) == 0 && orders < C.CU_FLUSH_TO_OWNER
	if err := g.failed("open", C.gpu_retain(C.int(ordinal), &g.dev, &g.ctx)); err != nil {
		return nil, err
	}
	return g, nil
}

// Find opens the device that id names: its number, UUID or PCI address.
func (d *Driver) Find(id string) (*Device, error) {
	all, err := d.Devices()
	if err != nil {
		return nil, err
	}
	var have []string
	for _, i := range all {
		if id == fmt.Sprint(i.Ordinal) || id == i.UUID || SamePCI(id, i.PCI) {
			return d.Device(i.Ordinal)
		}
		have = append(have, fmt.Sprintf("%d %s %s", i.Ordinal, i.PCI, i.UUID))
	}
	return nil, fmt.Errorf("%w %q; there are %v", ErrNoDevice, id, have)
}

func (g *Device) failed(what string, r C.CUresult) error {
	if r == 0 {
		return nil
	}
	return failed(fmt.Sprintf("%s: %s", g.Info, what), r)
}

// moved is failed for a transfer, whose message is not made unless it is needed.
func (g *Device) moved(how string, bytes int, r C.CUresult) error {
	if r == 0 {
		return nil
	}
	return g.failed(fmt.Sprintf("%s %d bytes", how, bytes), r)
}

// Close gives the context back. Everything made of the device must be gone.
func (g *Device) Close() error { return g.failed("close", C.gpu_release(g.dev)) }

// Current makes the device's context that of the calling thread, as other
// libraries that use the device want it.
func (g *Device) Current() error { return g.failed("use its context", C.gpu_current(g.ctx)) }

// CanAccess says whether kernels of this device can read and write the peer's
// memory, and the driver's rank of the path: 0 is the fastest; −1: it does not say.
func (g *Device) CanAccess(peer *Device) (can bool, rank int, err error) {
	var c, r C.int
	err = g.failed(fmt.Sprintf("ask for peer access to %s", peer.Info), C.gpu_can_access(&c, &r, g.dev, peer.dev))
	return c != 0, int(r), err
}

// EnablePeer lets kernels of this device read and write the peer's memory.
// Without it they fail with IllegalAddress.
func (g *Device) EnablePeer(peer *Device) error {
	return g.failed(fmt.Sprintf("enable peer access to %s", peer.Info), C.gpu_enable_peer(g.ctx, peer.ctx))
}

// Free is the device's free memory, in bytes, now.
func (g *Device) Free() (int64, error) {
	var left, total C.size_t
	err := g.failed("ask for free memory", C.gpu_free_memory(g.ctx, &left, &total))
	return int64(left), err
}

// Memory is a range of device memory, or of host memory that devices reach.
type Memory struct {
	g    *Device
	p    unsafe.Pointer
	size int64
	host bool
}

// Alloc allocates device memory, aligned to 256 bytes or better.
func (g *Device) Alloc(size int64) (*Memory, error) {
	m := &Memory{g: g, size: size}
	if size <= 0 {
		return m, nil
	}
	if err := g.failed(fmt.Sprintf("allocate %d bytes", size), C.gpu_alloc(g.ctx, &m.p, C.size_t(size))); err != nil {
		return nil, err
	}
	return m, nil
}

// AllocHost allocates host memory that is locked, so that copies to and from
// every device run by themselves and kernels may read it.
func (g *Device) AllocHost(size int64) (*Memory, error) {
	m := &Memory{g: g, size: size, host: true}
	if size <= 0 {
		return m, nil
	}
	if err := g.failed(fmt.Sprintf("lock %d bytes of host memory", size), C.gpu_alloc_host(g.ctx, &m.p, C.size_t(size))); err != nil {
		return nil, err
	}
	return m, nil
}

// Span is n bytes from off. A span of device memory is an address and a length:
// this processor must not read or write what is there.
func (m *Memory) Span(off, n int64) []byte {
	if m == nil || m.p == nil || n == 0 {
		return nil
	}
	if off < 0 || n < 0 || off > m.size-n {
		panic(fmt.Sprintf("gpu: span of %d bytes at %d of %d", n, off, m.size))
	}
	return unsafe.Slice((*byte)(unsafe.Add(m.p, off)), n)
}

// Holds says whether a span lies in the memory.
func (m *Memory) Holds(b []byte) bool {
	at, from := uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(m.p)
	return m.p != nil && at >= from && at-from < uintptr(m.size)
}

// Free gives the memory back. Nothing queued may still use it.
func (m *Memory) Free() error {
	if m == nil || m.p == nil {
		return nil
	}
	p := m.p
	m.p = nil
	if m.host {
		return m.g.failed("free host memory", C.gpu_free_host(m.g.ctx, p))
	}
	return m.g.failed("free memory", C.gpu_free(m.g.ctx, p))
}

// Export gives a dma-buf of the memory, for a network device, and how far into
// it the memory starts. The caller closes fd. The driver then also orders its
// own copies of this memory before what the network device does.
func (m *Memory) Export() (fd int, off uint64, err error) {
	if err := m.g.failed("order memory operations", C.gpu_sync_memops(m.g.ctx, m.p)); err != nil {
		return -1, 0, err
	}
	f, o := C.int(-1), C.uint64_t(0)
	err = m.g.failed("export a dma-buf", C.gpu_dma_buf(m.g.ctx, m.p, C.size_t(m.size), &f, &o))
	return int(f), uint64(o), err
}

// Address and Size are what a network device registers.
func (m *Memory) Address() uint64 { return uint64(uintptr(m.p)) }
func (m *Memory) Size() int64     { return m.size }

// FlushRDMA makes what network devices have written visible to kernels that run.
// It does nothing where the device orders such writes itself, and where the driver
// has no flush: starting work then orders it after them (GPUDirect RDMA guide,
// Synchronization and Memory Ordering).
func (g *Device) FlushRDMA() error {
	if !g.flushes {
		return nil
	}
	return g.failed("flush GPUDirect writes", C.gpu_flush_rdma(g.ctx))
}
