package reports

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// metric is one metric of the Prometheus text: its name, with the base unit,
// its help, and its value where a figure has one.
type metric struct {
	name, help string
	value      func(f *Figure) (v float64, ok bool)
}

func metrics() []metric {
	rate := func(v float64, ok bool) (float64, bool) { return v * 1e9, ok }
	return []metric{
		{"busbw_time_seconds", "Completion time of one collective: the median of the slowest rank, or what another tool reports.", func(f *Figure) (float64, bool) { return f.Stats.Median, f.Timed && !f.Void() }},
		{"busbw_algbw_bytes_per_second", "Size over time.", func(f *Figure) (float64, bool) { return rate(f.Algbw()) }},
		{"busbw_busbw_bytes_per_second", "Bus bandwidth: size over time, times the factor of the operation (as nccl-tests).", func(f *Figure) (float64, bool) { return rate(f.Busbw()) }},
		{"busbw_limit_bytes_per_second", "The most that the machine allows the bus bandwidth to be.", func(f *Figure) (float64, bool) {
			if f.Limit == nil {
				return 0, false
			}
			return rate(f.Limit.GBps, true)
		}},
		{"busbw_limit_ratio", "Bus bandwidth over its limit.", func(f *Figure) (float64, bool) { return f.Share() }},
		{"busbw_skew_seconds", "Median difference of the first and last rank's start.", func(f *Figure) (float64, bool) {
			if f.Skew == nil {
				return 0, false
			}
			return *f.Skew, true
		}},
		{"busbw_wrong_elements", "Wrong elements in the data check, at least; absent where data was not checked.", func(f *Figure) (float64, bool) {
			if f.Wrong == nil {
				return 0, false
			}
			return float64(*f.Wrong), true
		}},
		{"busbw_failed_launches", "Launches in which the size could not be measured.", func(f *Figure) (float64, bool) { return float64(len(f.Faults)), true }},
		{"busbw_measured_timestamp_seconds", "When the size was begun, Unix time.", func(f *Figure) (float64, bool) {
			return float64(f.Time.UnixNano()) / 1e9, !f.Time.IsZero() && f.Time.Year() > 1970
		}},
	}
}

// prometheus is a text for node_exporter's textfile collector (the text-based
// exposition format, version 0.0.4). A series comes once: of several runs of
// one case, the last in the files counts.
func prometheus(b *bytes.Buffer, results []Result, _ bool) error {
	figures := Figures(results)
	at := map[string]int{}
	var order []string
	for i := range figures {
		l := figures[i].labels()
		if _, ok := at[l]; !ok {
			order = append(order, l)
		}
		at[l] = i
	}
	for _, m := range metrics() {
		head := false
		for _, l := range order {
			v, ok := m.value(&figures[at[l]])
			if !ok {
				continue
			}
			if !head {
				fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name)
				head = true
			}
			fmt.Fprintf(b, "%s{%s} %s\n", m.name, l, strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	return nil
}

// labels tell a figure from all others of a machine, in the format's escapes.
func (f *Figure) labels() string {
	root := ""
	if f.Root != nil {
		root = strconv.Itoa(*f.Root)
	}
	predicted := ""
	if f.Foretold() {
		predicted = "true"
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var all []string
	for _, l := range [][2]string{
		{"op", f.Op}, {"bytes", sizeIf(&f.Result, f.asked())}, {"scope", f.Scope}, {"algorithm", f.wanted()}, {"engine", f.Engine}, {"link", f.Link}, {"memory", f.Memory},
		{"dtype", f.Dtype}, {"redop", f.Redop}, {"root", root}, {"ranks", positive(f.Ranks)}, {"nodes", positive(f.Nodes)}, {"groups", strconv.Itoa(max(f.Groups, 1))},
		{"in_place", strconv.FormatBool(f.InPlace)}, {"mode", f.Mode}, {"predicted", predicted},
	} {
		if l[1] != "" {
			all = append(all, fmt.Sprintf(`%s="%s"`, l[0], escape.Replace(name(l[1]))))
		}
	}
	return strings.Join(all, ",")
}
