package reports

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// measured is a result with n plausible samples.
func measured(op, algorithm, scope string, ranks, nodes int, bytes int64, n int) Result {
	rng := rand.New(rand.NewPCG(uint64(bytes), uint64(ranks)))
	base := 5e-6 + float64(bytes)/2e9
	r := Result{
		Format: Format, Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Run: "r1", Op: op, Algorithm: algorithm, Engine: "native", Scope: scope,
		Link: map[string]string{"intra": "memory", "cross": "tcp", "global": "memory+tcp"}[scope], Memory: "host", Dtype: "float", Redop: "sum",
		Ranks: ranks, Nodes: nodes, Groups: 1, Bytes: bytes, Count: bytes / 4, Mode: "barrier", Aggregate: 1, Warmup: 10, Settled: true,
		Skew: new(1e-8), Wrong: new(int64(0)), Limit: &Limit{"memory bandwidth", 3, "copy"}, Config: map[string]string{"NCCL_BUFFSIZE": "4194304"}, Source: "busbw test",
	}
	for range n {
		r.Seconds = append(r.Seconds, base*(1+0.1*rng.ExpFloat64()))
	}
	for range ranks {
		r.RankP50 = append(r.RankP50, base*(0.9+0.1*rng.Float64()))
	}
	for i := range nodes {
		r.Hosts = append(r.Hosts, fmt.Sprintf("gpu%03d", i))
	}
	return r
}

func page2x2() (all []Result) {
	for _, op := range []string{"all_reduce", "broadcast"} {
		for _, bytes := range []int64{8, 1 << 10, 64 << 10, 1 << 20, 64 << 20} {
			for _, scope := range []string{"intra", "cross", "global"} {
				ranks := map[string]int{"intra": 2, "cross": 2, "global": 4}[scope]
				all = append(all, measured(op, "ring", scope, ranks, 2, bytes, 200))
			}
		}
	}
	return all
}

// pages that the browser test opens; BUSBW_PAGES names the folder to write
// them to.
func pages() map[string][]Result {
	wrong := page2x2()
	wrong[4].Wrong = new(int64(17))
	wrong[7].Error, wrong[7].Seconds = "node 1 (gpu001): its worker ended the connection", nil
	wrong[8].Settled = false
	var pairs []Result
	for round := range 7 { // 8 nodes by the circle method
		r := measured("sendrecv", "direct", "pairs", 2, 8, 64<<20, 20)
		r.Groups, r.RankP50 = 4, nil
		at := func(k int) int { return 1 + (k+round)%7 }
		for g, p := range [][2]int{{0, at(0)}, {at(1), at(6)}, {at(2), at(5)}, {at(3), at(4)}} {
			r.Pairs = append(r.Pairs, Pair{A: p[0], B: p[1]})
			t := 0.03 + 0.001*float64(g)
			if p[0] == 5 || p[1] == 5 {
				t *= 2
			}
			r.RankP50 = append(r.RankP50, t, t)
		}
		pairs = append(pairs, r)
	}
	hostile := page2x2()
	for i := range hostile {
		hostile[i].Hosts = []string{`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`}
		hostile[i].Notes = []string{`<b onclick="x">note</b> {{.}} </script>`}
		hostile[i].Algorithm = `ring'"><svg onload=alert(1)>`
		hostile[i].Config = map[string]string{`<k>`: `</style>`}
	}
	var large []Result
	for _, algorithm := range []string{"ring", "tree", "halving"} {
		for bytes := int64(8); bytes <= 1<<30; bytes *= 4 {
			for _, scope := range []string{"intra", "cross", "global"} {
				ranks := map[string]int{"intra": 8, "cross": 64, "global": 512}[scope]
				large = append(large, measured("all_reduce", algorithm, scope, ranks, 64, bytes, 500))
			}
		}
	}
	return map[string][]Result{"small": page2x2(), "wrong": wrong, "pairs": append(pairs, page2x2()...), "hostile": hostile, "large": large, "none": nil, "checks": nil, "checked": page2x2()}
}

