package imports

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"busbw/reports"
)

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

// sweepRows is a table's body: 30 sizes.
func sweepRows() []byte {
	var b bytes.Buffer
	for i := range 30 {
		size, us := float64(int64(8)<<i), 20+float64(int64(8)<<i)/400e3
		fmt.Fprintf(&b, "%12.0f  %12.0f     float     sum      -1  %7.2f  %6.2f  %6.2f       0  %7.2f  %6.2f  %6.2f       0\n", size, size/4, us, size/us/1e3, size/us/1e3*1.75, us, size/us/1e3, size/us/1e3*1.75)
	}
	return b.Bytes()
}

// manyRows is n times a line, after a heading.
func manyRows(head, line string, n int) []byte { return []byte(head + strings.Repeat(line, n)) }

const (
	perfHead = "                    RDMA_Write BW Test\n Dual-port       : OFF          Device         : mlx5_0\n---------------------------------------------------------------------------------------\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
	perfRow  = " 65536      5000             390.52             390.48               0.744783\n"
	latHead  = "                    RDMA_Write Latency Test\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"
	latRow   = " 2       1000          1.52           6.03         1.57                1.58             0.11            1.85                    6.03\n"
	glooHead = "Options: processes=4, inputs=1, threads=1\nAlgorithm: allreduce_ring_chunked\n elements   min (us)   p50 (us)   p99 (us)   max (us)   avg (GB/s)    samples\n"
	glooRow  = "   100000        412        431        602        911        0.865       4123\n"
)

// jsonReport is nccl-tests' -J of 30 sizes, with 100 iterations' times of 8 processes.
func jsonReport(times bool) []byte {
	half := `{"time":812.500000,"alg_bw":41.297762,"bus_bw":72.271083,"nwrong":0.000000}`
	each := strings.Repeat("812.500000,", 99) + "812.500000"
	each = `{"skipped_iterations":1,"min_us":800.000000,"max_us":830.000000,"p99_us":830.000000,"times_us":[` + each + `],"per_process_max_times_us":[` + strings.Repeat("["+each+"],", 7) + "[" + each + "]]}"
	var rows []string
	for i := range 30 {
		row := fmt.Sprintf(`{"size":%d,"count":%d,"type":"float","redop":"sum","root":"    -1","out_of_place":%s,"in_place":%s`, 8<<i, 2<<i, half, half)
		if times {
			row += `,"out_of_place_per_iter":` + each + `,"in_place_per_iter":` + each
		}
		rows = append(rows, row+`,"actual_iterations":100,"experiment_name":"all_reduce_perf"}`)
	}
	a, b := strings.Index(jsonV3, `"results":[`)+11, strings.Index(jsonV3, `],`+"\n"+`"out_of_bounds"`)
	return []byte(jsonV3[:a] + strings.Join(rows, ",\n") + jsonV3[b:] + "\n")
}

// texts are one for each format, to be repeated.
func texts() map[string][]byte {
	return map[string][]byte{
		"NCCL INFO":        bigLog(),
		"nccl-tests":       sweepRows(),
		"one row":          []byte("    33554432       8388608     float     sum      -1   412.30   81.38  142.42       0   411.02   81.64  142.86       0\n"),
		"rank prefix":      bytes.ReplaceAll(append([]byte("\n"), bytes.TrimSuffix(sweepRows(), []byte("\n"))...), []byte("\n"), []byte("\n[1,0]<stdout>:")),
		"perftest bw":      manyRows(perfHead, perfRow, 1000),
		"perftest latency": manyRows(latHead, latRow, 1000),
		"gloo":             manyRows(glooHead, glooRow, 1000),
		"nccl-tests JSON":  jsonReport(false),
		"JSON with times":  jsonReport(true),
		"rccl-tests csv":   manyRows("numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong\n", "0,\"AllReduce\",1,8,8,1,1048576,\"float\",\"sum\",0,55.66,18.84,32.97,\"0\"\n", 1000),
	}
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
		"banners":       []byte("# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0\n"),
		"summaries":     []byte("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5 \n"),
		"perftest":      []byte(perfRow),
		"csv":           []byte("0,\"AllReduce\",2,16,8,1,1048576,\"float\",\"sum\",0,55.66,18.839,35.323,\"0\"\n"),
		"reports":       []byte(jsonV3 + "\n"),
		"one object":    []byte(`"a":[{"b":[1,2,3],"size":1,"time":1,"busbw":1}],`),
		"one long line": []byte("0123456789 "),
		"errors":        []byte("gpu-a: Test CUDA failure common.cu:892 'invalid device ordinal'\n"),
	} {
		size := int64(4 << 20)
		if what == "NCCL's lines" && !testing.Short() {
			size = 24 << 20
		}
		var most, before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		peak, n := uint64(0), 0
		in := &endless{block: block, left: size}
		if begin := map[string]string{"perftest": perfHead, "csv": "numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong\n", "one object": "{"}[what]; begin != "" {
			in.block = append([]byte(begin), bytes.Repeat(block, int(size)/len(block))...)
		}
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
	for name, block := range texts() {
		b.Run(name, func(b *testing.B) {
			size := int64(50 << 20)
			b.SetBytes(size)
			for b.Loop() {
				if _, err := Read(&endless{block: block, left: size}, "big", func(reports.Result) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
