package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// hgx is a node of eight GPUs on NVSwitches, with four adapters.
func hgx(node string) Topology {
	t := Topology{Node: node}
	for i := range 8 {
		t.GPUs = append(t.GPUs, GPU{Index: i, Vendor: "nvidia", Name: "NVIDIA H100 80GB HBM3"})
		for j := range i {
			t.Bonds = append(t.Bonds, Bond{A: j, B: i, Links: 18, Generation: 4, GBps: new(450.0), Switch: true})
		}
	}
	for i := range 4 {
		t.NICs = append(t.NICs, NIC{Name: fmt.Sprintf("mlx5_%d", i), RDMA: true})
	}
	for i := range 12 {
		var row []string
		for j := range 12 {
			way := "SYS"
			switch numa := func(d int) int { return d%8/4*(1-d/8) + d/8*((d-8)/2) }; {
			case i == j:
				way = "X"
			case i < 8 && j < 8:
				way = "NV18"
			case i >= 8 && j >= 8 && numa(i) == numa(j):
				way = "NODE"
			case i%8/2 == j-8 || j%8/2 == i-8:
				way = "PXB"
			case numa(i) == numa(j):
				way = "NODE"
			}
			row = append(row, way)
		}
		t.Paths = append(t.Paths, row)
	}
	for i := range 8 {
		t.Use = append(t.Use, Near{GPU: i, CPUs: fmt.Sprintf("%d-%d", i/4*48, i/4*48+47), NICs: []int{i / 2}, Path: "PXB"})
	}
	return t
}

// checked is what checks say of sixteen nodes: most are well.
func checked() (a Around) {
	for i := range 16 {
		node := fmt.Sprintf("gpu%03d", i)
		t := hgx(node)
		a.Findings = append(a.Findings, Finding{ID: "memlock", Verdict: Pass, Node: node, Subject: "locked memory", Got: "unlimited"})
		if i == 5 {
			a.Findings = append(a.Findings, Finding{ID: "rdma-port-rate", Verdict: Fail, Node: node, Subject: "mlx5_2 port 1", Got: "200 Gb/s", Want: "400 Gb/s, as its peers",
				Evidence: []Evidence{{"/sys/class/infiniband/mlx5_2/ports/1/rate", "200 Gb/sec (2X NDR)"}}, Remedy: "reseat or replace the cable; two of its four lanes are up"})
			t.Odd = []string{"GPU4 has 17 of 18 NVLinks"}
			for j := range 8 {
				if j != 4 {
					t.Paths[4][j], t.Paths[j][4] = "NV17", "NV17"
				}
			}
		}
		if i%4 == 0 {
			a.Findings = append(a.Findings, Finding{ID: "pcie-acs", Verdict: Warn, Node: node, Subject: "0000:15:01.0", Got: "ReqRedir+ CmpltRedir+", Want: "off, between GPUs and adapters", Remedy: "switch ACS off in the firmware, or with setpci"})
		}
		a.Topologies = append(a.Topologies, t)
	}
	a.Odd = []string{"gpu005: GPU4 NV17 where the others have NV18"}
	return a
}

// What busbw check, topo and accept write is read again.
func TestReadAround(t *testing.T) {
	full := checked()
	var check bytes.Buffer
	if err := WriteFindings(&check, "json", full.Findings); err != nil {
		t.Fatal(err)
	}
	topo, _ := json.Marshal(map[string]any{"nodes": full.Topologies, "odd": full.Odd})
	accept, _ := json.Marshal(map[string]any{"verdict": "fail", "nodes": []any{map[string]any{"node": "gpu000", "verdict": "fail", "findings": []Finding{{ID: "x", Verdict: Fail, Subject: "y"}}}}, "set": []Finding{{ID: "z", Verdict: Warn}}})
	for text, want := range map[string][3]int{check.String(): {len(full.Findings), 0, 0}, string(topo): {0, 16, 1}, string(accept): {2, 0, 0}} {
		if !IsAround([]byte(text)) {
			t.Errorf("not known: %.80s", text)
		}
		a, err := ReadAround(strings.NewReader(text), "file")
		if err != nil || [3]int{len(a.Findings), len(a.Topologies), len(a.Odd)} != want {
			t.Errorf("%.60s: %v: %d findings, %d topologies, %d odd", text, err, len(a.Findings), len(a.Topologies), len(a.Odd))
		}
	}
	for _, bad := range []string{`{"findings":[{"verdict":"perhaps"}]}`, `{"nodes":[{"gpus":[],"nics":[],"paths":[["X"]]}]}`, `{"findings":[]}`, `{"findings":`, `{"nodes":[{"gpus":[{}],"nics":[],"paths":[["X"]],"use":[{"gpu":7}]}]}`} {
		if a, err := ReadAround(strings.NewReader(bad), "file"); err == nil {
			t.Errorf("%s: %+v", bad, a)
		}
	}
	if IsAround([]byte(`{"format":1,"notes":["\"findings\""]}`)) {
		t.Error("a record is taken for findings")
	}
}

// Every format that has a place for findings shows them, the others say so.
func TestRenderWith(t *testing.T) {
	a := checked()
	for _, f := range Formats() {
		for _, results := range [][]Result{nil, page2x2()} {
			var b strings.Builder
			err := RenderWith(&b, f, results, a)
			fits := ShowsAround(f) || f == "junit" && results == nil
			if (err == nil) != (fits || results != nil) {
				t.Errorf("%s with %d results: %v", f, len(results), err)
			}
			if fits && (!strings.Contains(b.String(), "mlx5_2 port 1") || !strings.Contains(b.String(), "reseat or replace")) {
				t.Errorf("%s with %d results lacks the finding and what to do", f, len(results))
			}
		}
	}
}

func FuzzAround(f *testing.F) {
	one, _ := json.Marshal(map[string]any{"nodes": []Topology{hgx("a")}, "findings": checked().Findings[:8]})
	f.Add(one)
	f.Add([]byte(`{"nodes":[{"gpus":[{}],"nics":[{}],"paths":[["X","PIX"],["PIX","X"]],"use":[{"gpu":0,"nics":[0]}],"bonds":[{"a":0,"b":0}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ReadAround(bytes.NewReader(text), "fuzz")
		if err != nil {
			return
		}
		if err := RenderWith(io.Discard, "table", nil, a); err != nil {
			t.Fatal(err)
		}
		if _, err := pageOf(nil, &a); err != nil {
			t.Fatal(err)
		}
	})
}
