package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbw/coordinator"
	"busbw/reports"
)

// binary is the program as users run it, built once; built tells children where.
var binary string

const built = "BUSBW_TEST_BINARY"

func TestMain(m *testing.M) {
	if binary = os.Getenv(built); binary != "" { // a child of this test binary
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "busbw-test-")
	if err == nil {
		binary = filepath.Join(dir, "busbw")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv(built, binary)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// command runs busbw in a folder of its own.
func command(t *testing.T, args ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, binary, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.WaitDelay = 5 * time.Second
	return cmd, out, errs
}

func code(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// kept reads the one results file that a run left.
func kept(t *testing.T, dir string) []reports.Result {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
	if len(files) != 1 {
		t.Fatalf("%d results files, want one", len(files))
	}
	all, warnings, err := reports.ReadFile(files[0])
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%s: %v, warnings %q", files[0], err, warnings)
	}
	return all
}

func TestRunAndReport(t *testing.T) {
	cmd, out, errs := command(t, "run", "--local", "2x2", "--sizes", "8,10000", "--algo", "ring,tree", "-n", "20")
	if err := cmd.Run(); code(err) != exitFine {
		t.Fatalf("exit %d\n%s\n%s", code(err), out, errs)
	}
	all := kept(t, cmd.Dir)
	if len(all) != 3*2*2*2 {
		t.Errorf("%d results; want 24: scopes × operations × algorithms × sizes", len(all))
	}
	for _, r := range all {
		if r.Wrong == nil || *r.Wrong != 0 || len(r.Seconds) != 20 || r.Config["NCCL_BUFFSIZE"] == "" || r.Limit == nil || r.Predicted == nil {
			t.Errorf("%s %s %s: wrong %v, %d samples, limit %v, prediction %v, config %v", r.Scope, r.Op, r.Algorithm, r.Wrong, len(r.Seconds), r.Limit, r.Predicted, r.Config)
		}
	}
	if !strings.Contains(out.String(), "cross-node versus intra-node, all_reduce") {
		t.Errorf("the comparison is missing:\n%s", out)
	}
	files, _ := filepath.Glob(filepath.Join(cmd.Dir, "results", "*"))
	for _, format := range reports.Formats() {
		rep, out, errs := command(t, "report", "--format", format, files[0])
		if err := rep.Run(); code(err) != exitFine || out.Len() == 0 {
			t.Errorf("report --format %s: exit %d, %d bytes\n%s", format, code(err), out.Len(), errs)
		}
	}
}

func TestResume(t *testing.T) {
	cmd, out, errs := command(t, "run", "--local", "1x2", "--op", "broadcast", "--sizes", "8", "-n", "10", "--output", "r.jsonl")
	if err := cmd.Run(); code(err) != exitFine {
		t.Fatalf("exit %d\n%s\n%s", code(err), out, errs)
	}
	again, out, errs := command(t, "run", "--local", "1x2", "--op", "broadcast", "--sizes", "8,64", "-n", "10", "--resume", "r.jsonl")
	again.Dir = cmd.Dir
	if err := again.Run(); code(err) != exitFine {
		t.Fatalf("resume: exit %d\n%s\n%s", code(err), out, errs)
	}
	all, _, err := reports.ReadFile(filepath.Join(cmd.Dir, "r.jsonl"))
	if err != nil || len(all) != 4 { // scopes intra and global; cross needs two nodes
		t.Errorf("%d results, %v; want 2 scopes × 2 sizes, each once", len(all), err)
	}
}

// What was measured on another cluster, or under other settings, is another run.
func TestResumeRefusesAnotherRun(t *testing.T) {
	cmd, out, errs := command(t, "run", "--local", "1x2", "--op", "broadcast", "--scope", "intra", "--sizes", "8", "-n", "10", "--output", "r.jsonl")
	if err := cmd.Run(); code(err) != exitFine {
		t.Fatalf("exit %d\n%s\n%s", code(err), out, errs)
	}
	before, err := os.ReadFile(filepath.Join(cmd.Dir, "r.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ local, env, want string }{
		{"2x2", "", "local0, local1"},
		{"1x3", "", "3"},
		{"1x2", "NCCL_BUFFSIZE=1048576", "NCCL_BUFFSIZE"},
	} {
		again, _, errs := command(t, "run", "--local", c.local, "--op", "broadcast", "--scope", "intra", "--sizes", "64", "-n", "10", "--resume", "r.jsonl")
		again.Dir, again.Env = cmd.Dir, append(again.Env, c.env)
		if err := again.Run(); code(err) != exitUsage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s %s: exit %d\n%s", c.local, c.env, code(err), errs)
		}
		if after, err := os.ReadFile(filepath.Join(cmd.Dir, "r.jsonl")); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s %s: the file changed (%v)", c.local, c.env, err)
		}
	}
}

// Only what busbw run wrote can be gone on with.
func TestResumeRefusesOtherCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.jsonl")
	if _, errs, code := ran(t, "pairs", "--local", "2x1", "--bytes", "64K", "--time", "1ms", "--min", "0.000001", "--min-both", "0.000001", "--output", file); code != exitFine {
		t.Fatalf("exit %d: %s", code, errs)
	}
	foreign := filepath.Join(dir, "i.jsonl")
	if _, errs, code := ran(t, "import", mustAbs(t, "../../reports/imports/testdata/hostname-with-blank.txt"), "--output", foreign); code != exitFine {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for name, want := range map[string]string{file: "busbw pairs wrote it", foreign: "imported"} {
		before, _ := os.ReadFile(name)
		_, errs, code := ran(t, "run", "--local", "2x1", "--sizes", "8", "-n", "5", "--resume", name)
		after, _ := os.ReadFile(name)
		if code != exitUsage || !strings.Contains(errs, want) || !bytes.Equal(before, after) {
			t.Errorf("%s: exit %d, %q; want %q and the file as it was", name, code, errs, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"run --op all_redcue":            "all_reduce",
		"run -d flaot":                   "bfloat16",
		"run -o average":                 "sum, prod, min, max, avg",
		"run --algo rnig":                "halving",
		"run --scope rack":               "intra, cross, global",
		"run -b 1Q":                      "64K",
		"run --local 2by2":               "NODESxRANKS",
		"run --format xml":               "nccl",
		"run -r 9 --local 1x2 --sizes 8": "root 9",
		"run --nodes 4":                  "--join",
		"run -n x":                       `-n, --iters "x": want a whole number`,
		"run --time 3":                   `--time "3": want a time with its unit`,
		"run -f 0":                       "-f 0: want a factor above 1",
		"run -g 8":                       "NODESxRANKS",
		"run --join 127.0.0.1":           "--secret-file",
		"run --frobnicate":               "--help",
		"run extra":                      "extra",
		"members":                        "--join",
		"worker":                         "--secret-file",
		"report":                         "file",
		"benchmark":                      "--help",
	} {
		cmd, out, errs := command(t, strings.Fields(args)...)
		if err := cmd.Run(); code(err) != exitUsage || !strings.Contains(errs.String(), want) || strings.Count(errs.String(), "busbw: ") != 1 {
			t.Errorf("busbw %s: exit %d, want %d and %q in one message\n%s%s", args, code(err), exitUsage, want, out, errs)
		}
	}
}

func TestNameCannotSteerATerminal(t *testing.T) {
	cmd, _, errs := command(t, "worker", "--secret-file", "key", "--name", "a\x1b[31m")
	if err := cmd.Run(); code(err) != exitUsage || strings.Contains(errs.String(), "\x1b") {
		t.Errorf("exit %d, %q", code(err), errs)
	}
}

func TestTooLarge(t *testing.T) {
	cmd, out, errs := command(t, "run", "--local", "1x2", "--op", "broadcast", "--scope", "intra", "--sizes", "8,100T", "-n", "6")
	if err := cmd.Run(); code(err) != exitFail || !strings.Contains(errs.String(), "GiB") {
		t.Errorf("exit %d\n%s\n%s", code(err), out, errs)
	}
	if all := kept(t, cmd.Dir); len(all) != 2 || all[0].Error != "" || all[1].Error == "" {
		t.Errorf("%d results; want the small size measured and the large one with its reason", len(all))
	}
}

func TestNothingIsLeftOfAFailure(t *testing.T) {
	cmd, _, _ := command(t, "run", "--local", "1x2", "--op", "broadcast", "-r", "9")
	cmd.Run()
	if files, _ := filepath.Glob(filepath.Join(cmd.Dir, "results", "*")); len(files) != 0 {
		t.Errorf("%v is left and holds nothing", files)
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("a small file system needs root: mount: %v", err)
	}
	defer syscall.Unmount(dir, 0)
	cmd, out, errs := command(t, "run", "--local", "1x2", "--op", "all_reduce", "--scope", "intra", "--sizes", "8,16,32,64", "-n", "500", "--output", filepath.Join(dir, "r.jsonl"))
	if err := cmd.Run(); code(err) != exitFail || !strings.Contains(errs.String(), "no space left") || !strings.Contains(out.String(), "8 B") {
		t.Errorf("exit %d\n%s\n%s", code(err), out, errs)
	}
	if all, _, err := reports.ReadFile(filepath.Join(dir, "r.jsonl")); err != nil || len(all) == 0 {
		t.Errorf("%d results are left, %v; want those before the disk was full", len(all), err)
	}
}

func TestEnvironmentIsChecked(t *testing.T) {
	cmd, _, errs := command(t, "run", "--local", "1x2")
	cmd.Env = append(cmd.Env, "NCCL_ALGO=NVLS")
	if err := cmd.Run(); code(err) != exitUsage || !strings.Contains(errs.String(), "NCCL_ALGO") {
		t.Errorf("exit %d\n%s", code(err), errs)
	}
}

// running starts a long run and waits until it has kept a result.
func running(t *testing.T) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	t.Helper()
	cmd, out, errs = command(t, "run", "--local", "2x2", "--op", "all_reduce", "--algo", "ring", "--scope", "global", "--sizes", "8,64,512,4K,8K,16K,32K", "--time", "3s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(4 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(cmd.Dir, "results", "*"))
		if len(files) == 1 {
			if all, _, _ := reports.ReadFile(files[0]); len(all) > 0 {
				return cmd, out, errs
			}
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatalf("no result within four minutes\n%s\n%s", out, errs)
		}
	}
}

// family lists the processes below one, by the verb that they run.
func family(t *testing.T, pid int) map[string][]int {
	t.Helper()
	out := map[string][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	parent := map[int]int{}
	for _, s := range stats {
		b, err := os.ReadFile(s)
		if err != nil {
			continue // it ended
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		me, _ := strconv.Atoi(filepath.Base(filepath.Dir(s)))
		parent[me], _ = strconv.Atoi(f[1])
	}
	for p := range parent {
		for up := parent[p]; up > 1; up = parent[up] {
			if up == pid {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
				if args := strings.Split(string(line), "\x00"); len(args) > 1 {
					out[args[1]] = append(out[args[1]], p)
				}
				break
			}
		}
	}
	return out
}

// gone checks that none of the processes is left.
func gone(t *testing.T, procs map[string][]int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var left []int
		for _, pids := range procs {
			for _, p := range pids {
				if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p)); err == nil && !strings.Contains(string(b), ") Z ") {
					left = append(left, p)
				}
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes %v are left behind", left)
		}
	}
}

func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("each fault takes the patience that a user would need")
	}
	for _, c := range []struct {
		name string
		hit  func(cmd *exec.Cmd, procs map[string][]int) error
		want []string
	}{
		{"interrupt", func(cmd *exec.Cmd, _ map[string][]int) error { return cmd.Process.Signal(os.Interrupt) }, []string{"interrupted", "--resume"}},
		{"runner killed", func(_ *exec.Cmd, p map[string][]int) error { return syscall.Kill(p["runner"][0], syscall.SIGKILL) }, []string{"node", "killed"}},
		{"worker killed", func(_ *exec.Cmd, p map[string][]int) error { return syscall.Kill(p["worker"][0], syscall.SIGKILL) }, []string{"node"}},
		{"runner stopped", func(_ *exec.Cmd, p map[string][]int) error { return syscall.Kill(p["runner"][0], syscall.SIGSTOP) }, []string{"node"}},
		{"worker stopped", func(_ *exec.Cmd, p map[string][]int) error { return syscall.Kill(p["worker"][0], syscall.SIGSTOP) }, []string{"node"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, out, errs := running(t)
			procs := family(t, cmd.Process.Pid)
			if len(procs["worker"]) != 2 || len(procs["runner"]) != 2 {
				t.Fatalf("processes %v; want two workers and two runners", procs)
			}
			start := time.Now()
			if err := c.hit(cmd, procs); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it took %v to end", took)
			}
			if code(err) != exitFail {
				t.Errorf("exit %d, want %d", code(err), exitFail)
			}
			text := errs.String()
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("the message lacks %q:\n%s", w, text)
				}
			}
			if strings.Count(text, "busbw: ") != 1 || strings.Contains(text, "goroutine ") {
				t.Errorf("want one message and no stack:\n%s", text)
			}
			if len(kept(t, cmd.Dir)) == 0 || !strings.Contains(out.String(), "all_reduce") {
				t.Error("what was measured before was not kept or not shown")
			}
			gone(t, procs)
		})
	}
}

// A name that stands for another is told, once, and so are more ranks than a worker offers.
func TestNotes(t *testing.T) {
	_, errs, status := ran(t, "run", "--local", "2x2", "--op", "Broadcast", "--algo", "ring", "--sizes", "8", "-n", "5")
	if status != exitFine || strings.Count(errs, "ring of broadcast is called chain here") != 1 {
		t.Errorf("exit %d\n%s", status, errs)
	}
	var b strings.Builder
	f := runFlags{ranks: 9}
	f.crowded([]coordinator.Member{{Host: "a", Ranks: 2}, {Host: "b", Ranks: 9}}, &b)
	if s := b.String(); !strings.Contains(s, "--ranks 9") || !strings.Contains(s, "offers 2") || strings.Contains(s, "offers 9") {
		t.Errorf("%s", s)
	}
}
