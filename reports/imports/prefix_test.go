package imports

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"busbw/reports"
)

// A small log of nccl-tests 2.17 of 2 ranks on 2 nodes.
const plainLog = `# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid  41201 on      gpu-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  39873 on      gpu-b device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         
     1048576        262144     float     sum      -1    45.28   23.16   23.16       0    44.53   23.55   23.55       0
     2097152        524288     float     sum      -1    69.91   30.00   30.00       0    69.50   30.17   30.17       0
     4194304       1048576     float     sum      -1   117.40   35.73   35.73       0   116.75   35.93   35.93       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 29.7567 
#
# Collective test concluded: all_reduce_perf
#
`

func importText(t testing.TB, text string) (*Text, []reports.Result) {
	t.Helper()
	var all []reports.Result
	got, err := Read(strings.NewReader(text), "log", func(r reports.Result) error { all = append(all, r); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return got, all
}

// each changes every line of a text.
func each(text string, change func(i int, line string) string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range lines {
		lines[i] = change(i, lines[i])
	}
	return strings.Join(lines, "\n") + "\n"
}

// Whatever a launcher, a log collector or a mail program puts before the lines,
// the records are the same.
func TestPrefixes(t *testing.T) {
	want, records := importText(t, plainLog)
	if len(want.Worlds) != 1 || len(records) != 6 || len(want.Warnings) > 0 || want.Worlds[0].State != Complete {
		t.Fatalf("%+v", want)
	}
	for what, prefix := range map[string]func(i int) string{
		"Open MPI 4":               func(int) string { return "[1,0]<stdout>:" },
		"Open MPI 4, blank":        func(int) string { return "[1,0]<stdout>: " },
		"Open MPI 5":               func(int) string { return "[prterun-gpu-a-2241@1,0]<stdout>: " },
		"Open MPI with time":       func(i int) string { return fmt.Sprintf("Mon Nov 30 10:00:%02d 2026[1,0]<stdout>:", i) },
		"srun -l":                  func(int) string { return "0: " },
		"srun -l of many":          func(int) string { return " 00: " },
		"hydra":                    func(int) string { return "[0] " },
		"torchrun":                 func(int) string { return "[default0]:" },
		"kubectl --prefix":         func(int) string { return "[pod/nccl-launcher-x2k4p/launcher] " },
		"kubectl --timestamps":     func(i int) string { return fmt.Sprintf("2026-11-30T10:00:%02d.123456789Z ", i) },
		"containerd":               func(i int) string { return fmt.Sprintf("2026-11-30T10:00:%02d.123456789Z stdout F ", i) },
		"time zone":                func(i int) string { return fmt.Sprintf("2026-11-30T10:00:%02d+01:00 ", i) },
		"ts":                       func(i int) string { return fmt.Sprintf("Nov 30 10:00:%02d ", i) },
		"journal":                  func(i int) string { return fmt.Sprintf("Nov 30 10:00:%02d gpu-a nccl[1234]: ", i) },
		"time in brackets":         func(i int) string { return fmt.Sprintf("[2026-11-30 10:00:%02d] ", i) },
		"time of day":              func(i int) string { return fmt.Sprintf("10:00:%02d.250 ", i) },
		"date and time":            func(i int) string { return fmt.Sprintf("2026-11-30 10:00:%02d,250 ", i) },
		"pdsh":                     func(int) string { return "gpu-a: " },
		"docker compose":           func(int) string { return "nccl-1  | " },
		"ray":                      func(int) string { return "(run_nccl pid=4321, ip=10.0.0.1) " },
		"mail":                     func(int) string { return "> " },
		"mail of Open MPI":         func(int) string { return "> [1,0]<stdout>:" },
		"stern":                    func(int) string { return "nccl-launcher-x2k4p launcher " },
		"indented":                 func(int) string { return "\t\t" },
		"colour":                   func(int) string { return "\x1b[32m[1,0]\x1b[0m " },
		"kubectl with both":        func(i int) string { return fmt.Sprintf("[pod/a/b] 2026-11-30T10:00:%02dZ [1,0]<stdout>:", i) },
		"levels of a logging tool": func(i int) string { return fmt.Sprintf("2026-11-30 10:00:%02d INFO runner: ", i) },
	} {
		text := each(plainLog, func(i int, line string) string { return prefix(i) + line })
		same(t, what, text, want, records)
	}
	same(t, "container engine's JSON", each(plainLog, func(_ int, line string) string {
		return fmt.Sprintf(`{"log":%q,"stream":"stdout","time":"2026-11-30T10:00:00Z"}`, line+"\n")
	}), want, records)
	same(t, "a list of a playbook", each(plainLog, func(_ int, line string) string { return fmt.Sprintf("            %q,", line) }), want, records)
	same(t, "Windows", strings.ReplaceAll(plainLog, "\n", "\r\n"), want, records)
	same(t, "no number signs", strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(plainLog, "#wrong", "\x00"), "#", ""), "\x00", "#wrong"), want, records)
	same(t, "trailing blanks", each(plainLog, func(_ int, line string) string { return line + strings.Repeat(" ", 150) }), want, records)
}

