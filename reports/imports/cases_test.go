package imports

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"busbw/reports"
)

// read imports a text of testdata.
func read(t *testing.T, name string) (*Text, []reports.Result) {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []reports.Result
	text, err := Read(f, name, func(r reports.Result) error { all = append(all, r); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return text, all
}

// world is what a text must be found to hold: the expected reading of a log from the field.
type world struct {
	op      string
	ranks   int // 0: not known
	hosts   string
	rows    int
	state   string
	average float64 // −1: not printed
	wrong   int64   // −1: not printed
	notes   string  // words that the notes must hold, by "|"
}

type record struct {
	world   int // from 1
	bytes   int64
	inPlace bool
	us      float64
	algbw   float64 // as stated; −1: not stated
	busbw   float64
	wrong   int64 // −1: not checked
}

var fieldCases = []struct {
	file     string
	worlds   []world
	records  int
	some     []record
	findings string // "id subject got" words that must come, by "|"
	warnings string
}{
	{"two-worlds-no-mpi-build.txt", []world{{"all_reduce", 2, "node-a", 2, Partial, 1.7535, 0, "rows are missing"}, {"all_reduce", 2, "node-b", 2, Partial, 1.6796, 0, ""}}, 8, []record{
		{1, 268435456, false, 55270, 4.86, 4.86, 0}, {2, 268435456, false, 59440, 4.52, 4.52, 0}, {1, 134217728, false, 27666, 4.85, 4.85, 0}, {2, 134217728, true, 29873, 4.49, 4.49, 0},
	}, "separate-worlds 2 separate runs of 2 ranks, not one of 4|MPI=1", ""},
	{"time-in-milliseconds-2017-format.txt", []world{{"", 1, "", 1, Complete, 0, 0, "times are in ms|one rank"}, {"", 1, "", 0, NoSummary, -1, -1, "no row of it"}}, 2, []record{
		{1, 134217728, false, 2237, 60, 0, 0}, {1, 134217728, true, 1, 139715.53, 0, 0},
	}, "separate-worlds 2 separate runs of 1 rank", ""},
	{"allgather-4gib-wrong-but-fast.txt", []world{{"all_gather", 8, "", 1, Complete, 128.942, 2, "FAILED|factor already in it"}}, 2, []record{
		{1, 4294967296, false, 29122, 129.05, 129.05, 1}, {1, 4294967296, true, 29169, 128.84, 128.84, 1}}, "", ""},
	{"one-gpu-alltoall-na.txt", []world{{"alltoall", 1, "bench-01", 1, Complete, 0, 0, "one rank"}}, 2, []record{
		{1, 33554432, false, 19.56, 1715.44, 0, 0}, {1, 33554432, true, 0.78, 43046.10, 0, -1}}, "", ""},
	{"hash-stripped-truncated-mid-row.txt", []world{{"", 1, "nccl-00aa11bb22cc33dd44ee55ff66aa77bb-1700000000-worker-0", 0, NoSummary, -1, -1, "no whole row"}}, 0, nil, "", "cut off after 4 fields"},
	{"mpirun-tag-output-efa.txt", []world{{"all_reduce", 0, "", 5, Partial, 92.3405, 0, "not the mean of these rows|warm-up"}}, 10, []record{
		{1, 8, false, 136.3, 0, 0, 0}, {1, 8, true, 70.85, 0, 0, 0}, {1, 128, true, 68.62, 0, 0, 0}}, "", ""},
	{"size-zero-rows.txt", []world{{"reduce_scatter", 8, "", 7, NoSummary, -1, -1, "5 rows of size 0"}}, 14, []record{
		{1, 0, false, 5.70, 0, 0, 0}, {1, 128, false, 32.31, 0, 0, 0}, {1, 128, true, 25.35, 0.01, 0, 0}}, "", ""},
	{"sendrecv-with-sum-and-na.txt", []world{{"sendrecv", 2, "gpu-a gpu-b", 5, NoSummary, -1, -1, "does not name the operation|#wrong in place is N/A"}}, 10, []record{
		{1, 256, false, 34.24, 0.01, 0.01, 0}, {1, 4096, true, 30.69, 0.13, 0.13, -1}}, "", ""},
	{"gb200-nvl72-tail-only.txt", []world{{"all_reduce", 72, "slurm-gb200-000-001", 5, Complete, 745.53, 0, "NVIDIA Graphics Device"}}, 10, []record{
		{1, 8589934592, true, 20006, 429.37, 846.82, 0}, {1, 536870912, false, 1806.7, 297.16, 586.06, 0}}, "", ""},
	{"nccl-info-inside-table-dip.txt", []world{{"all_reduce", 16, "", 6, Complete, 25.6327, 0, "dips at 67108864 B: 19.1 GB/s, 41 %|in both halves"}}, 12, []record{
		{1, 268435456, false, 11812, 22.72, 42.61, 0}, {1, 8388608, true, 1202.2, 6.98, 13.08, 0}}, "", ""},
	{"human-edited-scaling-table.txt", []world{{"all_reduce", 8, "", 1, NoSummary, -1, -1, "p4dn"}, {"all_reduce", 16, "", 1, NoSummary, -1, -1, ""},
		{"all_reduce", 24, "", 1, NoSummary, -1, -1, ""}, {"all_reduce", 32, "", 1, NoSummary, -1, -1, ""}}, 8, []record{
		{1, 1073741824, false, 8142.6, 131.87, 230.77, -1}, {4, 1073741824, true, 70207, 15.29, 29.63, -1}}, "", ""},
	{"stall-after-header.txt", []world{{"", 2, "", 0, Hang, -1, -1, ""}}, 1, nil, "", ""},
	{"step-sweep-odd-sizes.txt", []world{{"all_reduce", 24, "", 6, Partial, 84.8558, 0, "rows are missing"}}, 12, []record{
		{1, 127926280, false, 2560.7, 49.96, 95.75, 0}, {1, 132120584, true, 2619.1, 50.45, 96.69, 0}}, "", ""},
	{"perftest-mib-vs-gbit-and-cpu-freq-noise.txt", []world{{"send_bw", 2, "", 1, Complete, -1, -1, "390.55 Gb/s|governor"}, {"send_lat", 2, "", 1, Complete, -1, -1, "1.27 µs"},
		{"read_bw", 2, "", 1, Complete, -1, -1, "328.61 Gb/s"}, {"write_bw", 2, "", 1, Complete, -1, -1, "392.34 Gb/s|peak 392.38"}}, 4, []record{
		{2, 2, false, 1.27, -1, -1, -1}, {3, 65536, false, 1.5954718359, 41.07625, -1, -1}}, "", ""},
	{"perftest-mr-fail-gpu-memory.txt", []world{{"", 2, "", 0, Failed, -1, -1, ""}, {"", 2, "", 0, Failed, -1, -1, ""}, {"", 2, "", 0, Failed, -1, -1, ""},
		{"", 2, "", 0, Failed, -1, -1, ""}, {"", 2, "", 0, Failed, -1, -1, ""}}, 5, nil, "test-failure Segmentation fault|may follow", ""},
	{"perftest-json-not-json.txt", []world{{"write_lat", 2, "", 1, Complete, -1, -1, "2.42 µs|software"}}, 1, []record{{1, 128, false, 2.42, -1, -1, -1}}, "", ""},
	{"perftest-duration-mode-no-peak.txt", []world{{"write_bw", 2, "", 1, Complete, -1, -1, "58.08 Gb/s|not measured"}, {"send_bw", 2, "", 1, Complete, -1, -1, "6.19 Gb/s"}}, 2, []record{
		{1, 65536, false, 9.0273956, 7.25967962, -1, -1}}, "", ""},
	{"gdr-disabled-three-reasons.txt", nil, 0, nil, "nccl-gdr GPUDirect RDMA disabled for node-a 0 'mlx5_0', node-a 1 'mlx5_1', node-b 0 'mlx5_0'", ""},
	{"pkey-index-non-default.txt", []world{{"send_bw", 2, "", 1, Complete, -1, -1, "375.44 Gb/s|not measured"}}, 1, nil, "", ""},
	{"env-compare-dual-hca-mtu-build.txt", []world{{"all_gather", 2, "node-a node-b", 1, Complete, -1, 0, ""}}, 2, []record{
		{1, 17179869184, false, 453650, 37.87, 18.94, 0}, {1, 17179869184, true, 410049, 41.90, 20.95, 0}}, "", ""},
	{"env-leftover-p2p-level-loc.txt", nil, 0, nil, "nccl-env NCCL_P2P_LEVEL LOC|nccl-path path between GPUs of a node SHM on 2 channels|nccl-nvls NVLink SHARP 0 nvls channels", ""},
	{"gpu-count-mismatch.txt", []world{{"", 0, "", 0, Failed, -1, -1, ""}}, 1, nil,
		"rank 13 on 10.0.0.138, rank 15 on 10.0.0.138, rank 8 on 10.0.0.138|more ranks were started|no usable GPU|8 requested but only 4|rank 1 with exit code 2", ""},
	{"rank-dies-mid-collective.txt", nil, 0, nil, "Connection closed by remote peer node-a|the first of them", ""},
	{"gloo-benchmark-table-and-stall.txt", []world{{"", 0, "", 7, NoSummary, -1, -1, "one sample|last size is 10000"}, {"", 0, "", 5, NoSummary, -1, -1, "by hand"}, {"", 0, "", 5, NoSummary, -1, -1, "from 131072 to 262144 B"}}, 17, []record{
		{1, 40000, false, 1685, 0.023622, -1, -1}, {3, 262144, false, 20161, -1, -1, -1}}, "", ""},
	{"version-regression-by-average.txt", []world{{"sendrecv", 0, "", 0, Summary, 24.2382, -1, ""}, {"sendrecv", 0, "", 0, Summary, 18.3153, -1, ""}, {"sendrecv", 0, "", 0, Summary, 24.2, -1, ""}}, 3, nil, "", ""},
	{"hostname-with-blank.txt", []world{{"all_reduce", 8, "NODE A", 1, Complete, -1, 0, ""}}, 2, []record{
		{1, 8589934592, false, 31356, 273.95, 479.41, 0}, {1, 8589934592, true, 31308, 274.36, 480.14, 0}}, "", ""},
}

func TestFieldCases(t *testing.T) {
	for _, c := range fieldCases {
		t.Run(strings.TrimSuffix(c.file, ".txt"), func(t *testing.T) {
			text, all := read(t, c.file)
			if len(text.Worlds) != len(c.worlds) || text.Records != c.records || len(all) != c.records {
				t.Fatalf("%d worlds and %d records, want %d and %d: %+v", len(text.Worlds), text.Records, len(c.worlds), c.records, text)
			}
			for i, want := range c.worlds {
				compareWorld(t, &text.Worlds[i], want)
			}
			for _, want := range c.some {
				compareRecord(t, all, text.Worlds[want.world-1].Run, want)
			}
			var found []string
			for _, f := range text.Findings {
				found = append(found, strings.Join([]string{f.ID, f.Subject, f.Got, f.Remedy}, " "))
			}
			mustHold(t, "findings", strings.Join(found, "\n"), c.findings)
			if c.findings == "" && len(found) > 0 {
				t.Errorf("unexpected findings: %q", found)
			}
			mustHold(t, "warnings", strings.Join(text.Warnings, "\n"), c.warnings)
			if c.warnings == "" && len(text.Warnings) > 0 {
				t.Errorf("unexpected warnings: %q", text.Warnings)
			}
		})
	}
}

// mustHold wants each of the words by "|", whose own words come in order.
func mustHold(t *testing.T, what, text, want string) {
	t.Helper()
	for _, w := range strings.Split(want, "|") {
		rest := text
		for _, word := range strings.Fields(w) {
			i := strings.Index(rest, word)
			if i < 0 {
				t.Errorf("%s: want %q in\n%s", what, w, text)
				break
			}
			rest = rest[i+len(word):]
		}
	}
}

func compareWorld(t *testing.T, got *World, want world) {
	t.Helper()
	average, wrong := -1.0, int64(-1)
	if got.Average != nil {
		average = *got.Average
	}
	if got.Wrong != nil {
		wrong = *got.Wrong
	}
	if got.Op != want.op || got.Ranks != [2]int{want.ranks, want.ranks} || strings.Join(got.Hosts, " ") != want.hosts || got.Rows != want.rows || got.State != want.state || average != want.average || wrong != want.wrong {
		t.Errorf("got  %+v (average %g, wrong %d)\nwant %+v", *got, average, wrong, want)
	}
	if got.Bad() != (want.wrong > 0 || want.state == Hang || want.state == Failed || want.state == NoSummary && want.rows == 0) {
		t.Errorf("%s: Bad is %v", got.Run, got.Bad())
	}
	if want.notes != "" {
		mustHold(t, "notes", strings.Join(got.Notes, "\n"), want.notes)
	}
}

func compareRecord(t *testing.T, all []reports.Result, run string, want record) {
	t.Helper()
	i := slices.IndexFunc(all, func(r reports.Result) bool {
		return r.Run == run && r.Bytes == want.bytes && r.InPlace == want.inPlace && len(r.Seconds) == 1 && near(r.Seconds[0]*1e6, want.us)
	})
	if i < 0 {
		t.Errorf("no record for %+v", want)
		return
	}
	r := all[i]
	for what, pair := range map[string][2]float64{"algbw": {stated(r.Stated.Algbw), want.algbw}, "busbw": {stated(r.Stated.Busbw), want.busbw}} {
		if !near(pair[0], pair[1]) {
			t.Errorf("%+v: stated %s is %g", want, what, pair[0])
		}
	}
	if wrong := r.Wrong; (wrong == nil) != (want.wrong < 0) || wrong != nil && *wrong != want.wrong {
		t.Errorf("%+v: wrong is %v", want, r.Wrong)
	}
	// What is derived from size and time agrees with what was printed.
	f := reports.Figures([]reports.Result{r})
	if bus, ok := f[0].Busbw(); ok && want.busbw > 1 && math.Abs(bus-want.busbw) > 0.01*want.busbw {
		t.Errorf("%+v: busbw of the record is %g", want, bus)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Abs(b)+1e-9 }

func stated(v *float64) float64 {
	if v == nil {
		return -1
	}
	return *v
}

// The five ways in which memory of a GPU was not registered are told apart.
func TestRegistrationFailures(t *testing.T) {
	text, _ := read(t, "perftest-mr-fail-gpu-memory.txt")
	for i, want := range []string{"peer-memory module is absent", "GeForce", "error 14, EFAULT", "error 93, EPROTONOSUPPORT", "vGPU"} {
		if w := text.Worlds[i]; !strings.Contains(w.Error, "GPU memory registration failed") || !strings.Contains(w.Error, want) {
			t.Errorf("%d: %q, want %q", i, w.Error, want)
		}
	}
}

// Details of single cases that no table column has.
func TestFieldDetails(t *testing.T) {
	text, all := read(t, "env-compare-dual-hca-mtu-build.txt")
	if r := all[0]; r.Config["nccl_version"] != "2.28.3" || r.Config["gpu"] != "NVIDIA GB10" || r.Scope != "cross" || r.Count != 2147483648 {
		t.Errorf("%+v of %+v", r, text)
	}
	_, all = read(t, "version-regression-by-average.txt")
	for i, want := range []struct{ version, channels string }{{"2.19.4", ""}, {"2.20.5", ""}, {"2.20.5", "4"}} {
		if r := all[i]; r.Config["nccl_version"] != want.version || r.Config["NCCL_NCHANNELS_PER_NET_PEER"] != want.channels || r.Seconds != nil || r.Bytes != 512<<20 {
			t.Errorf("%d: %+v", i, r)
		}
	}
	_, all = read(t, "perftest-duration-mode-no-peak.txt")
	for _, r := range all {
		if r.Stated.Peak != nil {
			t.Errorf("a peak that was not measured: %+v", r.Stated)
		}
	}
	if all[0].Config["local_gid"] != "::ffff:10.0.0.5" || all[1].Config["local_gid"] != "fd00:60::11" || all[0].Stated.Iterations != 664644 {
		t.Errorf("%v, %v", all[0].Config, all[1].Config)
	}
	_, all = read(t, "perftest-json-not-json.txt")
	s := all[0].Stated
	if all[0].Config["device"] != "rxe0" || all[0].Config["mtu"] != "1024" || s.Iterations != 5000 || *s.Min != 2.37e-6 || *s.Max != 5.39e-6 || *s.Stdev != 5e-8 || *s.P99 != 2.47e-6 || *s.P999 != 4.03e-6 {
		t.Errorf("%+v %+v", all[0].Config, s)
	}
	text, _ = read(t, "stall-after-header.txt")
	if !strings.Contains(text.Worlds[0].Error, "ACS") || !strings.Contains(text.Worlds[0].Error, "NCCL_P2P_DISABLE=1") {
		t.Errorf("%+v", text.Worlds[0])
	}
}

// What a log does not tell is not in its record: a difference is no count, a
// test that hung has no size and no type, and a mean is said to be one.
func TestNotTold(t *testing.T) {
	_, all := read(t, "allgather-4gib-wrong-but-fast.txt")
	for _, r := range all {
		if !r.AtLeast || *r.Wrong != 1 || r.Stated.Time != reports.StatedMean {
			t.Errorf("%+v", r)
		}
	}
	_, all = read(t, "two-worlds-no-mpi-build.txt")
	for _, r := range all {
		if r.AtLeast || r.Settled || r.Stated.Time != reports.StatedMean || r.Warmup != 5 || r.Stated.Iterations != 20 {
			t.Errorf("%+v", r)
		}
	}
	_, all = read(t, "stall-after-header.txt")
	if r := all[0]; r.Dtype != "" || r.Bytes != 0 || r.Error == "" {
		t.Errorf("%+v", r)
	}
	_, all = read(t, "gloo-benchmark-table-and-stall.txt")
	if s := all[0].Stated; s.Time != reports.StatedMedian {
		t.Errorf("%+v", s)
	}
}
