package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"busbw/coordinator"
	"busbw/rdma"
)

// The run's list of NCCL_IB_* variables is that of package rdma, with its defaults.
func TestSettingsOfRDMA(t *testing.T) {
	values, _, err := coordinator.Settings(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := rdma.Defaults()
	for name, v := range values {
		if !strings.HasPrefix(name, "NCCL_IB_") {
			continue
		}
		if def, ok := want[name]; !ok || def != v {
			t.Errorf("%s is %q in coordinator, %q in rdma (there: %t)", name, v, def, ok)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is not in coordinator", name)
	}
}

func TestRequestRefusesRDMASetting(t *testing.T) {
	t.Setenv("NCCL_IB_TC", "256")
	if code := run(t.Context(), []string{"run"}); code != exitUsage {
		t.Errorf("NCCL_IB_TC=256: exit status %d, want %d", code, exitUsage)
	}
}

func TestRDMAState(t *testing.T) {
	dir := "sys/class/infiniband/mlx5_0/ports/1/"
	root := fstest.MapFS{}
	for name, v := range map[string]string{"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": "InfiniBand", "rate": "400 Gb/sec (4X NDR)"} {
		root[dir+name] = &fstest.MapFile{Data: []byte(v + "\n")}
	}
	if got := rdmaState(root); !strings.HasSuffix(got, "; mlx5_0:1: active, InfiniBand, 400 Gb/sec (4X NDR)") {
		t.Errorf("an active port: %q", got)
	}
	if got := rdmaState(fstest.MapFS{}); !strings.HasSuffix(got, "; no RDMA device") {
		t.Errorf("no device: %q", got)
	}
}
