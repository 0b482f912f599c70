package rdma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Hello is what one side of a connection must know of the other. It travels
// as bytes over the control plane.
type Hello struct {
	From, To  int32  // ranks, to find crossed wires
	LinkLayer uint8  // 1 InfiniBand, 2 Ethernet
	MTU       uint8  // 1 … 5: 256 … 4096 bytes
	LID       uint16 // InfiniBand
	GIDIndex  uint8  // of the sender's table: for the record
	Reads     uint8  // most RDMA reads that may be under way on a queue pair, to and from it
	GID       [16]byte
	Chunk     uint32 // most bytes of one message
	Window    uint32 // most messages that may be under way
	Addr      uint64 // memory that the peer may write (and, for link tests, read)
	Size      uint64
	RKey      uint32
	QPs       []QPStart
}

// QPStart is a queue pair's number and its first packet's number, 24 bits each.
type QPStart struct{ Num, PSN uint32 }

const (
	helloMagic = 0x31_6c_72_42 // "Brl1"
	helloFixed = 4 + 8 + 4 + 2 + 16 + 8 + 16 + 4 + 2
)

// Encode is the hello in its fixed little-endian layout.
func (h Hello) Encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, helloFixed+8*len(h.QPs))
	b = le.AppendUint32(b, helloMagic)
	b = le.AppendUint32(le.AppendUint32(b, uint32(h.From)), uint32(h.To))
	b = le.AppendUint16(append(b, h.LinkLayer, h.MTU, h.GIDIndex, h.Reads), h.LID)
	b = append(b, h.GID[:]...)
	b = le.AppendUint32(le.AppendUint32(b, h.Chunk), h.Window)
	b = le.AppendUint64(le.AppendUint64(b, h.Addr), h.Size)
	b = le.AppendUint16(le.AppendUint32(b, h.RKey), uint16(len(h.QPs)))
	for _, q := range h.QPs {
		b = le.AppendUint32(le.AppendUint32(b, q.Num), q.PSN)
	}
	return b
}

// ParseHello reads and checks what a peer sent.
func ParseHello(b []byte) (Hello, error) {
	var h Hello
	le := binary.LittleEndian
	if len(b) < helloFixed {
		return h, fmt.Errorf("connection data of %d bytes; the shortest has %d", len(b), helloFixed+8)
	}
	if m := le.Uint32(b); m != helloMagic {
		return h, fmt.Errorf("connection data begins with %#x, not %#x: another version of busbw?", m, uint32(helloMagic))
	}
	h.From, h.To = int32(le.Uint32(b[4:])), int32(le.Uint32(b[8:]))
	h.LinkLayer, h.MTU, h.GIDIndex, h.Reads, h.LID = b[12], b[13], b[14], b[15], le.Uint16(b[16:])
	copy(h.GID[:], b[18:])
	h.Chunk, h.Window = le.Uint32(b[34:]), le.Uint32(b[38:])
	h.Addr, h.Size, h.RKey = le.Uint64(b[42:]), le.Uint64(b[50:]), le.Uint32(b[58:])
	n := int(le.Uint16(b[62:]))
	if n < 1 || n > maxQPs || len(b) != helloFixed+8*n {
		return h, fmt.Errorf("connection data of %d bytes names %d queue pairs", len(b), n)
	}
	for q := b[helloFixed:]; len(q) > 0; q = q[8:] {
		s := QPStart{le.Uint32(q), le.Uint32(q[4:])}
		if s.Num>>24 != 0 || s.PSN>>24 != 0 {
			return h, fmt.Errorf("queue pair %#x, packet %#x: more than 24 bits", s.Num, s.PSN)
		}
		h.QPs = append(h.QPs, s)
	}
	switch {
	case h.From < 0 || h.To < 0:
		return h, fmt.Errorf("connection data from rank %d to rank %d", h.From, h.To)
	case h.LinkLayer != 1 && h.LinkLayer != 2:
		return h, fmt.Errorf("link layer %d is neither InfiniBand nor Ethernet", h.LinkLayer)
	case h.MTU < 1 || h.MTU > 5:
		return h, fmt.Errorf("MTU code %d is not 1 to 5", h.MTU)
	case h.Chunk < 1 || h.Chunk > maxChunk:
		return h, fmt.Errorf("messages of %d bytes", h.Chunk)
	case h.Window < 1 || h.Window > maxWindow:
		return h, fmt.Errorf("a window of %d messages", h.Window)
	case h.Addr+h.Size < h.Addr:
		return h, errors.New("the peer's memory wraps around the end of the address space")
	}
	return h, nil
}

// agree says whether two sides can talk, and by which MTU.
func agree(mine, peer Hello) (mtu uint8, err error) {
	switch {
	case mine.From != peer.To || mine.To != peer.From:
		return 0, fmt.Errorf("the connection data is for rank %d from rank %d, but belongs to rank %d from rank %d", peer.To, peer.From, mine.From, mine.To)
	case mine.LinkLayer != peer.LinkLayer:
		return 0, errors.New("one side is InfiniBand, the other Ethernet (RoCE)")
	case len(mine.QPs) != len(peer.QPs):
		return 0, fmt.Errorf("%d queue pairs here, %d there: NCCL_IB_QPS_PER_CONNECTION differs", len(mine.QPs), len(peer.QPs))
	case mine.LinkLayer == 2 && netip.AddrFrom16(mine.GID).Is4In6() != netip.AddrFrom16(peer.GID).Is4In6():
		return 0, fmt.Errorf("GID %s here, %s there: one is IPv4, the other IPv6; set NCCL_IB_GID_INDEX or NCCL_IB_ADDR_FAMILY", netip.AddrFrom16(mine.GID).Unmap(), netip.AddrFrom16(peer.GID).Unmap())
	}
	return min(mine.MTU, peer.MTU), nil
}
