package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbw/reports"
)

// records writes n launches of two sizes with a mean time, 1 % noise.
func records(t *testing.T, path, run string, n int, mean float64, change func(*reports.Result)) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(n)))
	w, err := reports.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for l := range n {
		for _, bytes := range []int64{1 << 10, 1 << 20} {
			res := reports.Result{Format: reports.Format, Time: time.Now(), Run: run, Launch: l, Op: "all_reduce", Algorithm: "ring", Engine: "native", Scope: "global",
				Dtype: "float", Redop: "sum", Ranks: 4, Nodes: 2, Groups: 1, Bytes: bytes, Seconds: []float64{mean * (1 + 0.01*r.NormFloat64())}, Wrong: new(int64(0))}
			if change != nil {
				change(&res)
			}
			if err := w.Write(res); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCompareCommand(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	records(t, path("old.jsonl.zst"), "a", 8, 1, nil)
	records(t, path("same.jsonl"), "b", 8, 1.001, nil)
	records(t, path("slow.jsonl"), "c", 8, 1.1, nil)
	records(t, path("few.jsonl"), "d", 3, 1.1, nil)
	records(t, path("wrong.jsonl"), "e", 8, 0.5, func(r *reports.Result) { r.Wrong = new(int64(7)) })
	records(t, path("lost.jsonl"), "f", 8, 1, func(r *reports.Result) { r.Seconds, r.Error = nil, "node b: killed" })
	records(t, path("other.jsonl"), "g", 8, 1, func(r *reports.Result) { r.Op = "broadcast" })
	for _, name := range []string{"history/mon.jsonl", "history/tue.jsonl.zst"} {
		records(t, path(name), name, 8, 1, nil)
	}
	os.WriteFile(path("history/index.txt"), []byte("not a results file"), 0o600)
	records(t, path("history/today.jsonl"), "today", 8, 1.3, nil)

	for _, c := range []struct {
		args string
		code int
		want string // in either stream
	}{
		{"old.jsonl.zst same.jsonl", exitFine, "2 ~"},
		{"old.jsonl.zst slow.jsonl", exitFine, "2 slower"},
		{"before=old.jsonl.zst after=slow.jsonl --fail-if slower=5%", exitFound, "regression: after"},
		{"old.jsonl.zst slow.jsonl --fail-if slower=20%", exitFine, "2 slower"},
		{"old.jsonl.zst slow.jsonl --margin 30%", exitFine, "2 ~"},
		{"old.jsonl.zst few.jsonl", exitFine, "n<6"},
		{"old.jsonl.zst few.jsonl --fail-if slower=5%", exitFail, "no size could be judged"},
		{"old.jsonl.zst wrong.jsonl", exitFound, "WRONG"},
		{"old.jsonl.zst lost.jsonl --fail-if slower=5%", exitFound, "node b: killed"},
		{"old.jsonl.zst same.jsonl --wire 1e-4", exitFound, "ABOVE"},
		{"old.jsonl.zst other.jsonl", exitFail, "op is all_reduce in old and broadcast in other"},
		{"old.jsonl.zst nowhere.jsonl", exitFail, "nowhere.jsonl"},
		{"--baseline history same.jsonl", exitFine, "of 24 launches in 3 runs"},
		{"--baseline history history/today.jsonl --fail-if slower=5%", exitFound, "regression: today"},
		{"old.jsonl.zst same.jsonl slow.jsonl --format csv", exitFine, "slower"},
		{"old.jsonl.zst", exitUsage, "--baseline"},
		{"old.jsonl.zst same.jsonl --format html", exitUsage, "table, md, json, csv"},
		{"old.jsonl.zst same.jsonl --fail-if faster=5%", exitUsage, "slower=5%"},
		{"old.jsonl.zst same.jsonl --margin much", exitUsage, "2%"},
		{"old.jsonl.zst same.jsonl --wire -4", exitUsage, "GB/s"},
	} {
		cmd, out, errs := command(t, append([]string{"compare"}, strings.Fields(c.args)...)...)
		cmd.Dir = dir
		if err := cmd.Run(); code(err) != c.code || !strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("compare %s: exit %d, want %d and %q\n%s%s", c.args, code(err), c.code, c.want, out, errs)
		}
	}
	cmd, out, errs := command(t, "compare", "old.jsonl.zst", "piped=-")
	cmd.Dir = dir
	in, err := os.Open(path("slow.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd.Stdin = in
	if err := cmd.Run(); code(err) != exitFine || !strings.Contains(out.String(), "piped: 2 slower") {
		t.Errorf("standard input: exit %d\n%s%s", code(err), out, errs)
	}
}

// A log of nccl-tests is a side like any other.
func TestCompareReadsLogs(t *testing.T) {
	dir := t.TempDir()
	for name, micros := range map[string]string{"old.log": "2230.5  240.70  451.31", "new.log": "2453.5  218.82  410.29"} {
		log := "# nThread 1 nGpus 8 minBytes 536870912 maxBytes 536870912 step: 1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n" +
			"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n" +
			"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n" +
			"   536870912     134217728     float     sum      -1   " + micros + "      0   " + micros + "      0\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 400\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd, out, errs := command(t, "compare", "old.log", "new.log")
	cmd.Dir = dir
	if err := cmd.Run(); code(err) != exitFine || !strings.Contains(out.String(), "512 MiB") || !strings.Contains(out.String(), "-9.1 %") || !strings.Contains(out.String(), "n<6") {
		t.Errorf("exit %d\n%s%s", code(err), out, errs)
	}
}

// A log with three versions, of which only the averages are left: the second
// lost a quarter, and a variable brought it back.
func TestCompareRunsOfALog(t *testing.T) {
	log, err := filepath.Abs("../../reports/imports/testdata/version-regression-by-average.txt")
	if err != nil {
		t.Fatal(err)
	}
	cmd, out, errs := command(t, "compare", "2.19.4="+log+"#1", "2.20.5="+log+"#2", "channels="+log+"#3")
	if err := cmd.Run(); code(err) != exitFine {
		t.Fatalf("exit %d\n%s%s", code(err), out, errs)
	}
	for _, want := range []string{"-24.4 %", "-0.2 %", "n<6", "differs: nccl_version: 2.19.4 → 2.20.5 → 2.20.5", "channels differs from 2.19.4 in 2 things (NCCL_NCHANNELS_PER_NET_PEER, nccl_version)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the comparison lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "2.20.5 differs from") {
		t.Errorf("one thing differs, and there is a warning:\n%s", out)
	}
}

// A folder is called by its name, however it is reached, and a run in a file is
// counted from 1.
func TestSideNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "monday")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.jsonl")
	records(t, file, "aaaa", 6, 1e-3, nil)
	t.Chdir(dir)
	for arg, want := range map[string]string{".": "monday", dir + "/": "monday", "a.jsonl": "a", "../monday": "monday"} {
		s, err := readSide(os.Stderr, arg)
		if err != nil || s.Label != want {
			t.Errorf("%s: %q, want %q, %v", arg, s.Label, want, err)
		}
	}
	for _, n := range []string{"#0", "#-1", "#", "#x"} {
		if _, err := readSide(os.Stderr, file+n); !errors.As(err, new(usageError)) {
			t.Errorf("%s: %v is not wrong use", n, err)
		}
	}
	if _, err := readSide(os.Stderr, file+"#2"); err == nil || !strings.Contains(err.Error(), "fewer than 2 runs") {
		t.Errorf("#2 of one run: %v", err)
	}
	if s, err := readSide(os.Stderr, file+"#1"); err != nil || len(s.Results) != 12 {
		t.Errorf("#1: %d results, %v", len(s.Results), err)
	}
}
