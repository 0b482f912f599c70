//go:build !linux || !cgo

package nccl

import (
	"context"
	"fmt"
	"unsafe"
)

// Open says that this build cannot.
func Open() (Library, error) {
	return Library{}, fmt.Errorf("%w: this busbw was built without cgo", ErrAbsent)
}

// NewID is never reached.
func NewID() (ID, error) { return ID{}, ErrAbsent }

// Comm is never made.
type Comm struct{}

// Join is never reached.
func Join(context.Context, int, ID, int, func()) (*Comm, error) { return nil, ErrAbsent }

// Fault is never reached.
func (*Comm) Fault() error { return ErrAbsent }

// Close is never reached.
func (*Comm) Close() error { return ErrAbsent }

// Abort is never reached.
func (*Comm) Abort() error { return ErrAbsent }

// Queue is never reached.
func (*Comm) Queue(context.Context, Call, unsafe.Pointer) error { return ErrAbsent }
