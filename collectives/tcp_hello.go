package collectives

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"math"
)

// A data connection starts with a hello from the lower rank and a reply from
// the higher; after that it carries nothing but the spans. All numbers are
// little-endian.
//
//	hello:  magic[8] version:2 sockets:2 socket:2 0:2 from:4 to:4 stripe:4 0:4 token[32]
//	reply:  magic[8] version:2 verdict:2 detail:4
const (
	tcpVersion   = 2
	tcpHelloLen  = 64
	tcpReplyLen  = 16
	tcpMaxRank   = 1 << 24 // far above any cluster; bounds tables that are indexed by rank
	tcpMaxSocket = 64      // NCCL's limit on NCCL_SOCKET_NTHREADS × NCCL_NSOCKS_PERTHREAD
)

var (
	tcpHelloMagic = []byte("busbw\x00>\n")
	tcpReplyMagic = []byte("busbw\x00<\n")
)

// tcpHello is the first thing that a dialling rank says.
type tcpHello struct {
	version         uint16
	sockets, socket int // sockets per peer and direction; which of them all this is
	from, to        int // global ranks
	stripe          int // bytes: both sides must cut spans in the same places
	token           [32]byte
}

func (h tcpHello) encode() []byte {
	b := make([]byte, 0, tcpHelloLen)
	b = append(b, tcpHelloMagic...)
	b = binary.LittleEndian.AppendUint16(b, h.version)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.sockets))
	b = binary.LittleEndian.AppendUint16(b, uint16(h.socket))
	b = append(b, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.from))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.to))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.stripe))
	b = append(b, 0, 0, 0, 0)
	return append(b, h.token[:]...)
}

// parseTCPHello reads a hello and bounds every number in it. With another
// version only the version is set, as the rest may mean something else.
func parseTCPHello(b []byte) (h tcpHello, err error) {
	if len(b) != tcpHelloLen || !bytes.Equal(b[:8], tcpHelloMagic) {
		return h, fmt.Errorf("not a busbw data connection")
	}
	if h.version = binary.LittleEndian.Uint16(b[8:]); h.version != tcpVersion {
		return h, nil
	}
	h.sockets = int(binary.LittleEndian.Uint16(b[10:]))
	h.socket = int(binary.LittleEndian.Uint16(b[12:]))
	from, to, stripe := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:]), binary.LittleEndian.Uint32(b[24:])
	switch {
	case b[14]|b[15]|b[28]|b[29]|b[30]|b[31] != 0:
		return h, fmt.Errorf("hello: reserved bytes are set")
	case h.sockets < 1 || h.sockets > tcpMaxSocket || h.socket >= 2*h.sockets:
		return h, fmt.Errorf("hello: socket %d of %d", h.socket, 2*h.sockets)
	case from >= tcpMaxRank || to >= tcpMaxRank || from >= to:
		return h, fmt.Errorf("hello: from rank %d to rank %d; the lower rank dials", from, to)
	case stripe == 0 || stripe > math.MaxInt32:
		return h, fmt.Errorf("hello: stripes of %d bytes", stripe)
	}
	h.from, h.to, h.stripe = int(from), int(to), int(stripe)
	copy(h.token[:], b[32:])
	return h, nil
}

// tcpVerdict is the listener's answer to a hello.
type tcpVerdict uint16

const (
	tcpWelcome   tcpVerdict = iota
	tcpOtherVer             // detail: the listener's version
	tcpOtherJob             // the token is not that of the launch
	tcpNotHere              // the rank does not live in this process
	tcpTaken                // this socket of this pair is connected already
	tcpOtherCut             // detail: the listener's sockets per peer
	tcpVerdictsN            // how many there are
)

// again says whether the same hello may be answered otherwise a little later.
func (v tcpVerdict) again() bool { return v == tcpTaken }

func encodeTCPReply(v tcpVerdict, detail uint32) []byte {
	b := append(make([]byte, 0, tcpReplyLen), tcpReplyMagic...)
	b = binary.LittleEndian.AppendUint16(b, tcpVersion)
	b = binary.LittleEndian.AppendUint16(b, uint16(v))
	return binary.LittleEndian.AppendUint32(b, detail)
}

func parseTCPReply(b []byte) (tcpVerdict, uint32, error) {
	if len(b) != tcpReplyLen || !bytes.Equal(b[:8], tcpReplyMagic) {
		return 0, 0, fmt.Errorf("what listens there is not busbw")
	}
	v := tcpVerdict(binary.LittleEndian.Uint16(b[10:]))
	if v >= tcpVerdictsN {
		return 0, 0, fmt.Errorf("busbw listens there, of another version (verdict %d)", v)
	}
	return v, binary.LittleEndian.Uint32(b[12:]), nil
}

// judge is the listener's verdict on a hello, but for tcpTaken.
func (l *TCPListener) judge(h tcpHello) (tcpVerdict, uint32) {
	switch {
	case h.version != tcpVersion:
		return tcpOtherVer, tcpVersion
	case subtle.ConstantTimeCompare(h.token[:], l.token[:]) != 1:
		return tcpOtherJob, 0
	case !l.hosts[h.to]:
		return tcpNotHere, 0
	case h.sockets != l.cfg.Sockets || h.stripe != l.cfg.MinStripe:
		return tcpOtherCut, uint32(l.cfg.Sockets)
	}
	return tcpWelcome, 0
}

// explain says what a verdict means to the rank that got it.
func (h tcpHello) explain(v tcpVerdict, detail uint32) error {
	switch v {
	case tcpOtherVer:
		return fmt.Errorf("it speaks version %d of the data protocol, this is version %d: the nodes run different busbw", detail, h.version)
	case tcpOtherJob:
		return fmt.Errorf("it belongs to another run (the token differs)")
	case tcpNotHere:
		return fmt.Errorf("rank %d does not live there", h.to)
	case tcpTaken:
		return fmt.Errorf("it has a connection from rank %d already", h.from)
	case tcpOtherCut:
		return fmt.Errorf("it cuts spans otherwise (%d sockets a peer there, %d here): NCCL_NSOCKS_PERTHREAD and NCCL_SOCKET_NTHREADS must be the same on all nodes", detail, h.sockets)
	}
	return nil
}
