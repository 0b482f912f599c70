package topo

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestPlaces(t *testing.T) {
	m, _ := hgx()
	ps := Places(m, 0, 8)
	for i, p := range ps {
		if p.Next != fmt.Sprintf("GPU%d", i) || p.Turn != i%4 || len(p.CPUs) != 48 || p.CPUs[0] != 48*(i/4) {
			t.Errorf("rank %d: next to %s, turn %d of %d from %d", i, p.Next, p.Turn, len(p.CPUs), p.CPUs[0])
		}
	}
	// as many ranks as processors: one each
	used := map[int]int{}
	for _, p := range Places(m, 0, 96) {
		used[p.CPUs[p.Turn%len(p.CPUs)]]++
	}
	if len(used) != 96 {
		t.Errorf("96 ranks are on %d of 96 processors", len(used))
	}
	// a second node of the same machine
	if a, b := Places(m, 0, 2), Places(m, 2, 2); a[0].Turn == b[0].Turn || a[1].Turn == b[1].Turn || a[1].Turn == b[0].Turn {
		t.Errorf("two nodes of one machine meet: %v, %v", a, b)
	}
	// without GPUs, the adapters; without those, in order
	nics := files{fstest.MapFS{}}
	nics.hca("mlx5_0", "pci0000:10/0000:10:01.0/0000:11:00.0", "1")
	if ps := Places(nics, 0, 2); ps[0].Next != "mlx5_0" || ps[1].CPUs[0] != 48 || ps[1].Turn != 1 {
		t.Errorf("%v", ps)
	}
	if ps := Places(fstest.MapFS{}, 6, 2); ps[1].CPUs != nil || ps[1].Turn != 7 {
		t.Errorf("%v", ps)
	}
}

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"": nil, "0": {0}, "0-3,8": {0, 1, 2, 3, 8}, " 5-5\n": {5}} {
		if got, err := ParseCPUs(list); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"a", "3-1", "-1", "1-", "0-99999999", "0--1", strings.Repeat("0-16000,", 3) + "0"} {
		if got, err := ParseCPUs(list); err == nil {
			t.Errorf("%q: %d processors", list, len(got))
		}
	}
	if cpus, _ := ParseCPUs("4-6"); !slices.Contains(cpus, 6) {
		t.Error("the end of a range is part of it")
	}
}
