//go:build linux && cgo

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/reports"
	"busbw/worker/gpu/gputest"
	"busbw/worker/nccl/nccltest"
)

const gpuDir, ncclDir = "../../worker/gpu", "../../worker/nccl"

// onNCCL runs the calling test where busbw finds the stand-ins of a driver with
// four GPUs and of NCCL, which do as env says.
func onNCCL(t *testing.T, env ...string) bool {
	t.Helper()
	return gputest.OnFake(t, gpuDir, append([]string{"FAKECUDA_DEVICES=4", gputest.Libraries + nccltest.Library(t, ncclDir)}, env...)...)
}

// NCCL across processes: two workers, each with a runner that holds two ranks,
// in every scope, beside the native engine.
func TestNCCLAcrossProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("84 sizes take a while")
	}
	if !onNCCL(t, "FAKENCCL_VERSION=22803", "FAKECUDA_MEM=1024") {
		return
	}
	ops := "all_reduce,broadcast,reduce,all_gather,reduce_scatter,alltoall,sendrecv"
	cmd, out, errs := command(t, "run", "--local", "2x2", "--engine", "native,nccl", "--op", ops, "--sizes", "64,100K", "-n", "3", "-w", "1", "-c", "2")
	cmd.Env = append(cmd.Env, "NCCL_PROTO=LL128", "NCCL_UNHEARD_OF=1")
	if err := cmd.Run(); code(err) != exitFine {
		t.Fatalf("exit %d\n%s\n%s", code(err), out, errs)
	}
	engines := map[string]int{}
	for _, r := range kept(t, cmd.Dir) {
		engines[r.Engine]++
		if r.Wrong == nil || *r.Wrong != 0 || r.Error != "" {
			t.Errorf("%s %s %s: wrong %v, error %q", r.Engine, r.Scope, r.Op, r.Wrong, r.Error)
		}
		if e := r.Effective; r.Engine == "nccl" && r.Op == "all_reduce" &&
			(e["nccl version"] != "2.28.3" || e["nccl protocol"] != "LL128" || e["NCCL_PROTO"] != "LL128" || e["nccl network"] != "Socket" || e["nccl channels in use"] == "") {
			t.Errorf("%s of %d B: took effect: %v", r.Scope, r.Bytes, e)
		}
	}
	if engines["nccl"] != 3*7*2 || engines["native"] != engines["nccl"] {
		t.Errorf("results by engine: %v", engines)
	}
	if text := out.String(); !strings.Contains(text, "nccl") || !strings.Contains(text, "native") {
		t.Errorf("the table shows not both engines:\n%s", text)
	}
}

// A rank that never comes to a collective is named, its communicators are
// aborted, and the other sizes are measured in fresh processes.
func TestNCCLHangIsCut(t *testing.T) {
	if testing.Short() {
		t.Skip("hangs are waited for")
	}
	for name, c := range map[string]struct{ knob, want string }{
		"in the call":   {"FAKENCCL_BLOCK=3:4096", "rank 3 has not arrived at call 1 of NCCL, which ranks 0, 1, 2 wait in"},
		"in the stream": {"FAKENCCL_STALL=1:4096", "all ranks have arrived at call 1 of NCCL, which ends on none of them"},
		"at the start":  {"FAKENCCL_HANG=2", "all ranks have arrived at call 1 of NCCL, which ends on none of them"},
	} {
		t.Run(name, func(t *testing.T) {
			aborted := filepath.Join(t.TempDir(), "aborted")
			if !onNCCL(t, c.knob, "FAKENCCL_ABORTED="+aborted) {
				return
			}
			aborted = knob("FAKENCCL_ABORTED")
			cmd, out, errs := command(t, "run", "--local", "2x2", "--engine", "nccl", "--op", "all_reduce", "--scope", "global", "--sizes", "64,4K,64K", "-n", "3", "-w", "1", "--timeout", "3s")
			err := cmd.Run()
			all := kept(t, cmd.Dir)
			for _, r := range all {
				hung := r.Bytes == 4096 || name == "at the start"
				if hung != (r.Error != "") || hung && !strings.Contains(r.Error, c.want) || !hung && (r.Wrong == nil || *r.Wrong != 0 || len(r.Seconds) != 3) {
					t.Errorf("%d B: error %q, wrong %v, %d samples", r.Bytes, r.Error, r.Wrong, len(r.Seconds))
				}
			}
			if len(all) != 3 {
				t.Errorf("exit %d, %d results; want 3\n%s\n%s", code(err), len(all), out, errs)
			}
			if lines, err := os.ReadFile(aborted); err != nil || strings.Count(string(lines), "\n") < 4 {
				t.Errorf("communicators that were aborted: %q, %v; want those of 4 ranks", lines, err)
			}
		})
	}
}

// knob is what the child of a test was told.
func knob(name string) string { return os.Getenv(name) }

