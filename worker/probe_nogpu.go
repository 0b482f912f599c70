//go:build !linux || !cgo

package worker

import (
	"errors"

	"busbw/rdma"
)

var errNoGPU = errors.New("this busbw was built without cgo")

// gpuMemory is memory of a GPU, which a build without cgo cannot have.
func gpuMemory(int, int64) (gpuRange, func() error, error) { return nil, nil, errNoGPU }

func registerGPU(*rdma.Device, int, int64) (*rdma.Region, func() error, error) {
	return nil, nil, errNoGPU
}
