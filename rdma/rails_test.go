package rdma

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestNearest(t *testing.T) {
	zero, one := 0, 1
	port := Port{Num: 1}
	rails := []Rail{
		{HCA{Name: "mlx5_0", Path: "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0", NUMA: &zero}, port},
		{HCA{Name: "mlx5_1", Path: "pci0000:00/0000:00:02.0/0000:05:00.0", NUMA: &zero}, port},
		{HCA{Name: "mlx5_2", Path: "pci0000:80/0000:80:01.0/0000:81:00.0", NUMA: &one}, port},
		{HCA{Name: "rxe0"}, port},
	}
	for _, tc := range []struct {
		at    Place
		local int
		want  string
	}{
		{Place{"pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0", &zero}, 5, "mlx5_0"}, // the same switch
		{Place{"pci0000:80/0000:80:09.0/0000:90:00.0", &one}, 0, "mlx5_2"},
		{Place{NUMA: &zero}, 0, "mlx5_0"},
		{Place{NUMA: &zero}, 1, "mlx5_1"}, // two are equally near: in turn
		{Place{NUMA: &one}, 3, "mlx5_2"},
		{Place{}, 3, "rxe0"}, // nothing is known: all in turn
	} {
		if got := Nearest(rails, tc.at, tc.local); got.HCA.Name != tc.want {
			t.Errorf("local rank %d at %+v takes %s, want %s", tc.local, tc.at, got, tc.want)
		}
	}
	if r, err := Named(rails, []string{"mlx5_2:1", "mlx5_0"}, 3); err != nil || r.HCA.Name != "mlx5_0" {
		t.Errorf("the second of two names for local rank 3: %v, %v", r, err)
	}
	if _, err := Named(rails, []string{"mlx5_2:2"}, 0); !errors.Is(err, ErrSetting) {
		t.Errorf("a port that is not there: %v", err)
	}
}

func TestPlaceOf(t *testing.T) {
	root := fstest.MapFS{"sys/devices/system/cpu/cpu3/node1/cpulist": {}, "sys/devices/system/cpu/cpu3/topology/core_id": {}}
	if p := PlaceOf(root, 3); p.NUMA == nil || *p.NUMA != 1 {
		t.Errorf("cpu 3 lies at %+v, want node 1", p)
	}
	if p := PlaceOf(root, 4); p.NUMA != nil {
		t.Errorf("a processor that is not there lies at %+v", p)
	}
}
