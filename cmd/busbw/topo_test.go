package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbw/worker/nvml"
)

const matrix = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n" +
	"GPU0\t X \tNV18\tPIX\t0-47\t0\nGPU1\tNV18\t X \tSYS\t48-95\t1\nNIC0\tPIX\tSYS\t X \n\nNIC Legend:\n\n  NIC0: mlx5_0\n"

func TestTopoFromText(t *testing.T) {
	cmd, out, errs := command(t, "topo", "--from", "-")
	cmd.Stdin = strings.NewReader(matrix)
	if err := cmd.Run(); code(err) != exitFound || !strings.Contains(out.String(), "! GPU1 has no adapter on its socket") || !strings.Contains(out.String(), "GPU0    X     NV18  PIX     0-47   0") {
		t.Errorf("exit %d\n%s%s", code(err), out, errs)
	}
	cmd, out, errs = command(t, "topo", "--from", "-")
	cmd.Stdin = strings.NewReader("Mon Nov 30\n")
	if err := cmd.Run(); code(err) != exitFail || !strings.Contains(errs.String(), "standard input: there is no topology matrix in it") {
		t.Errorf("exit %d\n%s%s", code(err), out, errs)
	}
	cmd, out, errs = command(t, "topo", "--from", "x", "--root", "y")
	if err := cmd.Run(); code(err) != exitUsage || !strings.Contains(errs.String(), "exclude each other") {
		t.Errorf("exit %d\n%s%s", code(err), out, errs)
	}
}

// A copy of two machines' files, of which one has its adapter on the far socket.
func TestTopoOfCopies(t *testing.T) {
	dir := t.TempDir()
	for node, nicNUMA := range map[string]string{"a": "0", "b": "1", "c": "0"} {
		root := filepath.Join(dir, node)
		for place, files := range map[string]map[string]string{
			"pci0000:10/0000:10:01.0/0000:11:00.0": {"vendor": "0x10de", "class": "0x030200", "device": "0x2330", "numa_node": "0"},
			"pci0000:20/0000:20:01.0/0000:21:00.0": {"vendor": "0x15b3", "class": "0x020000", "numa_node": nicNUMA, "net/eth0/operstate": "up"},
		} {
			real := filepath.Join(root, "sys/devices", place)
			for name, text := range files {
				write(t, filepath.Join(real, name), text)
			}
			symlink(t, "../../../devices/"+place, filepath.Join(root, "sys/bus/pci/devices", filepath.Base(place)))
		}
		symlink(t, "../../devices/pci0000:20/0000:20:01.0/0000:21:00.0/net/eth0", filepath.Join(root, "sys/class/net/eth0"))
		write(t, filepath.Join(root, "proc/driver/nvidia/gpus/0000:11:00.0/information"), "Model: NVIDIA H100 80GB HBM3")
	}
	cmd, out, errs := command(t, "topo", "--json", "--root", filepath.Join(dir, "a"), "--root", filepath.Join(dir, "b"), "--root", filepath.Join(dir, "c"))
	err := cmd.Run()
	var r topoReport
	if jerr := json.Unmarshal(out.Bytes(), &r); jerr != nil || code(err) != exitFound || len(r.Nodes) != 3 {
		t.Fatalf("exit %d, %v\n%s%s", code(err), jerr, out, errs)
	}
	if a, b := r.Nodes[0], r.Nodes[1]; a.Paths[0][1] != "NODE" || b.Paths[0][1] != "SYS" || a.GPUs[0].Name != "NVIDIA H100 80GB HBM3" || a.NoGPUs == "" || len(a.Odd) != 0 || len(b.Odd) != 1 {
		t.Errorf("a %+v\nb %+v", a, b)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// fakeNVML builds the library of worker/nvml's tests and returns its folder.
func fakeNVML(t *testing.T, flags ...string) string {
	t.Helper()
	if d, err := nvml.Open(); errors.Is(err, nvml.ErrNoCgo) {
		t.Skip(err)
	} else if err == nil {
		d.Close()
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc to build the library with")
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	out, err := exec.Command("gcc", append(flags, "-w", "-fPIC", "-shared", "-Wl,-soname,libnvidia-ml.so.1", "-I"+filepath.Join(strings.TrimSpace(string(dir)), "pkg/nvml"),
		"-o", filepath.Join(to, "libnvidia-ml.so.1"), "../../worker/nvml/testdata/fakenvml.c")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return to
}

// Two members whose drivers tell of GPUs, through gossip, HTTPS and the
// process that asks; on one of them two links are down.
func TestTopoOfMembers(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	write(t, key, strings.Repeat("0123456789abcdef", 4))
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	at := freePort(t)
	start := func(name, lib string, args ...string) {
		cmd, _, errs := command(t, append([]string{"worker", "--secret-file", key, "--name", name, "--ranks", "1"}, args...)...)
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+lib)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Signal(os.Interrupt)
			cmd.Wait()
			if t.Failed() {
				t.Logf("%s: %s", name, errs)
			}
		})
	}
	start("good", fakeNVML(t), "--bind", at)
	start("weak", fakeNVML(t, `-DDOWN="3:4,3:5"`), "--bind", "127.0.0.1:0", "--join", at)
	var out, errs *bytes.Buffer
	var r topoReport
	var err error
	for deadline := time.Now().Add(20 * time.Second); len(r.Nodes) < 2 && time.Now().Before(deadline); {
		var cmd *exec.Cmd
		cmd, out, errs = command(t, "topo", "--secret-file", key, "--bind", "127.0.0.1:0", "--join", at, "--json")
		err = cmd.Run()
		r = topoReport{}
		json.Unmarshal(out.Bytes(), &r) // judged below
	}
	if len(r.Nodes) != 2 || len(r.Mute) != 0 {
		t.Fatalf("exit %d\n%s%s", code(err), out, errs)
	}
	for _, n := range r.Nodes {
		if len(n.GPUs) != 8 || n.GPUs[2].Name != "NVIDIA H100 80GB HBM3" || n.Paths[0][1] != "NV18" {
			t.Errorf("node %s: %d GPUs, paths %v", n.Node, len(n.GPUs), n.Paths)
		}
	}
	weak := r.Nodes[0]
	if weak.Node != "weak" {
		weak = r.Nodes[1]
	}
	if code(err) != exitFound || weak.Paths[3][1] != "NV16" || len(weak.Odd) != 1 || !strings.Contains(weak.Odd[0], "GPU3 has 16 NVLinks up") || len(r.Odd) != 1 || !strings.Contains(r.Odd[0], "16 on weak") {
		t.Errorf("exit %d, odd %q, across the nodes %q", code(err), weak.Odd, r.Odd)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
