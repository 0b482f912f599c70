package accept

import (
	"fmt"
	"strings"
	"testing"

	"busbw/reports"
)

// port is a result of a port against itself, in Gb/s.
func loop(node, device, memory string, gbps, line float64) reports.Result {
	r := reports.Result{Op: "nic_loopback", Scope: "devices", Link: "verbs", Memory: memory, Ranks: 1, Nodes: 1, Groups: 1, Bytes: 8 << 20, Hosts: []string{node},
		Config: map[string]string{"device": device, "kind": "MT4129"}, Limit: &reports.Limit{Name: "NIC line rate", GBps: line / 8}}
	for range 6 {
		r.Seconds = append(r.Seconds, float64(8<<20)/(gbps/8*1e9))
	}
	return r
}

func copyIn(node string, gpu int, gbps float64) reports.Result {
	r := loop(node, fmt.Sprintf("GPU %d (NVIDIA H100 80GB HBM3, 0000:1%d:00.0)", gpu, gpu), "cuda", 8*gbps, 0)
	r.Op, r.Link, r.Limit, r.Config["kind"] = "host_to_device", "pcie", nil, "NVIDIA H100 80GB HBM3"
	return r
}

func TestDevices(t *testing.T) {
	p, err := Builtin("hgx-h100-ndr")
	if err != nil {
		t.Fatal(err)
	}
	many := func(n int, rs ...reports.Result) []reports.Result {
		for i := range n {
			rs = append(rs, loop(fmt.Sprintf("n%d", i+1), "mlx5_0:1", "host", 392, 400))
		}
		return rs
	}
	failed := loop("n0", "mlx5_0:1", "host", 1, 400)
	failed.Seconds, failed.Error = nil, "transport retry counter exceeded"
	for _, c := range []struct {
		name    string
		p       *Profile
		rs      []reports.Result
		verdict reports.Verdict // of the first
		text    string
	}{
		{"one port, good", nil, []reports.Result{loop("n0", "mlx5_0:1", "host", 390, 400)}, reports.Pass, "no measure of each other"},
		{"one port, in half a slot", nil, []reports.Result{loop("n0", "mlx5_0:1", "host", 112, 400)}, reports.Warn, "60 % of the port's 400 Gb/s"},
		{"slower than its twins", nil, many(7, loop("n0", "mlx5_0:1", "host", 300, 400)), reports.Fail, "median of 8"},
		{"like its twins", nil, many(7, loop("n0", "mlx5_0:1", "host", 388, 400)), reports.Pass, "median of 8"},
		{"another kind of port is no twin", nil, many(7, loop("n0", "mlx5_9:1", "host", 195, 200)), reports.Pass, "1 such devices"},
		{"fails by itself", nil, many(3, failed), reports.Fail, "3 of 4"},
		{"fails as all do", nil, []reports.Result{failed, failed}, reports.Unknown, "a measurement"},
		{"below the profile", p, []reports.Result{loop("n0", "mlx5_0:1", "cuda", 223, 400)}, reports.Fail, "imbue"},
		{"GPU slot at half", p, []reports.Result{copyIn("n0", 3, 26)}, reports.Fail, "Azure"},
		{"GPU slot whole", p, []reports.Result{copyIn("n0", 3, 55)}, reports.Pass, "Azure"},
		{"just above", p, []reports.Result{copyIn("n0", 3, 49)}, reports.Warn, "Azure"},
		{"a slow GPU among fast ones, above the limit", p, []reports.Result{copyIn("n0", 3, 51), copyIn("n1", 0, 56), copyIn("n1", 1, 56), copyIn("n1", 2, 56), copyIn("n1", 3, 56)}, reports.Fail, "median of 5"},
	} {
		f := Devices(c.p, c.rs)
		if len(f) != len(c.rs) || f[0].Verdict != c.verdict || !strings.Contains(f[0].Want, c.text) || f[0].Node != "n0" {
			t.Errorf("%s: %+v; want %s, %q", c.name, f[0], c.verdict, c.text)
		}
	}
}

