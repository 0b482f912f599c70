package rdma

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// machine makes a file system of lines "path: text".
func machine(lines string) fstest.MapFS {
	m := fstest.MapFS{}
	for l := range strings.Lines(lines) {
		if name, text, ok := strings.Cut(strings.TrimSpace(l), ": "); ok {
			m[infiniband+"/"+name] = &fstest.MapFile{Data: []byte(text + "\n")}
		}
	}
	return m
}

const twoHCAs = `
mlx5_0/hca_type: MT4129
mlx5_0/fw_ver: 28.39.1002
mlx5_0/node_guid: a088:c203:00ab:cdef
mlx5_0/device/numa_node: 1
mlx5_0/device/uevent: PCI_SLOT_NAME=0000:3b:00.0
mlx5_0/ports/1/state: 4: ACTIVE
mlx5_0/ports/1/phys_state: 5: LinkUp
mlx5_0/ports/1/link_layer: InfiniBand
mlx5_0/ports/1/lid: 0x9a
mlx5_0/ports/1/sm_lid: 0x1
mlx5_0/ports/1/rate: 400 Gb/sec (4X NDR)
mlx5_0/ports/1/pkeys/0: 0x7fff
mlx5_0/ports/1/pkeys/1: 0x8001
mlx5_0/ports/1/gids/0: fe80:0000:0000:0000:a088:c203:00ab:cdef
mlx5_0/ports/1/gid_attrs/types/0: IB/RoCE v1
mlx5_7/device/numa_node: -1
mlx5_7/ports/1/state: 1: DOWN
mlx5_7/ports/1/phys_state: 5: LinkUp
mlx5_7/ports/1/link_layer: InfiniBand
mlx5_7/ports/1/lid: 0xffff
mlx5_7/ports/1/sm_lid: 0x1
mlx5_7/ports/1/rate: 2.5 Gb/sec (1X SDR)
`

func TestHCAs(t *testing.T) {
	hcas, err := HCAs(machine(twoHCAs))
	if err != nil || len(hcas) != 2 {
		t.Fatalf("%d devices, %v", len(hcas), err)
	}
	h := hcas[0]
	if h.Name != "mlx5_0" || h.Type != "MT4129" || h.Firmware != "28.39.1002" || h.PCI != "0000:3b:00.0" || h.NUMA == nil || *h.NUMA != 1 {
		t.Errorf("%+v", h)
	}
	if p := h.Ports[0]; p.State != PortActive || p.Phys != PhysUp || p.LID != 154 || p.SMLID != 1 || p.Gbps != 400 || p.Width != 4 || !reflect.DeepEqual(p.PKeys, []uint16{0x7fff, 0x8001}) {
		t.Errorf("%+v", p)
	}
	if p := hcas[1].Ports[0]; hcas[1].NUMA != nil || p.Gbps != 2.5 || p.Width != 1 {
		t.Errorf("%+v of %+v", p, hcas[1])
	}
	// a port that is down although its link is up is the subnet manager's business, not the cable's
	s, _, err := ParseSettings(nil)
	if err != nil {
		t.Fatal(err)
	}
	rails, passed := Rails(hcas, s)
	if len(rails) != 1 || rails[0].String() != "mlx5_0:1" || len(passed) != 1 || !strings.Contains(passed[0], "subnet manager has not activated") {
		t.Errorf("rails %v, passed over %v", rails, passed)
	}
	if none, err := HCAs(fstest.MapFS{}); err != nil || len(none) != 0 {
		t.Errorf("a machine without devices: %v, %v", none, err)
	}
	if _, err := HCAs(machine("mlx5_0/ports/x/state: 4: ACTIVE")); err == nil {
		t.Error("a port named x was taken")
	}
}

