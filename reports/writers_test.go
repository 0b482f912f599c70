package reports

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"
	"time"
)

// hostileResult is one whose every text tries to be more than text.
func hostileResult() Result {
	const evil = "a|b\"<script>\\x</testcase>]]>`*_\n# TYPE busbw_time_seconds counter\x1b[2J"
	r := sample("intra", "ring", 2, 8, 1e-6)
	r.Algorithm, r.Link, r.Memory, r.Run, r.Hosts, r.Notes = evil, evil, evil, evil, []string{evil}, []string{evil}
	r.Limit = &Limit{Name: evil, GBps: 1, How: evil}
	r.Wrong = new(int64(2))
	return r
}

func TestJUnit(t *testing.T) {
	bad := hostileResult()
	failed := sample("cross", "ring", 2, 16)
	failed.Error = "rank 1: lost </error>"
	above := sample("cross", "ring", 2, 1<<20, 1e-6)
	above.Limit = &Limit{Name: "NIC line rate", GBps: 50, How: "kernel"}
	caches := above
	caches.Scope, caches.Limit = "intra", &Limit{Name: "memory bandwidth", GBps: 50, How: "copy"}
	var got junitSuites
	text := render(t, "junit", append(campaign(), bad, failed, above, caches))
	if err := xml.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	// Of the campaign one figure has wrong data and one failed in both launches.
	if got.Tests != 24+4 || got.Failures != 1+2 || got.Errors != 1+1 {
		t.Errorf("%d tests, %d failures, %d errors", got.Tests, got.Failures, got.Errors)
	}
	for _, s := range got.Suites {
		for _, c := range s.Cases {
			if c.Failure != nil && c.Failure.Type == "above the limit" && !strings.Contains(c.Failure.Message, "NIC line rate (50.00 GB/s)") {
				t.Errorf("%+v", c.Failure)
			}
		}
	}
}

// The exposition format: HELP and TYPE once, before the samples; no series
// twice; labels escaped; nothing that is absent.
func TestPrometheus(t *testing.T) {
	line := regexp.MustCompile(`^[a-z_]+\{([a-z_]+="(?:[^"\\\n]|\\\\|\\"|\\n)*",?)+\} [-+0-9.e]+$`)
	twice := append(campaign(), campaign()...)
	for i := range twice {
		if i >= len(twice)/2 {
			twice[i].Run = "later"
		}
	}
	for _, results := range [][]Result{campaign(), places(), twice, {hostileResult()}} {
		seen, typed, last := map[string]bool{}, map[string]bool{}, ""
		for l := range strings.Lines(string(render(t, "prom", results))) {
			l = strings.TrimSuffix(l, "\n")
			if strings.HasPrefix(l, "# ") {
				f := strings.Fields(l)
				if f[1] == "TYPE" {
					if typed[f[2]] || f[3] != "gauge" {
						t.Errorf("%q", l)
					}
					typed[f[2]], last = true, f[2]
				}
				continue
			}
			series := l[:strings.LastIndexByte(l, ' ')]
			if !line.MatchString(l) || seen[series] || !strings.HasPrefix(l, last+"{") {
				t.Errorf("%q after %s, seen %v", l, last, seen[series])
			}
			seen[series] = true
		}
		if len(seen) == 0 {
			t.Error("no samples")
		}
	}
	if text := string(render(t, "prom", []Result{hostileResult()})); strings.Contains(text, "busbw_busbw") || !strings.Contains(text, "busbw_wrong_elements{") {
		t.Errorf("wrong data has a bandwidth, or is not told:\n%s", text)
	}
}

// A cell of Markdown stays a cell.
func TestMarkdownCells(t *testing.T) {
	text := string(render(t, "md", []Result{hostileResult()}))
	bar := regexp.MustCompile(`(^|[^\\])\|`)
	rows := 0
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, "|") {
			continue
		}
		rows++
		if n := len(bar.FindAllString(l, -1)); n != 13 {
			t.Errorf("%d bars in %q", n, l)
		}
		if strings.Contains(l, "<script>") {
			t.Errorf("HTML in %q", l)
		}
	}
	if rows != 3 {
		t.Errorf("%d rows of the table in\n%s", rows, text)
	}
}

// The planner's table has the best figure of each size and number of nodes.
func TestPlanner(t *testing.T) {
	var all []Result
	for _, nodes := range []int{2, 16, 4} {
		for i, algorithm := range []string{"ring", "tree"} {
			r := sample("global", algorithm, 2*nodes, 1<<20, float64(nodes)*1e-3/float64(1+i))
			r.Nodes, r.Run = nodes, algorithm
			r.Limit = &Limit{Name: "NIC line rate", GBps: 50}
			all = append(all, r)
		}
	}
	text := string(render(t, "planner", all))
	at := 0
	for _, want := range []string{"2     4 global tree", "4     8 global tree", "16    32 global tree"} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("want %q in order in\n%s", want, text)
		}
		at += i
	}
	if strings.Contains(text, " ring ") || !strings.Contains(text, "LIMIT GB/s") || !strings.Contains(text, "NIC line rate") {
		t.Errorf("\n%s", text)
	}
}

// A log does not say when it was measured: no writer makes up a time for it, and
// a record that has one beside it counts alone.
func TestUnknownTime(t *testing.T) {
	untold := sample("intra", "ring", 2, 8, 1e-6)
	untold.Time, untold.Nodes = time.Time{}, 0
	told := sample("intra", "ring", 2, 16, 1e-6)
	for _, format := range Formats() {
		for _, results := range [][]Result{{untold}, {untold, told}, {told, untold}} {
			if text := render(t, format, results); bytes.Contains(text, []byte("0001-01-01")) || bytes.Contains(text, []byte("-6.2135")) {
				t.Errorf("%s:\n%s", format, text)
			}
		}
	}
	if text := string(render(t, "csv", []Result{untold})); !strings.Contains(text, "\n,"+untold.Run+",") {
		t.Errorf("csv: %s", text)
	}
	if first, last := period([]Result{untold, told}); !first.Equal(told.Time) || !last.Equal(told.Time) {
		t.Errorf("from %v to %v", first, last)
	}
}

// What one side does not know is said to be unknown where sides have nothing in
// common.
func TestForeignUnknown(t *testing.T) {
	a, b := sample("intra", "ring", 2, 8, 1e-6), sample("", "ring", 2, 8, 1e-6)
	_, err := Compare([]Side{{Label: "a", Results: []Result{a}}, {Label: "b", Results: []Result{b}}}, CompareOptions{Margin: 0.02})
	if err == nil || !strings.Contains(err.Error(), "scope is intra in a and unknown in b") {
		t.Errorf("%v", err)
	}
}
