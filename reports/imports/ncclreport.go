package imports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// ncclReport is nccl-tests' JSON report, versions 1 to 3. Of its environment
// only NCCL's own variables are kept: it holds the whole one, secrets too.
type ncclReport struct {
	line    int
	args    []string
	env     map[string]string
	library int64 // NCCL's version
	config  ncclConfig
	told    bool // the configuration
	rows    []row
	op      string
	bounds  []bounds
	means   []mean
	err     string
	began   time.Time
}

type ncclConfig struct {
	Warmup     int64       `json:"warmup_iters"`
	Iterations int64       `json:"iterations"`
	Aggregated int64       `json:"aggregated_iterations"`
	Blocking   json.Number `json:"blocking_collectives"`
	Min        int64       `json:"minimum_bytes"`
	Max        int64       `json:"maximum_bytes"`
	Devices    []struct {
		Rank, Group, Pid, Device int64
		Hostname                 string
		Hex                      string `json:"device_hex"`
		Info                     string `json:"device_info"`
	} `json:"devices"`
}

// reportPart says that a member of this name makes an object a report.
func reportPart(name string) bool {
	switch name {
	case "config", "results", "out_of_bounds", "average_bus_bandwidth", "average_bus_bandwidith", "errors", "args", "env":
		return true
	}
	return false
}

// part takes a member of the report; what is not as it should be is passed over.
func (j *ncclReport) part(name string, v jsontext.Value) {
	switch name {
	case "config":
		j.told = json.Unmarshal(v, &j.config) == nil
	case "args":
		json.Unmarshal(v, &j.args)
	case "env":
		var all []string
		json.Unmarshal(v, &all)
		for _, e := range all {
			k, v, ok := strings.Cut(e, "=")
			if !ok || !strings.HasPrefix(k, "NCCL_") && !strings.HasPrefix(k, "RCCL_") || len(j.env) == 4*maxKept || len(k) > 64 || len(v) >= 1024 {
				continue
			}
			if j.env == nil {
				j.env = map[string]string{}
			}
			j.env[k] = v
		}
	case "out_of_bounds":
		var b struct {
			Count int64
			Okay  any
		}
		if json.Unmarshal(v, &b) == nil {
			j.bounds = append(j.bounds[:0], bounds{max(b.Count, 0), fmt.Sprint(b.Okay) == "false", len(j.rows)})
		}
	case "average_bus_bandwidth", "average_bus_bandwidith": // as 2.17.3 to 2.17.8 spell it
		var m struct {
			Bandwidth  loose
			Bandwidth1 loose `json:"bandwidith"`
			Okay       any
		}
		if json.Unmarshal(v, &m) == nil {
			n := m.Bandwidth.number
			if !n.ok {
				n = m.Bandwidth1.number
			}
			j.means = append(j.means[:0], mean{value: n, low: fmt.Sprint(m.Okay) == "false"})
		}
	case "errors":
		var all []any
		if json.Unmarshal(v, &all) == nil && len(all) > 0 {
			j.err = fmt.Sprint(all[0])
			j.err = strings.ToValidUTF8(j.err[:min(len(j.err), 300)], "")
		}
	}
}

// loose is a number that may be a word ("nan") or null.
type loose struct{ number }

func (l *loose) UnmarshalJSON(b []byte) error {
	n, _ := parse(bytes.Trim(b, `" `))
	l.number = sixDecimals(n)
	return nil
}

// sixDecimals is how precise the numbers of a report are, as printed or as
// another program rewrote them.
func sixDecimals(n number) number {
	n.exp = -6
	return n
}

// finish takes what stands in the report itself.
func (j *ncclReport) finish(o *object) {
	if n := o.num("ncclversion"); n.ok && n.v > 0 && n.v < 1e9 {
		j.library = int64(n.v)
	}
	j.began, _ = time.Parse("2006-01-02 15:04:05", o.word("starttime"))
}

// add takes a row of the report.
func (j *ncclReport) add(s *source, o *object) error {
	size, count := o.num("size"), o.num("count")
	if !size.ok || size.v < 0 || size.v > 1<<50 || count.v < 0 || count.v > 1<<50 {
		return nil
	}
	r := row{line: o.line, size: int64(size.v), count: int64(count.v), dtype: o.word("type"), redop: o.word("redop"), root: -1, halves: o.halves}
	if n := o.num("root"); n.ok && n.v >= 0 && n.v < maxRanks {
		r.root = int64(n.v)
	}
	if n := o.num("actualiterations"); n.ok && n.v >= 1 && n.v < 1<<50 {
		r.iterations = int64(n.v)
	}
	if name := o.word("experimentname"); j.op == "" && strings.HasSuffix(name, "_perf") {
		j.op = opName(name)
	}
	if len(j.rows) == maxRows {
		s.warn(o.line, "more than %d rows in one test: those that follow count as another", maxRows)
		rest := *j
		if err := j.records(s, true); err != nil {
			return err
		}
		*j = rest
		j.rows, j.bounds, j.means = nil, nil, nil
	}
	j.rows = append(j.rows, r)
	return nil
}

