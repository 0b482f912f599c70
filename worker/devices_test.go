//go:build linux && cgo

package worker

import (
	"strings"
	"testing"

	"busbw/coordinator"
	"busbw/reports"
	"busbw/worker/gpu"
)

// deviceTests has the nodes of a plan test their devices.
func deviceTests(t *testing.T, ranks ...int) ([]reports.Result, map[int][]coordinator.NoDevice) {
	t.Helper()
	plan := testPlan(nil, ranks...)
	req := testRequest(t)
	plan.Settings = req.Settings
	s := &coordinator.Sweep{Run: "test", Nodes: plan.Nodes, Source: "busbw test", Token: make([]byte, 32)}
	if _, err := s.Open(t.Context(), newPipes(t, plan), req); err != nil {
		t.Fatal(err)
	}
	all, none, err := s.Devices(t.Context(), 1<<20, 0.001)
	if err != nil {
		t.Fatal(err)
	}
	return all, none
}

// Every GPU of a node is copied to and from, and into the next one; a node
// without an RDMA device says so, and that is no figure.
func TestDevicesOnGPUs(t *testing.T) {
	if !onFakeGPUs(t, "FAKECUDA_DEVICES=3") {
		return
	}
	all, none := deviceTests(t, 1)
	count := map[string]int{}
	for _, r := range all {
		count[r.Op]++
		if r.Error != "" || len(r.Seconds) < 6 || r.Scope != coordinator.DeviceScope || r.Memory != "cuda" || !strings.HasPrefix(r.Config["device"], "GPU ") || r.Config["kind"] == "" {
			t.Errorf("%s of %v: %d times, %s", r.Op, r.Config, len(r.Seconds), r.Error)
		}
	}
	if count[coordinator.HostToDevice] != 3 || count[coordinator.DeviceToHost] != 3 || count[coordinator.GPUToGPU] != 3 || len(count) != 3 {
		t.Errorf("%v", count)
	}
	if len(none[0]) != 1 || none[0][0].Test != coordinator.NICLoopback {
		t.Errorf("%+v; want no RDMA device", none)
	}
}

// Where GPUs do not reach each other, only that test is left out.
func TestDevicesWithoutPeers(t *testing.T) {
	if !onFakeGPUs(t, "FAKECUDA_P2P=none", "FAKECUDA_DEVICES=2") {
		return
	}
	all, _ := deviceTests(t, 1)
	if len(all) != 4 {
		t.Errorf("%d results, want 2 ways of 2 GPUs", len(all))
	}
}

// Without a driver and without RDMA devices nothing is measured, and why is said.
func TestDevicesOfNone(t *testing.T) {
	if _, why := cudaDevices(); why == "" {
		t.Skip("this machine has GPUs")
	}
	all, none := deviceTests(t, 1, 1)
	for i := range 2 {
		if len(none[i]) == 0 || none[i][len(none[i])-1].Test != coordinator.HostToDevice || none[i][len(none[i])-1].Why == "" {
			t.Errorf("node %d: %+v", i, none[i])
		}
	}
	for _, r := range all {
		if r.Op != coordinator.NICLoopback {
			t.Errorf("%+v", r)
		}
	}
}

func TestNearestGPU(t *testing.T) {
	gpus := []gpu.Info{{PCI: "a"}, {PCI: "b"}, {PCI: "c"}, {PCI: "d"}}
	words := map[string]string{"a": "SYS", "b": "PXB", "c": "PIX", "d": "PIX"}
	if i := nearestGPU(gpus, func(pci string) string { return words[pci] }); i != 2 {
		t.Errorf("GPU %d, want the first behind the same switch", i)
	}
	if i := nearestGPU(gpus, func(string) string { return "?" }); i != 0 {
		t.Errorf("GPU %d where nothing is known", i)
	}
}
