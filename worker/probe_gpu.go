//go:build linux && cgo

package worker

import (
	"fmt"

	"busbw/worker/gpu"
)

// gpuMemory is a little memory of the first GPU; nil, and why, without one.
func gpuMemory() (mem gpuRange, free func(), why string) {
	free = func() {}
	d, err := gpu.Open()
	if err != nil {
		return nil, free, err.Error()
	}
	infos, err := d.Devices()
	if err != nil || len(infos) == 0 {
		return nil, free, fmt.Sprintf("the CUDA driver shows no GPU (%v)", err)
	}
	g, err := d.Device(infos[0].Ordinal)
	if err != nil {
		return nil, free, err.Error()
	}
	m, err := g.Alloc(2 << 20)
	if err != nil {
		g.Close()
		return nil, free, err.Error()
	}
	return m, func() { m.Free(); g.Close() }, ""
}
