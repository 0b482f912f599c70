//go:build !linux || !cgo

package rdma

import (
	"fmt"

	"busbw/collectives/reduce"
)

// A build without cgo has no RDMA: everything here says so.

// Available says why RDMA cannot be used: this build has no cgo.
func Available() error { return fmt.Errorf("%w: this busbw was built without cgo", ErrAbsent) }

// Device is an open port of an RDMA device.
type Device struct {
	Rail     Rail
	GID      GID
	Settings Settings
	Firmware string
	MTU      int
}

// Region is memory that a device may reach.
type Region struct {
	Addr, Size uint64
	How        string
	LKey, RKey uint32
}

// Link carries spans over RC queue pairs.
type Link struct{}

// Pair is one end of a connection for link tests.
type Pair struct{}

func Open(Rail, Settings) (*Device, error)           { return nil, Available() }
func (d *Device) Register([]byte) (*Region, error)   { return nil, Available() }
func (d *Device) DMABuf() error                      { return Available() }
func (d *Device) Event() *Event                      { return nil }
func (d *Device) Trouble() error                     { return nil }
func (d *Device) Close() error                       { return nil }
func (d *Device) String() string                     { return d.Rail.String() }
func (r *Region) Close() error                       { return nil }
func NewLink(*Device, LinkConfig) (*Link, error)     { return nil, Available() }
func (l *Link) Hello(int) ([]byte, error)            { return nil, Available() }
func (l *Link) Connect(int, []byte) error            { return Available() }
func (l *Link) Register([]byte) error                { return Available() }
func (l *Link) Use(*Region)                          {}
func (l *Link) Forget([]byte) error                  { return Available() }
func (l *Link) Attributes(int) ([]Attributes, error) { return nil, Available() }
func (l *Link) Send(int, []byte) error               { return Available() }
func (l *Link) WaitSent(int, uint64) error           { return Available() }
func (l *Link) Recv(int, []byte) error               { return Available() }
func (l *Link) Expect(int, uint64, []byte) error     { return Available() }
func (l *Link) Poll() error                          { return Available() }
func (l *Link) Drain() error                         { return nil }
func (l *Link) Close() error                         { return nil }

func (l *Link) Reduce(int, []byte, []byte, *reduce.Kernels) error { return Available() }

func (d *Device) RegisterGPU(uint64, uint64, func() (int, uint64, error)) (*Region, []Attempt) {
	return nil, []Attempt{{"any", Available()}}
}

func NewPair(*Device, PairConfig) (*Pair, error)  { return nil, Available() }
func (p *Pair) Hello() []byte                     { return nil }
func (p *Pair) Connect([]byte) error              { return Available() }
func (p *Pair) Attributes() ([]Attributes, error) { return nil, Available() }
func (p *Pair) Run(Test) ([]float64, error)       { return nil, Available() }
func (p *Pair) Serve() error                      { return Available() }
func (p *Pair) End() error                        { return Available() }
func (p *Pair) Close() error                      { return nil }