// records turns a report into the same group of rows that a text becomes.
func (j *ncclReport) records(s *source, cut bool) error {
	if !j.told && len(j.rows) == 0 {
		return nil // nothing of nccl-tests is in it
	}
	l := newLog(s)
	st := l.stream("")
	g := st.open()
	g.line, g.cut, g.version = j.line, cut, map[string]string{}
	g.layout = layout{half: [][]string{{"time", "algbw", "busbw", "#wrong"}, {"time", "algbw", "busbw", "#wrong"}}}
	if c, ok := parseCommand([]byte(strings.Join(j.args, " "))); ok {
		g.cmd = c
	}
	if j.library > 0 {
		g.version["nccl_version"] = versionText(j.library)
	}
	for k, v := range j.env {
		l.nccl.env[k], l.nccl.seen[k], l.nccl.where[k] = v, v, "env"
	}
	if c := &j.config; j.told {
		g.banners = append(g.banners, banner{min: c.Min, max: c.Max, warmup: c.Warmup, iters: c.Iterations, agg: c.Aggregated, gpus: -1})
		g.mode = map[string]string{"1": "barrier-timed", "3": "barrier"}[c.Blocking.String()]
		for _, d := range c.Devices {
			if len(g.devices) < maxRanks && d.Rank >= 0 && d.Rank < maxRanks {
				g.devices = append(g.devices, device{rank: d.Rank, group: d.Group, pid: d.Pid, index: d.Device, host: strings.TrimSpace(d.Hostname), bus: d.Hex, name: d.Info})
			}
		}
	}
	g.op, g.rows, g.bounds, g.means, g.err = j.op, j.rows, j.bounds, j.means, j.err
	l.began = j.began
	if err := st.finish(); err != nil {
		return err
	}
	l.nccl.report(s.Text)
	return nil
}

// half reads the figures of a row out of place or in place.
func (r *jsonReader) half(o *object, inPlace bool) error {
	in := &r.part
	in.members = in.members[:0]
	err := r.members(func(name string) error {
		if k := r.d.PeekKind(); k == '{' || k == '[' {
			return r.d.SkipValue()
		}
		return r.member(in, name)
	})
	h := &o.halves[map[bool]int{true: 1}[inPlace]]
	h.there = true
	h.time, h.alg, h.bus = sixDecimals(in.num("time", "cputime")), sixDecimals(in.num("algbw")), sixDecimals(in.num("busbw"))
	h.wrong = in.num("nwrong")
	return err
}

// iterations reads the times of a row's iterations: each the slowest process's
// where the report tells of all, without those that the test skipped.
func (r *jsonReader) iterations(o *object, inPlace bool) error {
	var times []float64
	in := &r.part
	in.members = in.members[:0]
	slowest := func(i int, us float64) {
		if i == len(times) {
			times = append(times, us)
		} else if i < len(times) {
			times[i] = math.Max(times[i], us)
		}
	}
	err := r.members(func(name string) error {
		switch k := r.d.PeekKind(); {
		case k == '[' && name == "times_us":
			return r.numbers(slowest)
		case k == '[' && name == "per_process_max_times_us":
			return r.list(func() error { return r.numbers(slowest) })
		case k == '{' || k == '[':
			return r.d.SkipValue()
		}
		return r.member(in, name)
	})
	h := &o.halves[map[bool]int{true: 1}[inPlace]]
	h.each = &iterations{least: in.num("minus"), most: in.num("maxus"), p99: in.num("p99us")}
	skip := min(int(in.num("skippediterations").v), len(times))
	for _, us := range times[skip:] {
		if us > 0 && us < 1e15 {
			h.each.samples = append(h.each.samples, us/1e6)
		}
	}
	return err
}

// numbers gives each of a list's numbers, with its place.
func (r *jsonReader) numbers(each func(i int, v float64)) error {
	v, err := r.d.ReadValue()
	if err != nil || v.Kind() != '[' {
		return err
	}
	v = v[1 : len(v)-1]
	for i := 0; len(v) > 0 && i < maxSamples; i++ {
		item, rest, _ := bytes.Cut(v, []byte(","))
		if n, _ := parse(bytes.TrimSpace(item)); n.ok {
			each(i, n.v)
		}
		v = rest
	}
	return nil
}

// maxSamples bounds the iterations of a row that are kept.
const maxSamples = 1 << 20
