package pairs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"busbw/reports"
)

func read(t *testing.T, text string) *Table {
	t.Helper()
	table, _, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestOperatorsTable(t *testing.T) {
	text, err := os.ReadFile("testdata/half-speed-node.txt")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Judge(read(t, string(text)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Culprits) != 2 || r.Culprits[0].Kind != Node || r.Culprits[0].Nodes[0] != "gn644" || r.Culprits[0].Verdict != reports.Fail {
		t.Fatalf("culprits %+v; want gn644 first", r.Culprits)
	}
	if why := strings.Join(r.Culprits[0].Why, "; "); !strings.Contains(why, "not congestion") || !strings.Contains(why, "2 partners") {
		t.Errorf("gn644: %s; want that its figure is the same with two partners", why)
	}
	u := r.Culprits[1]
	if u.Kind != Undecided || strings.Join(u.Nodes, " ") != "gn284 gn678" {
		t.Errorf("second %+v; want gn284 and gn678 undecided", u)
	}
	if u.remedy() != "measure next: gn284 with gn632; gn678 with gn404" {
		t.Errorf("proposed: %s", u.remedy())
	}
	if got := strings.Join(r.Good, " "); got != "gn699 gn632 gn641 gn404" {
		t.Errorf("good nodes: %s", got)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], `"crossing TOR" is not the cause: gn404 – gn699 (86.81 GB/s) has it and is fast, gn641 – gn644`) && !strings.Contains(r.Notes[0], `"crossing TOR" is not the cause`) {
		t.Errorf("notes %q", r.Notes)
	}
}

// The path between two nodes that are both fast with a third.
func TestOperatorsPath(t *testing.T) {
	r, err := Judge(read(t, "1-2 = 25 GB/s\n1-3 = 39 GB/s\n2-3 = 39 GB/s\n"), Limits{})
	if err != nil || len(r.Culprits) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	c := r.Culprits[0]
	if c.Kind != Path || c.Subject() != "1 – 2" || c.Verdict != reports.Warn || c.Sure != "low" {
		t.Errorf("%s %s %s %s; want the path 1 – 2, as a warning among three nodes", c.Kind, c.Subject(), c.Verdict, c.Sure)
	}
	if r, _ = Judge(read(t, "1-2 = 25 GB/s\n1-3 = 39 GB/s\n2-3 = 39 GB/s\n"), Limits{BothGBps: 35, Source: "test"}); r.Culprits[0].Kind != Path {
		t.Errorf("with a limit: %+v", r.Culprits)
	}
}

func TestReadForms(t *testing.T) {
	square := "# GB/s\nnode a b c d e\na - 48 48 24 48\nb 48 - 48 24 48\nc 48 48 - 24 48\nd 48 48 48 - 48\ne 48 48 48 24 -\n"
	for _, c := range []struct{ name, text, want string }{
		{"square, one direction", square, "NIC or cable d, receiving"},
		{"no corner", strings.Replace(square, "node ", "", 1), "NIC or cable d, receiving"},
		{"numbered", strings.NewReplacer("a", "1", "b", "2", "c", "3", "d", "4", "e", "5").Replace("n/x a b c d e\na - 48 48 24 48\nb 48 - 48 24 48\nc 48 48 - 24 48\nd 48 48 48 - 48\ne 48 48 48 24 -\n"), "NIC or cable 4, receiving"},
		{"bits", "src dst Gb/s\na b 384\na c 384\na d 192\nb c 384\nb d 192\nc d 192\na e 384\nb e 384\n", "node d"},
		{"arrows", "a -> b: 48\nb -> a: 48\na -> c: 48\nc -> a: 30\nb -> c: 48\nc -> b: 30\nd -> a: 48\nc->d 30\nd->c 48\ne->a 48\nc->e: 30\n", "NIC or cable c, sending"},
		{"columns", "idx,src,dst,hca,size,busbw_Gbps\n0,a,b,mlx5_0,8388608,390\n1,b,c,mlx5_0,8388608,390\n2,a,c,mlx5_0,8388608,390\n3,a,d,mlx5_0,8388608,390\n4,a,e,mlx5_0,8388608,390\n5,a,b,mlx5_1,8388608,190\n6,b,c,mlx5_1,8388608,190\n7,c,d,mlx5_1,8388608,390\n8,a,c,mlx5_1,8388608,390\n", "NIC or cable b rail 1"},
		{"rails", "rail 0\na b 48\nc d 48\na c 48\nb d 48\na e 48\n== rail 1 ==\na b 24\nc d 48\na c 24\nb d 48\nd e 48\n", "NIC or cable a rail 1"},
	} {
		table := read(t, c.text)
		r, err := Judge(table, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(subjects(r), "; "); got != c.want {
			t.Errorf("%s: %s; want %s (%v)", c.name, got, c.want, table)
		}
	}
	for text, gbps := range map[string]float64{"a b 98 Gb/s": 12.25, "a b 161Gbps": 20.125, "a,b,23.7": 23.7, "a with b: busbw 7 GB/s": 7, "a b 1000 MiB/s": 1.048576, "a <-> b : 5 GB/s  # x": 5, "# MB/s\nnode-a node-b 500": 0.5} {
		if v := read(t, text).Bandwidth[0].Value; fmt.Sprintf("%.6f", v) != fmt.Sprintf("%.6f", gbps) {
			t.Errorf("%q: %g GB/s, want %g", text, v, gbps)
		}
	}
	for _, text := range []string{"", "hello\n", "a b\n", "a a 5\n", "a b 0\n"} {
		if _, _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzRead(f *testing.F) {
	text, _ := os.ReadFile("testdata/half-speed-node.txt")
	f.Add(string(text))
	f.Add("node a b\na - 4\nb 4 -\nrail 3\na -> b 7Gb/s # x\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, _, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		if _, err := Judge(table, Limits{BothGBps: 1, GBps: 2}); err != nil {
			t.Fatalf("%v for %q", err, text)
		}
	})
}

// A program's matrices: the latencies among them are no bandwidths.
func TestReadMatrices(t *testing.T) {
	table := read(t, "Unidirectional Bandwidth Matrix (GB/s)\n   D\\D     0      1      2\n     0 1500.0  250.0  250.0\n     1  249.0 1500.0   20.0\n     2  250.0   21.0 1500.0\nLatency Matrix (us)\n   GPU     0      1      2\n     0   1.5  9.0  9.0\n     1   9.1  1.5  9.0\n     2   9.0  9.0  1.5\n")
	if len(table.Bandwidth) != 6 || len(table.Nodes) != 3 {
		t.Errorf("%+v", table)
	}
	for _, s := range table.Bandwidth {
		if s.Value < 20 {
			t.Errorf("%+v", s)
		}
	}
}
