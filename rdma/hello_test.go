package rdma

import (
	"reflect"
	"strings"
	"testing"
)

func someHello() Hello {
	return Hello{From: 3, To: 5, LinkLayer: 2, MTU: 5, GIDIndex: 3, Reads: 16, LID: 9, GID: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}, Chunk: 65536, Window: 64, Addr: 1 << 40, Size: 1 << 20, RKey: 77, QPs: []QPStart{{17, 100}, {18, 1<<24 - 1}}}
}

func TestHello(t *testing.T) {
	h := someHello()
	got, err := ParseHello(h.Encode())
	if err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("%+v, %v; want %+v", got, err, h)
	}
	for name, change := range map[string]func(*Hello){
		"no queue pair": func(h *Hello) { h.QPs = nil }, "number of 25 bits": func(h *Hello) { h.QPs[0].Num = 1 << 24 }, "MTU": func(h *Hello) { h.MTU = 6 },
		"link layer": func(h *Hello) { h.LinkLayer = 0 }, "chunk": func(h *Hello) { h.Chunk = 1 << 24 }, "window": func(h *Hello) { h.Window = maxWindow + 1 },
		"memory around the end": func(h *Hello) { h.Addr = ^uint64(0) }, "rank": func(h *Hello) { h.From = -1 },
	} {
		h := someHello()
		change(&h)
		if _, err := ParseHello(h.Encode()); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for n := range h.Encode() {
		if _, err := ParseHello(h.Encode()[:n]); err == nil {
			t.Errorf("the first %d bytes were taken", n)
		}
	}
}

func TestAgree(t *testing.T) {
	peer := someHello()
	mine := someHello()
	mine.From, mine.To, mine.MTU = peer.To, peer.From, 3
	if mtu, err := agree(mine, peer); err != nil || mtu != 3 {
		t.Errorf("MTU %d, %v; want the smaller one", mtu, err)
	}
	for want, change := range map[string]func(*Hello){
		"belongs to":             func(h *Hello) { h.To = 6 },
		"InfiniBand":             func(h *Hello) { h.LinkLayer = 1 },
		"QPS_PER_CONNECTION":     func(h *Hello) { h.QPs = h.QPs[:1] },
		"one is IPv4, the other": func(h *Hello) { h.GID = [16]byte{0: 0xfe, 1: 0x80, 15: 1} },
	} {
		h := someHello()
		change(&h)
		if _, err := agree(mine, h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func FuzzParseHello(f *testing.F) {
	f.Add(someHello().Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHello(b)
		if err != nil {
			return
		}
		again, err := ParseHello(h.Encode())
		if err != nil || !reflect.DeepEqual(again, h) {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}
