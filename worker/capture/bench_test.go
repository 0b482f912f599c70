package capture

import (
	"os"
	"strings"
	"testing"
)

// BenchmarkJudge reads a long log in which nothing is known.
func BenchmarkJudge(b *testing.B) {
	raw, err := os.ReadFile("testdata/port-counters-what-matters.txt")
	if err != nil {
		b.Fatal(err)
	}
	_, input, _ := strings.Cut(string(raw), "-- input --\n")
	text := strings.Repeat("node-a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n", 20000) + input
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Judge(text, 0)
	}
}
