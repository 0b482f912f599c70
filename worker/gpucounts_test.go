package worker

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/fstest"
	"time"

	"busbw/coordinator"
	"busbw/reports"
)

// twoGPUs are joined by four NVLinks to a switch.
func twoGPUs() *Node {
	n := &Node{Name: "a", Root: fstest.MapFS{}}
	for i := range 2 {
		g := reports.GPU{Index: i, Vendor: "nvidia", Name: "NVIDIA H100 80GB HBM3", PCI: fmt.Sprintf("0000:%d1:00.0", i+1)}
		for l := range 4 {
			up, gbps := true, 25.0
			g.NVLinks = append(g.NVLinks, reports.NVLink{Link: l, Up: &up, Version: 4, GBps: &gbps, RemoteKind: "switch"})
		}
		n.GPUs = append(n.GPUs, g)
	}
	return n
}

func TestGPUsOfRanks(t *testing.T) {
	r := &runner{root: fstest.MapFS{}}
	r.knowGPUs(twoGPUs(), []string{"0000:11:00.0", "0000:21:00.0"}, true)
	if p := r.peer; p == nil || p.Name != "NVLink" || p.GBps != 100 {
		t.Fatalf("peer %+v", p)
	}
	if reply, err := r.limits(coordinator.LimitsBody{}); err != nil || reply.(coordinator.LimitsReply).Peer != r.peer {
		t.Errorf("limits %+v, %v", reply, err)
	}
	now := map[string]map[string]uint64{
		"GPU0": {"nvlink_tx_bytes": 1000, "nvlink_errors/replay": 2, "pcie_replays": 0}, "GPU1": {"nvlink_tx_bytes": 5}, "GPU9": {"nvlink_tx_bytes": 5},
	}
	var fails error
	r.counts.read = func() (map[string]map[string]uint64, error) {
		copied := map[string]map[string]uint64{}
		for g, cs := range now {
			copied[g] = map[string]uint64{}
			for k, v := range cs {
				copied[g][k] = v
			}
		}
		return copied, fails
	}
	if err := r.snapshot(); err != nil {
		t.Fatal(err)
	}
	now["GPU0"]["nvlink_tx_bytes"] = 3000 // while warming up
	r.counts.mark()
	r.counts.since = time.Now().Add(-time.Second)
	now["GPU0"]["nvlink_tx_bytes"], now["GPU0"]["nvlink_errors/replay"], now["GPU9"]["nvlink_tx_bytes"] = 10000, 3, 10
	moved, sent, err := r.counts.moved()
	if err != nil {
		t.Fatal(err)
	}
	if want := []coordinator.Moved{{Device: "GPU0", Name: "nvlink_errors/replay", Add: 1}, {Device: "GPU0", Name: "nvlink_tx_bytes", Add: 9000}}; !reflect.DeepEqual(moved, want) {
		t.Errorf("moved %+v, want %+v", moved, want)
	}
	if len(sent) != 2 || sent[0].Bytes != 7000 || sent[0].Carries != 100 || sent[0].Seconds < 1 || sent[1].Bytes != 0 {
		t.Errorf("sent %+v", sent)
	}
	fails = errors.New("the driver is gone")
	if moved, sent, err := r.counts.moved(); moved != nil || sent != nil || !errors.Is(err, fails) {
		t.Errorf("a driver that does not answer has counted %v and %v, error %v", moved, sent, err)
	}
	// One that answers again later has still not counted from the beginning.
	if err := r.snapshot(); err != nil {
		t.Fatal(err)
	}
	gone := fails
	fails = nil
	if moved, _, err := r.counts.moved(); moved != nil || !errors.Is(err, gone) {
		t.Errorf("without a beginning it has counted %v, error %v", moved, err)
	}
}

// What is not known is no limit and no counter, and no error.
func TestGPUsNotKnown(t *testing.T) {
	for _, addresses := range [][]string{{"0000:99:00.0", "0000:21:00.0"}, {"0000:11:00.0"}, {"0000:11:00.0", "0000:21:00.0", "0000:11:00.0"}} {
		r := &runner{root: fstest.MapFS{}}
		r.knowGPUs(twoGPUs(), addresses, true)
		if r.peer != nil {
			t.Errorf("%v: %+v", addresses, r.peer)
		}
	}
	r := &runner{root: fstest.MapFS{}}
	r.knowGPUs(twoGPUs(), []string{"0000:11:00.0", "0000:21:00.0"}, false)
	if r.peer != nil {
		t.Errorf("through host memory, and the PCIe links are not known: %+v", r.peer)
	}
	r = &runner{root: fstest.MapFS{}}
	r.useGPUs([]string{"0000:11:00.0"}, true) // no driver, no files
	r.counts.mark()
	if moved, sent, err := r.counts.moved(); r.peer != nil || moved != nil || sent != nil || err != nil {
		t.Errorf("%+v, %v, %v", r.peer, moved, sent)
	}
}
