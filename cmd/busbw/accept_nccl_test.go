//go:build linux && cgo

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/coordinator/accept"
	"busbw/reports"
	"busbw/worker/gpu/gputest"
	"busbw/worker/nccl/nccltest"
)

// With GPUs on every node, what a profile's limits of GPU memory are for is
// measured: copies (of the four GPUs that each node sees), and collectives on NCCL at the limits' own sizes.
func TestAcceptGPUs(t *testing.T) {
	if testing.Short() {
		t.Skip("launches take a while")
	}
	if !gputest.OnFake(t, gpuDir, "FAKECUDA_DEVICES=4", "FAKECUDA_MEM=1024", gputest.Libraries+nccltest.Library(t, ncclDir)) {
		return
	}
	mine := filepath.Join(t.TempDir(), "mine.yaml")
	limits := ""
	for _, l := range []string{"test: host to device, memory: device", "test: device to host, memory: device", "test: gpu to gpu, memory: device",
		"test: all_reduce, scope: intra, engine: nccl, memory: device, ranks: 2, bytes: 128KiB", "test: all_gather, scope: global, engine: nccl, memory: device, nodes: 2, bytes: 64KiB"} {
		limits += "  - {" + l + ", at_least: 0.0000001, unit: GB/s, source: a test}\n"
	}
	if err := os.WriteFile(mine, []byte("name: mine\ntitle: a test's\nlimits:\n"+limits+"  - {test: pair, at_least: 0.0000001, unit: GB/s, source: a test}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, out, errs := command(t, "accept", "--local", "2x2", "--bytes", "64K", "--time", "1ms", "--watch", "0s", "--profile", mine, "--format", "json")
	status := cmd.Run()
	var rep accept.Report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatalf("exit %d, %v\n%s\n%s", code(status), err, out, errs)
	}
	passed := map[string]int{}
	uneven := false // on a busy machine tests of a millisecond may not agree, and nothing else may be wrong
	for _, f := range rep.Findings() {
		if f.Verdict == reports.Fail || f.Verdict == reports.Unknown {
			if uneven = true; f.ID != "pairs" && f.ID != "node-speed" {
				t.Errorf("%+v", f)
			}
		}
		if f.Verdict == reports.Pass && (f.ID == "limit" || strings.HasPrefix(f.ID, "gpu-")) {
			test, _, _ := strings.Cut(f.Subject, ",")
			passed[test]++
		}
	}
	want := exitFine
	if rep.Verdict == reports.Fail || rep.Verdict == reports.Unknown {
		want = exitFound
	}
	if code(status) != want || want == exitFound && !uneven {
		t.Errorf("exit %d, verdict %s, and no finding says why\n%s", code(status), rep.Verdict, errs)
	}
	for test, n := range map[string]int{"host to device": 8, "device to host": 8, "gpu to gpu": 8, "all_reduce": 2, "all_gather": 1} {
		if passed[test] != n {
			t.Errorf("%d passes of %s, want %d: %v", passed[test], test, n, passed)
		}
	}
}
