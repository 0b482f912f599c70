//go:build linux && cgo

package gpu

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"busbw/collectives/reduce"
)

// images are the kernels for each compute capability (make ptx). The driver
// compiles one for the device it has.
//
//go:embed kernels/*.ptx
var images embed.FS

var targets = []int{90, 80, 70}

// Kernels are busbw's kernels on one device.
type Kernels struct {
	Target int // the compute capability that they were made for
	g      *Device
	mod    *Module
	pass   [len(passOps)][]*Function // by operator and type
	fill   *Function
	check  *Function
}

// passOps are the operators that have kernels; an average is a sum, divided.
var passOps = [...]reduce.Op{reduce.Sum, reduce.Prod, reduce.Min, reduce.Max}

// Kernels loads them: those of the highest capability that the device has, or,
// where the driver takes those not, of a lower one.
func (g *Device) Kernels() (*Kernels, error) {
	var tried []error
	for _, sm := range targets {
		if sm > g.Compute() {
			continue
		}
		text, err := images.ReadFile(fmt.Sprintf("kernels/sm_%d.ptx", sm))
		if err != nil {
			return nil, err
		}
		m, err := g.Load(string(text))
		if err == nil {
			k, err := g.kernels(m, sm)
			if err != nil {
				return nil, errors.Join(err, m.Close())
			}
			return k, nil
		}
		tried = append(tried, fmt.Errorf("sm_%d: %w", sm, err))
		if !errors.Is(err, noBinary) && !errors.Is(err, badPTX) && !errors.Is(err, newPTX) {
			break
		}
	}
	if tried == nil {
		return nil, fmt.Errorf("%s: compute capability %d.%d is below 7.0, the least that busbw has kernels for", g.Info, g.Major, g.Minor)
	}
	return nil, errors.Join(tried...)
}

func (g *Device) kernels(m *Module, sm int) (k *Kernels, err error) {
	k = &Kernels{Target: sm, g: g, mod: m}
	for i, o := range passOps {
		for _, d := range reduce.Dtypes() {
			f, err := m.Function(o.String() + "_" + d.String())
			if err != nil {
				return nil, err
			}
			k.pass[i] = append(k.pass[i], f)
		}
	}
	if k.fill, err = m.Function("fill"); err != nil {
		return nil, err
	}
	k.check, err = m.Function("check")
	return k, err
}

// Close unloads the kernels. None may be queued any more.
func (k *Kernels) Close() error { return k.mod.Close() }

// passMost is PASS_MOST of kernels.h; the structs below are its structs.
const passMost = 16

type passParam struct {
	bytes      uint64
	ns, nd     uint32
	ranks, pad uint32
	dst, src   [passMost]unsafe.Pointer // of devices: nothing here that Go looks after
}

type fillParam struct{ dst, bytes, period, periodBytes uint64 }

type checkParam struct {
	got, bytes, want, periodBytes uint64
	elem, pad                     uint32
	result                        uint64
}

const threads = 512 // of a block: four fill a multiprocessor

// grid is the blocks that a kernel over so many bytes needs, 16 bytes a thread,
// and at most what the device can run at once.
func (k *Kernels) grid(bytes int64) int {
	return int(max(1, min((bytes/16+threads-1)/threads, int64(4*k.g.SMs))))
}

// Combine queues dst[j] = src[0] op src[1] op … for every j: each source is read
// once, each dst written once, with the bits of reduce.Kernels.Combine. ranks
// above 0 divides by them. A dst may equal a source, must not overlap one
// otherwise, and may be of a peer with access.
func (k *Kernels) Combine(s *Stream, d reduce.Dtype, o reduce.Op, dst, src []unsafe.Pointer, bytes int64, ranks int) error {
	if bytes == 0 || len(dst) == 0 || len(src) == 0 {
		return nil
	}
	if o == reduce.Avg {
		o = reduce.Sum
	}
	f := k.pass[slices.Index(passOps[:], o)][d]
	var p passParam
	p.bytes = uint64(bytes)
	for {
		n := copy(p.src[p.ns:], src)
		p.ns += uint32(n)
		if src = src[n:]; len(src) == 0 {
			break
		}
		if slices.Contains(src, dst[0]) {
			return fmt.Errorf("%s: a pass over %d sources, one of them also its result; at most %d are possible", k.g.Info, len(src)+n, passMost)
		}
		p.nd, p.dst[0] = 1, dst[0] // what has been combined so far
		if err := s.Launch(f, k.grid(bytes), threads, unsafe.Pointer(&p)); err != nil {
			return err
		}
		p.ns, p.src[0] = 1, dst[0]
	}
	p.ranks = uint32(ranks)
	for {
		n := copy(p.dst[:], dst)
		p.nd = uint32(n)
		if err := s.Launch(f, k.grid(bytes), threads, unsafe.Pointer(&p)); err != nil {
			return err
		}
		if len(dst) == n {
			return nil
		}
		p.ns, p.src[0], p.ranks = 1, dst[0], 0
		dst, f = dst[n:], k.pass[0][reduce.Uint8] // copies
	}
}

// Fill queues dst = the period, again and again. Both are device memory.
func (k *Kernels) Fill(s *Stream, dst, period []byte) error {
	if len(dst) == 0 {
		return nil
	}
	p := fillParam{uint64(uintptr(address(dst))), uint64(len(dst)), uint64(uintptr(address(period))), uint64(len(period))}
	return s.Launch(k.fill, k.grid(int64(len(dst))), threads, unsafe.Pointer(&p))
}

// Check queues a comparison of got with the period, again and again, by elements
// of so many bytes. result is 16 bytes of device memory, two words: to the first
// it adds the number of wrong elements, in the second it keeps the least index.
func (k *Kernels) Check(s *Stream, got, period []byte, elem int, result []byte) error {
	if len(got) == 0 {
		return nil
	}
	p := checkParam{uint64(uintptr(address(got))), uint64(len(got)), uint64(uintptr(address(period))), uint64(len(period)), uint32(elem), 0, uint64(uintptr(address(result)))}
	return s.Launch(k.check, k.grid(int64(len(got))), threads, unsafe.Pointer(&p))
}
