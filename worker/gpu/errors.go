// Package gpu reaches NVIDIA GPUs through the CUDA driver, which is loaded at run
// time: devices, memory, streams, kernels, and ranks whose buffers lie in device
// memory. A build needs no CUDA toolkit, and a machine without a GPU runs it too.
package gpu

import (
	"errors"
	"fmt"
	"strings"
)

// Why there is no GPU to use.
var (
	ErrAbsent   = errors.New("no CUDA driver")
	ErrNoDevice = errors.New("no CUDA device")
	ErrTooOld   = errors.New("the CUDA driver is too old")
)

// minVersion is the CUDA version that a driver must speak: the first that takes
// a kernel of ours for what may be in a cluster (sm_80's PTX 7.0), and has all calls.
const minVersion = 11000

// Version writes a CUDA version as people do.
func Version(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Code is a CUresult. errors.Is finds it in every error of a driver call.
type Code int

// The codes that callers tell apart.
const (
	OutOfMemory    Code = 2
	noDevice       Code = 100
	noBinary       Code = 209
	NoPeerAccess   Code = 217
	badPTX         Code = 218
	newPTX         Code = 222
	notReady       Code = 600
	IllegalAddress Code = 700
	tooManyPeers   Code = 711
	notSupported   Code = 801
)

func (c Code) Error() string { return fmt.Sprintf("CUDA error %d", int(c)) }

// Error is a failed driver call.
type Error struct {
	What string // what was tried, and on which device
	Code Code
	Name string // of the code, "CUDA_ERROR_…"
	Text string // the driver's words
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%s, %d)", e.What, e.Text, e.Name, int(e.Code))
	if h := e.Code.hint(); h != "" {
		s += ": " + h
	}
	return s
}

func (e *Error) Unwrap() error { return e.Code }

// hint says what a code usually means and what to do about it.
func (c Code) hint() string {
	switch c {
	case OutOfMemory:
		return "another process may hold the memory (nvidia-smi shows it); smaller sizes need less"
	case 3:
		return "the driver is not usable: the nvidia kernel module may be missing, or /dev/nvidia* are not in this container"
	case 34:
		return "this is the toolkit's stub library: LD_LIBRARY_PATH must not name a folder of stubs"
	case 46:
		return "another process has the device for itself (nvidia-smi -q -d COMPUTE: exclusive mode)"
	case 214:
		return "memory of the device is damaged: drain the node and see nvidia-smi -q -d ECC"
	case 220:
		return "an NVLink failed: see nvidia-smi nvlink -e and the kernel log for Xid 74"
	case 221:
		return "libnvidia-ptxjitcompiler.so.1, which comes with the driver, is missing: containers get it with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
	case 223:
		return "CUDA_DISABLE_PTX_JIT is set: busbw's kernels are PTX, so unset it"
	case tooManyPeers:
		return "a GPU without NVSwitch has room for 8 peers: fewer ranks, or NCCL_P2P_LEVEL, which leaves far ones out"
	case 719:
		return "see the kernel log for an Xid message of this device"
	case 802:
		return "the NVSwitch fabric is not ready: nvidia-fabricmanager must run, in the driver's version"
	case 803:
		return "the library and the kernel module are of different versions: reboot after a driver update"
	case 999:
		return "the kernel log says more; nvidia-uvm may not be loaded"
	}
	return ""
}

// Info is what the driver says of a device.
type Info struct {
	Ordinal         int
	Name, UUID, PCI string // "GPU-…", "0000:18:00.0"
	Memory          int64  // bytes
	Major, Minor    int    // compute capability
	SMs             int    // multiprocessors
	GPUDirect       bool   // network devices can reach its memory
	DMABuf          bool   // and through dma-bufs
}

// MinCompute is the least capability that there are kernels for.
const MinCompute = 70

// Direct is how the link to other processes reaches device memory by itself. The
// zero value: it does not.
type Direct struct {
	Reaches  func(span []byte) bool
	Register func(*Memory) error // makes more memory such
	NoReads  bool                // only what arrives is written to it; what leaves goes through host memory
}

// Compute is the capability as one number, 90 for 9.0.
func (i Info) Compute() int { return 10*i.Major + i.Minor }

func (i Info) String() string { return fmt.Sprintf("GPU %d (%s, %s)", i.Ordinal, i.Name, i.PCI) }

// SamePCI compares two PCI addresses as people write them: "0000:18:00.0" is
// also "00000000:18:00.0" and "18:00.0", in either case.
func SamePCI(a, b string) bool { return plainPCI(a) == plainPCI(b) }

func plainPCI(s string) string {
	s = strings.ToLower(s)
	if strings.Count(s, ":") == 2 {
		s = strings.TrimLeft(s, "0")
	}
	return strings.TrimPrefix(s, ":")
}
