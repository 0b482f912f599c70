package capture

import (
	"regexp"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	moduleLine = regexp.MustCompile(`^\s*([A-Z][\w ()\[\]/.-]{2,50}?)\s+:\s?(.*)$`)
	moduleHead = regexp.MustCompile(`^\s*(Operational Info|Supported Info|Troubleshooting Info|Module Info|Physical Counters and BER Info)\s*$`)
	brackets   = regexp.MustCompile(`\(([^)]*)\)`)
	signed     = regexp.MustCompile(`-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?`)
	mlxCommand = regexp.MustCompile(`mlxlink\b.*?-d\s+(\S+)`)
	ethSpeed   = regexp.MustCompile(`(\d+(?:\.\d+)?)\s*G`)
)

// readModules reads mlxlink.
func readModules(s section) []reports.Finding {
	var out []reports.Finding
	var m *judge.Module
	subject, n := "", 0
	flush := func() {
		if m != nil && (m.State != "" || m.Phys != "") && n >= 3 {
			out = append(out, judge.Cable(*m)...)
		}
		m, n = nil, 0
	}
	for _, l := range s.lines {
		if c := mlxCommand.FindStringSubmatch(l); c != nil {
			flush()
			subject = c[1]
		}
		if h := moduleHead.FindStringSubmatch(l); h != nil && h[1] == "Operational Info" {
			flush()
		}
		if moduleHead.MatchString(l) && m == nil {
			m = &judge.Module{Origin: "mlxlink", Node: s.node, Subject: or(subject, "port")}
		}
		k := moduleLine.FindStringSubmatch(l)
		if k == nil {
			continue
		}
		key, v := k[1], strings.TrimSpace(k[2])
		if m == nil && (key == "State" || key == "Physical state") {
			m = &judge.Module{Origin: "mlxlink", Node: s.node, Subject: or(subject, "port")}
		}
		if m != nil && moduleField(m, key, v) {
			n++
		}
	}
	flush()
	return out
}

// moduleField takes one line; false: nothing that is looked at.
func moduleField(m *judge.Module, key, v string) bool {
	// a value of several lanes: "0,0,0,0 [0..0]"
	plain, _, _ := strings.Cut(v, "[")
	num := func() *float64 {
		f, err := strconv.ParseFloat(signed.FindString(plain), 64)
		if err != nil {
			return nil
		}
		return &f
	}
	words := func() []string {
		if b := brackets.FindStringSubmatch(v); b != nil {
			return strings.FieldsFunc(b[1], func(r rune) bool { return r == ',' || r == ' ' })
		}
		return nil
	}
	name := strings.ToLower(key)
	switch {
	case name == "state":
		m.State = v
	case name == "physical state":
		m.Phys = v
	case name == "speed":
		m.Speed = v
		if i := strings.LastIndexByte(v, '-'); i >= 0 {
			v = v[i+1:]
		}
		if m.Gbps = judge.SpeedGbps(strings.TrimSpace(v)); m.Gbps == 0 {
			if e := ethSpeed.FindStringSubmatch(v); e != nil {
				m.Gbps = decimal(e[1])
			}
		}
	case name == "width":
		m.Width = v
		if w, err := strconv.Atoi(strings.TrimSuffix(strings.ToLower(v), "x")); err == nil && m.Gbps > 0 && strings.HasPrefix(m.Speed, "IB-") && w > 0 && w < 4 {
			m.Gbps = m.Gbps * float64(w) / 4
		}
	case strings.HasPrefix(name, "enabled link speed"):
		m.Enabled = words()
	case strings.HasPrefix(name, "supported cable speed"):
		m.Cable = words()
	case name == "status opcode":
		m.Opcode = v
	case name == "recommendation":
		m.Advice = v
	case strings.HasPrefix(name, "temperature"):
		m.Temperature = num()
	case strings.HasPrefix(name, "cable technology"), strings.HasPrefix(name, "cable type") && m.Technology == "":
		m.Technology = v
	case strings.HasPrefix(name, "rx los"):
		for f := range strings.SplitSeq(plain, ",") {
			if x, err := strconv.Atoi(strings.TrimSpace(f)); err == nil && len(m.LossOfSignal) < 16 {
				m.LossOfSignal = append(m.LossOfSignal, x)
			}
		}
	case strings.HasPrefix(name, "effective physical ber"):
		m.EffectiveBER = num()
	case strings.HasPrefix(name, "symbol ber"):
		m.SymbolBER = num()
	case strings.HasPrefix(name, "raw physical ber"):
		m.BER = num()
	default:
		return false
	}
	return true
}
