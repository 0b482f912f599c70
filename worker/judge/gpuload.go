package judge

import (
	"fmt"
	"slices"

	"busbw/reports"
)

// What a GPU that works may not fall below or rise above (ours): a busy GPU
// boosts to within a few steps of its greatest clock; boards slow down from
// some 87 °C on, and by then throttling tells.
const (
	busyPct  = 50
	lowClock = 0.75
	lowPower = 0.95
	hotC     = 85
)

// GPULoad judges clocks of busy GPUs against their maximum, power limits,
// temperature and MIG. What an idle GPU's clock is says nothing.
func GPULoad(gpus []reports.GPU, from Origin, node string) (out []reports.Finding) {
	var usual []float64 // power limits
	for _, g := range gpus {
		if g.PowerLimitW != nil && g.Name == gpus[0].Name {
			usual = append(usual, *g.PowerLimitW)
		}
	}
	for _, g := range gpus {
		out = append(out, clocks(g, from, node)...)
		if w, most := g.PowerLimitW, g.PowerLimitMaxW; w != nil && most != nil && *most > 0 {
			f := gpuFinding("gpu-power", node, g)
			f.Got, f.Evidence = fmt.Sprintf("limit %s of %s W", number(*w), number(*most)), []reports.Evidence{from.of("enforced power limit", number(*w)+" W")}
			if *w < lowPower**most {
				f.Verdict, f.Want = reports.Warn, fmt.Sprintf("%s W, the most that the board may take", number(*most))
				f.Remedy = "is the limit meant? If not: nvidia-smi -pl, and look at what sets it (power supplies, a management controller)"
				if len(usual) > 1 && g.Name == gpus[0].Name && slices.Max(usual) > *w*1.02 {
					f.Got += fmt.Sprintf(", where another GPU of this node has %s W", number(slices.Max(usual)))
				}
			}
			out = append(out, f)
		}
		if c := g.TemperatureC; c != nil {
			f := gpuFinding("gpu-temperature", node, g)
			f.Got, f.Evidence = fmt.Sprintf("%d °C", *c), []reports.Evidence{from.of("temperature", fmt.Sprintf("%d °C", *c))}
			if *c >= hotC {
				f.Verdict, f.Want, f.Remedy = reports.Warn, fmt.Sprintf("below %d °C", hotC), "look at fans, filters, coolant and the inlet's temperature: it will slow down soon"
			}
			out = append(out, f)
		}
		if g.MIG != nil && *g.MIG {
			f := gpuFinding("gpu-mig", node, g)
			f.Verdict, f.Got, f.Want, f.Evidence = reports.Warn, "MIG is on", "off", []reports.Evidence{from.of("MIG mode", "enabled")}
			f.Remedy = "switch it off (nvidia-smi -mig 0) on nodes for collectives: an instance has a share of the GPU and no NVLink"
			out = append(out, f)
		}
	}
	return out
}

func clocks(g reports.GPU, from Origin, node string) []reports.Finding {
	if g.ClockMHz == nil || g.ClockMaxMHz == nil || *g.ClockMaxMHz <= 0 {
		return nil
	}
	f := gpuFinding("gpu-clocks", node, g)
	f.Got = fmt.Sprintf("%d of %d MHz", *g.ClockMHz, *g.ClockMaxMHz)
	f.Evidence = []reports.Evidence{from.of("SM clock", f.Got)}
	switch {
	case g.UtilisationPct == nil || *g.UtilisationPct < busyPct:
		f.Verdict, f.Got = reports.NA, f.Got+", and not busy: an idle GPU's clock says nothing"
	case float64(*g.ClockMHz) < lowClock*float64(*g.ClockMaxMHz):
		f.Verdict, f.Want = reports.Warn, fmt.Sprintf("at least %.0f %% of its maximum while it is %d %% busy", 100*lowClock, *g.UtilisationPct)
		f.Remedy = "see what holds it down: nvidia-smi -q -d CLOCK,PERFORMANCE,POWER; lift a clock limit with nvidia-smi -rgc"
	}
	return []reports.Finding{f}
}

// Sensor is a temperature that a card tells of itself or of a module in it.
type Sensor struct {
	Origin
	Subject   string // "NIC 0000:3b:00.0 Module0"
	C         float64
	CriticalC float64 // 0: not told
}

// Temperatures judges sensors by their own limits; without one there is nothing
// to judge by.
func Temperatures(ss []Sensor, node string) (out []reports.Finding) {
	for _, s := range ss {
		f := reports.Finding{ID: "nic-temperature", Node: node, Subject: s.Subject, Verdict: reports.Pass, Got: number(s.C) + " °C", Evidence: []reports.Evidence{s.of("", number(s.C)+" °C")}}
		const remedy = "look at air flow and at the module (active cables and optical modules make heat): above its limit the card switches the module off"
		switch {
		case s.CriticalC <= 0:
			f.Verdict, f.Got = reports.NA, f.Got+", and no limit is told"
		case s.C >= s.CriticalC:
			f.Verdict, f.Want, f.Remedy = reports.Fail, "below "+number(s.CriticalC)+" °C (its critical temperature)", remedy
		case s.C >= s.CriticalC-5:
			f.Verdict, f.Want, f.Remedy = reports.Warn, "5 °C and more below "+number(s.CriticalC)+" °C (its critical temperature)", remedy
		default:
			f.Want = "below " + number(s.CriticalC) + " °C (its critical temperature)"
		}
		out = append(out, f)
	}
	return out
}