// same wants a text to be read as another was, names of runs apart.
func same(t *testing.T, what, text string, want *Text, records []reports.Result) {
	t.Helper()
	got, all := importText(t, text)
	if len(got.Worlds) != len(want.Worlds) || len(all) != len(records) {
		t.Errorf("%s: %d worlds, %d records, %q, want %d and %d", what, len(got.Worlds), len(all), got.Warnings, len(want.Worlds), len(records))
		return
	}
	for i := range all {
		if !reflect.DeepEqual(all[i], records[i]) {
			t.Errorf("%s: record %d\n got %+v %+v\nwant %+v %+v", what, i, all[i], all[i].Stated, records[i], records[i].Stated)
			return
		}
	}
	a, b := got.Worlds[0], want.Worlds[0]
	a.Line = b.Line
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s: world\n got %+v\nwant %+v", what, a, b)
	}
}

// Lines that come between, or in the middle of a row, change nothing.
func TestInterruptedTables(t *testing.T) {
	want, records := importText(t, plainLog)
	info := "gpu-a:41201:41230 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
	noise := []string{info, "gpu-b:39873:39899 [0] NCCL INFO Connected all rings\n", "srun: warning: can't run 1 processes on 2 nodes\n", "\n", "mlx5: some driver's words\n", "WARNING: something 12 of 13\n"}
	for i, n := range noise {
		got, all := importText(t, each(plainLog, func(_ int, line string) string { return strings.TrimSuffix(n, "\n") + "\n" + line }))
		if len(got.Worlds) != 1 || len(all) != len(records) || got.Worlds[0].State != Complete || *all[5].Stated.Busbw != 35.93 {
			t.Errorf("noise %d: %+v, %d records", i, got, len(all))
		}
	}
	// Wrapped by a terminal of w columns, at blanks or inside numbers.
	for w := 40; w <= 118; w++ {
		wrapped := each(plainLog, func(_ int, line string) string {
			for at := w; at < len(line); at += w + 1 {
				line = line[:at] + "\n" + line[at:]
			}
			return line
		})
		got, all := importText(t, wrapped)
		if len(got.Worlds) != 1 || len(all) != len(records) {
			t.Errorf("wrapped at %d: %d worlds, %d of %d records, %q\n%s", w, len(got.Worlds), len(all), len(records), got.Warnings, wrapped)
			continue
		}
		for i := range all {
			if all[i].Bytes != records[i].Bytes || all[i].Seconds[0] != records[i].Seconds[0] || *all[i].Stated.Busbw != *records[i].Stated.Busbw {
				t.Errorf("wrapped at %d: record %d is %+v %+v, want %+v", w, i, all[i], all[i].Stated, records[i])
			}
		}
	}
	// A launcher's tag inside a row: the process wrote it in two pieces.
	tagged := each(plainLog, func(_ int, line string) string { return "[1,0]<stdout>:" + line })
	got, all := importText(t, strings.Replace(tagged, "      -1    69.91", "      -1[1,0]<stdout>:    69.91", 1))
	if len(got.Worlds) != 1 || len(all) != 6 {
		t.Errorf("tag inside a row: %+v, %d records", got, len(all))
	}
	_ = want
}

// A text cut off anywhere gives no number that is not in it.
func TestCutAnywhere(t *testing.T) {
	_, records := importText(t, plainLog)
	for cut := range plainLog {
		text, all := importText(t, plainLog[:cut])
		if len(all) > 0 && all[len(all)-1].Error != "" {
			all = all[:len(all)-1]
		}
		for i := range all {
			// The last number of a row may be cut in two.
			if all[i].Bytes != records[i].Bytes || all[i].Seconds[0] != records[i].Seconds[0] || *all[i].Stated.Algbw != *records[i].Stated.Algbw {
				t.Fatalf("cut at %d: record %d is %+v of %+v", cut, i, all[i], text)
			}
		}
		if len(text.Worlds) > 1 {
			t.Fatalf("cut at %d: %d worlds", cut, len(text.Worlds))
		}
	}
}
