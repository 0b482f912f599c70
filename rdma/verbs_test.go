//go:build linux && cgo

package rdma

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Soft-RoCE refuses dma-bufs and addresses that are not its host's: both tries
// are reported with their reasons, so that staging is never a secret.
func TestRegisterGPURefused(t *testing.T) {
	r, s := rail(t, nil)
	d, err := Open(r, s)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.DMABuf() == nil {
		t.Skipf("%s takes dma-bufs", d)
	}
	exported := false
	region, tried := d.RegisterGPU(0x7f00deadb000, 4096, func() (int, uint64, error) { exported = true; return -1, 0, nil })
	if region != nil || exported || len(tried) != 2 {
		t.Fatalf("region %v, exported %t, tried %v", region, exported, tried)
	}
	if tried[0].How != "dma-buf" || !errors.Is(tried[0].Err, syscall.EOPNOTSUPP) {
		t.Errorf("dma-buf: %v", tried[0].Err)
	}
	if tried[1].How != "peer memory" || tried[1].Err == nil || !strings.Contains(tried[1].Err.Error(), "nvidia_peermem") {
		t.Errorf("peer memory: %v", tried[1].Err)
	}
}

// Under a limit on locked memory and without the right to pass it, the error
// names the limit, what was wanted, and where to raise it.
func TestMemlockLimit(t *testing.T) {
	const inside = "BUSBW_TEST_MEMLOCK"
	if os.Getenv(inside) != "" {
		r, s := rail(t, nil)
		d, err := Open(r, s)
		if err != nil {
			t.Fatal(err)
		}
		mem, err := mapMemory(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Register(mem)
		t.Logf("REFUSED %v", err)
		return
	}
	rail(t, nil)
	if os.Getuid() != 0 {
		t.Skip("only root can give up its rights here")
	}
	cmd := exec.Command("/bin/sh", "-c", "ulimit -l 64; exec \"$0\" -test.v -test.run '^TestMemlockLimit$'", os.Args[0])
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	for _, dev := range []string{"/dev/infiniband/uverbs0", "/dev/infiniband", "/dev/null"} { // readable for everyone, as udev's rule has it
		os.Chmod(dev, 0o777)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "may lock 65536 bytes") || !strings.Contains(string(out), "needs 1048576") || !strings.Contains(string(out), "LimitMEMLOCK=infinity") {
		t.Errorf("%v\n%s", err, out)
	}
}
