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

// Every version's way of writing what it chose.
func TestNCCLChoice(t *testing.T) {
	for _, c := range []struct{ lines, algorithm, protocol, channels string }{
		{"8192 Bytes -> Algo 1 proto 2 time 12.500000", "Ring", "Simple", ""},
		{"AllReduce: 8192 Bytes -> Algo 0 proto 0 time 12.500000", "Tree", "LL", ""},
		{"AllReduce: 8192 Bytes -> Algo NVLS_TREE proto LL128 channel{Lo..Hi}={0..23}", "NVLSTree", "LL128", "24"},
		{"AllReduce: 8192 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}|AllReduce: 8192 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={2..3}", "Ring", "Simple", "2"},
		{"AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}|AllReduce: 8192 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..7}", "Tree/Ring", "LL", "2/8"},
		{"AllReduce [Symmetric]: 8192 Bytes -> Kernel AllReduce_AGxLL_R nchannels 8 nthreads 512 nWorks 1", "symmetric AllReduce_AGxLL_R", "", "8"},
		{"AllReduce: 8192 Bytes -> Algo NEW_THING proto Q channel{Lo..Hi}={9..3}", "NEW_THING", "Q", ""},
		{"AllReduce: 8192 Bytes -> Algo", "", "", ""},
		{"Using network IB", "", "", ""},
	} {
		var log strings.Builder
		for line := range strings.SplitSeq(c.lines, "|") {
			log.WriteString("gpu-a:1:2 [0] NCCL INFO " + line + "\n")
		}
		got := NCCLChoice(strings.NewReader(log.String()))
		if got["nccl algorithm"] != c.algorithm || got["nccl protocol"] != c.protocol || got["nccl channels in use"] != c.channels {
			t.Errorf("%s: %q", c.lines, got)
		}
	}
}

func FuzzNCCLChoice(f *testing.F) {
	f.Add("h:1:2 [0] NCCL INFO AllReduce: 8192 Bytes -> Algo NVLS_TREE proto LL128 channel{Lo..Hi}={0..23}\n")
	f.Fuzz(func(t *testing.T, log string) {
		for k, v := range NCCLChoice(strings.NewReader(log)) {
			if len(v) > 200 || strings.ContainsAny(v, "\n\x1b") {
				t.Errorf("%s: %q", k, v)
			}
		}
		NCCLEffect(strings.NewReader(log))
	})
}
