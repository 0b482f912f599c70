//go:build linux && cgo

package gpu

// #cgo CFLAGS: -O2 -Wall
// #cgo LDFLAGS: -ldl
// #include "cuda.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Driver is the CUDA driver of this machine.
type Driver struct {
	Version int // of CUDA that it speaks, 12080 for 12.8
}

// library is the name under which every driver package installs it.
const library = "libcuda.so.1"

// Open loads the driver. The error is ErrAbsent, ErrNoDevice or ErrTooOld, or one
// of the driver's own. It is loaded once, however often it is opened.
func Open() (*Driver, error) {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	var why [256]C.char
	switch C.gpu_load(name, &why[0], C.int(len(why))) {
	case 1:
		return nil, fmt.Errorf("%w: %s; install NVIDIA's driver, or let the container have it (--gpus all)", ErrAbsent, C.GoString(&why[0]))
	case 2:
		return nil, tooOld(fmt.Sprintf("%s: %s", library, C.GoString(&why[0])))
	}
	var version C.int
	r := C.gpu_init(&version)
	switch {
	case version > 0 && version < minVersion:
		return nil, tooOld("it speaks CUDA " + Version(int(version)))
	case Code(r) == noDevice:
		return nil, fmt.Errorf("%w: the driver finds none (nvidia-smi -L; CUDA_VISIBLE_DEVICES may hide them)", ErrNoDevice)
	case r != 0:
		return nil, failed("initialise the CUDA driver", r)
	}
	return &Driver{Version: int(version)}, nil
}

func tooOld(what string) error {
	return fmt.Errorf("%w: %s, busbw needs %s (driver 450 or later)", ErrTooOld, what, Version(minVersion))
}

// failed is nil for success.
func failed(what string, r C.CUresult) error {
	if r == 0 {
		return nil
	}
	return &Error{what, Code(r), C.GoString(C.gpu_error_name(r)), C.GoString(C.gpu_error_text(r))}
}

// Devices lists the devices that this process may use, in the driver's order.
func (d *Driver) Devices() ([]Info, error) {
	var n C.int
	if err := failed("count devices", C.gpu_count(&n)); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: CUDA_VISIBLE_DEVICES hides all", ErrNoDevice)
	}
	var out []Info
	for i := range int(n) {
		info, err := describe(i)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

func describe(ordinal int) (Info, error) {
	var name, pci [96]C.char
	var uuid C.CUuuid
	var memory C.size_t
	what := fmt.Sprintf("GPU %d: read what it is", ordinal)
	if err := failed(what, C.gpu_describe(C.int(ordinal), &name[0], 96, &pci[0], 96, &uuid, &memory)); err != nil {
		return Info{}, err
	}
	i := Info{Ordinal: ordinal, Name: C.GoString(&name[0]), UUID: formatUUID(C.GoBytes(unsafe.Pointer(&uuid), 16)), PCI: strings.ToLower(C.GoString(&pci[0])), Memory: int64(memory)}
	for _, a := range []struct {
		attr C.int
		to   *int
	}{{C.CU_ATTR_CC_MAJOR, &i.Major}, {C.CU_ATTR_CC_MINOR, &i.Minor}, {C.CU_ATTR_SMS, &i.SMs}} {
		var v C.int
		if err := failed(what, C.gpu_attribute(&v, a.attr, C.CUdevice(ordinal))); err != nil {
			return Info{}, err
		}
		*a.to = int(v)
	}
	// Older drivers do not know these attributes, nor what they stand for.
	var v C.int
	i.GPUDirect = C.gpu_attribute(&v, C.CU_ATTR_GPU_DIRECT_RDMA, C.CUdevice(ordinal)) == 0 && v != 0
	i.DMABuf = C.gpu_attribute(&v, C.CU_ATTR_DMA_BUF, C.CUdevice(ordinal)) == 0 && v != 0
	return i, nil
}

// CanAccess says whether kernels of a device can reach a peer's memory.
func (d *Driver) CanAccess(device, peer Info) (bool, error) {
	var can, rank C.int
	err := failed(fmt.Sprintf("%s: ask for peer access to %s", device, peer), C.gpu_can_access(&can, &rank, C.CUdevice(device.Ordinal), C.CUdevice(peer.Ordinal)))
	return can != 0, err
}

// formatUUID writes it as nvidia-smi -L does.
func formatUUID(b []byte) string {
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
