package reports

import (
	"bytes"
	"encoding/csv"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update writes it anew); got:\n%s", file, got)
	}
}

// campaign is a run of two launches, with everything that can happen in one.
func campaign() []Result {
	var all []Result
	limits := map[string]*Limit{
		"intra": {Name: "memory bandwidth", GBps: 12.3, How: "copy, 2 threads, 0.5 s"},
		"cross": {Name: "loopback stream", GBps: 3.1, How: "duplex, 0.5 s"},
	}
	nsPerMB := map[string]int64{"intra": 250_000, "cross": 830_000, "global": 1_000_000}
	for launch := range 2 {
		for _, bytes := range []int64{8, 64 << 10, 1 << 20, 64 << 20} {
			for _, scope := range []string{"intra", "cross", "global"} {
				for _, algorithm := range []string{"ring", "double_tree"} {
					ranks := map[string]int{"global": 4}[scope]
					ranks = max(ranks, 2)
					r := sample(scope, algorithm, ranks, bytes, spread(120, 2000+int64(launch)*50+bytes*nsPerMB[scope]/1e6)...)
					r.Launch, r.Groups, r.Limit = launch, 4/ranks, limits[scope]
					r.Hosts = []string{"gpu-a.example.org", "gpu-b.example.org"}
					r.Wrong, r.Skew, r.Predicted = new(int64(0)), new(1e-7), new(2.5e-6)
					r.Config = map[string]string{"NCCL_ALGO": "", "NCCL_BUFFSIZE": "4194304"}
					r.Notes = []string{"NCCL_IB_HCA is set but not applicable on the native engine"}
					if scope == "global" {
						r.Link = "memory+tcp"
					}
					switch {
					case bytes == 8 && scope == "cross":
						r.Settled, r.Skew = false, new(1e-6)
					case bytes == 64<<10 && scope == "cross" && algorithm == "double_tree" && launch == 1:
						r.Wrong = new(int64(3))
						r.Notes = append(r.Notes, "wrong data, first at rank 1 element 7 of 16384")
					case bytes == 64<<20 && scope == "global" && algorithm == "double_tree":
						r.Seconds, r.Wrong, r.Error = nil, nil, "rank 3 step 17: reduce from 2 chunk 5: connection reset by peer"
					case bytes == 1<<20 && scope == "global" && algorithm == "double_tree" && launch == 1:
						r.Seconds, r.Wrong, r.Error = nil, nil, "node gpu-b: needs 300 GiB, 20 GiB are available"
					}
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// places is a run with both places, roots, automatic algorithms, few samples,
// and one rank alone.
func places() []Result {
	var all []Result
	for _, op := range []string{"all_reduce", "broadcast"} {
		for _, inPlace := range []bool{false, true} {
			for _, bytes := range []int64{1024, 1 << 20, 48} {
				r := sample("intra", "ring", 2, bytes, spread(3, 5000+bytes)...)
				r.Op, r.InPlace, r.Run, r.Nodes, r.Wrong = op, inPlace, "second", 1, new(int64(0))
				r.Auto = true
				if bytes == 48 {
					r.Asked = 64
				}
				if op == "broadcast" {
					r.Redop, r.Root = "", new(1)
				}
				all = append(all, r)
			}
		}
	}
	alone := sample("intra", "ring", 1, 4096, spread(8, 300)...)
	alone.Run, alone.Nodes = "third", 1
	return append(all, alone)
}

func render(t *testing.T, format string, results []Result) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, format, results); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	for _, set := range []struct {
		name    string
		results []Result
	}{{"campaign", campaign()}, {"places", places()}} {
		before := render(t, "json", set.results)
		for _, format := range slices.DeleteFunc(Formats(), func(f string) bool { return f == "json" || f == "html" }) {
			golden(t, set.name+"."+format, render(t, format, set.results))
		}
		for file, each := range map[string]bool{"live": false, "live-I": true} {
			var b bytes.Buffer
			live := NewLive(&b, each)
			for _, r := range set.results {
				if err := live.Row(r); err != nil {
					t.Fatal(err)
				}
			}
			golden(t, set.name+"."+file, b.Bytes())
		}
		if !bytes.Equal(before, render(t, "json", set.results)) {
			t.Errorf("%s: rendering changed the results", set.name)
		}
	}
}

// Tables fit a terminal of 120 columns, except for the lines of prose.
func TestWidth(t *testing.T) {
	for _, line := range strings.Split(string(render(t, "table", append(campaign(), places()...))), "\n") {
		if n := utf8.RuneCountInString(line); n > 120 && !strings.HasPrefix(line, "  ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// Rows come by size and scope, whatever the order in which they were measured,
// and a size that a scope lacks stays out of the row of all sizes.
func TestOrderAndAll(t *testing.T) {
	all := []Result{
		sample("global", "ring", 2, 1<<30, 2), sample("cross", "ring", 2, 1<<30, 4), sample("intra", "ring", 2, 1<<30, 1),
		sample("cross", "ring", 2, 1<<20, 1), sample("intra", "ring", 2, 1<<20, 1),
	}
	text := string(render(t, "detail", all))
	at := -1
	for _, row := range []string{" 1 MiB intra ", "       cross ", " 1 GiB intra ", "       cross ", "       global "} {
		i := strings.Index(text[at+1:], "\n"+row)
		if i < 0 {
			t.Fatalf("row %q is not behind the one before it:\n%s", row, text)
		}
		at += i + 1
	}
	foot := regexp.MustCompile(`(?m)^ all +1\.07 +0\.27 +0\.54 +0\.25$`)
	if !foot.MatchString(text) {
		t.Errorf("want 1 GiB alone in the row of all sizes:\n%s", text)
	}
}

func TestUnknownFormat(t *testing.T) {
	err := Render(io.Discard, "xml", nil)
	if err == nil || !strings.Contains(err.Error(), `"xml"`) || !strings.Contains(err.Error(), strings.Join(Formats(), ", ")) {
		t.Errorf("want the name and the list: %v", err)
	}
}

// The json format is the file: it reads back as the same results.
func TestJSONIsTheFile(t *testing.T) {
	got, warnings, err := Read(bytes.NewReader(render(t, "json", campaign())), "F")
	if err != nil || len(warnings) > 0 || !reflect.DeepEqual(got, campaign()) {
		t.Errorf("%d records, %q, %v", len(got), warnings, err)
	}
}

func TestCSV(t *testing.T) {
	rows, err := csv.NewReader(bytes.NewReader(render(t, "csv", campaign()))).ReadAll()
	if err != nil || len(rows) != len(campaign())+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	at := map[string]int{}
	for i, h := range rows[0] {
		at[h] = i
	}
	failed, void := 0, 0
	for _, r := range rows[1:] {
		empty := r[at["busbw_gb_per_s"]] == ""
		switch {
		case r[at["error"]] != "":
			failed++
			if !empty || r[at["median_s"]] != "" {
				t.Errorf("a failed size has figures: %q", r)
			}
		case r[at["wrong"]] != "0":
			void++
			if !empty {
				t.Errorf("wrong data has a bandwidth: %q", r)
			}
		case empty:
			t.Errorf("no bandwidth: %q", r)
		}
	}
	if failed != 3 || void != 1 {
		t.Errorf("%d failed and %d void rows, want 3 and 1", failed, void)
	}
}

// What comes from a file cannot command the terminal or add lines.
func TestControlCharacters(t *testing.T) {
	r := sample("intra", "ring\x1b[2J\nfake", 2, 8, 1e-6)
	r.Hosts, r.Notes, r.Link = []string{"a\x1b]0;x\a\r\nb"}, []string{"n\x1b[1A\u009b1A"}, "\x1b[2J"
	r.Limit = &Limit{Name: "\x1b[2J", GBps: 1, How: "\x1b[2J"}
	r.Config = map[string]string{"A\x1b[2J": "\x1b[2J"}
	failed := r
	failed.Bytes, failed.Error = 16, "boom\x1b[2J\n# Avg bus bandwidth    : 99"
	var live bytes.Buffer
	if err := NewLive(&live, true).Row(failed); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"table": string(render(t, "table", []Result{r, failed})), "detail": string(render(t, "detail", []Result{r, failed})), "nccl": string(render(t, "nccl", []Result{r, failed})), "live": live.String(),
	} {
		if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && (c < ' ' || c >= 0x7f && c < 0xa0) }); i >= 0 {
			t.Errorf("%s: control character in %q", what, text[max(0, i-40):i+1])
		}
		if strings.Contains(text, "\n# Avg bus bandwidth    : 99") || strings.Contains(text, "\nfake") {
			t.Errorf("%s: a value made a line of its own:\n%s", what, text)
		}
	}
}
