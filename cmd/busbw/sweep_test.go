package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbw/coordinator"
	"busbw/reports"
)

// TestSweep plants a setting that is slow, sockets instead of shared memory,
// and one that does nothing, the most channels where one is used.
func TestSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("18 launches take a while")
	}
	cmd, out, errs := command(t, "sweep", "--local", "1x2", "--op", "broadcast", "--scope", "intra", "--sizes", "64K", "-n", "200", "-w", "20", "--launches", "6", "--aa", "0",
		"--matrix", "m.yaml", "--file", "slow=slow.env", "--format", "json", "--output", "sweep", "--seed", "7")
	for name, text := range map[string]string{"m.yaml": "variants: [{name: inert, env: {NCCL_MAX_CTAS: 32}}]\n", "slow.env": "-x NCCL_SHM_DISABLE=1 -x PATH\n"} {
		if err := os.WriteFile(filepath.Join(cmd.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Run(); code(err) != exitFine {
		t.Fatalf("exit %d\n%s\n%s", code(err), out, errs)
	}
	judge := func(text []byte) {
		t.Helper()
		var got reports.Tuning
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(got.Settings) != 3 || !got.Settings[1].Inert || got.Settings[2].Inert || !strings.Contains(strings.Join(got.Settings[2].Effects, ";"), "link memory → tcp") {
			t.Errorf("settings %+v; want one without effect and one that changed the link", got.Settings)
		}
		if len(got.Bands) != 1 || got.Bands[0].Winner != 0 || len(got.One) != 1 || got.One[0].Setting != 0 {
			t.Fatalf("%+v; want the base to stay", got)
		}
		for _, e := range got.Bands[0].Entries {
			if e.Setting == 2 && (e.Verdict == reports.Faster || e.P == nil || e.Change == nil) { // how clear it is depends on what else runs
				t.Errorf("setting %d: %s with p = %v, %v; want it judged, and no faster", e.Setting, e.Verdict, e.P, e.Change)
			}
			if e.Launches != 6 {
				t.Errorf("setting %d has %d launches", e.Setting, e.Launches)
			}
		}
	}
	judge(out.Bytes())
	files, _ := filepath.Glob(filepath.Join(cmd.Dir, "sweep", "*.jsonl.zst"))
	if len(files) != 4 {
		t.Fatalf("%q; want a file for each setting and one for A/A", files)
	}

	// busbw results lists the sweep, and shows it by any name of it: finished, and with a launch lost.
	show := func(want, format string, names ...string) {
		t.Helper()
		for _, name := range names {
			show, out, errs := command(t, "results", "show", "--dir", ".", name, "--format", format)
			show.Dir = cmd.Dir
			if err := show.Run(); code(err) != exitFine || !strings.Contains(errs.String(), want) {
				t.Fatalf("results show %s: exit %d, want %q\n%s\n%s", name, code(err), want, out, errs)
			}
			if format == "json" {
				judge(out.Bytes())
			}
		}
	}
	show("all 18 launches kept", "json", "sweep", "sw", "./sweep/")
	show("", "csv", "sweep")

	// A launch that is lost is made again, with the flags that were given then; then nothing is left to do.
	loseLaunch(t, files[2])
	show("17 of 18 launches kept: busbw sweep --resume sweep goes on", "table", "sweep")
	again, out, errs := command(t, "sweep", "--resume", "sweep", "--format", "json")
	again.Dir = cmd.Dir
	if err := again.Run(); code(err) != exitFine || strings.Count(errs.String(), "\nlaunch ") != 1 {
		t.Fatalf("resume: exit %d\n%s\n%s", code(err), out, errs)
	}
	judge(out.Bytes())
	again, out, errs = command(t, "sweep", "--resume", "sweep")
	again.Dir = cmd.Dir
	if err := again.Run(); code(err) != exitFine || strings.Contains(errs.String(), "; about ") || !strings.Contains(out.String(), "one setting for all") {
		t.Errorf("resume of a finished sweep: exit %d\n%s\n%s", code(err), out, errs)
	}
	cmp, out, errs := command(t, "compare", "base="+files[0], "slow="+files[2])
	cmp.Dir = cmd.Dir
	if err := cmp.Run(); code(err) != exitFine || !strings.Contains(out.String(), "NCCL_SHM_DISABLE: 0 → 1") || !strings.Contains(out.String(), "slow: 1 ") || strings.Contains(out.String(), "1 faster") || strings.Contains(out.String(), "one after the other") {
		t.Errorf("compare: exit %d\n%s\n%s", code(err), out, errs)
	}
}

// loseLaunch takes the last launch out of a results file.
func loseLaunch(t *testing.T, path string) {
	t.Helper()
	all, _, err := reports.ReadFile(path)
	if err != nil || len(all) < 2 {
		t.Fatalf("%d results, %v", len(all), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w, err := reports.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all[:len(all)-1] {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSweepBudget(t *testing.T) {
	cmd, out, errs := command(t, "sweep", "--local", "1x2", "--scope", "intra", "--sizes", "8", "-n", "10", "--aa", "1", "--env", "NCCL_MIN_CTAS=2", "--budget", "1ms")
	if err := cmd.Run(); code(err) != exitFail || !strings.Contains(errs.String(), "does not hold one block") || !strings.Contains(errs.String(), "--resume") && !strings.Contains(errs.String(), "kept in results") {
		t.Errorf("exit %d\n%s\n%s", code(err), out, errs)
	}
}

// timeout(1) signals a process and then its group: that is one wish to end, and
// the sweep still says what was found and how to go on; that there was a budget
// is said when it goes on.
func TestSweepInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("launches take a while")
	}
	cmd, out, errs := command(t, "sweep", "--local", "1x2", "--scope", "intra", "--sizes", "8", "-n", "10", "--aa", "1", "--env", "NCCL_MIN_CTAS=2", "--budget", "10m", "--output", "s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(cmd.Dir, "s", "aa.jsonl.zst")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatalf("no launch began\n%s\n%s", out, errs)
		}
	}
	for range 3 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := cmd.Wait(); code(err) != exitFail || !strings.Contains(errs.String(), "interrupted: go on with busbw sweep --resume s") {
		t.Fatalf("exit %d\n%s\n%s", code(err), out, errs)
	}
	again, out, errs := command(t, "sweep", "--resume", "s")
	again.Dir = cmd.Dir
	if err := again.Run(); code(err) != exitFine || !strings.Contains(errs.String(), "the sweep began with --budget 10m0s") {
		t.Errorf("exit %d\n%s\n%s", code(err), out, errs)
	}
}

func TestSweepUsage(t *testing.T) {
	for args, want := range map[string]string{
		"sweep":                            "--env NAME=VALUE,VALUE",
		"sweep --env NCCL_NVLS_ENABLE=0,1": "not a setting of the native engine",
		"sweep --env NCCL_ALGO":            "NCCL_ALGO=Ring,Tree",
		"sweep --env NCCL_ALGO=Ring,Tree --algo ring": "does nothing beside --algo",
		"sweep --env NCCL_ALGO=Ring,NVLS":             "NCCL_ALGO=NVLS",
		"sweep --env NCCL_BUFFSIZE=4M":                "NCCL_BUFFSIZE=4M",
		"sweep --env NCCL_ALGO=Ring --engine cuda":    "native",
		"sweep --env NCCL_ALGO=Ring --format html":    "table, md, json",
		"sweep --env NCCL_ALGO=Ring --margin x":       "--margin",
		"sweep --env NCCL_ALGO=Ring --launches -2":    "--launches",
		"sweep --matrix nowhere.yaml":                 "nowhere.yaml",
		"sweep --file x":                              "NAME=FILE",
		"sweep --env NCCL_ALGO=Ring extra":            "extra",
	} {
		cmd, out, errs := command(t, strings.Fields(args)...)
		if err := cmd.Run(); code(err) != exitUsage || !strings.Contains(errs.String(), want) || strings.Count(errs.String(), "busbw: ") != 1 {
			t.Errorf("busbw %s: exit %d, want %d and %q in one message\n%s%s", args, code(err), exitUsage, want, out, errs)
		}
	}
	dir := t.TempDir()
	m := manifest{Format: 1, Variants: make([]coordinator.Variant, 2), Launches: 6, Budget: "40s", Flags: map[string][]string{"margin": {"7%"}, "local": {"1x2"}}}
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--launches=4", "--aa=1", "--seed=3", "--engine=native"} {
		cmd, _, errs := command(t, "sweep", "--resume", dir, flag)
		if err := cmd.Run(); code(err) != exitUsage || !strings.Contains(errs.String(), "leave out "+strings.Split(flag, "=")[0]) {
			t.Errorf("%s: exit %d\n%s", flag, code(err), errs)
		}
	}
	if kept, err := readManifest(dir); err != nil || kept.margin() != "7%" || kept.Budget != "40s" {
		t.Errorf("%+v, %v", kept, err)
	}
	cmd, _, errs := command(t, "sweep", "--resume", "nowhere", "--env", "NCCL_ALGO=Ring")
	if err := cmd.Run(); code(err) != exitFail || !strings.Contains(errs.String(), "holds no sweep") {
		t.Errorf("exit %d\n%s", code(err), errs)
	}
}

// The budget cuts A/A before it leaves nothing to compare, and a sweep that
// compared nothing is no success.
func TestSweepFitsFromTheStart(t *testing.T) {
	var errs strings.Builder
	s := &sweep{flags: &sweepFlags{budget: 100 * time.Second}, errs: &errs, variants: make([]coordinator.Variant, 3), walls: []time.Duration{10 * time.Second}, twice: 6}
	s.manifest.Twice, s.manifest.Launches = 6, 6
	if err := s.fit(time.Now().Add(-10*time.Second), slot{file: 3, launch: 1}); err != nil || s.twice != 3 || !strings.Contains(errs.String(), "3 launches for A/A instead of 6") {
		t.Errorf("%v, %d launches of A/A, %s", err, s.twice, errs.String())
	}
	if err := s.fit(time.Now().Add(-50*time.Second), slot{file: 3, launch: 1}); err == nil || !strings.Contains(err.Error(), "does not hold one block") {
		t.Errorf("%v", err)
	}
	if s.walls = []time.Duration{9 * time.Second, time.Second, 2 * time.Second, 2 * time.Second}; s.typical() != 2*time.Second {
		t.Errorf("a launch takes %v; want 2 s, without the first", s.typical())
	}
	s.files = []*trialFile{{results: make([]reports.Result, 1)}, {}, {}, {}}
	if s.compared() {
		t.Error("the base alone is no comparison")
	}
	s.files[2].results = make([]reports.Result, 1)
	if !s.compared() {
		t.Error("two settings are a comparison")
	}
}
