package imports

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"busbw/reports"
)

// seeds gives a fuzz target the logs from the field.
func seeds(f *testing.F, more ...string) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal("no logs in testdata")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, m := range more {
		f.Add([]byte(m))
	}
}

// hostile imports any bytes: no panic, and only records that the record's own
// rules allow and that writers can render.
func hostile(t *testing.T, text []byte) {
	var all []reports.Result
	got, err := Read(bytes.NewReader(text), "fuzz", func(r reports.Result) error {
		if err := r.Check(); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if len(all) < 20 {
			all = append(all, r)
		}
		return nil
	})
	if err != nil {
		return
	}
	if len(got.Worlds) > maxWorlds || len(got.Warnings) > maxWarnings {
		t.Fatalf("%d worlds, %d warnings", len(got.Worlds), len(got.Warnings))
	}
	var b strings.Builder
	if err := got.Describe(&b); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"table", "csv", "nccl"} { // the quick ones
		if err := reports.Render(io.Discard, format, all); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
	}
}

func FuzzText(f *testing.F) {
	seeds(f, plainLog, strings.ReplaceAll(plainLog, "\n", "\n0: "))
	f.Fuzz(func(t *testing.T, text []byte) { hostile(t, text) })
}

func FuzzJSON(f *testing.F) {
	seeds(f, jsonV3, `{"test_info": {`+"\n"+`test: Send_BW_Test,`+"\n"+`}, results: {MsgSize: 2, BW_average: 1.0}}`, `[{"size":8,"time":1,"busBw":2}]`)
	f.Fuzz(func(t *testing.T, text []byte) {
		hostile(t, append([]byte("{"), text...))
		hostile(t, append([]byte(`[{"size":`), text...))
	})
}

func FuzzPerftest(f *testing.F) {
	seeds(f, "Send BW Test\n#bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n1e300 9 9 9 9\n")
	f.Fuzz(func(t *testing.T, text []byte) {
		hostile(t, append([]byte(" RDMA_Write BW Test\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"), text...))
	})
}

func FuzzGloo(f *testing.F) {
	seeds(f, "100 1 1 1 1 0.1 1\n")
	f.Fuzz(func(t *testing.T, text []byte) {
		hostile(t, append([]byte(" elements   min (us)   p50 (us)   p99 (us)   max (us)   avg (GB/s)    samples\n"), text...))
	})
}

// endless is a log without end: as NCCL_DEBUG=INFO leaves, with tests in between.
type endless struct {
	block []byte
	at    int
	left  int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), e.left)], e.block[e.at:])
	e.at = (e.at + n) % len(e.block)
	e.left -= int64(n)
	return n, nil
}

// bigLog has the mix of a run of 512 ranks with NCCL_DEBUG=INFO: some thousand
// lines of NCCL's for each table.
func bigLog() []byte {
	var b bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&b, "[1,%d]<stdout>:gpu-%03d:4120%d:4123%d [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] [send] via NET/IB/%d/GDRDMA\n", i%512, i%512/8, i%8, i%8, i%8, i%16, i%512, i%8, (i+1)%512, i%8, i%8)
	}
	for line := range strings.Lines(plainLog) {
		b.WriteString("[1,0]<stdout>:" + line)
	}
	return b.Bytes()
}

// A log of any length is read in the same memory. The limit is on what is live
// at the end of each block, after collection.
func TestBoundedMemory(t *testing.T) {
	for what, block := range map[string][]byte{
		"NCCL's lines":  bigLog(),
		"rows only":     []byte("    33554432       8388608     float     sum      -1   412.30   81.38  142.42       0   411.02   81.64  142.86       0\n"),
		"tags":          []byte("[1,0]<stdout>:x\n[2,1]<stdout>:y\n"),
		"headers":       []byte("#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"),
		"ranks":         []byte("#  Rank  1 Group  0 Pid  41201 on      gpu-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n"),
		"one long line": []byte("0123456789 "),
		"errors":        []byte("gpu-a: Test CUDA failure common.cu:892 'invalid device ordinal'\n"),
	} {
		size := int64(8 << 20)
		if what == "NCCL's lines" && !testing.Short() {
			size = 64 << 20
		}
		var most, before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		peak, n := uint64(0), 0
		in := &endless{block: block, left: size}
		check := func() {
			runtime.GC()
			runtime.ReadMemStats(&most)
			peak = max(peak, most.HeapAlloc)
		}
		_, err := Read(in, "big", func(reports.Result) error {
			if n++; n%100000 == 1 {
				check()
			}
			return nil
		})
		check()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if grown := int64(peak) - int64(before.HeapAlloc); grown > 96<<20 {
			t.Errorf("%s: %d MiB live", what, grown>>20)
		}
	}
}

func BenchmarkImport(b *testing.B) {
	for name, block := range map[string][]byte{
		"log":  bigLog(),
		"rows": []byte("    33554432       8388608     float     sum      -1   412.30   81.38  142.42       0   411.02   81.64  142.86       0\n"),
	} {
		b.Run(name, func(b *testing.B) {
			size := int64(200 << 20)
			b.SetBytes(size)
			for b.Loop() {
				if _, err := Read(&endless{block: block, left: size}, "big", func(reports.Result) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
