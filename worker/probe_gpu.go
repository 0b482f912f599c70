//go:build linux && cgo

package worker

import (
	"errors"
	"fmt"
	"strings"

	"busbw/rdma"
	"busbw/worker/gpu"
)

// gpuMemory is memory of a GPU, and what gives it back.
func gpuMemory(ordinal int, size int64) (mem gpuRange, free func() error, err error) {
	d, err := gpu.Open()
	if err != nil {
		return nil, nil, err
	}
	g, err := d.Device(ordinal)
	if err != nil {
		return nil, nil, err
	}
	m, err := g.Alloc(size)
	if err != nil {
		return nil, nil, errors.Join(err, g.Close())
	}
	return m, func() error { return errors.Join(m.Free(), g.Close()) }, nil
}

// registerGPU is memory of a GPU that an RDMA device may reach, and what gives
// it back.
func registerGPU(d *rdma.Device, ordinal int, size int64) (*rdma.Region, func() error, error) {
	m, free, err := gpuMemory(ordinal, size)
	if err != nil {
		return nil, nil, err
	}
	region, tried := d.RegisterGPU(m.Address(), uint64(m.Size()), m.Export)
	if region == nil {
		var all []string
		for _, a := range tried {
			all = append(all, fmt.Sprintf("%s: %v", a.How, a.Err))
		}
		return nil, nil, errors.Join(fmt.Errorf("GPU memory cannot be registered: %s", strings.Join(all, "; ")), free())
	}
	return region, func() error { return errors.Join(region.Close(), free()) }, nil
}
