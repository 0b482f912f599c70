package collectives

import (
	"bytes"
	"strings"
	"testing"
)

func sampleHello() tcpHello {
	h := tcpHello{version: tcpVersion, sockets: 4, socket: 3, from: 7, to: 4095, stripe: 64 << 10}
	copy(h.token[:], "0123456789abcdef0123456789abcdef")
	return h
}

func TestTCPHelloRoundTrip(t *testing.T) {
	want := sampleHello()
	b := want.encode()
	if len(b) != tcpHelloLen {
		t.Fatalf("hello has %d bytes, want %d", len(b), tcpHelloLen)
	}
	got, err := parseTCPHello(b)
	if err != nil || got != want {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
	v, detail, err := parseTCPReply(encodeTCPReply(tcpOtherCut, 9))
	if v != tcpOtherCut || detail != 9 || err != nil {
		t.Fatalf("reply: %v %v %v", v, detail, err)
	}
}

func TestTCPHelloRefuses(t *testing.T) {
	for _, c := range []struct {
		what string
		edit func(*tcpHello)
		want string
	}{
		{"socket beyond the sockets", func(h *tcpHello) { h.socket = 2 * h.sockets }, "socket 8 of 8"},
		{"no sockets", func(h *tcpHello) { h.sockets, h.socket = 0, 0 }, "socket 0 of 0"},
		{"too many sockets", func(h *tcpHello) { h.sockets = 65 }, "socket 3 of 130"},
		{"higher rank dials", func(h *tcpHello) { h.from, h.to = 9, 8 }, "the lower rank dials"},
		{"rank dials itself", func(h *tcpHello) { h.from, h.to = 8, 8 }, "the lower rank dials"},
		{"huge rank", func(h *tcpHello) { h.to = tcpMaxRank }, "the lower rank dials"},
		{"no stripe", func(h *tcpHello) { h.stripe = 0 }, "stripes of 0"},
		{"negative stripe", func(h *tcpHello) { h.stripe = -1 }, "stripes of 4294967295"},
	} {
		h := sampleHello()
		c.edit(&h)
		if _, err := parseTCPHello(h.encode()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.want)
		}
	}
	b := sampleHello().encode()
	b[30] = 1
	if _, err := parseTCPHello(b); err == nil {
		t.Error("reserved bytes may be set")
	}
	old := sampleHello()
	old.version, old.socket = 77, 500
	if h, err := parseTCPHello(old.encode()); err != nil || h.version != 77 {
		t.Errorf("another version: %+v, %v; want its number and no error", h, err)
	}
	if _, _, err := parseTCPReply([]byte("HTTP/1.1 400 Bad")); err == nil {
		t.Error("a web server's answer passes for a reply")
	}
}

// FuzzTCPHello: whatever arrives, numbers are within bounds or refused, and
// what is accepted is what would have been sent.
func FuzzTCPHello(f *testing.F) {
	f.Add(sampleHello().encode())
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(make([]byte, tcpHelloLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseTCPHello(b)
		if err != nil || h.version != tcpVersion {
			return
		}
		if h.from < 0 || h.from >= h.to || h.to >= tcpMaxRank || h.socket < 0 || h.socket >= h.sockets || h.sockets > tcpMaxSocket || h.stripe < 1 {
			t.Fatalf("accepted %+v", h)
		}
		if !bytes.Equal(h.encode(), b) {
			t.Fatalf("%x read as %+v, which is written %x", b, h, h.encode())
		}
	})
}
