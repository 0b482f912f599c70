package collectives

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestLoopbackStream(t *testing.T) {
	start := time.Now()
	r, err := LoopbackStream(netip.MustParseAddr("127.0.0.1"), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// Any machine carries 0.05 GB/s; none carries 1000.
	if r.GBps < 0.05 || r.GBps > 1000 || !strings.Contains(r.How, "both ways added") {
		t.Errorf("got %.3f GB/s, %q", r.GBps, r.How)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("a measurement of 0.1 s took %v", took)
	}
	foreign := netip.MustParseAddr("192.0.2.1") // TEST-NET-1, RFC 5737
	if _, err := LoopbackStream(foreign, time.Millisecond); err == nil || !strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("foreign address: %v", err)
	}
}
