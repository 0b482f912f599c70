package imports

import (
	"fmt"
	"strings"
	"testing"

	"busbw/reports"
)

// Layouts of nccl-tests that the cases from the field do not have.
func TestLayouts(t *testing.T) {
	const modern = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
	for _, c := range []struct {
		what, text string
		op         string
		n          int // records
		us, busbw  float64
		wrong      int64
		in         bool // of which half
	}{
		{"time stamps (-S)", strings.Replace(modern, "#wrong\n", "#wrong            timestamp\n", 1) +
			"    33554432       8388608     float     sum      -1   412.30   81.38  142.42       0   411.02   81.64  142.86       0  2026-11-30 10:15:00\n", "all_reduce", 2, 412.30, 142.42, 0, false},
		{"per iteration (-I)", "#       size         count      type   redop    root     time   algbw   busbw #wrong   i_min   i_max   i_p99   i_cv%     time   algbw   busbw #wrong   i_min   i_max   i_p99   i_cv%\n" +
			"    33554432       8388608     float     sum      -1   412.30   81.38  142.42       0   401.00   499.10   498.00    3.10   411.02   81.64  142.86       0   400.00   430.00   429.00    2.00\n", "all_reduce", 2, 411.02, 142.86, 0, true},
		{"per iteration and stamps, no header", "    33554432       8388608     float     sum      -1   412.30   81.38  142.42       0   401.00   499.10   498.00    3.10   411.02   81.64  142.86       0   400.00   430.00   429.00    2.00  2026-11-30 10:15:00\n", "all_reduce", 2, 411.02, 142.86, 0, true},
		{"cputime", strings.ReplaceAll(modern, "  time", "cputime") +
			"    33554432       8388608     float     sum      -1   412.30   81.38  142.42       0   411.02   81.64  142.86       0\n", "all_reduce", 2, 412.30, 142.42, 0, false},
		{"in place only", modern +
			"    33554432       8388608     float     sum      -1                                   411.02   81.64  142.86       0\n", "all_reduce", 1, 411.02, 142.86, 0, true},
		{"not checked", modern +
			"    33554432       8388608     float     sum      -1   412.30   81.38  142.42     N/A   411.02   81.64  142.86     N/A\n", "all_reduce", 2, 412.30, 142.42, -1, false},
		{"many wrong", modern +
			"    33554432       8388608     float     sum      -1   412.30   81.38  142.42  1e+06   411.02   81.64  142.86      3\n", "all_reduce", 2, 412.30, 142.42, 1000000, false},
		{"exponents of 2.17", modern +
			" 17179869184    4294967296     float     sum      -1  1.7e+06   10.11   17.69       0  1.7e+06   10.11   17.69       0\n", "all_reduce", 2, 1.7e6, 17.69, 0, false},
		{"broadcast of 2019: root instead of redop", "#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error\n" +
			"    33554432       8388608   float       0    412.3   81.38   81.38  0e+00    411.0   81.64   81.64  0e+00\n", "broadcast", 2, 412.3, 81.38, -1, false},
		{"alltoall of 2020: an empty redop", "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n" +
			"    33554432       1048576   float             412.3   81.38   71.21  0e+00    411.0   81.64   71.43    N/A\n", "alltoall", 2, 412.3, 71.21, -1, false},
		{"a column that we do not know", "#       size         count      type   redop    root     time   algbw   busbw copybw #wrong     time   algbw   busbw copybw #wrong\n" +
			"    33554432       8388608     float     sum      -1   412.30   81.38  142.42   99.00       0   411.02   81.64  142.86   98.00       0\n", "all_reduce", 2, 411.02, 142.86, 0, true},
		{"decimal commas", modern +
			"    33554432       8388608     float     sum      -1   412,30   81,38  142,42       0   411,02   81,64  142,86       0\n", "all_reduce", 2, 412.30, 142.42, 0, false},
		{"no number", modern +
			"    33554432       8388608     float     sum      -1   412.30   81.38  142.42       0      nan     inf     nan       0\n", "all_reduce", 1, 412.30, 142.42, 0, false},
		{"reduce to a root", modern +
			"    33554432       8388608     float     sum       3   412.30   81.38   81.38       0   411.02   81.64   81.64       0\n", "reduce", 2, 412.30, 81.38, 0, false},
		{"fp8", modern +
			"    33554432      33554432    f8e4m3     sum      -1   412.30   81.38  142.42       0   411.02   81.64  142.86       0\n", "all_reduce", 2, 412.30, 142.42, 0, false},
	} {
		text, all := importText(t, c.text)
		if len(text.Worlds) != 1 || len(all) != c.n || text.Worlds[0].Op != c.op || text.Worlds[0].Rows != 1 {
			t.Errorf("%s: %+v, %d records", c.what, text, len(all))
			continue
		}
		r := all[0]
		if c.in && len(all) > 1 {
			r = all[1]
		}
		wrong := int64(-1)
		if r.Wrong != nil {
			wrong = *r.Wrong
		}
		if !near(r.Seconds[0]*1e6, c.us) || !near(*r.Stated.Busbw, c.busbw) || wrong != c.wrong || r.InPlace != c.in {
			t.Errorf("%s: %+v %+v wrong %d", c.what, r, r.Stated, wrong)
		}
	}
}

