package accept

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"busbw/coordinator/pairs"
	"busbw/reports"
)

func TestProfiles(t *testing.T) {
	if len(Names()) < 10 {
		t.Errorf("%d profiles: %v", len(Names()), Names())
	}
	for _, n := range Names() {
		p, err := Builtin(n)
		if err != nil {
			t.Error(err)
			continue
		}
		if p.Name != n || p.Title == "" {
			t.Errorf("%s: name %q, title %q", n, p.Name, p.Title)
		}
		for _, x := range p.Notes {
			if x.Source == "" {
				t.Errorf("%s: %q has no source", n, x.Text)
			}
		}
	}
	if _, err := Builtin("hgx"); !errors.Is(err, ErrProfile) || !strings.Contains(err.Error(), "hgx-h100-ndr") {
		t.Errorf("unknown profile: %v", err)
	}
	for _, text := range []string{
		"", "name: x\nlimits: [{test: all_reduce}]", "name: x\nspeed: 1", "name: a b", "name: x\nlimits: [{test: pair, at_least: 1, unit: GB/s}]",
		"name: x\nlimits: [{test: pair, at_least: 1, at_most: 2, unit: GB/s, source: s}]", "name: x\nlimits: [{test: pear, at_least: 1, unit: GB/s, source: s}]",
		"name: x\nlimits: [{test: pair, at_least: 1, unit: GB, source: s}]", "name: x\ngpus: {count: 8, product: '(', source: s}", "name: x\nlimits: [{test: pair, bytes: 7Q, at_least: 1, unit: GB/s, source: s}]",
	} {
		if _, err := Parse(strings.NewReader(text), "test"); err == nil || !errors.Is(err, ErrProfile) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, n := range Names() {
		text, _ := Text(n)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := Parse(strings.NewReader(text), "fuzz"); err == nil {
			p.PairLimits("verbs", "host", 1<<24)
			if _, err := p.YAML(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// cluster is pair results of good nodes with one NIC slowed.
func cluster(nodes, rails int, slow map[[2]int]float64, latency map[[2]int]float64) Input {
	in := Input{Table: &pairs.Table{Rails: rails}}
	for i := range nodes {
		in.Nodes = append(in.Nodes, fmt.Sprintf("n%d", i))
	}
	in.Table.Nodes = in.Nodes
	f := func(m map[[2]int]float64, n, r int, good float64) float64 {
		if v, ok := m[[2]int{n, r}]; ok {
			return v
		}
		return good
	}
	for _, round := range pairs.Rounds(nodes, 0) {
		for _, p := range round {
			for r := range rails {
				v := min(f(slow, p[0], r, 48), f(slow, p[1], r, 48))
				l := max(f(latency, p[0], r, 2e-6), f(latency, p[1], r, 2e-6))
				in.Table.Bandwidth = append(in.Table.Bandwidth, pairs.Sample{A: p[0], B: p[1], Rail: r, Value: v}, pairs.Sample{A: p[1], B: p[0], Rail: r, Value: v})
				in.Table.Latency = append(in.Table.Latency, pairs.Sample{A: p[0], B: p[1], Rail: r, Way: pairs.Both, Value: l})
			}
		}
	}
	in.Pairs, _ = pairs.Judge(in.Table, pairs.Limits{})
	return in
}

func finding(node, id, subject, got string) reports.Finding {
	return reports.Finding{ID: id, Verdict: reports.Fail, Node: node, Subject: subject, Got: got, Want: "what it can be"}
}

// Each joins what operators saw into what was the cause.
func TestDiagnosis(t *testing.T) {
	at := map[[2]int]float64{{2, 1}: 14} // 112 Gb/s
	late := map[[2]int]float64{{2, 1}: 5.6e-6}
	for _, c := range []struct {
		name     string
		slow     float64
		late     bool
		findings []reports.Finding
		cause    string
		sure     string
	}{
		{"flat 112 Gb/s and Gen4 x8 in sysfs", 14, false, []reports.Finding{finding("n2", "pcie-link", "mlx5_1", "16.0 GT/s PCIe x8")}, "PCIe slot: mlx5_1 runs as Gen4 x8, which carries 112 Gb/s", "high"},
		{"a slot is blamed before a cable", 14, true, []reports.Finding{finding("n2", "rdma-counters", "mlx5_1 port 1", "7 symbol errors"), finding("n2", "pcie-link", "mlx5_1", "Gen4 x8")}, "PCIe slot: mlx5_1 runs as Gen4 x8", "high"},
		{"flat 112 Gb/s and nothing read", 14, false, nil, "probably the PCIe slot: 112 Gb/s is what Gen3 x16 or Gen4 x8 or Gen5 x4 carries", "medium"},
		{"another node's slot", 30, true, []reports.Finding{finding("n3", "pcie-link", "mlx5_1", "Gen4 x8")}, "cable or module: both latency and bandwidth are bad", "medium"},
		{"another card's slot", 30, true, []reports.Finding{finding("n2", "pcie-link", "mlx5_9", "Gen3 x8")}, "cable or module", "medium"},
		{"late, slow and counting errors", 15.1, true, []reports.Finding{finding("n2", "rdma-counters", "mlx5_1 port 1", "1203 symbol errors")}, "cable, module or peer port", "high"},
		{"trained low", 24, false, []reports.Finding{finding("n2", "rdma-port-rate", "mlx5_1 port 1", "200 Gb/s")}, "the port's own rate or state", "high"},
		{"wrong socket", 36, false, []reports.Finding{finding("n2", "numa", "mlx5_1", "interrupts on node 1")}, "NUMA", "medium"},
		{"half", 24, false, nil, "about half of the width", "low"},
		{"nothing", 40, false, nil, "not known", "low"},
	} {
		in := cluster(6, 4, map[[2]int]float64{{2, 1}: c.slow}, map[bool]map[[2]int]float64{true: late}[c.late])
		in.Findings = c.findings
		ds := Diagnose(in)
		if len(ds) != 1 || ds[0].Node != "n2" || !strings.HasPrefix(ds[0].Cause, c.cause) || ds[0].Sure != c.sure {
			t.Errorf("%s: %+v; want %q, %s", c.name, ds, c.cause, c.sure)
		}
	}
	_ = at
}

// Half of the rate because of a wrong topology file, not of broken links: a
// health check that measured 15.1 of 431 GB/s.
func TestNVLinkUnused(t *testing.T) {
	p, err := Builtin("hgx-h200-ndr")
	if err != nil {
		t.Fatal(err)
	}
	seconds := 16 * (1 << 30) * 1.75 / 15.1043e9
	r := reports.Result{Op: "all_reduce", Scope: "intra", Engine: "nccl", Memory: "device", Ranks: 8, Groups: 1, Nodes: 1, Bytes: 16 << 30, Hosts: []string{"n0"},
		Seconds: []float64{seconds}, Config: map[string]string{"NCCL_TOPO_FILE": "/topofiles/other.xml"}}
	for range 8 {
		r.RankP50 = append(r.RankP50, seconds)
	}
	rep := Judge(Input{Nodes: []string{"n0"}, Profile: p, Results: []reports.Result{r}})
	if len(rep.Diagnoses) != 1 || rep.Diagnoses[0].Sure != "high" || !strings.Contains(strings.Join(rep.Diagnoses[0].Because, ";"), "NCCL_TOPO_FILE") {
		t.Errorf("%+v", rep.Diagnoses)
	}
	if rep.Nodes[0].Verdict != reports.Fail || rep.Verdict != reports.Fail {
		t.Errorf("node %s, set %s", rep.Nodes[0].Verdict, rep.Verdict)
	}
}

func TestVerdicts(t *testing.T) {
	in := cluster(6, 4, map[[2]int]float64{{2, 1}: 24}, nil)
	in.Findings = []reports.Finding{
		{ID: "memlock", Verdict: reports.Pass, Node: "n1", Subject: "memlock"}, {ID: "governor", Verdict: reports.Warn, Node: "n1", Subject: "governor"},
		{ID: "launch", Verdict: reports.Fail, Node: "n9.example.com", Subject: "ranks"}}
	in.Nodes = append(in.Nodes, "n9.example.com", "silent")
	rep := Judge(in)
	got := map[string]reports.Verdict{}
	for _, n := range rep.Nodes {
		got[n.Node] = n.Verdict
	}
	for n, v := range map[string]reports.Verdict{"n0": reports.Pass, "n1": reports.Warn, "n2": reports.Fail, "n9.example.com": reports.Fail, "silent": reports.Unknown} {
		if got[n] != v {
			t.Errorf("%s: %s, want %s", n, got[n], v)
		}
	}
	if p := strings.Join(rep.Passing(), " "); p != "n0 n1 n3 n4 n5" {
		t.Errorf("passing: %s", p)
	}
	if f := strings.Join(rep.Failing(), " "); f != "n2 n9 silent" {
		t.Errorf("failing: %s", f)
	}
	var text, md strings.Builder
	if err := errors.Join(rep.Table(&text), rep.Markdown(&md)); err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{"n2", "fail", "5 of 8 nodes may go into service"} {
		if !strings.Contains(text.String(), w) || !strings.Contains(md.String(), w) {
			t.Errorf("%q is missing in\n%s\n%s", w, &text, &md)
		}
	}
}

// A set in which all are slow alike fails as a set, and blames no node alone.
func TestAllBelow(t *testing.T) {
	in := cluster(6, 1, nil, nil)
	in.Results = []reports.Result{{Scope: pairs.Scope, Link: "verbs", Memory: "host"}}
	p, _ := Builtin("hgx-h100-ndr")
	in.Profile = p
	for i := range in.Table.Bandwidth {
		in.Table.Bandwidth[i].Value = 14
	}
	var err error
	if in.Pairs, err = pairs.Judge(in.Table, p.PairLimits("verbs", "host", 16<<20)); err != nil {
		t.Fatal(err)
	}
	rep := Judge(in)
	if rep.Verdict != reports.Fail || len(rep.Passing()) != 0 || len(rep.Diagnoses) != 1 || !strings.Contains(rep.Diagnoses[0].Cause, "every node's slot") {
		t.Errorf("%s, passing %v, %+v", rep.Verdict, rep.Passing(), rep.Diagnoses)
	}
}

func TestLearn(t *testing.T) {
	var rs []reports.Result
	for _, n := range []int64{1 << 20, 64 << 20} {
		r := reports.Result{Op: "all_reduce", Scope: "intra", Engine: "native", Memory: "host", Link: "memory", Ranks: 2, Groups: 2, Nodes: 2, Bytes: n, Hosts: []string{"a", "b"}, Run: "x", Source: "test"}
		for range 10 {
			r.Seconds = append(r.Seconds, float64(n)/1e10)
		}
		r.RankP50 = []float64{r.Seconds[0], r.Seconds[0], r.Seconds[0], r.Seconds[0]}
		rs = append(rs, r)
	}
	rs = append(rs, reports.Result{Op: "broadcast", Scope: pairs.Scope, Memory: "host", Link: "tcp", Root: new(int), Ranks: 2, Groups: 1, Nodes: 2, Bytes: 1 << 20, Pairs: []reports.Pair{{A: 0, B: 1}}, Hosts: []string{"a", "b"}, RankP50: []float64{1e-3, 1e-3}, Seconds: []float64{1e-3}})
	p, warnings, err := Learn("mine", rs, Margin)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err)
	}
	text, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	q, err := Parse(strings.NewReader(string(text)), "learned")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(q.Limits) != 2 || q.Limits[0].AtLeast != 9.5 || q.Limits[0].Bytes != 64<<20 || q.Limits[1].Test != "pair" || q.Limits[1].AtLeast < 0.99 || q.Limits[1].AtLeast > 1 {
		t.Errorf("%s", text)
	}
	if wide, _, err := Learn("wide", rs, 0.7); err != nil || wide.Limits[0].AtLeast != 3 {
		t.Errorf("with a margin of 70 %%: %+v, %v; want 3 of 10 GB/s", wide.Limits, err)
	}
	// What taught it passes it; what is a tenth slower fails it.
	in := Input{Nodes: []string{"a", "b"}, Profile: q, Results: rs[:2]}
	for _, f := range in.limits() {
		if f.Verdict == reports.Fail {
			t.Errorf("%+v", f)
		}
	}
	rs[1].RankP50[3] *= 1.1
	if rep := Judge(in); rep.Nodes[0].Verdict == reports.Fail || rep.Nodes[1].Verdict != reports.Fail {
		t.Errorf("%s and %s; want b to fail", rep.Nodes[0].Verdict, rep.Nodes[1].Verdict)
	}
	if _, _, err := Learn("x", nil, Margin); !errors.Is(err, ErrProfile) {
		t.Errorf("no results: %v", err)
	}
}

// A profile is for one product; another one's nodes are no failures by it.
func TestHardware(t *testing.T) {
	p, err := Builtin("hgx-h100-ndr")
	if err != nil {
		t.Fatal(err)
	}
	node := func(product string, gpus, links, nics int, gbps float64) reports.Topology {
		x := reports.Topology{Node: "n0"}
		for i := range gpus {
			g := reports.GPU{Index: i, Name: product}
			for k := range links {
				up := true
				g.NVLinks = append(g.NVLinks, reports.NVLink{Link: k, Up: &up})
			}
			x.GPUs = append(x.GPUs, g)
		}
		for i := range nics {
			up := true
			x.NICs = append(x.NICs, reports.NIC{Name: fmt.Sprintf("mlx5_%d", i), RDMA: true, Up: &up, Gbps: &gbps, Layer: "InfiniBand"})
		}
		return x
	}
	sxm := "NVIDIA H100 80GB HBM3"
	for _, c := range []struct {
		name  string
		t     reports.Topology
		worst reports.Verdict
		fits  bool
	}{
		{"whole", node(sxm, 8, 18, 8, 400), reports.Pass, true},
		{"a GPU is gone", node(sxm, 7, 18, 8, 400), reports.Fail, true},
		{"links are down", node(sxm, 8, 17, 8, 400), reports.Fail, true},
		{"ports at half rate", node(sxm, 8, 18, 8, 200), reports.Fail, true},
		{"storage ports besides", node(sxm, 8, 18, 10, 400), reports.Pass, true},
		{"another product", node("NVIDIA H100 NVL", 8, 12, 8, 400), reports.Unknown, false},
		{"GPUs not known", reports.Topology{NoGPUs: "no driver", NoNICs: "none"}, reports.Unknown, true},
	} {
		fs, ok := p.Hardware(c.t)
		got := reports.Pass
		for _, f := range fs {
			if f.Verdict == reports.Fail || f.Verdict == reports.Unknown && got != reports.Fail {
				got = f.Verdict
			}
		}
		if got != c.worst || ok != c.fits {
			t.Errorf("%s: %s, fits %t: %+v", c.name, got, ok, fs)
		}
	}
}
