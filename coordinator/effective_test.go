package coordinator

import (
	"fmt"
	"strings"
	"testing"
)

func TestOverNetwork(t *testing.T) {
	two := joined(overNetwork(OpenReply{Addr: "10.0.0.1:4000", Iface: "eth0"}), overNetwork(OpenReply{Addr: "10.0.0.2:4000", Iface: "ib0"}))
	if two["interface"] != "eth0/ib0" || two["address family"] != "IPv4" {
		t.Errorf("%v", two)
	}
	if six := overNetwork(OpenReply{Addr: "[fd00::1]:4000"}); six["address family"] != "IPv6" || len(six) != 1 {
		t.Errorf("%v", six)
	}
}

func TestJoinedSaysWhereNodesDiffer(t *testing.T) {
	all := joined(nil, map[string]string{"channels": "2", "sockets": "1"})
	all = joined(all, map[string]string{"channels": "2", "sockets": "4"})
	all = joined(all, map[string]string{"channels": "2", "sockets": "1"})
	if all["channels"] != "2" || all["sockets"] != "1/4" {
		t.Errorf("%v; want channels 2 and sockets 1/4", all)
	}
	huge := map[string]string{}
	for i := range 1000 {
		huge[fmt.Sprint(i)] = strings.Repeat("x\n", 1000)
	}
	all = joined(nil, huge)
	if len(all) > maxEffective {
		t.Errorf("%d names were taken from a node; want at most %d", len(all), maxEffective)
	}
	for _, v := range all {
		if len(v) > maxValue+10 || strings.Contains(v, "\n") {
			t.Errorf("value of %d bytes: %q", len(v), v)
		}
	}
	if joined(nil, nil) != nil {
		t.Error("a node that says nothing makes a map")
	}
}
