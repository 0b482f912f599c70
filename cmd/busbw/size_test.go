package main

import (
	"reflect"
	"testing"
)

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{"8": 8, "64K": 64 << 10, "64k": 64 << 10, "1MiB": 1 << 20, "1mb": 1 << 20, "2G": 2 << 30, "3T": 3 << 40, "0": 0, "5B": 5} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "K", "-1", "1.5M", "9999999T", "1X", "8 8"} {
		if got, err := parseSize(in); err == nil {
			t.Errorf("%q gave %d, want an error", in, got)
		}
	}
}

func TestSizeString(t *testing.T) {
	for in, want := range map[int64]string{8: "8", 1 << 20: "1M", 3 << 30: "3G", 1500: "1500"} {
		if z := size(in); z.String() != want {
			t.Errorf("%d is %q, want %q", in, z.String(), want)
		}
	}
}

func TestSweepSizes(t *testing.T) {
	for _, c := range []struct {
		min, max, step int64
		factor         int
		want           []int64
	}{
		{8, 64, 0, 2, []int64{8, 16, 32, 64}},
		{8, 60, 0, 2, []int64{8, 16, 32}},
		{8, 8, 0, 1, []int64{8}},
		{0, 4, 0, 2, []int64{0, 1, 2, 4}},
		{8, 30, 10, 1, []int64{8, 18, 28}},
		{1 << 62, 1<<63 - 1, 0, 4, []int64{1 << 62}},
	} {
		got, err := sweepSizes(c.min, c.max, c.step, c.factor)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	for _, c := range [][4]int64{{64, 8, 1, 2}, {8, 64, 0, 1}, {8, 64, 1, 0}, {0, 1 << 40, 1, 1}} {
		if got, err := sweepSizes(c[0], c[1], c[2], int(c[3])); err == nil {
			t.Errorf("%v: %v, want an error", c, got[:3])
		}
	}
}

func TestParseLocal(t *testing.T) {
	if n, r, err := parseLocal("2X4"); err != nil || n != 2 || r != 4 {
		t.Errorf("2X4: %d %d %v", n, r, err)
	}
	for _, in := range []string{"", "2", "x2", "2x", "0x2", "2x2x2", "2x 2", "-1x2", "999x2", "+2x2"} {
		if _, _, err := parseLocal(in); err == nil {
			t.Errorf("%q accepted", in)
		}
	}
}