// Several runs in one file are runs one after another, and no launch that failed.
func TestOneAfterAnother(t *testing.T) {
	gather := strings.NewReplacer("all_reduce", "all_gather", "sum", "none", "262144", "131072", "524288 ", "262144 ", "1048576     float", "524288     float").Replace(plainLog)
	text, all := importText(t, "$ mpirun -np 2 all_reduce_perf -b 1M -e 4M -f 2\n"+plainLog+"$ mpirun -np 2 all_gather_perf -b 1M -e 4M -f 2\n"+gather+plainLog)
	if len(text.Worlds) != 3 || len(all) != 18 || len(text.Findings) > 0 || text.Bad() {
		t.Fatalf("%+v", text)
	}
	for i, op := range []string{"all_reduce", "all_gather", "all_reduce"} {
		if w := text.Worlds[i]; w.Op != op || w.Ranks != [2]int{2, 2} || w.State != Complete || w.Beside != 1 {
			t.Errorf("%d: %+v", i, w)
		}
	}
	// The first was killed after two rows, the second came from the next job.
	cut := strings.Index(plainLog, "     4194304")
	text, all = importText(t, plainLog[:cut]+plainLog)
	if len(text.Worlds) != 2 || len(all) != 10 || text.Worlds[0].State != NoSummary || text.Worlds[1].State != Complete || text.Worlds[1].Beside != 1 {
		t.Errorf("%+v", text)
	}
	// The first hung before its first row.
	cut = strings.Index(plainLog, "     1048576")
	text, all = importText(t, plainLog[:cut]+"slurmstepd: error: *** STEP 12.0 ON gpu-a CANCELLED AT 2026-11-30T10:00:00 DUE TO TIME LIMIT ***\n")
	if len(text.Worlds) != 1 || len(all) != 1 || text.Worlds[0].State != Failed || all[0].Error == "" || all[0].Seconds != nil || all[0].Bytes != 1048576 {
		t.Errorf("%+v", text)
	}
}

