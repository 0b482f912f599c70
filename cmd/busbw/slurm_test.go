package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSlurmStep(t *testing.T) {
	for list, want := range map[string]string{
		"gpu1": "gpu1", "gpu[003-010,012]": "gpu003", "gpu[7,9],login": "gpu7", "a,b": "a", "r[1-2]n[04-06]-ib": "r1n04-ib",
		"": "", "gpu[1": "", "x[]y": "xy",
	} {
		if got := firstHost(list); got != want {
			t.Errorf("%q begins with %q, want %q", list, got, want)
		}
	}
	env := map[string]string{"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NODELIST": "d[1-2]"}
	get := func(name string) string { return env[name] }
	if s, ok, err := slurmStep(get); !ok || err != nil || s != (step{1, 2, "d1"}) {
		t.Errorf("%+v, %t, %v", s, ok, err)
	}
	env["SLURM_STEP_NUM_TASKS"] = "16"
	if _, _, err := slurmStep(get); err == nil || !strings.Contains(err.Error(), "--ntasks-per-node=1") {
		t.Errorf("eight tasks on a node: %v", err)
	}
	env["SLURM_STEP_NUM_TASKS"] = "1"
	if _, ok, err := slurmStep(get); ok || err != nil {
		t.Errorf("one task: %t, %v", ok, err)
	}
}

// Two tasks of a step, each given the same command, become one cluster; both
// end with it. Without a secret none starts: two clusters of their own would
// look like one.
func TestUnderSlurm(t *testing.T) {
	at := freePort(t)
	task := func(procid, bind string, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		cmd, out, errs := command(t, append([]string{"run", "--bind", bind, "--sizes", "1K", "-n", "5", "--op", "all_reduce", "--scope", "cross", "--output", "r.jsonl"}, args...)...)
		cmd.Env = append(cmd.Env, "SLURM_STEP_ID=0", "SLURM_PROCID="+procid, "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=127.0.0.[1-2]")
		return cmd, out, errs
	}
	cmd, _, errs := task("0", at)
	if err := cmd.Run(); code(err) != exitUsage || !strings.Contains(errs.String(), "become one cluster") {
		t.Errorf("without a secret: %v\n%s", err, errs)
	}
	if strings.HasSuffix(at, ":7946") {
		t.Skip("the port of gossip is taken by this test")
	}
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, strings.Repeat("0123456789abcdef", 4))
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	// On one machine the tasks need ports of their own, and the guest looks for the first one at the usual one.
	first, out, errs := task("0", "127.0.0.1:7946", "--secret-file", key)
	guest, _, said := task("1", at, "--secret-file", key)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if err := guest.Start(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Minute, func() { first.Process.Kill(); guest.Process.Kill() })
	err, gerr := first.Wait(), guest.Wait()
	if err != nil || gerr != nil || !strings.Contains(errs.String(), "2 of 2 workers there") || !strings.Contains(out.String(), "2 nodes") {
		t.Errorf("%v, %v\n%s%s\nthe other task: %s", err, gerr, out, errs, said)
	}
}