// What one rank computes wrong is found, and the exit status says so.
func TestNCCLWrongOnOneRank(t *testing.T) {
	if !onNCCL(t, "FAKENCCL_WRONG=all_reduce:3") {
		return
	}
	cmd, out, errs := command(t, "run", "--local", "2x2", "--engine", "nccl", "--op", "all_reduce,broadcast", "--scope", "global", "--sizes", "4K", "-n", "3", "-w", "1")
	if err := cmd.Run(); code(err) != exitFound {
		t.Errorf("exit %d, want %d\n%s\n%s", code(err), exitFound, out, errs)
	}
	for _, r := range kept(t, cmd.Dir) {
		if wrong := r.Wrong != nil && *r.Wrong == 1 && strings.Contains(strings.Join(r.Notes, ";"), "rank 3 element 0"); wrong != (r.Op == "all_reduce") {
			t.Errorf("%s: wrong %v, notes %q", r.Op, r.Wrong, r.Notes)
		}
	}
}

// Each way in which the library can refuse is one clear message.
func TestNCCLRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		want []string
	}{
		"join":   {[]string{"FAKENCCL_FAIL=CommInitRank:2"}, []string{"join", "unhandled system error (2)", "CommInitRank was told to fail", "NCCL_DEBUG=WARN"}},
		"id":     {[]string{"FAKENCCL_FAIL=GetUniqueId:2"}, []string{"make a unique id", "unhandled system error (2)"}},
		"async":  {[]string{"FAKENCCL_ASYNC=1:1"}, []string{"rank 1", "unhandled cuda error (1)", "Xid"}},
		"call":   {[]string{"FAKENCCL_FAIL=AllReduce:5"}, []string{"all_reduce", "invalid usage (5)"}},
		"algo":   {[]string{"FAKENCCL_VERSION=22803", "NCCL_ALGO=NVLS"}, []string{"no algorithm/protocol available"}},
		"old":    {[]string{"WITHOUT"}, []string{"too old", "it has no ncclGroupStart", "2.8 or later"}},
		"absent": {[]string{"ABSENT"}, []string{"no NCCL library", "libnccl.so.2", "librccl.so.1", "LD_LIBRARY_PATH"}},
	} {
		if testing.Short() && name != "join" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			env := append([]string{"FAKECUDA_DEVICES=4"}, c.env...)
			switch c.env[0] {
			case "WITHOUT":
				env[1] = gputest.Libraries + nccltest.Library(t, ncclDir, "-DWITHOUT_SEND")
			case "ABSENT":
				env = env[:1]
			default:
				env = append(env, gputest.Libraries+nccltest.Library(t, ncclDir))
			}
			if !gputest.OnFake(t, gpuDir, env...) {
				return
			}
			cmd, out, errs := command(t, "run", "--local", "1x2", "--engine", "nccl", "--op", "all_reduce", "--scope", "intra", "--sizes", "4K", "-n", "3", "-w", "1")
			if err := cmd.Run(); code(err) == exitFine || code(err) == exitUsage {
				t.Errorf("exit %d\n%s\n%s", code(err), out, errs)
			}
			said := errs.String()
			if files, _ := filepath.Glob(filepath.Join(cmd.Dir, "results", "*")); len(files) == 1 {
				all, _, err := reports.ReadFile(files[0])
				said += fmt.Sprint(all[0].Error, err)
			}
			for _, w := range c.want {
				if !strings.Contains(said, w) {
					t.Errorf("%q is not in\n%s", w, said)
				}
			}
		})
	}
}