// GID tables that were reported from the field, and the row that works there.
func TestPickGID(t *testing.T) {
	const linkLocal, mapped = "fe80:0000:0000:0000:c025:a1ff:fe00:0002", "0000:0000:0000:0000:0000:ffff:0a14:8184"
	table := func(first int, rows ...string) string {
		var b strings.Builder
		for i, r := range rows {
			gid, typ, _ := strings.Cut(r, " ")
			fmt.Fprintf(&b, "m/ports/1/gids/%d: %s\n", first+i, gid)
			if typ != "" {
				fmt.Fprintf(&b, "m/ports/1/gid_attrs/types/%d: %s\n", first+i, typ)
			}
		}
		return b.String() + "m/ports/1/link_layer: Ethernet\nm/ports/1/gids/200: 0000:0000:0000:0000:0000:0000:0000:0000\n"
	}
	const v1, v2 = " IB/RoCE v1", " RoCE v2"
	for _, tc := range []struct {
		name, table string
		env         map[string]string
		want        string // row and address, or part of the error
	}{
		{"link-local rows first", table(0, linkLocal+v1, linkLocal+v2, mapped+v1, mapped+v2), nil, "3: 10.20.129.132 v2"},
		{"leading rows empty", table(4, linkLocal+v1, linkLocal+v2, mapped+v1, mapped+v2), nil, "7: 10.20.129.132 v2"},
		{"order reversed", table(4, mapped+v1, mapped+v2, linkLocal+v1, linkLocal+v2), nil, "5: 10.20.129.132 v2"},
		{"versions not told", table(0, linkLocal, linkLocal, mapped, mapped), nil, "3: 10.20.129.132"},
		{"versions not told, two rows", table(0, linkLocal, mapped), nil, "1: 10.20.129.132"},
		{"link-local before a routable one", table(0, linkLocal+v2, "2001:0db8:0000:0000:0000:0000:0000:0001"+v2), nil, "1: 2001:db8::1 v2"},
		{"the wrong version before an unknown one", table(0, mapped+v1, mapped), nil, "1: 10.20.129.132"},
		{"link-local only", table(0, linkLocal+v1, linkLocal+v2), nil, "1: fe80::c025:a1ff:fe00:2 v2"},
		{"version 1 wanted", table(0, linkLocal+v1, linkLocal+v2, mapped+v1, mapped+v2), map[string]string{"NCCL_IB_ROCE_VERSION_NUM": "1"}, "2: 10.20.129.132 v1"},
		{"IPv6 wanted", table(0, mapped+v2, "2001:0db8:0000:0000:0000:0000:0000:0001"+v2), map[string]string{"NCCL_IB_ADDR_FAMILY": "AF_INET6"}, "1: 2001:db8::1 v2"},
		{"range", table(0, "0000:0000:0000:0000:0000:ffff:0a00:0001"+v2, mapped+v2), map[string]string{"NCCL_IB_ADDR_RANGE": "10.20.0.0/16"}, "1: 10.20.129.132 v2"},
		{"range without a match", table(0, mapped+v2), map[string]string{"NCCL_IB_ADDR_RANGE": "192.168.0.0/16"}, "no GID in 192.168.0.0/16"},
		{"row named", table(0, linkLocal+v1, linkLocal+v2, mapped+v1, mapped+v2), map[string]string{"NCCL_IB_GID_INDEX": "2"}, "2: 10.20.129.132 v1"},
		{"empty row named", table(4, linkLocal+v1, mapped+v2), map[string]string{"NCCL_IB_GID_INDEX": "3"}, "nothing in GID row 3"},
		{"nothing", "m/ports/1/link_layer: Ethernet\n", nil, "has no GID"},
	} {
		hcas, err := HCAs(machine(tc.table))
		if err != nil || len(hcas) != 1 {
			t.Fatal(tc.name, hcas, err)
		}
		s, _, err := ParseSettings(tc.env)
		if err != nil {
			t.Fatal(tc.name, err)
		}
		g, err := PickGID("m", hcas[0].Ports[0], s)
		if err == nil && g.String() != tc.want || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, %v, want %s", tc.name, g, err, tc.want)
		}
	}
}

func TestCounters(t *testing.T) {
	before, err := ReadCounters(machine(`
m/ports/1/counters/link_downed: 25
m/ports/1/counters/symbol_error: 0
m/ports/1/counters/port_xmit_wait: 4294967295
m/ports/1/counters/port_xmit_discards: 2846
m/ports/1/counters/VL15_dropped: N/A (no PMA)
m/ports/1/counters/port_rcv_errors: 26
m/ports/1/hw_counters/out_of_sequence: 3
m/ports/1/hw_counters/lifespan: 10
`), "m", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := before["VL15_dropped"]; ok || len(before) != 6 {
		t.Errorf("read %v", before)
	}
	after := Counters{"link_downed": 26, "symbol_error": 0, "port_xmit_wait": 4294967295, "port_xmit_discards": 10, "port_rcv_errors": 26, "hw_counters/out_of_sequence": 8, "new": 5}
	want := []Delta{{"hw_counters/out_of_sequence", 5, false}, {"link_downed", 1, false}, {"port_xmit_discards", 10, false}, {"port_xmit_wait", 0, true}}
	if got := before.Changed(after); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
