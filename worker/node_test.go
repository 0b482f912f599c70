package worker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"busbw/reports"
	"time"
)

func TestReadNodeStaysInItsCopy(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	for file, text := range map[string]string{outside: "no", filepath.Join(dir, "inside"): "yes"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": outside, "in": "inside"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadNode("a", dir); err == nil || !strings.Contains(err.Error(), "neither sys nor proc") {
		t.Errorf("%v for a folder that is no machine's", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	n, err := ReadNode("a", dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := fs.ReadFile(n.Root, "in"); string(b) != "yes" {
		t.Errorf("a link inside: %q, %v", b, err)
	}
	if b, err := fs.ReadFile(n.Root, "out"); err == nil {
		t.Errorf("a link that leads out gave %q", b)
	}
	if n.NoGPUs == "" { // it has no /sys
		t.Error("it does not say why the GPUs are unknown")
	}
	if _, err := ReadNode("a", filepath.Join(dir, "none")); err == nil {
		t.Error("no error for a folder that does not exist")
	}
}

// The agent asks the driver in another process and outlives what happens there.
func TestDriverIsAskedElsewhere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{opts: Options{Runner: []string{exe, RunnerVerb}}, patience: 10 * time.Second}
	a.self.Host = "a"
	for _, tc := range []struct {
		driver string
		gpus   int
		why    string
	}{
		{`{"gpus":[{"index":0,"vendor":"nvidia","name":"NVIDIA H100 80GB HBM3"}],"no_gpus":"some of it"}`, 1, "some of it"},
		{`{"gpus":`, 0, "cannot be read"},
		{"die", 0, "failed: exit status 2: SIGSEGV"},
		{"hang", 0, "did not answer within 300ms"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "driver"), []byte(tc.driver), 0o600); err != nil {
			t.Fatal(err)
		}
		if tc.driver == "hang" {
			a.patience = 300 * time.Millisecond
		}
		n := a.readNode(t.Context())
		if n.Name != "a" || !strings.Contains(n.NoGPUs, tc.why) || tc.gpus > 0 && (len(n.GPUs) != tc.gpus || n.GPUs[0].Name != "NVIDIA H100 80GB HBM3") {
			t.Errorf("%.20q: %d GPUs, %q; want %d, %q", tc.driver, len(n.GPUs), n.NoGPUs, tc.gpus, tc.why)
		}
	}
}

// A copy of a machine may hold anything: pipes, loops, links out of it, files
// without end or meaning. Nothing of it stops or fails a check.
func TestHostileCopy(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	port := "sys/class/infiniband/mlx5_0/ports/1/"
	put(port+"rate", "1e309 Gb/sec (99999999999999999999X \x1b[31m)")
	put(port+"link_layer", "InfiniBand\x1b]0;x\x07")
	put(port+"counters/symbol_error", "99999999999999999999999")
	put(port+"lid", "-5")
	put("sys/bus/pci/devices/x", "")
	for name, to := range map[string]string{"sys/bus/pci/devices/0000:00:00.0": ".", "sys/bus/pci/devices/0000:00:01.0": "/etc", "sys/bus/pci/devices/0000:00:02.0": "../../../../../../etc",
		"sys/class/infiniband/mlx5_0/hca_type": "loop", "sys/class/infiniband/mlx5_0/loop": "hca_type", "proc/cmdline": "/dev/zero"} {
		put(name+".x", "")
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{port + "state", port + "gids/0", "etc/hosts", "var/log/kern.log", "sys/bus/pci/devices/0000:00:03.0"} {
		put(name+".x", "")
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("proc/meminfo", "")
	if err := os.Truncate(filepath.Join(dir, "proc/meminfo"), 8<<30); err != nil {
		t.Fatal(err)
	}
	n, err := ReadNode("a", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range RunChecks(t.Context(), n, CheckOptions{}) {
		if f.Verdict == reports.Fail {
			t.Errorf("%+v", f)
		}
	}
	n.Topology()
}