func TestHTML(t *testing.T) {
	for name, results := range pages() {
		var b strings.Builder
		var a Around
		switch name {
		case "checks", "checked":
			a = checked()
		case "hostile":
			a.Findings = []Finding{{ID: "<b>", Verdict: Fail, Node: `</script><script>alert(1)</script>`, Subject: `"><img src=x onerror=alert(1)>`, Remedy: `<a href="http://x">`}}
			a.Topologies = []Topology{{Node: `<img src=x>`, NICs: []NIC{{Name: `"><svg onload=alert(1)>`}}, Paths: [][]string{{`<b onclick="x">`}}}}
		}
		if err := RenderWith(&b, "html", results, a); err != nil {
			t.Fatal(name, err)
		}
		text := b.String()
		if dir := os.Getenv("BUSBW_PAGES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, name+".html"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if len(text) > 2_000_000 {
			t.Errorf("%s: %d bytes; a page that is mailed has 2 MB", name, len(text))
		}
		for _, bad := range []string{"<script>alert", "<img", "<svg onload", "onclick=\"x\"", "</style>}", "src=\"http", "href=\"http"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s: %q in it", name, bad)
			}
		}
		want := map[string][]string{
			"small":   {"Data right", "Across nodes against inside a node, 64 MiB", "memory bandwidth"},
			"wrong":   {"Wrong data", "17 wrong elements", "ended the connection", "not settled"},
			"pairs":   {"Pairs of nodes", `"hosts":["gpu000"`},
			"hostile": {"&lt;/script&gt;", "1 check failed"},
			"checks":  {"1 check failed", "reseat or replace the cable", "200 Gb/sec (2X NDR)", "gpu000, gpu004, gpu008, gpu012", "15 nodes, all alike", "NV17", "18 links between two GPUs, 450 GB/s each way"},
			"checked": {"1 check failed", "Across nodes against inside a node", "How devices are joined"},
			"large":   {"gpu063", "rank 511 on gpu063"},
			"none":    {"Nothing measured"},
		}[name]
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in it", name, w)
			}
		}
	}
}

// The box and its dots are those of the sample, and the slowest is always shown.
func TestBox(t *testing.T) {
	sample := []float64{5, 1, 2, 3, 4, 100, 6, 7, 8}
	b := boxOf(sample)
	if b.Box != [5]float64{1, 3, 5, 7, 8} || len(b.Dots) != 1 || b.Dots[0] != 100 {
		t.Errorf("%+v", b)
	}
	for range 500 {
		sample = append(sample, 50)
	}
	sample = append(sample, 1000)
	if b := boxOf(sample); len(b.Dots) > maxDots || b.Dots[0] != 1000 {
		t.Errorf("%d dots, first %v", len(b.Dots), b.Dots[0])
	}
	if b := boxOf(nil); b.N != 0 || b.Dots == nil {
		t.Errorf("%+v", b)
	}
}

// A cell of the matrix is the pair's own bandwidth, by row A and column B.
func TestPairGrid(t *testing.T) {
	for _, s := range sheets(Figures(pages()["pairs"][:7])) {
		g := s.pairGrids()
		if len(g) != 1 || len(g[0].Cells) != 56 || len(g[0].Hosts) != 8 {
			t.Fatalf("%+v", g)
		}
		for _, c := range g[0].Cells {
			slow := c[0] == 5 || c[1] == 5
			if (c[2] < 1.5) != slow {
				t.Errorf("column %v row %v: %v GB/s", c[0], c[1], c[2])
			}
		}
	}
}

// Engines of one run stand in one table, each row named; those of several
// runs, or with several configurations, do not.
func TestEnginesSideBySide(t *testing.T) {
	native := measured("all_reduce", "ring", "intra", 2, 1, 1<<20, 20)
	library := measured("all_reduce", "nccl", "intra", 2, 1, 1<<20, 20)
	library.Engine, library.Config = "nccl", map[string]string{"NCCL_ALGO": "Ring"}
	if s := sheets(Figures([]Result{native, library})); len(s) != 1 || s[0].engines() != "native and nccl" {
		t.Errorf("%d tables, want one of both engines", len(s))
	}
	other := library
	other.Config = map[string]string{"NCCL_ALGO": "Tree"}
	if s := sheets(Figures([]Result{native, library, other})); len(s) != 3 {
		t.Errorf("%d tables, want 3: two configurations are not one engine", len(s))
	}
	library.Run = "r2"
	if s := sheets(Figures([]Result{native, library})); len(s) != 2 {
		t.Errorf("%d tables, want 2", len(s))
	}
}
