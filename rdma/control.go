package rdma

import (
	"encoding/binary"
	"fmt"
)

// control is what a receiver tells its sender, in a SEND of its own: what it
// has taken so far, and a span of the coming stream that may be written
// straight to its place.
type control struct {
	Taken uint64 // chunks
	Freed uint64 // bytes of the ring
	Span  span   // n = 0: none
}

// controlSize is the bytes of an encoded control message.
const controlSize = 48

const controlMagic = 0x6c746342 // "Bctl"

func (c control) encode(b []byte) {
	le := binary.LittleEndian
	_ = b[controlSize-1]
	le.PutUint64(b, c.Taken)
	le.PutUint64(b[8:], c.Freed)
	le.PutUint64(b[16:], c.Span.start)
	le.PutUint64(b[24:], c.Span.n)
	le.PutUint64(b[32:], c.Span.addr)
	le.PutUint32(b[40:], c.Span.rkey)
	le.PutUint32(b[44:], controlMagic)
}

func parseControl(b []byte) (control, error) {
	le := binary.LittleEndian
	if len(b) != controlSize || le.Uint32(b[44:]) != controlMagic {
		return control{}, fmt.Errorf("the peer sent %d bytes that are no control message", len(b))
	}
	return control{le.Uint64(b), le.Uint64(b[8:]), span{le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:]), le.Uint32(b[40:])}}, nil
}
