package imports

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
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

func FuzzCSV(f *testing.F) {
	seeds(f, "0,\"AllReduce\",1,8,8,1,1048576,\"float\",\"sum\",0,55.66,18.84,32.97,\"0\"\n", "0,AllReduce,1,8,8,1,1e300,float,none,1,-1,nan,inf,N/A\n")
	f.Fuzz(func(t *testing.T, text []byte) {
		hostile(t, append([]byte("numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong\n"), text...))
	})
}
