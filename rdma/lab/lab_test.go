// Package lab runs what needs RDMA in emulated machines with Soft-RoCE devices
// (see run.sh). It wants BUSBW_LAB=1, for it takes minutes: `make test-rdma`.
package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// need skips where the laboratory cannot be, but never in CI: there what is
// missing is installed.
func need(t *testing.T) {
	t.Helper()
	ci := os.Getenv("CI") == "true"
	switch {
	case os.Getenv("BUSBW_LAB") == "" && !ci:
		t.Skip("set BUSBW_LAB=1 to boot emulated machines")
	case runtime.GOARCH != "amd64" || runtime.GOOS != "linux":
		t.Skip("the laboratory emulates x86-64 machines with this machine's own programs: linux/amd64 only")
	}
	missing, err := exec.Command("./run.sh", "--missing").Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) == 0 {
		return
	}
	if !ci {
		t.Skipf("not installed here (rdma/lab/run.sh --install): %s", strings.Join(strings.Fields(string(missing)), " "))
	}
	if out, err := exec.Command("./run.sh", "--install").CombinedOutput(); err != nil {
		t.Fatalf("cannot install the laboratory's packages: %v\n%s", err, out)
	}
}

// build makes a directory with the test binary of package rdma.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "test", "-c", "-o", filepath.Join(dir, "rdma.test"), "busbw/rdma")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// boot runs a command on each of n machines and returns what they said.
func boot(t *testing.T, n int, dir string, env []string, commands ...string) string {
	t.Helper()
	cmd := exec.Command("./run.sh", append([]string{strconv.Itoa(n), dir}, commands...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	return string(out)
}

// Every test of package rdma passes on a machine with an RDMA device, and none
// is skipped there.
func TestOneMachine(t *testing.T) {
	need(t)
	out := boot(t, 1, build(t), nil, "./rdma.test -test.v -test.timeout 100s")
	if t.Failed() || strings.Contains(out, "--- SKIP") || !strings.Contains(out, "--- PASS: TestLinkExchange") {
		t.Errorf("the machine said:\n%s", out)
	}
}
