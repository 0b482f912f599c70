package collectives

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestLoopbackStream(t *testing.T) {
	r, err := LoopbackStream(netip.MustParseAddr("127.0.0.1"), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine carries next to nothing; none carries 1000 GB/s.
	if r.GBps <= 0 || r.GBps > 1000 || !strings.Contains(r.How, "both ways added") {
		t.Errorf("got %.3f GB/s, %q", r.GBps, r.How)
	}
	foreign := netip.MustParseAddr("192.0.2.1") // TEST-NET-1, RFC 5737
	if _, err := LoopbackStream(foreign, time.Millisecond); err == nil || !strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("foreign address: %v", err)
	}
}

func TestDisturbed(t *testing.T) {
	for _, tc := range []struct {
		one, both float64
		want      bool
	}{{3.17, 0.79, true}, {3.17, 1.7, false}, {2, 3.5, false}} {
		if got := disturbed(tc.one, tc.both); got != tc.want {
			t.Errorf("%.2f GB/s one way and %.2f both ways: disturbed %v", tc.one, tc.both, got)
		}
	}
}