// Two ranks on one GPU: NCCL takes no such communicator, which is said of each size
// before it is tried; groups without two such ranks run.
func TestNCCLNeedsAGPUForEachRank(t *testing.T) {
	if testing.Short() {
		t.Skip("three launches take a while")
	}
	for name, c := range map[string]struct {
		env, args []string
		want      map[string]string // of each scope that is kept
	}{
		"one node":         {[]string{"FAKECUDA_DEVICES=1"}, []string{"--local", "1x2", "--scope", "intra", "--memory", "gpu"}, map[string]string{"intra": "ranks 0 and 1 are both on GPU 0 (Fake GPU, 0000:18:00.0) of node 0"}},
		"not told to":      {[]string{"FAKECUDA_DEVICES=1"}, []string{"--local", "1x2", "--scope", "intra"}, nil},
		"nodes that share": {[]string{"FAKECUDA_DEVICES=2"}, []string{"--local", "2x2", "--scope", "intra,global"}, map[string]string{"intra": "", "global": "ranks 0 and 2 are both on GPU 0"}},
		"told to try":      {[]string{"FAKECUDA_DEVICES=1", "NCCL_MULTI_RANK_GPU_ENABLE=1"}, []string{"--local", "1x2", "--scope", "intra", "--memory", "gpu"}, map[string]string{"intra": "Duplicate GPU detected"}},
	} {
		t.Run(name, func(t *testing.T) {
			if !gputest.OnFake(t, gpuDir, append(c.env, gputest.Libraries+nccltest.Library(t, ncclDir))...) {
				return
			}
			cmd, out, errs := command(t, append([]string{"run", "--engine", "nccl", "--op", "all_reduce", "--sizes", "4K", "-n", "3", "-w", "1"}, c.args...)...)
			err := cmd.Run()
			if c.want == nil {
				if code(err) != exitFail || !strings.Contains(errs.String(), "--engine nccl: node 0 (local0): 1 GPUs for 2 ranks, and NCCL takes one rank a GPU") {
					t.Errorf("exit %d\n%s\n%s", code(err), out, errs)
				}
				return
			}
			all := kept(t, cmd.Dir)
			if len(all) != len(c.want) {
				t.Fatalf("exit %d, %d results\n%s\n%s", code(err), len(all), out, errs)
			}
			for _, r := range all {
				if want := c.want[r.Scope]; !strings.Contains(r.Error, want) || want == "" && (r.Error != "" || r.Wrong == nil || *r.Wrong != 0) || want != "" && len(r.Seconds) > 0 {
					t.Errorf("exit %d: %s: error %q, want %q", code(err), r.Scope, r.Error, want)
				}
			}
		})
	}
}

// AMD's library is taken where NVIDIA's is not there, and is named.
func TestRCCL(t *testing.T) {
	if !gputest.OnFake(t, gpuDir, "FAKECUDA_DEVICES=4", gputest.Libraries+nccltest.As(t, ncclDir, "librccl.so.1")) {
		return
	}
	cmd, out, errs := command(t, "run", "--local", "1x2", "--engine", "nccl", "--op", "all_reduce", "--scope", "intra", "--sizes", "4K", "-n", "3", "-w", "1")
	if err := cmd.Run(); code(err) != exitFine {
		t.Fatalf("exit %d\n%s\n%s", code(err), out, errs)
	}
	if r := kept(t, cmd.Dir)[0]; r.Effective["nccl version"] != "2.23.4 (librccl.so.1)" {
		t.Errorf("%v", r.Effective)
	}
}

// Settings of NCCL are swept in processes of their own; what took effect is what
// its log says, and a variable that it never mentions is told.
func TestSweepNCCL(t *testing.T) {
	if testing.Short() {
		t.Skip("8 launches take a while")
	}
	if !onNCCL(t, "FAKENCCL_VERSION=22803") {
		return
	}
	cmd, out, errs := command(t, "sweep", "--engine", "nccl", "--local", "1x2", "--scope", "intra", "--sizes", "64K", "-n", "3", "-w", "1", "--launches", "2", "--aa", "0",
		"--matrix", "m.yaml", "--format", "json", "--output", "sweep", "--seed", "7")
	text := `variants:
  - {name: ll, env: {NCCL_PROTO: LL}}
  - {name: unheard, env: {NCCL_UNHEARD_OF: 1}}
  - {name: impossible, env: {NCCL_ALGO: NVLS}}
`
	if err := os.WriteFile(filepath.Join(cmd.Dir, "m.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "NCCL_BUFFSIZE=1048576")
	err := cmd.Run()
	var got reports.Tuning
	if jerr := json.Unmarshal(out.Bytes(), &got); jerr != nil || len(got.Settings) != 4 {
		t.Fatalf("exit %d, %v\n%s\n%s", code(err), jerr, out, errs)
	}
	ll, unheard := got.Settings[1], got.Settings[2]
	if effects := strings.Join(ll.Effects, "; "); ll.Inert || ll.Unheard != nil || !strings.Contains(effects, "nccl protocol Simple → LL") || strings.Contains(effects, "NCCL_PROTO") {
		t.Errorf("%+v", ll)
	}
	if !unheard.Inert || strings.Join(unheard.Unheard, ",") != "NCCL_UNHEARD_OF" {
		t.Errorf("%+v", unheard)
	}
	if lines := strings.Join(ll.Lines, ";"); lines != "export NCCL_BUFFSIZE=1048576;export NCCL_PROTO=LL" {
		t.Errorf("the lines to set it are %s", lines)
	}
	if no := got.Settings[3]; no.Launches != 0 || !strings.Contains(no.Why, "no algorithm/protocol available") {
		t.Errorf("what cannot run: %+v", no)
	}
	again, out, errs := command(t, "sweep", "--resume", "sweep")
	again.Dir = cmd.Dir
	if err := again.Run(); !strings.Contains(out.String(), "never mentioned by NCCL: unheard: NCCL_UNHEARD_OF") {
		t.Errorf("resume: exit %d\n%s\n%s", code(err), out, errs)
	}
}