// Processes that never met: their lines mixed, in turns, or told apart by tags.
func TestSeparateWorlds(t *testing.T) {
	lone := func(host string, scale float64) []string {
		lines := []string{
			"# nThread 1 nGpus 2 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0", "#", "# Using devices",
			fmt.Sprintf("#  Rank  0 Group  0 Pid %6d on %10s device  0 [0x1b] NVIDIA A100-SXM4-80GB", 100+len(host), host),
			fmt.Sprintf("#  Rank  1 Group  0 Pid %6d on %10s device  1 [0x1c] NVIDIA A100-SXM4-80GB", 100+len(host), host), "#",
			"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
		}
		sum := 0.0
		for i, size := range []int64{1 << 20, 2 << 20, 4 << 20} {
			us := scale * float64(40*(i+1))
			bw := float64(size) / us / 1e3
			lines = append(lines, fmt.Sprintf("%12d  %12d  %8s  %6s  %6d  %7.2f  %6.2f  %6.2f  %5d  %7.2f  %6.2f  %6.2f  %5d", size, size/4, "float", "sum", -1, us, bw, bw, 0, us, bw, bw, 0))
			sum += bw
		}
		return append(lines, "# Out of bounds values : 0 OK", fmt.Sprintf("# Avg bus bandwidth    : %.4f", sum/3), "#")
	}
	worlds := [][]string{lone("node-a", 1), lone("node-bb", 1.5), lone("node-ccc", 2.5)}
	var turns, tagged []string
	for i := range worlds[0] {
		for w := range worlds {
			turns = append(turns, worlds[w][i])
			tagged = append(tagged, fmt.Sprintf("[1,%d]<stdout>:%s", w, worlds[w][i]))
		}
	}
	srun := each(strings.Join(turns, "\n")+"\n", func(i int, line string) string { return fmt.Sprintf("%d: %s", i%3, line) })
	for what, text := range map[string]string{"in turns": strings.Join(turns, "\n") + "\n", "Open MPI": strings.Join(tagged, "\n") + "\n", "srun -l": srun} {
		got, all := importText(t, text)
		if len(got.Worlds) != 3 || len(all) != 18 || !got.Bad() || len(got.Findings) != 1 || !strings.Contains(got.Findings[0].Got, "3 separate runs of 2 ranks, not one of 6") {
			t.Errorf("%s: %d records, %+v", what, len(all), got)
			continue
		}
		perRun := map[string][]float64{}
		for _, r := range all {
			if r.Ranks != 2 {
				t.Errorf("%s: %+v", what, r)
			}
			perRun[r.Run] = append(perRun[r.Run], r.Seconds[0]*1e6/float64(40*r.Bytes>>20))
		}
		for run, scales := range perRun { // the rows of one world are of one speed
			for _, s := range scales {
				if r := s / scales[0]; len(scales) != 6 || r < 0.5 || r > 2 {
					t.Errorf("%s: %s mixes rows: %v", what, run, scales)
				}
			}
		}
	}
	// One after another, on different hosts: two runs, which may be meant.
	got, _ := importText(t, strings.Join(append(worlds[0], worlds[1]...), "\n")+"\n")
	if len(got.Worlds) != 2 || got.Worlds[0].Hosts[0] != "node-a" || got.Worlds[1].Hosts[0] != "node-bb" || got.Bad() || len(got.Findings) != 1 || !strings.Contains(got.Findings[0].Got, "2 runs of the same test one after another") {
		t.Errorf("%+v", got)
	}
}

// The number of ranks is a range where the printed digits allow several.
func TestRanksFromNumbers(t *testing.T) {
	const head = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
	row := func(n int, us float64) string {
		const size = 1 << 30
		alg := size / us / 1e3
		bus := alg * 2 * float64(n-1) / float64(n)
		return head + fmt.Sprintf("%12d  %12d  %8s  %6s  %6d  %7.1f  %6.2f  %6.2f  %5d  %7.1f  %6.2f  %6.2f  %5d\n", size, size/4, "float", "sum", -1, us, alg, bus, 0, us, alg, bus, 0)
	}
	for _, n := range []int{2, 3, 4, 8, 16, 31, 64, 100, 128, 500, 1000, 4096} {
		for _, us := range []float64{9000.1, 52345.6} {
			text, all := importText(t, row(n, us))
			w := text.Worlds[0]
			if w.Op != "all_reduce" || w.Ranks[0] > n || w.Ranks[1] >= 0 && w.Ranks[1] < n || w.Ranks[0] == 0 || n <= 16 && w.Ranks[0] != w.Ranks[1] {
				t.Errorf("%d ranks, %g µs: %+v", n, us, w)
			}
			if unique := w.Ranks[0] == w.Ranks[1]; unique != (all[0].Ranks == n) {
				t.Errorf("%d ranks: the record says %d, the world %v", n, all[0].Ranks, w.Ranks)
			}
			// Unknown or not, the bandwidth is the one that was printed.
			f := reports.Figures(all[:1])
			if bus, ok := f[0].Busbw(); !ok || !near(bus/100, *all[0].Stated.Busbw/100) && (bus-*all[0].Stated.Busbw > 0.01 || bus-*all[0].Stated.Busbw < -0.01) {
				t.Errorf("%d ranks: busbw %g, %v, printed %g", n, bus, ok, *all[0].Stated.Busbw)
			}
		}
	}
}
