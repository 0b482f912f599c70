//go:build linux && cgo

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"busbw/reports"
	"busbw/worker/gpu/gputest"
)

// onGPUs runs the calling test where busbw finds the stand-ins of the CUDA driver
// and of NVML, which tell of the same four GPUs; flags are of NVML's.
func onGPUs(t *testing.T, flags ...string) bool {
	t.Helper()
	nvml := ""
	if !gputest.Child() {
		nvml = fakeNVML(t, append(flags, "-DBUS=0x18")...)
	}
	return gputest.OnFake(t, gpuDir, "FAKECUDA_DEVICES=4", gputest.Libraries+nvml)
}

// A run on GPUs that NVML knows: NVLink is the way within a node and its limit,
// what it carried and what its counters did is in the results and in the tables.
func TestRunOverNVLink(t *testing.T) {
	if !onGPUs(t) {
		return
	}
	cmd, out, errs := command(t, "run", "--local", "2x2", "--memory", "gpu", "--op", "all_reduce", "--algo", "ring", "--sizes", "64K,1M", "-n", "5", "-w", "1")
	cmd.Env = append(cmd.Env, "NCCL_P2P_LEVEL=PXB") // the default depends on the processors
	if err := cmd.Run(); code(err) != exitFine {
		t.Fatalf("exit %d\n%s\n%s", code(err), out, errs)
	}
	seen := map[string]int{}
	for _, r := range kept(t, cmd.Dir) {
		seen[r.Scope+" "+r.Link]++
		if r.Wrong == nil || *r.Wrong != 0 || r.Memory != "cuda" || r.Effective["gpu peer access"] != "as far as PXB" {
			t.Errorf("%s of %d B: wrong %v, %s memory, %v", r.Scope, r.Bytes, r.Wrong, r.Memory, r.Effective)
		}
		if u := r.NVLink; u == nil || u.GBps <= 0 || u.Share == nil || *u.Share <= 0 || !strings.Contains(u.Where, "GPU") {
			t.Errorf("%s of %d B: NVLink %+v", r.Scope, r.Bytes, u)
		}
		for _, name := range []string{"nvlink_tx_bytes", "nvlink_rx_bytes", "pcie_rx_bytes"} {
			if !slices.ContainsFunc(r.Counters, func(c reports.Counter) bool { return c.Name == name && c.Add > 0 && c.Devices == 4 && c.Most != "" }) {
				t.Errorf("%s of %d B: %s is not among the counters that moved: %+v", r.Scope, r.Bytes, name, r.Counters)
			}
		}
		if l := r.Limit; r.Scope == "intra" && (l == nil || l.Name != "NVLink" || l.GBps != 450) {
			t.Errorf("intra of %d B: limit %+v", r.Bytes, l)
		}
	}
	for _, way := range []string{"intra cuda", "cross tcp", "global cuda+tcp"} {
		if seen[way] != 2 || len(seen) != 3 {
			t.Errorf("scopes and links: %v", seen)
		}
	}
	for _, want := range []string{"cross-node versus intra-node", "NVLink", "CROSS/INTRA"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// NCCL_P2P_LEVEL is how far apart GPUs may be that read each other's memory: at NVL
// those that NVLinks join which are up, at SYS all that the driver lets, at LOC none.
func TestP2PLevelOfARun(t *testing.T) {
	for _, c := range []struct {
		name, level, want string
		flags             []string
	}{
		{"NVLink", "NVL", "cuda", nil},
		{"only by themselves", "LOC", "staged", nil},
		{"no link is up", "NVL", "staged", []string{`-DLINKS=0`}},
		{"no link is up, any way", "SYS", "cuda", []string{`-DLINKS=0`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !onGPUs(t, c.flags...) {
				return
			}
			cmd, out, errs := command(t, "run", "--local", "1x2", "--scope", "intra", "--memory", "gpu", "--op", "all_reduce", "--algo", "ring", "--sizes", "64K", "-n", "3", "-w", "1")
			cmd.Env = append(os.Environ(), "NCCL_P2P_LEVEL="+c.level)
			if err := cmd.Run(); code(err) != exitFine {
				t.Fatalf("exit %d\n%s\n%s", code(err), out, errs)
			}
			if r := kept(t, cmd.Dir)[0]; r.Link != c.want || r.Wrong == nil || *r.Wrong != 0 || r.Effective["gpu peer access"] != "as far as "+c.level {
				t.Errorf("%s, wrong %v, %v, notes %q", r.Link, r.Wrong, r.Effective, r.Notes)
			}
		})
	}
}

// Why there is no GPU is one of three different things, and each is said.
func TestWhyNoGPU(t *testing.T) {
	for name, c := range map[string]struct{ knob, want string }{
		"no library": {"LD_LIBRARY_PATH=/nowhere", "no CUDA driver: libcuda.so.1: cannot open shared object file"},
		"no device":  {"FAKECUDA_DEVICES=0", "no CUDA device: the driver finds none (nvidia-smi -L"},
		"old driver": {"FAKECUDA_DRIVER=10020", "the CUDA driver is too old: it speaks CUDA 10.2, busbw needs 11.0 (driver 450 or later)"},
	} {
		t.Run(name, func(t *testing.T) {
			if !gputest.OnFake(t, gpuDir, c.knob) {
				return
			}
			for _, args := range [][]string{{"--memory", "gpu"}, {"--engine", "nccl"}} {
				cmd, out, errs := command(t, append([]string{"run", "--local", "1x2", "--scope", "intra", "--sizes", "8"}, args...)...)
				if err := cmd.Run(); code(err) != exitFail || !strings.Contains(errs.String(), strings.Join(args, " ")+": node 0 (local0): "+c.want) {
					t.Errorf("%v: exit %d\n%s\n%s", args, code(err), out, errs)
				}
			}
		})
	}
}
