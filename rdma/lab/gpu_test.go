package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/worker/gpu/gputest"
)

// Buffers in the memory of GPUs, which a stand-in for the driver keeps in the
// machine's own, travel over queue pairs: registered by address, for Soft-RoCE
// refuses dma-buf handles, and where NCCL_NET_GDR_LEVEL forbids that, through
// locked host memory. All data is right, and the record says which it was.
func TestBusbwGPU(t *testing.T) {
	need(t)
	dir := program(t)
	lib := filepath.Join(dir, "lib")
	if err := os.Mkdir(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	driver, err := os.ReadFile(filepath.Join(gputest.Library(t, "../../worker/gpu"), "libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"libcuda.so.1": driver, "fakecuda.conf": []byte("FAKECUDA_DEVICES=2\nFAKECUDA_MEM=256\nFAKECUDA_PEERMEM=1")} {
		if err := os.WriteFile(filepath.Join(lib, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const run = "timeout 120 ./busbw run $JOIN --nodes 2 --memory gpu --no-rotate -n 2 -w 1 "
	const all = "--op all_reduce,broadcast,reduce,all_gather,reduce_scatter,alltoall,gather,scatter,sendrecv --scope cross --inplace both --sizes 8,100004 -d half --output /out/direct.jsonl; echo DIRECT STATUS $?; "
	const staged = "--op all_reduce,broadcast --algo ring,tree --scope global --sizes 8,100004 --output /out/staged.jsonl; echo STAGED STATUS $?"
	said, kept := cluster{machines: 2, ranks: 2, script: "NCCL_NET_GDR_LEVEL=SYS " + run + all + "NCCL_NET_GDR_LEVEL=LOC " + run + staged}.start(t, dir)
	way := map[string]string{"direct": "peer memory", "staged": "off"}
	for name, least := range map[string]int{"direct": 26, "staged": 8} {
		if len(kept[name]) < least {
			t.Errorf("%s: %d results, want at least %d", name, len(kept[name]), least)
		}
		for _, r := range kept[name] {
			if r.Wrong == nil || *r.Wrong != 0 || r.Error != "" || r.Memory != "cuda" {
				t.Errorf("%s: %s %s %s %d B in %s memory: wrong %v, %s", name, r.Scope, r.Op, r.Algorithm, r.Bytes, r.Memory, r.Wrong, r.Error)
			}
			if got := r.Effective["gpu direct rdma"]; got != way[name] {
				t.Errorf("%s: %s by %q, want %q; notes %q", name, r.Op, got, way[name], r.Notes)
			}
		}
	}
	if t.Failed() || !strings.Contains(said[0], "STAGED STATUS 0") || !strings.Contains(said[0], "DIRECT STATUS 0") {
		t.Errorf("the machines said:\n%s", strings.Join(said, "\n"))
	}
}
