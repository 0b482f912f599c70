package capture

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	columns   = regexp.MustCompile(`\t+|\s*\|\s*| {2,}`)
	figureOf  = regexp.MustCompile(`(?i)^(?:algbw|busbw|bandwidth|bw|speed|rate)?[ _(]*(GB|Gb|GiB|MB|MiB)(?:/s|ps|it/s|yte/s|it/sec|/sec|)\)?$`)
	figureBW  = regexp.MustCompile(`(?i)^(?:avg[ _]?)?busbw$|^(?:busbw|algbw|bw)[ _(]*(GB|Gb|MB)`)
	checkedOf = regexp.MustCompile(`(?i)^(?:validation|#?wrong|check|data|errors|out of bounds)$`)
	namedOf   = regexp.MustCompile(`(?i)^(?:run|trial|name|id|#|case)$`)
	remarkOf  = regexp.MustCompile(`(?i)^(?:dmesg|note|notes|remark|comment|log|xid)$`)
	pairsLine = regexp.MustCompile(`^\s*((?:[A-Za-z][\w.]*=\S*\s+)+)(\d+(?:\.\d+)?)\s*(GB/s|Gb/s|MB/s|Gbps|Gbit/s)\s*$`)
	portsWord = regexp.MustCompile(`(?i)\b(?:(\d{1,2}) ?[x×] ?)?(\d{2,3}) ?G(?:b/s|bps)?\b`)
	oneRail   = regexp.MustCompile(`(?i)\b(?:1|one|single) (?:rail|port|NIC|QSFP|cable|link|\d+G)\b`)
	number1   = regexp.MustCompile(`^\d+(?:\.\d+)?$`)
)

// figureWords: every head has one of these.
var figureWords = []string{"usbw", "USBW", "usBw", "BW", "bw", "GB", "Gb", "MB", "andwidth", "peed", "ate"}

// maxTrials bounds what one table can hold.
const maxTrials = 256

// readSettings reads tables of settings and the figure that each gave, which
// people keep by hand: columns below a head, or "name=value … 98 Gb/s" lines.
func readSettings(s section) (out []reports.Finding) {
	var head []string
	var table, loose []judge.Trial
	wire := 0.0
	for _, l := range s.lines {
		if w, ok := wireOf(l); ok {
			wire = w
		}
		if m := pairsLine.FindStringSubmatch(l); m != nil && len(loose) < maxTrials {
			t := judge.Trial{Settings: map[string]string{}, Line: shorten(l)}
			for f := range strings.FieldsSeq(m[1]) {
				k, v, _ := strings.Cut(f, "=")
				t.Settings[k] = v
			}
			if t.GBps = inGBps(m[2], m[3]); t.GBps > 0 {
				loose = append(loose, t)
			}
			continue
		}
		if strings.TrimSpace(l) == "" {
			out = append(out, judge.Trials(table, "table", s.node)...)
			head, table = nil, nil
		}
		if head == nil && !contains(l, figureWords) { // patterns are slow, and logs are long
			continue
		}
		cells := cellsOf(l)
		if headOf(cells) {
			out = append(out, judge.Trials(table, "table", s.node)...)
			head, table = cells, nil
			continue
		}
		if head == nil || len(cells) != len(head) || len(table) == maxTrials {
			continue
		}
		if t, ok := trialOf(head, cells, wire); ok {
			t.Line = shorten(l)
			table = append(table, t)
		}
	}
	out = append(out, judge.Trials(table, "table", s.node)...)
	if len(loose) > 1 {
		out = append(out, judge.Trials(loose, "lines", s.node)...)
	}
	return out
}

// cellsOf splits a line at wide gaps, tabs or bars; where that gives next to
// nothing, at blanks.
func cellsOf(l string) []string {
	l = strings.Trim(strings.TrimSpace(strings.TrimLeft(l, "#")), "|")
	cells := columns.Split(strings.TrimSpace(l), -1)
	if len(cells) < 3 {
		cells = strings.Fields(l)
	}
	return cells
}

// headOf says whether cells name settings and one figure.
func headOf(cells []string) bool {
	settings, figures := 0, 0
	for _, c := range cells {
		switch {
		case number1.MatchString(c):
			return false
		case isFigure(c):
			figures++
		case isSetting(c):
			settings++
		}
	}
	return settings > 0 && figures == 1 && len(cells) <= 32
}

func isFigure(c string) bool { return figureBW.MatchString(c) || figureOf.MatchString(c) }

// isSetting knows NCCL's and UCX's variables, and what else people change.
func isSetting(c string) bool {
	return strings.HasPrefix(c, "NCCL_") || strings.HasPrefix(c, "UCX_") || strings.HasPrefix(c, "RCCL_") ||
		slices.Contains([]string{"mtu", "MTU", "nccl_build", "nccl", "nccl_version", "driver", "firmware", "kernel", "ofed", "OFED", "hca", "HCA"}, c)
}

func trialOf(head, cells []string, wire float64) (judge.Trial, bool) {
	t := judge.Trial{Settings: map[string]string{}, Wire: wire}
	for i, h := range head {
		c := strings.TrimSpace(cells[i])
		switch {
		case isFigure(h):
			unit := "GB/s"
			if m := figureOf.FindStringSubmatch(h); m != nil && m[1] != "" {
				unit = m[1] + "/s"
			} else if m := figureBW.FindStringSubmatch(h); m != nil && m[1] != "" {
				unit = m[1] + "/s"
			}
			if !number1.MatchString(c) {
				return t, false
			}
			t.GBps = inGBps(c, unit)
		case checkedOf.MatchString(h):
			if f := strings.Fields(c); len(f) > 0 && (strings.EqualFold(f[0], "failed") || strings.EqualFold(f[0], "wrong") || strings.EqualFold(f[0], "bad") || number1.MatchString(f[0]) && strings.Trim(f[0], "0.") != "") {
				t.Wrong = c
			}
		case namedOf.MatchString(h):
			t.Name = c
		case remarkOf.MatchString(h):
		default:
			if strings.HasPrefix(c, "(unset") || c == "-" || c == "unset" || c == "default" {
				c = ""
			}
			t.Settings[h] = c
		}
	}
	return t, t.GBps > 0
}

// inGBps turns a figure into GB/s; 0 for what is none.
func inGBps(v, unit string) float64 {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x > 0) || x > 1e6 {
		return 0
	}
	switch {
	case strings.HasPrefix(unit, "Gb"), strings.HasPrefix(unit, "Gbit"):
		return x / 8
	case strings.HasPrefix(unit, "MB"), strings.HasPrefix(unit, "MiB"):
		return x / 1000
	}
	return x
}

// wireOf is what the one port carries that a remark says took part, GB/s:
// "8 x 400G RoCE, 2 ranks on 1 rail", "one QSFP 200G DAC".
func wireOf(l string) (float64, bool) {
	m := portsWord.FindStringSubmatch(l)
	if m == nil || !strings.HasPrefix(strings.TrimSpace(l), "#") {
		return 0, false
	}
	if !oneRail.MatchString(l) {
		return 0, true // another measurement, of ports that are not counted here
	}
	g, err := strconv.ParseFloat(m[2], 64)
	if err != nil || !slices.Contains([]float64{10, 25, 40, 50, 56, 100, 200, 400, 800}, g) {
		return 0, false
	}
	return g / 8, true
}
