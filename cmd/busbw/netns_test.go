package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fabric is a switch with nodes on it: network namespaces joined by veth pairs
// and a bridge, each node's sending side limited by tc tbf.
type fabric struct {
	nodes int
	tag   string
}

func (f *fabric) ns(i int) string   { return fmt.Sprintf("%sn%d", f.tag, i) }
func (f *fabric) addr(i int) string { return fmt.Sprintf("10.213.77.%d", i+1) }

// newFabric builds one; it skips the test, with the reason, where that cannot be.
func newFabric(t *testing.T, rates []string) *fabric {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, tool := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed (package iproute2)", tool)
		}
	}
	f := &fabric{nodes: len(rates), tag: fmt.Sprintf("bb%d", os.Getpid()%100000)}
	hub := f.tag + "hub"
	if out, err := exec.Command("ip", "netns", "add", hub).CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", hub).Run() })
	do := func(line string) {
		t.Helper()
		args := strings.Fields(line)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	do("ip -n " + hub + " link add br0 type bridge")
	do("ip -n " + hub + " link set br0 up")
	for i, rate := range rates {
		ns, port := f.ns(i), fmt.Sprintf("p%d", i)
		do("ip netns add " + ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		do(fmt.Sprintf("ip -n %s link add eth0 type veth peer name %s netns %s", ns, port, hub))
		do(fmt.Sprintf("ip -n %s addr add %s/24 dev eth0", ns, f.addr(i)))
		do("ip -n " + ns + " link set lo up")
		do("ip -n " + ns + " link set eth0 up")
		do(fmt.Sprintf("ip -n %s link set %s master br0 up", hub, port))
		if rate != "" {
			do(fmt.Sprintf("ip netns exec %s tc qdisc add dev eth0 root tbf rate %s burst 32kb latency 200ms", ns, rate))
		}
	}
	return f
}

// workers starts one on each node but the last, on which the coordinator runs.
func (f *fabric) workers(t *testing.T, ranks int) (join []string) {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte(strings.Repeat("5a", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range f.nodes - 1 {
		cmd, _, errs := command(t, "worker", "--secret-file", secret, "--bind", f.addr(i)+":7946", "--ranks", fmt.Sprint(ranks), "--name", fmt.Sprintf("n%d", i))
		if i > 0 {
			cmd.Args = append(cmd.Args, "--join", f.addr(0))
		}
		f.inside(t, cmd, i)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("worker %d: %s", i, errs)
			}
		})
	}
	last := f.nodes - 1
	return []string{"--secret-file", secret, "--bind", f.addr(last) + ":0", "--join", f.addr(0), "--nodes", fmt.Sprint(last)}
}

// inside has a command run in a node's namespace.
func (f *fabric) inside(t *testing.T, cmd *exec.Cmd, i int) {
	t.Helper()
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args = append([]string{"ip", "netns", "exec", f.ns(i)}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	cmd.Path = ip
}

// A node that sends at a quarter of what the others do is named, with the
// direction.
func TestPairsFindALimitedLink(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	f := newFabric(t, []string{"100mbit", "100mbit", "100mbit", "25mbit", "100mbit", ""})
	join := f.workers(t, 1)
	cmd, out, errs := command(t, append([]string{"pairs", "--bytes", "256K", "--time", "1ms", "--format", "json"}, join...)...)
	f.inside(t, cmd, f.nodes-1)
	began := time.Now()
	if status := code(cmd.Run()); status != exitFound {
		t.Fatalf("exit %d: %s%s", status, out, errs)
	}
	var d struct {
		Culprits []struct {
			Kind, Side, Verdict string
			Nodes               []string
			GBps                float64 `json:"gb_per_s"`
		}
		Good []string
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %+v, good %v", time.Since(began), d.Culprits, d.Good)
	worst := -1
	for i, c := range d.Culprits {
		if worst < 0 || c.GBps < d.Culprits[worst].GBps {
			worst = i
		}
	}
	if worst < 0 {
		t.Fatalf("nothing was found: %s", out)
	}
	// A machine that is busy with other things may be slow elsewhere, too, but not as slow.
	if c := d.Culprits[worst]; c.Side != "sending" || c.Verdict != "fail" || strings.Join(c.Nodes, " ") != "n3" {
		t.Errorf("culprits %+v, good %v; want n3 as the worst, sending\n%s", d.Culprits, d.Good, out)
	}
}
