package judge

import (
	"fmt"
	"strings"

	"busbw/reports"
)

// Module is what a link tool (mlxlink) says of a port and its cable.
type Module struct {
	Origin
	Node, Subject     string
	State, Phys       string
	Speed             string    // "NDR"
	Gbps              float64   // 0: not told
	Enabled, Cable    []string  // speeds enabled at the port, and that the cable can do
	Width             string    // "4x"
	Technology        string    // "Copper cable, passive, unequalized"
	Opcode            string    // "0": nothing to report
	Advice            string    // the tool's own recommendation
	Temperature       *float64  // °C
	RxPower           []float64 // dBm by lane
	LossOfSignal      []int     // by lane
	EffectiveBER, BER *float64  // behind and in front of error correction
	SymbolBER         *float64
}

// speeds of InfiniBand, Gb/s of four lanes (IBTA rates).
var speeds = []struct {
	name string
	gbps float64
}{{"SDR", 10}, {"DDR", 20}, {"QDR", 40}, {"FDR10", 40}, {"FDR", 56}, {"EDR", 100}, {"HDR", 200}, {"NDR", 400}, {"XDR", 800}}

// SpeedGbps is the rate of four lanes of a speed's name; 0: no such name.
func SpeedGbps(name string) float64 {
	for _, s := range speeds {
		if s.name == strings.ToUpper(name) {
			return s.gbps
		}
	}
	return 0
}

func fastest(names []string) (best string, gbps float64) {
	for _, n := range names {
		if g := SpeedGbps(n); g > gbps {
			best, gbps = n, g
		}
	}
	return best, gbps
}

// Limits of bit error rates: InfiniBand demands better than 1e-12 behind
// correction; vendors test cables to 1e-15.
const (
	failBER = 1e-12
	warnBER = 1e-15
)

// Cable judges a port's link and module. Passive copper has no electronics:
// zeros for temperature and power and flags of lost signal say nothing there.
func Cable(m Module) []reports.Finding {
	f := reports.Finding{ID: "rdma-module", Node: m.Node, Subject: m.Subject, Verdict: reports.Pass}
	f.Got = strings.TrimSpace(strings.Join(nonEmpty(m.State, m.Phys, m.Speed, m.Width), ", "))
	f.Evidence = append(f.Evidence, m.of("State, Physical state, Speed, Width", f.Got))
	passive := strings.Contains(strings.ToLower(m.Technology), "passive") || strings.Contains(strings.ToLower(m.Technology), "copper")
	if m.Technology != "" {
		f.Evidence = append(f.Evidence, m.of("Cable Technology", m.Technology))
	}
	note := func(v reports.Verdict, why, remedy string) {
		if v == reports.Fail && f.Verdict != reports.Fail || v == reports.Warn && f.Verdict == reports.Pass {
			f.Verdict, f.Remedy = v, remedy
		}
		f.Got += "; " + why
	}
	const swap = "clean and reseat the module, then replace cable or module, then swap the peer's port"
	up := strings.EqualFold(m.State, "Active") || m.State == "" && strings.EqualFold(m.Phys, "LinkUp")
	if m.Opcode != "" && m.Opcode != "0" {
		v := reports.Warn
		if !up {
			v = reports.Fail
		}
		f.Evidence = append(f.Evidence, m.of("Status Opcode", m.Opcode+" "+m.Advice))
		note(v, "the port reports: "+or(m.Advice, "opcode "+m.Opcode), or(m.Advice, swap))
	}
	switch {
	case m.State == "" && m.Phys == "":
		f.Verdict, f.Got = reports.Unknown, "the state of the link is not told"
		return []reports.Finding{f}
	case !up && strings.Contains(strings.ToLower(m.State+m.Phys), "disable"):
		note(reports.Fail, "disabled by an administrator", "enable the port")
	case !up && strings.EqualFold(m.Phys, "LinkUp"):
		note(reports.Fail, "the physical link is up but the port is not active", "look at the subnet manager, not at the cable")
	case !up:
		note(reports.Fail, "the link is not up", "look at cable or module, its seating and the port at the other end")
	}
	if up {
		both := m.Enabled
		if len(m.Cable) > 0 && len(m.Enabled) > 0 {
			both = nil
			for _, s := range m.Enabled {
				if _, g := fastest([]string{s}); g > 0 && strings.Contains(" "+strings.Join(m.Cable, " ")+" ", " "+s+" ") {
					both = append(both, s)
				}
			}
		}
		if best, g := fastest(both); g > 0 && m.Gbps > 0 && m.Gbps < g*0.99 && !halved(m, g) {
			f.Want = best
			note(reports.Fail, fmt.Sprintf("slower than %s, which both port and cable can do", best), swap+"; compare the speeds enabled at the peer")
		}
		if strings.EqualFold(m.Width, "1x") {
			note(reports.Fail, "one lane only", swap)
		}
	}
	for _, b := range []struct {
		name string
		v    *float64
	}{{"effective BER", m.EffectiveBER}, {"symbol BER", m.SymbolBER}} {
		if b.v == nil {
			continue
		}
		f.Evidence = append(f.Evidence, m.of(b.name, fmt.Sprintf("%.0e", *b.v)))
		switch {
		case *b.v > failBER:
			note(reports.Fail, fmt.Sprintf("%s %.0e is above %.0e (InfiniBand specification)", b.name, *b.v, failBER), swap)
		case *b.v > warnBER:
			note(reports.Warn, fmt.Sprintf("%s %.0e is above %.0e (cables are tested to that)", b.name, *b.v, warnBER), swap)
		}
	}
	if passive {
		return []reports.Finding{f}
	}
	if m.Temperature != nil && *m.Temperature > 75 {
		note(reports.Warn, fmt.Sprintf("the module is at %s °C (70–75 °C is usual as a limit)", number(*m.Temperature)), "look at the airflow of this cage")
	}
	if m.Technology == "" { // perhaps copper
		return []reports.Finding{f}
	}
	var lost []string
	for i, l := range m.LossOfSignal {
		if l != 0 {
			lost = append(lost, fmt.Sprint(i+1))
		}
	}
	if lost != nil {
		v := reports.Warn
		if !up {
			v = reports.Fail
		}
		note(v, "no light on lane "+list(lost), swap)
	}
	return []reports.Finding{f}
}

// halved: two lanes of a split cable run at half the four lanes' rate.
func halved(m Module, g float64) bool {
	return strings.EqualFold(m.Width, "2x") && m.Gbps >= g/2*0.99
}

func nonEmpty(ss ...string) []string {
	var out []string
	for _, s := range ss {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}
