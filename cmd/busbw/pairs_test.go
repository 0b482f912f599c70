package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is measured between workers can be judged again from its file.
func TestPairs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pairs.jsonl.zst")
	out, errs, code := ran(t, "pairs", "--local", "3x2", "--bytes", "64K", "--time", "1ms", "--min", "0.000001", "--min-both", "0.000001", "--format", "json", "--output", file)
	if code != exitFine {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	for _, text := range []string{out, first(ran(t, "pairs", "--from", file, "--format", "json"))} {
		var d struct {
			Nodes []string
			Good  []string
			Pairs []struct {
				Rail int
				Way  string
				GBps float64 `json:"gb_per_s"`
			}
		}
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		// 3 pairs, 2 rails, 2 directions and both at once.
		if len(d.Nodes) != 3 || len(d.Pairs) < 18 {
			t.Errorf("%d nodes, %d values; want 3, 18 or more", len(d.Nodes), len(d.Pairs))
		}
		for _, p := range d.Pairs {
			if p.GBps <= 0 {
				t.Errorf("a pair of %g GB/s", p.GBps)
			}
		}
	}
	// A limit that loopback cannot reach: all alike, and no single node's fault.
	out, _, code = ran(t, "pairs", "--from", file, "--min", "1e6", "--min-both", "1e6")
	if code != exitFound || !strings.Contains(out, "every pair") || strings.Contains(out, "FAIL  node") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestPairsFromText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pairs.txt")
	if err := os.WriteFile(file, []byte("a b 48\na c 24\nb c 24\na d 48\nb d 48\nc d 24\na e 48\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := ran(t, "pairs", "--from", file)
	if code != exitFound || !strings.Contains(out, "FAIL  node: c: 24.00 GB/s") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for _, args := range [][]string{{"--format", "x"}, {"--bytes", "1"}, {"--min", "-1"}, {"--budget", "0s"}, {"--local", "1x1"}, {"--nodes", "2"}, {"--from", file, "--join", "x"}} {
		if _, errs, code := ran(t, append([]string{"pairs"}, args...)...); code != exitUsage {
			t.Errorf("%q: exit %d: %s", args, code, errs)
		}
	}
}

func first(out, _ string, _ int) string { return out }

// ran is what a command printed and its exit status.
func ran(t *testing.T, args ...string) (out, errs string, status int) {
	t.Helper()
	cmd, o, e := command(t, args...)
	status = code(cmd.Run())
	return o.String(), e.String(), status
}
