package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/reports"
)

// Files of one name are told apart by their folders, as few as do; the same
// file twice by a number; names that the user gave stay.
func TestDistinct(t *testing.T) {
	for _, c := range []struct{ from, labels, want []string }{
		{[]string{"/r/a/log.txt", "/r/b/log.txt"}, []string{"log.txt", "log.txt"}, []string{"a/log.txt", "b/log.txt"}},
		{[]string{"/a/x/log.txt", "/b/x/log.txt", "/c/other"}, []string{"log.txt", "log.txt", "other"}, []string{"a/x/log.txt", "b/x/log.txt", "other"}},
		{[]string{"/a/log.txt", "/a/log.txt"}, []string{"log.txt", "log.txt"}, []string{"log.txt", "log.txt (2)"}},
		{[]string{"new=/a/log", "new=/b/log"}, []string{"new", "new"}, []string{"new", "new (2)"}},
		{[]string{"/a/log.txt", "/b/run"}, []string{"log.txt", "run"}, []string{"log.txt", "run"}},
	} {
		var sides []reports.Side
		for _, l := range c.labels {
			sides = append(sides, reports.Side{Label: l})
		}
		distinct(sides, c.from)
		for i := range sides {
			if sides[i].Label != c.want[i] {
				t.Errorf("%q: %q, want %q", c.from, sides[i].Label, c.want[i])
			}
		}
	}
}

// Two runs of one log: each warning about the log comes once.
func TestCompareWarnsOnce(t *testing.T) {
	text, err := os.ReadFile("../../reports/imports/testdata/two-worlds-no-mpi-build.txt")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log.txt")
	if err := os.WriteFile(log, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	f := compareFlags{margin: "2%", format: "table"}
	if err := f.run(&out, &errs, []string{log + "#1", log + "#2"}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(errs.String()) {
		if n := strings.Count(errs.String(), line); n != 1 {
			t.Errorf("%d times: %s", n, line)
		}
	}
	if strings.Count(errs.String(), "warning") < 2 {
		t.Errorf("want the log's warnings: %q", errs.String())
	}
}
