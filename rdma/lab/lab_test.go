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
	switch {
	case os.Getenv("BUSBW_LAB") == "":
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
	if os.Getenv("CI") != "true" {
		t.Skipf("not installed here (rdma/lab/run.sh --install): %s", strings.Join(strings.Fields(string(missing)), " "))
	}
	if out, err := exec.Command("./run.sh", "--install").CombinedOutput(); err != nil {
		t.Fatalf("cannot install the laboratory's packages: %v\n%s", err, out)
	}
}

// build makes a directory with the test binary of package rdma and the node
// program.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"test", "-c", "-o", filepath.Join(dir, "rdma.test"), "busbw/rdma"}, {"build", "-o", filepath.Join(dir, "node"), "busbw/rdma/lab/node"}} {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir
}

// boot runs a command on each of n machines and returns what each said, and
// whether all commands were content.
func boot(t *testing.T, n int, dir string, env []string, commands ...string) (said []string, ok bool) {
	t.Helper()
	cmd := exec.Command("./run.sh", append([]string{strconv.Itoa(n), dir}, commands...)...)
	// a machine that other work keeps busy is many times slower: these are for what hangs
	cmd.Env = append(append(os.Environ(), "TIMEOUT=300"), env...)
	out, err := cmd.CombinedOutput()
	said = strings.Split(string(out), "--- node ")
	if len(said) != n+1 {
		t.Fatalf("%v\n%s", err, out)
	}
	return said[1:], err == nil
}

// The layouts of verbs.h are those of the real header.
func TestLayouts(t *testing.T) {
	need(t)
	if out, err := exec.Command("cc", "-c", "-DBUSBW_HEADER_REQUIRED", "-o", "/dev/null", "../verbs_check.c").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Every test of package rdma passes on a machine with an RDMA device, and none
// is skipped there. The suite of all links is a test of its own.
func TestOneMachine(t *testing.T) {
	need(t)
	said, ok := boot(t, 1, build(t), nil, "./rdma.test -test.v -test.skip Conformance -test.timeout 250s")
	if !ok || strings.Contains(said[0], "--- SKIP") || !strings.Contains(said[0], "--- PASS: TestLinkExchange") {
		t.Errorf("the machine said:\n%s", said[0])
	}
}

// The suite of all links passes, as far as an emulated machine with two
// processors ends it in a minute: up to four ranks, and less in the large cases.
func TestConformance(t *testing.T) {
	need(t)
	said, ok := boot(t, 1, build(t), []string{"MEM=1024"}, "./rdma.test -test.v -test.short -test.run Conformance -test.timeout 290s")
	if !ok || !strings.Contains(said[0], "--- PASS: TestConformance") {
		t.Errorf("the machine said:\n%s", said[0])
	}
}

// Every operation by every algorithm runs between machines with two ranks on
// each, and no byte is wrong.
func TestMachines(t *testing.T) {
	need(t)
	dir := build(t)
	for _, tc := range []struct{ machines, ranks int }{{2, 2}} {
		args := "-nodes " + strconv.Itoa(tc.machines) + " -ranks " + strconv.Itoa(tc.ranks) + " collectives"
		said, ok := boot(t, tc.machines, dir, nil, "NCCL_IB_TC=41 NCCL_IB_QPS_PER_CONNECTION=2 ./node -id $LAB_id "+args)
		for _, s := range said {
			if !ok || !strings.Contains(s, "0 wrong") || !strings.Contains(s, "traffic class 41") {
				t.Errorf("%d machines with %d ranks: one said:\n%s", tc.machines, tc.ranks, s)
			}
		}
	}
}

// Whatever breaks a link ends it in time, with a message that names the cause:
// one fault after the other on the same two machines.
func TestFaults(t *testing.T) {
	need(t)
	const hold = "./node -id $LAB_id -nodes 2 -limit 60s hold"
	const began = hold + " > h & until grep -qE 'HOLDING|FAILED' h; do usleep 200000; done; sleep 1; "
	var one, two string
	faults := []struct {
		name, one, two string // commands of the machines
		want           string // of machine 1, besides FAILED; several are alternatives
	}{
		{"wrong GID", "NCCL_IB_GID_INDEX=0 " + hold, hold, "one is IPv4, the other IPv6"},
		{"empty GID row", "NCCL_IB_GID_INDEX=9 " + hold, hold, "nothing in GID row 9 (NCCL_IB_GID_INDEX)"},
		{"P_Key beyond the table", "NCCL_IB_PKEY=99 " + hold, hold, "NCCL_IB_PKEY=99 is an index into a table"},
		{"queue pairs differ", "NCCL_IB_QPS_PER_CONNECTION=3 " + hold, hold, "NCCL_IB_QPS_PER_CONNECTION differs"},
		{"no such device", "NCCL_IB_HCA=mlx5 ./node -id 1 hold", "true", "no RDMA port to use: [rxe0:1: not in NCCL_IB_HCA]"},
		{"killed peer", hold, began + "kill -9 $!", "no sign of life|transport retry counter exceeded|remote operation error"},
		{"link down", hold, began + "ip link set eth0 down; wait", "no sign of life|transport retry counter exceeded"},
		{"port down", "ip link set eth0 down; ./node -id 1 hold", "true", "no RDMA port to use: [rxe0:1: disabled by an administrator]"},
	}
	for _, f := range faults {
		one += "echo FAULT " + f.name + "; " + f.one + "; "
		two += f.two + "; "
	}
	said, _ := boot(t, 2, build(t), nil, one, two)
	for _, f := range faults {
		_, part, _ := strings.Cut(said[0], "FAULT "+f.name)
		part, _, _ = strings.Cut(part, "FAULT ")
		_, failed, _ := strings.Cut(part, "FAILED:")
		found := false
		for w := range strings.SplitSeq(f.want, "|") {
			found = found || strings.Contains(failed, w)
		}
		if !found {
			t.Errorf("%s: no %q", f.name, f.want)
		}
	}
	if t.Failed() {
		t.Logf("the machines said:\n%s", strings.Join(said, "\n"))
	}
}
