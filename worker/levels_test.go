package worker

import (
	"strings"
	"testing"

	"busbw/reports"
	"busbw/worker/gpu"
)

// pair is two GPUs and an RDMA device, with these paths between the GPUs, and
// between the first and the device.
func pair(gpus, nic string) reports.Topology {
	return reports.Topology{
		GPUs:  []reports.GPU{{PCI: "0000:18:00.0"}, {PCI: "0000:28:00.0"}},
		NICs:  []reports.NIC{{Name: "mlx5_0"}},
		Paths: [][]string{{"X", gpus, nic}, {gpus, "X", "SYS"}, {nic, "SYS", "X"}},
	}
}

var first, second = gpu.Info{PCI: "0000:18:00.0", Major: 9}, gpu.Info{PCI: "0000:28:00.0", Major: 9}

// Which paths GPUs use of their own accord, and how far NCCL_P2P_LEVEL lets them:
// words, and the numbers of older versions, in which NVLink has none.
func TestP2PLevel(t *testing.T) {
	for _, c := range []struct {
		path, set string
		amd       bool
		gpus      int
		want      bool
	}{
		{"NV18", "", false, 8, true}, {"PIX", "", false, 8, true}, {"PXB", "", false, 8, true}, {"PHB", "", false, 8, false}, {"NODE", "", false, 2, false}, {"SYS", "", false, 2, false},
		{"SYS", "", true, 2, true}, {"SYS", "", true, 3, false}, {"SYS", "PXB", true, 2, false},
		{"?", "", false, 2, true}, {"?", "PXB", false, 2, false}, {"?", "SYS", false, 2, true},
		{"NV18", "LOC", false, 2, false}, {"NV18", "NVL", false, 2, true}, {"PIX", "NVL", false, 2, false}, {"NODE", "PHB", false, 2, true}, {"SYS", "PHB", false, 2, false}, {"SYS", "SYS", false, 2, true},
		{"NV4", "NVB", false, 2, true}, {"PIX", "NVB", false, 2, false}, {"PIX", "C2C", false, 2, false}, {"PXB", "P2C", false, 2, true}, {"PHB", "PXN", false, 2, false},
		{"NV18", "0", false, 2, false}, {"NV18", "1", false, 2, true}, {"PIX", "1", false, 2, true}, {"PXB", "1", false, 2, false}, {"PXB", "2", false, 2, true}, {"NODE", "3", false, 2, true}, {"SYS", "3", false, 2, false}, {"SYS", "4", false, 2, true}, {"SYS", "5", false, 2, true},
	} {
		n := nearness{t: pair(c.path, "PIX"), settings: map[string]string{"NCCL_P2P_LEVEL": c.set}, gpus: c.gpus, amd: c.amd}
		why := n.apart(first, second)
		if (why == "") != c.want || why != "" && !strings.Contains(why, "the path between them is "+c.path) {
			t.Errorf("%+v: %q", c, why)
		}
	}
}

// How far a GPU may be from the RDMA device is NCCL's NCCL_NET_GDR_LEVEL; through
// a processor only where the GPU has NVLink-C2C to it and no device is nearer.
func TestGDRLevel(t *testing.T) {
	yes := true
	for _, c := range []struct {
		path, set, c2c string
		joined         bool
		want           bool
	}{
		{"PIX", "", "1", false, true}, {"PXB", "", "1", false, true}, {"PHB", "", "1", false, false}, {"NODE", "", "1", false, false}, {"?", "", "1", false, false},
		{"NODE", "", "1", true, true}, {"PHB", "", "1", true, true}, {"SYS", "", "1", true, false}, {"NODE", "", "0", true, false}, {"NODE", "PXB", "1", true, false}, {"NODE", "P2C", "0", true, true},
		{"PIX", "LOC", "1", false, false}, {"PIX", "0", "1", false, false}, {"PIX", "1", "1", false, true}, {"PXB", "1", "1", false, false}, {"PXB", "2", "1", false, true}, {"PHB", "3", "1", false, true}, {"SYS", "4", "1", false, true}, {"?", "5", "1", false, true},
	} {
		n := nearness{t: pair("NV18", c.path), settings: map[string]string{"NCCL_NET_GDR_LEVEL": c.set, "NCCL_NET_GDR_C2C": c.c2c}}
		if c.joined {
			n.t.GPUs[0].C2C = &yes
		}
		why := n.far(first, "mlx5_0")
		if (why == "") != c.want || why != "" && !strings.Contains(why, "beyond NCCL_NET_GDR_LEVEL=") {
			t.Errorf("%+v: %q", c, why)
		}
	}
	n := nearness{t: pair("NV18", "NODE")}
	n.t.GPUs[0].C2C, n.t.NICs = &yes, append(n.t.NICs, reports.NIC{Name: "mlx5_1"})
	n.t.Paths[0] = append(n.t.Paths[0], "PIX")
	if n.far(first, "mlx5_0") == "" || n.far(first, "mlx5_1") != "" {
		t.Error("of two devices only the nearer is reached")
	}
}

func TestGDRRead(t *testing.T) {
	volta, hopper := first, first
	volta.Major = 7
	for _, c := range []struct {
		g          gpu.Info
		path, set  string
		gpus       int
		wantReason string
	}{
		{hopper, "SYS", "", 8, ""}, {hopper, "NV18", "0", 8, "NCCL_NET_GDR_READ=0"}, {volta, "PIX", "", 2, "before Ampere"}, {volta, "NV2", "", 2, ""}, {volta, "PIX", "", 1, ""}, {volta, "PIX", "1", 2, ""},
	} {
		n := nearness{t: pair(c.path, "PIX"), settings: map[string]string{"NCCL_NET_GDR_READ": c.set}, gpus: c.gpus}
		if why := n.noReads(c.g); (why == "") != (c.wantReason == "") || !strings.Contains(why, c.wantReason) {
			t.Errorf("%+v: %q", c, why)
		}
	}
}

// Four GPUs in a ring of NVLinks, whose opposite ones NCCL joins over a third.
func TestBridgedByAThird(t *testing.T) {
	ring := pair("NV2", "PIX").GPUs
	ring = append(ring, reports.GPU{PCI: "0000:38:00.0"}, reports.GPU{PCI: "0000:48:00.0"})
	topology := reports.Topology{GPUs: ring, Paths: [][]string{{"X", "NV2", "SYS", "NV2"}, {"NV2", "X", "NV2", "SYS"}, {"SYS", "NV2", "X", "NV2"}, {"NV2", "SYS", "NV2", "X"}}}
	opposite := gpu.Info{PCI: "0000:38:00.0", Major: 7}
	for level, want := range map[string]bool{"": true, "NVB": true, "PIX": true, "SYS": true, "NVL": false, "LOC": false} {
		n := nearness{t: topology, settings: map[string]string{"NCCL_P2P_LEVEL": level}, gpus: 4}
		if said := n.bridged(first, opposite); (said != "") != want || want && !strings.Contains(said, "through GPU 1") {
			t.Errorf("NCCL_P2P_LEVEL=%s: %q", level, said)
		}
		if said := n.bridged(first, second); said != "" {
			t.Errorf("neighbours: %q", said)
		}
	}
	n := nearness{t: pair("SYS", "PIX"), settings: map[string]string{}}
	if said := n.bridged(first, second); said != "" {
		t.Errorf("no third GPU: %q", said)
	}
}
