//go:build !linux || !cgo

package gpu

import (
	"fmt"
	"time"
	"unsafe"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

// A build without cgo has no GPUs: Open says so, and nothing comes after it.

type (
	// Driver is the CUDA driver of this machine.
	Driver struct{ Version int }
	// Device is a GPU with its primary context.
	Device struct{ Info }
	// Memory is a range of device memory.
	Memory struct{}
	// Seat is a rank's place on a device.
	Seat struct{ Device *Device }
	// Exchange is where ranks of one process meet that have no peer access.
	Exchange struct{}
	// Link carries spans of device memory to where the device cannot copy them.
	Link struct{}
)

var errNone = fmt.Errorf("%w: this busbw was built without cgo", ErrAbsent)

func Open() (*Driver, error) { return nil, errNone }

func (d *Driver) Devices() ([]Info, error)            { return nil, errNone }
func (d *Driver) Device(int) (*Device, error)         { return nil, errNone }
func (d *Driver) CanAccess(Info, Info) (bool, error)  { return false, errNone }
func (g *Device) Seat() (*Seat, error)                { return nil, errNone }
func (g *Device) Free() (int64, error)                { return 0, errNone }
func (g *Device) Close() error                        { return errNone }
func (m *Memory) Span(int64, int64) []byte            { return nil }
func (q *Seat) Reach(*Device) (bool, string, error)   { return false, "", errNone }
func (q *Seat) Alloc(int64) (*Memory, error)          { return nil, errNone }
func (q *Seat) Free(*Memory) error                    { return errNone }
func (q *Seat) Set([]byte, byte) error                { return errNone }
func (q *Seat) Put(_, _ []byte) error                 { return errNone }
func (m *Memory) Holds([]byte) bool                   { return false }
func (m *Memory) Address() uint64                     { return 0 }
func (m *Memory) Size() int64                         { return 0 }
func (m *Memory) Export() (int, uint64, error)        { return -1, 0, errNone }
func (q *Seat) Fill([]byte, []byte) error             { return errNone }
func (q *Seat) Mark(int32) error                      { return errNone }
func (q *Seat) After(collectives.Device, int32) error { return errNone }
func (q *Seat) Drain() error                          { return errNone }
func (q *Seat) Close() error                          { return errNone }
func NewExchange(*collectives.Abort) *Exchange        { return nil }
func (l *Link) Over(collectives.Link, Direct) error   { return errNone }
func (l *Link) Here(int) bool                         { return false }
func (l *Link) Send(int, []byte) error                { return errNone }
func (l *Link) WaitSent(int, uint64) error            { return errNone }
func (l *Link) Recv(int, []byte) error                { return errNone }
func (l *Link) Poll() error                           { return errNone }
func (l *Link) Close() error                          { return errNone }

func (q *Seat) Check([]byte, []byte, int) (wrong, first int64, err error) { return 0, -1, errNone }

func (q *Seat) Pass(_, _ []unsafe.Pointer, _ int64, _ *reduce.Kernels, _ int) error { return errNone }

func (l *Link) Reduce(int, []byte, []byte, *reduce.Kernels) error { return errNone }

func NewLink(*Seat, int, *Exchange, []int, collectives.Link) (*Link, error) { return nil, errNone }

// CopyWarmup is how many copies are thrown away.
const CopyWarmup = 0

func (g *Device) CopyTimes(int64, time.Duration) (in, out []float64, err error) {
	return nil, nil, errNone
}

func (g *Device) PeerTimes(*Device, int64, time.Duration) ([]float64, error) { return nil, errNone }

// Done is never reached.
func (*Seat) Done() (bool, error) { return true, ErrAbsent }

// Stream is never reached.
func (*Seat) Stream() unsafe.Pointer { return nil }
