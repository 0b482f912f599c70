package reports

import (
	"math"
	"strings"
	"testing"

	"busbw/collectives"
)

// pasted is a record of a figure that somebody published: one launch, no
// single iterations.
func pasted(op collectives.Op, ranks, nodes int, bytes int64, busbw float64, config map[string]string) Result {
	factor, _ := op.BusFactor(ranks)
	r := sample("global", "", ranks, bytes, float64(bytes)*factor/busbw/1e9)
	r.Op, r.Nodes, r.Engine, r.Config, r.Source, r.Link = op.String(), nodes, "nccl", config, "imported: nccl-tests", ""
	return r
}

// Two nodes with one 200G cable: the device list, the MTU and the build of
// NCCL changed between three runs. Only the build made a difference, and the
// first and last run alone cannot tell.
func TestCompareThreeThingsChanged(t *testing.T) {
	run := func(build, hca, mtu string, busbw float64) Side {
		return Side{build + " " + mtu, []Result{pasted(collectives.AllGather, 2, 2, 1<<34, busbw, map[string]string{"nccl": build, "NCCL_IB_HCA": hca, "mtu": mtu})}}
	}
	both := "rocep1s0f0,roceP2p1s0f0"
	r1, r2, r3 := run("dev branch", "", "1500", 3.0), run("dev branch", both, "9000", 3.04), run("v2.28.9-1", both, "9000", 23.74)
	c := compared(t, []Side{r1, r3}, CompareOptions{Margin: 0.02})
	if len(c.Differ) != 3 || len(c.Warnings) == 0 || !strings.Contains(c.Warnings[0], "3 things (NCCL_IB_HCA, mtu, nccl)") {
		t.Errorf("first and last: differ %+v, warnings %q", c.Differ, c.Warnings)
	}
	c = compared(t, []Side{r2, r3}, CompareOptions{Margin: 0.02})
	if x := c.Rows[0].Cells[1]; len(c.Differ) != 1 || c.Differ[0].What != "nccl" || math.Abs(*x.Change-6.81) > 0.01 || x.Verdict != TooFew {
		t.Errorf("the build alone: differ %+v, %+v; want 7.8 times, of one launch each", c.Differ, x)
	}
	for _, w := range c.Warnings {
		if strings.Contains(w, "put down") {
			t.Errorf("the build alone: warning %q", w)
		}
	}
	if x := compared(t, []Side{r1, r2}, CompareOptions{}).Rows[0].Cells[1]; math.Abs(*x.Change-0.0133) > 0.001 {
		t.Errorf("devices and MTU: %+v; want 1.3 %%", x)
	}
}

// A larger chunk on a 400G rail: seven times as fast, wrong, and more than
// the wire carries.
func TestCompareFastButWrong(t *testing.T) {
	run := func(chunk string, busbw float64) Result {
		r := pasted(collectives.SendRecv, 2, 2, 1<<30, busbw, map[string]string{"NCCL_P2P_NET_CHUNKSIZE": chunk})
		r.Limit = &Limit{Name: "NIC line rate", GBps: 50, How: "400 Gb/s port"}
		return r
	}
	small, large, huge := run("131072", 13.1), run("524288", 13.1), run("1048576", 87.6)
	unchecked := huge
	unchecked.Limit = nil
	huge.Wrong = new(int64(4096))
	c := compared(t, []Side{{"128K", []Result{small}}, {"512K", []Result{large}}, {"1M", []Result{huge}}, {"1M unchecked", []Result{unchecked}}}, CompareOptions{Wire: 50})
	row := c.Rows[0].Cells
	if *row[1].Change != 0 || row[1].Verdict != TooFew {
		t.Errorf("512 KiB: %+v; want no difference", row[1])
	}
	if row[2].Verdict != Wrong || row[2].Change != nil || row[3].Verdict != Beyond || row[3].Change != nil {
		t.Errorf("1 MiB: %+v and %+v; want both disqualified", row[2], row[3])
	}
	if got := c.Regressions(0.05); len(got) != 2 {
		t.Errorf("regressions %q; want both", got)
	}
	// A cache may beat the memory bandwidth that was measured.
	cached := run("131072", 60)
	cached.Limit.Name = "memory bandwidth"
	if x := compared(t, []Side{{"a", []Result{cached}}, {"b", []Result{small}}}, CompareOptions{}).Rows[0].Cells[0]; x.Verdict != "" {
		t.Errorf("above a measured limit: %+v", x)
	}
}

// Direct access was off in the environment, and that was the difference.
func TestCompareTransportSwitchedOff(t *testing.T) {
	off := pasted(collectives.AllReduce, 8, 1, 1<<30, 40, map[string]string{"NCCL_P2P_LEVEL": "LOC"})
	on := pasted(collectives.AllReduce, 8, 1, 1<<30, 220, nil)
	c := compared(t, []Side{{"before", []Result{off}}, {"after", []Result{on}}}, CompareOptions{})
	if len(c.Warnings) == 0 || !strings.Contains(strings.Join(c.Warnings, "\n"), "before: NCCL_P2P_LEVEL=LOC switches direct access between GPUs off") {
		t.Errorf("warnings %q", c.Warnings)
	}
	if d := c.Differ[0]; d.What != "NCCL_P2P_LEVEL" || d.Values[0] != "LOC" || d.Values[1] != unset {
		t.Errorf("differ %+v", c.Differ)
	}
}

// A newer library lost a quarter on 8 nodes; a variable brought it back.
func TestCompareVersions(t *testing.T) {
	run := func(version, channels string, busbw float64) Side {
		config := map[string]string{"nccl": version}
		if channels != "" {
			config["NCCL_NCHANNELS_PER_NET_PEER"] = channels
		}
		return Side{strings.TrimSpace(version + " " + channels), []Result{pasted(collectives.SendRecv, 32, 8, 512<<20, busbw, config)}}
	}
	c := compared(t, []Side{run("2.19.4", "", 24.2382), run("2.20.5", "", 18.3153), run("2.20.5", "4", 24.2)}, CompareOptions{})
	row := c.Rows[0].Cells
	if math.Abs(*row[1].Change+0.244) > 0.001 || math.Abs(*row[2].Change) > 0.002 || row[1].Verdict != TooFew {
		t.Errorf("%+v and %+v; want −24.4 %% and none", row[1], row[2])
	}
	if !strings.Contains(strings.Join(c.Warnings, "\n"), "2.20.5 4 differs from 2.19.4 in 2 things (NCCL_NCHANNELS_PER_NET_PEER, nccl)") {
		t.Errorf("warnings %q", c.Warnings)
	}
	four := run("2.19.4", "", 24.2)
	four.Results[0].Nodes, four.Results[0].Ranks = 4, 16
	if c := compared(t, []Side{run("2.19.4", "", 24.2382), four}, CompareOptions{}); len(c.Differ) != 2 || c.Differ[0].What != "ranks" || c.Differ[1].What != "nodes" {
		t.Errorf("differ %+v; want ranks and nodes", c.Differ)
	}
}
