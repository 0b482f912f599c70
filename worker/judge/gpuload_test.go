package judge

import (
	"strings"
	"testing"

	"busbw/reports"
)

func TestGPULoad(t *testing.T) {
	gpu := func(clock, most, busy int, watts, limit float64, c int) reports.GPU {
		return reports.GPU{Name: "NVIDIA H100 80GB HBM3", ClockMHz: &clock, ClockMaxMHz: &most, UtilisationPct: &busy, PowerLimitW: &watts, PowerLimitMaxW: &limit, TemperatureC: &c}
	}
	mig := gpu(1980, 1980, 0, 700, 700, 40)
	mig.MIG = new(true)
	for _, c := range []struct {
		name string
		gpu  reports.GPU
		want string // verdicts of gpu-clocks, gpu-power, gpu-temperature and what else
		text string
	}{
		{"at rest", gpu(345, 1980, 0, 700, 700, 31), "n/a pass pass", "not busy"},
		{"busy and fast", gpu(1755, 1980, 98, 700, 700, 62), "pass pass pass", "1755 of 1980"},
		{"busy and held down", gpu(1095, 1980, 98, 700, 700, 62), "warn pass pass", "75 % of its maximum"},
		{"power taken away", gpu(1755, 1980, 98, 500, 700, 62), "pass warn pass", "limit 500 of 700 W"},
		{"hot", gpu(1755, 1980, 98, 700, 700, 88), "pass pass warn", "88 °C"},
		{"shared out", mig, "n/a pass pass warn", "MIG is on"},
		{"nothing told", reports.GPU{Name: "x"}, "", ""},
		{"a maximum of 0 is none", reports.GPU{ClockMHz: new(100), ClockMaxMHz: new(0)}, "", ""},
	} {
		var got []string
		text := ""
		for _, f := range GPULoad([]reports.GPU{c.gpu}, "GPU driver", "n") {
			got = append(got, string(f.Verdict))
			text += f.Got + " " + f.Want + ";"
			if f.Verdict == reports.Warn && (f.Remedy == "" || len(f.Evidence) == 0) {
				t.Errorf("%s: %s without remedy or evidence", c.name, f.ID)
			}
		}
		if g := strings.Join(got, " "); g != c.want || !strings.Contains(text, c.text) {
			t.Errorf("%s: %s: %s; want %s with %q", c.name, g, text, c.want, c.text)
		}
	}
	two := []reports.GPU{gpu(345, 1980, 0, 700, 700, 30), gpu(345, 1980, 0, 450, 700, 30)}
	if f := GPULoad(two, "", "n"); !strings.Contains(f[4].Got, "another GPU of this node has 700 W") {
		t.Errorf("one of two limited: %+v", f[4])
	}
}

func TestTemperatures(t *testing.T) {
	for _, c := range []struct {
		now, limit float64
		want       reports.Verdict
	}{{45, 105, reports.Pass}, {101, 105, reports.Warn}, {105, 105, reports.Fail}, {71, 0, reports.NA}, {0, 70, reports.Pass}} {
		if f := Temperatures([]Sensor{{Subject: "NIC x Module0", C: c.now, CriticalC: c.limit}}, ""); f[0].Verdict != c.want {
			t.Errorf("%g of %g: %+v", c.now, c.limit, f[0])
		}
	}
}
