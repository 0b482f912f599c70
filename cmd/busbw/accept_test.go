package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/coordinator/accept"
)

// Nodes that reach what is asked pass; by a limit that nothing here reaches
// they all fail, alike; a profile that was learned here can be read again.
func TestAccept(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "good")
	text, errs, status := ran(t, "accept", "--local", "2x2", "--bytes", "64K", "--time", "1ms", "--watch", "0s", "--min", "0.000001", "--min-both", "0.000001", "--out", out, "--format", "json")
	if status != exitFine {
		t.Fatalf("exit %d: %s%s", status, text, errs)
	}
	var rep accept.Report
	if err := json.Unmarshal([]byte(text), &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Nodes) != 2 || len(rep.Stages) != 5 {
		t.Errorf("%d nodes, stages %+v", len(rep.Nodes), rep.Stages)
	}
	for _, s := range rep.Stages {
		if !s.Ran && !s.NA { // this machine may have no device to test
			t.Errorf("stage %s: %s", s.Name, s.Why)
		}
	}
	read := func(dir, name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := read(out, "passing_nodes.txt"); got != "local0\nlocal1\n" {
		t.Errorf("passing: %q", got)
	}
	if got := read(out, "failing_nodes.txt"); got != "" {
		t.Errorf("failing: %q", got)
	}
	for _, name := range []string{"report.md", "junit.xml", "report.json"} {
		if !strings.Contains(read(out, name), "local1") {
			t.Errorf("%s does not name local1", name)
		}
	}

	learned, errs, status := ran(t, "profile", "learn", filepath.Join(out, "results.jsonl.zst"), "--name", "here")
	if status != exitFine || !strings.Contains(learned, "test: all_reduce") || !strings.Contains(learned, "test: pair") {
		t.Fatalf("exit %d: %s%s", status, learned, errs)
	}
	mine := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(mine, []byte("name: mine\ntitle: absurd\nlimits:\n  - {test: pair, at_least: 1e6, unit: GB/s, source: nothing}\n  - {test: pair both ways, at_least: 1e6, unit: GB/s, source: nothing}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(dir, "bad")
	text, errs, status = ran(t, "accept", "--local", "2x1", "--bytes", "64K", "--time", "1ms", "--watch", "0s", "--profile", mine, "--out", out)
	if status != exitFound || !strings.Contains(text, "every pair") || read(out, "failing_nodes.txt") != "local0\nlocal1\n" {
		t.Errorf("exit %d: %s%s", status, text, errs)
	}
	// Two nodes and no limit establish nothing; that nothing moves inside them does not matter.
	text, errs, status = ran(t, "accept", "--local", "2x1", "--bytes", "64K", "--time", "1ms", "--watch", "0s", "--format", "json", "--out", filepath.Join(dir, "open"))
	rep = accept.Report{}
	if err := json.Unmarshal([]byte(text), &rep); err != nil {
		t.Fatal(err)
	}
	if status != exitFound || rep.Verdict != "unknown" || len(rep.Passing()) != 0 || len(rep.Gaps) < 1 || !rep.Stages[2].NA || !rep.Stages[4].Ran {
		t.Errorf("exit %d: %s%s", status, text, errs)
	}
	// What is no such node is not measured by its limits.
	text, errs, status = ran(t, "accept", "--local", "2x1", "--bytes", "64K", "--profile", "hgx-h100-ndr")
	if status != exitFound || strings.Count(text, "pointless") > 5 || !strings.Contains(text, "checks: done") || !strings.Contains(text, "each node by itself, pairs, collectives: not done (no node is") {
		t.Errorf("exit %d: %s%s", status, text, errs)
	}
	for _, args := range [][]string{{"--profile", "x"}, {"--profile", "./x.yaml"}, {"--format", "x"}, {"--nodes", "2"}} {
		if _, errs, status := ran(t, append([]string{"accept"}, args...)...); status != exitUsage {
			t.Errorf("%q: exit %d: %s", args, status, errs)
		}
	}
}
