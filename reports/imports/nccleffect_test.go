package imports

import (
	"strings"
	"testing"
)

func TestNCCLEffect(t *testing.T) {
	got := NCCLEffect(strings.NewReader(`gpu-a:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring.
gpu-a:1:2 [0] NCCL INFO Using network IB
gpu-a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
gpu-a:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read
gpu-a:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 8[0] [send] via NET/IB/0/GDRDMA
gpu-a:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'
` + strings.Repeat("x", 1<<20) + `
gpu-a:1:2 [0] NCCL INFO NCCL_PROTO set by environment to LL
`))
	for k, want := range map[string]string{
		"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL", "nccl network": "IB", "nccl channels": "NET/IB/0/GDRDMA × 1, P2P/CUMEM/read × 2",
	} {
		if got[k] != want {
			t.Errorf("%s: %q, want %q", k, got[k], want)
		}
	}
	if !strings.Contains(got["nccl GPUDirect RDMA off"], "mlx5_1") {
		t.Errorf("%q", got)
	}
}
