//go:build !cgo || !linux

package nvml

import "busbw/reports"

// Driver is the opened library; this build has none.
type Driver struct{}

// Open says that this build cannot.
func Open() (*Driver, error) { return nil, ErrNoCgo }

// GPUs is never reached: Open gives no Driver.
func (*Driver) GPUs() ([]reports.GPU, error) { return nil, ErrNoCgo }

// Counters is never reached either.
func (*Driver) Counters() (map[string]map[string]uint64, error) { return nil, ErrNoCgo }

// Close does nothing.
func (*Driver) Close() {}
