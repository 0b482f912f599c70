//go:build !linux || !cgo

package gpu

import "fmt"

// A build without cgo has no GPUs: Open says so, and nothing comes after it.

// Driver is the CUDA driver of this machine.
type Driver struct{ Version int }

// Open says why there is no driver.
func Open() (*Driver, error) {
	return nil, fmt.Errorf("%w: this busbw was built without cgo", ErrAbsent)
}

// Devices is never reached.
func (d *Driver) Devices() ([]Info, error) { return nil, ErrAbsent }
