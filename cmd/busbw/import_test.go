package main

import (
	"path/filepath"
	"strings"
	"testing"

	"busbw/reports"
)

// A log from the field becomes a table, records, and an exit status.
func TestImport(t *testing.T) {
	log := func(name string) string {
		p, err := filepath.Abs("../../reports/imports/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	cmd, out, errs := command(t, "import", "-o", "kept.jsonl", log("two-worlds-no-mpi-build.txt"))
	if err := cmd.Run(); code(err) != exitFound || !strings.Contains(out.String(), "2 worlds (communicators) of 2 ranks each") || !strings.Contains(out.String(), "MPI=1") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
	all, warnings, err := reports.ReadFile(filepath.Join(cmd.Dir, "kept.jsonl"))
	if err != nil || len(warnings) > 0 || len(all) != 8 || all[0].Source != "imported: nccl-tests" {
		t.Errorf("%d records, %q, %v", len(all), warnings, err)
	}
	cmd, out, errs = command(t, "import", log("hostname-with-blank.txt"), "--format", "csv")
	if err := cmd.Run(); code(err) != exitFine || !strings.HasPrefix(out.String(), "time,") || !strings.Contains(errs.String(), "8 ranks on NODE A") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
	cmd, out, errs = command(t, "import", "-")
	cmd.Stdin = strings.NewReader("hello\n")
	if err := cmd.Run(); code(err) != exitFail || !strings.Contains(errs.String(), "nccl-tests") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
	cmd, _, errs = command(t, "import")
	if err := cmd.Run(); code(err) != exitUsage {
		t.Errorf("%v %s", err, errs)
	}
}