// A port that is slow against itself acquits the cable; one that is fast
// against itself acquits the slot.
func TestDiagnosisOfDevices(t *testing.T) {
	verbs := func(in *Input) {
		r := reports.Result{Scope: "pairs", Link: "verbs", Memory: "host", Hosts: in.Nodes, Verbs: &reports.Verbs{}}
		for range in.Nodes {
			for k := range 4 {
				r.Verbs.Rails = append(r.Verbs.Rails, fmt.Sprintf("mlx5_%d:1 GID 3: 10.0.0.1 v2", k))
			}
		}
		in.Results = append(in.Results, r)
	}
	for _, c := range []struct {
		name     string
		pair     float64 // Gb/s of node 2 rail 1
		alone    float64 // against itself
		findings []reports.Finding
		cause    string
		not      string
		sure     string
	}{
		{"slot, nothing read", 112, 112, nil, "probably the PCIe slot: 112 Gb/s", "not the cable", "medium"},
		{"slot, read", 112, 112, []reports.Finding{finding("n2", "pcie-link", "NIC 0000:3b:00.0", "16 GT/s x8")}, "PCIe slot: NIC 0000:3b:00.0 runs as Gen4 x8", "not the cable", "high"},
		{"cable at a slot's figure", 112, 390, nil, "cable, module or peer port", "not the slot", "medium"},
		{"cable, and another card's slot is wrong", 112, 390, []reports.Finding{finding("n2", "pcie-link", "NIC 0000:9b:00.0", "16 GT/s x8")}, "cable, module or peer port", "not the slot", "medium"},
		{"cable that counts errors", 150, 390, []reports.Finding{finding("n2", "rdma-counters", "mlx5_1 port 1", "+7")}, "cable, module or peer port: the port counts errors", "not the slot", "medium"},
	} {
		in := cluster(6, 4, map[[2]int]float64{{2, 1}: c.pair / 8}, nil)
		verbs(&in)
		in.Findings = c.findings
		for _, n := range in.Nodes {
			for k := range 4 {
				v := 392.0
				if n == "n2" && k == 1 {
					v = c.alone
				}
				in.Results = append(in.Results, loop(n, fmt.Sprintf("mlx5_%d:1", k), "host", v, 400))
			}
		}
		ds := Diagnose(in)
		if len(ds) != 1 || ds[0].Node != "n2" || !strings.HasPrefix(ds[0].Cause, c.cause) || ds[0].Sure != c.sure || !strings.Contains(strings.Join(ds[0].Not, ";"), c.not) {
			t.Errorf("%s: %+v; want %q, %q, %s", c.name, ds, c.cause, c.not, c.sure)
		}
	}
	// Without pairs: a GPU in half a slot, by its figure and by sysfs.
	in := Input{Nodes: []string{"n0"}}
	for k := range 8 {
		in.Results = append(in.Results, copyIn("n0", k, map[bool]float64{true: 28, false: 55.5}[k == 3]))
	}
	if ds := Diagnose(in); len(ds) != 1 || !strings.Contains(ds[0].Cause, "probably the PCIe slot: 224 Gb/s is what Gen4 x16 or Gen5 x8 carries") {
		t.Errorf("%+v", ds)
	}
	in.Findings = []reports.Finding{finding("n0", "pcie-link", "GPU 0000:13:00.0", "32 GT/s x8")}
	if ds := Diagnose(in); len(ds) != 1 || !strings.HasPrefix(ds[0].Cause, "PCIe slot: GPU 0000:13:00.0 runs as Gen5 x8") || ds[0].Sure != "high" {
		t.Errorf("%+v", ds)
	}
}

// What has no device is not applicable; what has one and no result is unknown.
func TestMissingDevices(t *testing.T) {
	up := true
	in := Input{Nodes: []string{"a", "b", "c"}, Results: []reports.Result{loop("a", "mlx5_0:1", "host", 390, 400)},
		Topologies: []reports.Topology{
			{Node: "a", NICs: []reports.NIC{{Name: "mlx5_0", RDMA: true, Up: &up}}},
			{Node: "b", NICs: []reports.NIC{{Name: "eth0", Up: &up}}},
			{Node: "c", NICs: []reports.NIC{{Name: "mlx5_0", RDMA: true}}, GPUs: []reports.GPU{{}}}},
		NoDevices: map[string]map[string]string{"c": {"nic_loopback": "no port can be used: mlx5_0:1: down"}}}
	got := map[string]string{}
	for _, f := range in.undevised() {
		got[f.Node+" "+f.ID] = string(f.Verdict) + " " + f.Got
	}
	for k, w := range map[string]string{"a nic-loopback": "", "a gpu-copy": "n/a no such device", "b nic-loopback": "n/a no such device", "b gpu-copy": "n/a no such device",
		"c nic-loopback": "unknown no port can be used: mlx5_0:1: down", "c gpu-copy": "unknown not measured"} {
		if got[k] != w {
			t.Errorf("%s: %q, want %q", k, got[k], w)
		}
	}
}
