package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/reports"
)

func TestResultsFolder(t *testing.T) {
	cmd, _, errs := command(t, "results")
	if err := cmd.Run(); code(err) != exitFail || !strings.Contains(errs.String(), "no folder results") {
		t.Errorf("%v %s", err, errs)
	}
	dir := t.TempDir()
	text, err := os.ReadFile("../../reports/imports/testdata/hostname-with-blank.txt")
	if err != nil {
		t.Fatal(err)
	}
	in := func(args ...string) (int, string) {
		t.Helper()
		cmd, out, errs := command(t, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(string(text))
		return code(cmd.Run()), out.String() + errs.String()
	}
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		if c, out := in("import", "-", "-o", "results/"+name); c != exitFine {
			t.Fatal(out)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"results"}, exitFine, "480.1 GB/s"},
		{[]string{"results", "show", "a.jsonl"}, exitFine, "8 GiB"},
		{[]string{"results", "show", "zz"}, exitFail, `no run or file "zz"`},
		{[]string{"results", "show"}, exitUsage, "takes one argument"},
		{[]string{"results", "prune"}, exitUsage, "--keep"},
		{[]string{"results", "prune", "--keep", "1", "--dry-run"}, exitFine, "1 of 2 files would be deleted"},
		{[]string{"results", "archive"}, exitFine, "2 files archived"},
		{[]string{"results", "prune", "--keep", "1"}, exitFine, "1 of 2 files deleted"},
		{[]string{"report", "results/nothing.jsonl"}, exitFail, "nothing.jsonl"},
		{[]string{"import", "-", "-o", "/dev/full"}, exitFail, "/dev/full is a device"},
	} {
		if got, out := in(c.args...); got != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit %d, want %d and %q in\n%s", c.args, got, c.code, c.want, out)
		}
	}
	accepted := filepath.Join(dir, "acceptance", "20261130-101500-3f2a")
	if err := os.MkdirAll(accepted, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(accepted, "report.json"), []byte(`{"verdict":"fail","nodes":[{"node":"a","verdict":"fail","findings":[{"id":"port-rate","verdict":"fail","subject":"mlx5_2","got":"200 Gb/s","remedy":"reseat the cable"}]}]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"results", "--dir", "acceptance"}, exitFine, "20261130-101500-3f2a: fail (1 fail)"},
		{[]string{"results", "--dir", "acceptance", "show", "2026"}, exitFound, "reseat the cable"},
		{[]string{"report", "--format", "html", "acceptance/20261130-101500-3f2a"}, exitFound, "<h1>Not accepted</h1>"},
		{[]string{"report", "--format", "csv", "acceptance/20261130-101500-3f2a"}, exitUsage, "html, table, detail and junit do"},
	} {
		if got, out := in(c.args...); got != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit %d, want %d and %q in\n%s", c.args, got, c.code, c.want, out)
		}
	}
	left, err := reports.History(filepath.Join(dir, "results"))
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0].File, ".zst") {
		t.Errorf("%+v, %v", left, err)
	}
}

// A reader that has seen enough, as head, ends a report without a word.
func TestClosedPipe(t *testing.T) {
	cmd, _, errs := command(t, "report", "--format", "csv", filepath.Join(mustAbs(t, "../../reports/imports/testdata"), "step-sweep-odd-sizes.txt"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd.Stdout = w
	err = cmd.Run()
	w.Close()
	if s := errs.String(); code(err) != exitFine || strings.Contains(s, "pipe") || strings.Contains(s, "goroutine") {
		t.Errorf("exit %d: %s", code(err), s)
	}
}

// A run whose tables nobody reads any more still keeps all of its results, and
// ends its file; one that was cut short is told from it.
func TestRunIntoClosedPipe(t *testing.T) {
	cmd, _, errs := command(t, "run", "--local", "1x2", "--op", "all_reduce", "--algo", "ring", "--sizes", "8,64", "--scope", "intra", "-n", "5")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd.Stdout = w
	err = cmd.Run()
	w.Close()
	if all := kept(t, cmd.Dir); code(err) != exitFine || len(all) != 2 || all[0].Planned != 2 {
		t.Fatalf("exit %d, %d results, want 2: %s", code(err), len(all), errs)
	}
	files, _ := filepath.Glob(filepath.Join(cmd.Dir, "results", "*.zst"))
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	list, out, _ := command(t, "results")
	list.Dir = cmd.Dir
	if err := list.Run(); err != nil || strings.Contains(out.String(), "ended") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.WriteFile(files[0], text[:len(text)-40], 0o600); err != nil {
		t.Fatal(err)
	}
	list, out, _ = command(t, "results")
	list.Dir = cmd.Dir
	if err := list.Run(); err != nil || !strings.Contains(out.String(), "1 of 2, not ended") {
		t.Errorf("%v\n%s", err, out)
	}
}

func mustAbs(t *testing.T, name string) string {
	t.Helper()
	p, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A folder of sweeps alone is not empty.
func TestResultsOfSweeps(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "20261130-101500-3f2a-sweep")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := listResults(&out, dir); err == nil {
		t.Errorf("a folder without a manifest is no sweep: %s", out.String())
	}
	if err := os.WriteFile(filepath.Join(folder, manifestName), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := listResults(&out, dir); err != nil || !strings.Contains(out.String(), "3f2a-sweep") {
		t.Errorf("%v %s", err, out.String())
	}
}
