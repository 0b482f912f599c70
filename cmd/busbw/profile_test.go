package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProfile(t *testing.T) {
	out, _, status := ran(t, "profile", "list")
	if status != exitFine || !strings.Contains(out, "hgx-h100-ndr") {
		t.Errorf("exit %d: %s", status, out)
	}
	out, _, status = ran(t, "profile", "show", "mi300x")
	if status != exitFine || !strings.Contains(out, "source:") {
		t.Errorf("exit %d: %s", status, out)
	}
	for _, args := range [][]string{{"profile", "show", "x"}, {"profile", "show"}, {"profile", "learn"}, {"profile", "delete"}} {
		if _, errs, status := ran(t, args...); status != exitUsage {
			t.Errorf("%q: exit %d: %s", args, status, errs)
		}
	}
	for verdict, want := range map[string]bool{`"unknown"`: true, `"fail"`: true, `"pass"`: false} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte(`{"verdict":`+verdict+`,"nodes":[{"node":"n0","verdict":`+verdict+`}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if ws := unaccepted(filepath.Join(dir, "results.jsonl.zst")); (len(ws) == 1 && strings.Contains(ws[0], "0 of 1 node accepted")) != want || len(ws) > 0 != want {
			t.Errorf("an acceptance that ended with %s: %q", verdict, ws)
		}
	}
	if ws := unaccepted(filepath.Join(t.TempDir(), "x.jsonl")); ws != nil {
		t.Errorf("no acceptance: %q", ws)
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("name: mine\nlimits: [{test: pair, at_least: 1, unit: GB/s}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readProfile(file); err == nil || !strings.Contains(err.Error(), "source is missing") {
		t.Errorf("a limit without a source: %v", err)
	}
}
