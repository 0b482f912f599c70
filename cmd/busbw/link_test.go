package main

import (
	"bytes"
	"strings"
	"testing"

	"busbw/coordinator"
	"busbw/reports"
)

func TestLinkFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--test write_bx": "there are write_bw, write_lat, read_bw, read_lat, send_bw, send_lat",
		"a":               "give two members",
		"a b":             "members go with --join",
		"-a -s 8":         "exclude each other",
		"-q 128":          "want 1 to 127 queue pairs",
		"-D -1s":          "want 0s to 24h",
		"-s 2G":           "want 1 B to 1 GiB",
		"--format x":      "unknown format",
	} {
		root := rootCommand()
		root.SetArgs(append([]string{"link"}, strings.Fields(args)...))
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != exitUsage {
			t.Errorf("busbw link %s: %v; want %q", args, err, want)
		}
	}
}

func TestLinkSizes(t *testing.T) {
	f := linkFlags{size: 64 << 10, tests: []string{"write_bw", "send_lat"}, qps: 1, depth: 128}
	f.base.format = "table"
	tests, err := f.valid()
	if err != nil || len(tests) != 2 || tests[0].Size != 64<<10 || tests[1].Size != 8 {
		t.Errorf("%+v, %v", tests, err)
	}
	f.all, f.both = true, true
	tests, err = f.valid()
	if err != nil || len(tests) != 46 || tests[0].Size != 2 || tests[22].Size != 8<<20 || !tests[0].Both || tests[23].Both {
		t.Errorf("-a -b: %d tests, %v", len(tests), err)
	}
}

func TestLinkPick(t *testing.T) {
	members := []coordinator.Member{{ID: "aaaa1", Host: "gpu1"}, {ID: "bbbb2", Host: "gpu2"}, {ID: "cccc3", Host: "gpu2"}}
	for _, tc := range []struct{ names, want string }{
		{"gpu1 cccc", "gpu1 gpu2"}, {"gpu1 gpu2", `2 members are called "gpu2"`}, {"gpu1 gpu9", `0 members are called "gpu9"`}, {"gpu1 aaaa1", "both ends"},
	} {
		f := linkFlags{members: strings.Fields(tc.names)}
		got, err := f.pick(members)
		var hosts []string
		for _, m := range got {
			hosts = append(hosts, m.Host)
		}
		if err == nil && strings.Join(hosts, " ") != tc.want || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v", tc.names, hosts, err)
		}
	}
}

func TestLinkRows(t *testing.T) {
	var b bytes.Buffer
	s := &linkScreen{out: &b, live: true}
	s.row(reports.Result{Op: "write_bw", Bytes: 1 << 20, Seconds: []float64{1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4}, Hosts: []string{"a", "b"}, Limit: &reports.Limit{GBps: 20}})
	s.row(reports.Result{Op: "write_lat", Bytes: 8, Seconds: []float64{1e-6, 2e-6}, Hosts: []string{"a", "b"}})
	for _, want := range []string{"10.486    0.0 %      83.89    10485.8      0.010   52.4 %", "1.00       1.50          —          —          —       2.00"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
