package imports

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"busbw/collectives"
	"busbw/reports"
)

// json reads the JSON reports of nccl-tests (-J), rccl-tests (-Z json) and
// perftest (--out_json); several may follow each other.
func (s *source) json(in *bufio.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, maxJSON+1))
	if len(text) > maxJSON {
		return fmt.Errorf("%s: more than %d MiB of JSON", s.Name, maxJSON>>20)
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	s.Lines = bytes.Count(text, []byte("\n")) + 1
	if bytes.Contains(text, []byte("test_info")) {
		return s.perfJSON(text)
	}
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	rest := &table{}
	for {
		var doc json.RawMessage
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		at := 1 + bytes.Count(text[:min(int(d.InputOffset()), len(text))], []byte("\n"))
		if err != nil {
			// A report that was cut off has whole results before the cut.
			s.warn(at, "not whole JSON: %v", err)
			if err := s.cutJSON(text); err != nil {
				return err
			}
			break
		}
		var head ncclJSON
		if json.Unmarshal(doc, &head) == nil && (head.Config != nil || head.Results != nil) {
			if err := head.records(s, at); err != nil {
				return err
			}
			continue
		}
		var any any
		if json.Unmarshal(doc, &any) == nil {
			rest.walk(any, 0)
		}
	}
	if err := rest.records(s); err != nil {
		return err
	}
	if len(s.Worlds) == 0 {
		s.warn(1, "JSON without a result that busbw knows: want nccl-tests' -J, rccl-tests' -Z json or perftest's --out_json")
	}
	return nil
}

// cutJSON reads a report of nccl-tests that ends in the middle, up to its last
// whole result.
func (s *source) cutJSON(text []byte) error {
	if !bytes.Contains(text, []byte(`"results"`)) {
		return nil
	}
	for end, tries := len(text), 0; tries < 64; tries++ {
		end = bytes.LastIndexByte(text[:end], '}')
		if end < 0 {
			return nil
		}
		var head ncclJSON
		if json.Unmarshal(append(bytes.Clone(text[:end+1]), "]}"...), &head) == nil && len(head.Results) > 0 {
			head.cut = true
			return head.records(s, s.Lines)
		}
	}
	return nil
}

// ncclJSON is nccl-tests' report, versions 1 to 3. Of its environment only
// NCCL's own variables are kept: it holds the whole one, secrets too.
type ncclJSON struct {
	Version     int      `json:"version"`
	Start       string   `json:"start_time"`
	Args        []string `json:"args"`
	Env         []string `json:"env"`
	NCCLVersion int64    `json:"nccl_version"`
	Config      *struct {
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
	} `json:"config"`
	Results []ncclJSONRow `json:"results"`
	Bounds  *struct {
		Count int64 `json:"count"`
		OK    any   `json:"okay"`
	} `json:"out_of_bounds"`
	Average  *ncclJSONMean `json:"average_bus_bandwidth"`
	Average1 *ncclJSONMean `json:"average_bus_bandwidith"` // as 2.17.3 to 2.17.8 spell it
	Errors   []any         `json:"errors"`
	cut      bool
}

type ncclJSONMean struct {
	Bandwidth  loose `json:"bandwidth"`
	Bandwidth1 loose `json:"bandwidith"`
	OK         any   `json:"okay"`
}

type ncclJSONRow struct {
	Size, Count int64
	Type, Redop string
	Root        any
	Out         *ncclJSONHalf `json:"out_of_place"`
	In          *ncclJSONHalf `json:"in_place"`
	OutIter     *ncclJSONIter `json:"out_of_place_per_iter"`
	InIter      *ncclJSONIter `json:"in_place_per_iter"`
	Iterations  int64         `json:"actual_iterations"`
	Experiment  string        `json:"experiment_name"`
}

type ncclJSONHalf struct {
	Time    loose `json:"time"`
	CPUTime loose `json:"cpu_time"`
	Alg     loose `json:"alg_bw"`
	Bus     loose `json:"bus_bw"`
	Wrong   loose `json:"nwrong"`
}

type ncclJSONIter struct {
	Skipped int64       `json:"skipped_iterations"`
	Times   []loose     `json:"times_us"`
	PerProc [][]float64 `json:"per_process_max_times_us"`
}

// loose is a number that may be a word ("nan") or null.
type loose struct{ number }

func (l *loose) UnmarshalJSON(b []byte) error {
	b = bytes.Trim(b, `" `)
	n, ok := parse(b)
	if !ok && string(b) != "null" && string(b) != "" {
		return nil // a word that stands for no number
	}
	n.exp = -6 // printed with six decimals
	l.number = n
	return nil
}

// records turns a report into the same group of rows that a text becomes.
func (j *ncclJSON) records(s *source, line int) error {
	l := newLog(s)
	st := l.stream("")
	g := st.open()
	g.line, g.cut, g.version = line, j.cut, map[string]string{}
	g.layout = layout{half: [][]string{{"time", "algbw", "busbw", "#wrong"}, {"time", "algbw", "busbw", "#wrong"}}}
	if c, ok := parseCommand([]byte(strings.Join(j.Args, " "))); ok {
		g.cmd = c
	}
	if j.NCCLVersion > 0 {
		g.version["nccl_version"] = versionText(j.NCCLVersion)
	}
	for _, e := range j.Env {
		if k, v, ok := strings.Cut(e, "="); ok && (strings.HasPrefix(k, "NCCL_") || strings.HasPrefix(k, "RCCL_")) && len(l.nccl.env) < 4*maxKept && len(v) < 1024 {
			l.nccl.env[k], l.nccl.seen[k] = v, v
			l.nccl.where[k] = "env"
		}
	}
	if c := j.Config; c != nil {
		g.banners = append(g.banners, banner{min: c.Min, max: c.Max, warmup: c.Warmup, iters: c.Iterations, agg: c.Aggregated, gpus: -1})
		g.mode = map[string]string{"1": "barrier-timed", "3": "barrier"}[c.Blocking.String()]
		for _, d := range c.Devices {
			if len(g.devices) < maxRanks && d.Rank >= 0 && d.Rank < maxRanks {
				g.devices = append(g.devices, device{rank: d.Rank, group: d.Group, pid: d.Pid, index: d.Device, host: strings.TrimSpace(d.Hostname), bus: d.Hex, name: d.Info})
			}
		}
	}
	for i := range j.Results {
		r := &j.Results[i]
		if r.Size < 0 || r.Count < 0 || len(g.rows) == maxRows {
			continue
		}
		if g.op == "" && strings.HasSuffix(r.Experiment, "_perf") {
			g.op = opName(r.Experiment)
		}
		g.rows = append(g.rows, r.row(line))
	}
	if j.Bounds != nil {
		g.bounds = append(g.bounds, bounds{max(j.Bounds.Count, 0), fmt.Sprint(j.Bounds.OK) == "false", len(g.rows)})
	}
	for _, m := range []*ncclJSONMean{j.Average, j.Average1} {
		if m == nil {
			continue
		}
		n := m.Bandwidth.number
		if !n.ok {
			n = m.Bandwidth1.number
		}
		g.means = append(g.means, mean{value: n})
	}
	if len(j.Errors) > 0 {
		g.err = fmt.Sprint(j.Errors[0])
		g.err = g.err[:min(len(g.err), 300)]
	}
	l.began, _ = time.Parse("2006-01-02 15:04:05", j.Start)
	if err := st.finish(); err != nil {
		return err
	}
	l.nccl.report(s.Text)
	return nil
}

func (r *ncclJSONRow) row(line int) row {
	out := row{line: line, size: r.Size, count: r.Count, dtype: r.Type, redop: r.Redop, root: -1}
	if root, ok := integer([]byte(strings.TrimSpace(fmt.Sprint(r.Root)))); ok {
		out.root = max(root, -1)
	}
	if r.Iterations > 0 {
		out.iterations = r.Iterations
	}
	for h, x := range []*ncclJSONHalf{r.Out, r.In} {
		if x == nil {
			continue
		}
		y := &out.halves[h]
		y.there = true
		y.time, y.alg, y.bus, y.wrong = x.Time.number, x.Alg.number, x.Bus.number, x.Wrong.number
		if !y.time.ok {
			y.time = x.CPUTime.number
		}
		if it := []*ncclJSONIter{r.OutIter, r.InIter}[h]; it != nil {
			y.each = &iterations{samples: it.samples()}
		}
	}
	return out
}

// samples are the iterations' times in s, each the slowest process's where the
// report tells of all, without those that the test skipped.
func (it *ncclJSONIter) samples() (out []float64) {
	n := len(it.Times)
	for _, p := range it.PerProc {
		n = min(n, len(p))
	}
	for i := int(min(max(it.Skipped, 0), int64(n))); i < n; i++ {
		t := it.Times[i].v
		for _, p := range it.PerProc {
			t = math.Max(t, p[i])
		}
		if it.Times[i].ok && t > 0 && t < 1e15 {
			out = append(out, t/1e6)
		}
	}
	return out
}

// table gathers rows from JSON objects of any shape that name a size and a
// time: rccl-tests' and those of other tools that rewrite its text.
type table struct {
	rows []reports.Result
}

const maxDepth = 16

func (t *table) walk(v any, depth int) {
	if depth > maxDepth || len(t.rows) >= maxRows {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			t.walk(e, depth+1)
		}
	case map[string]any:
		if t.object(v) {
			return
		}
		for _, k := range sorted(v) {
			t.walk(v[k], depth+1)
		}
	}
}

// plainKey is a key's letters and digits in lower case.
func plainKey(k string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			return c
		}
		return -1
	}, k)
}

// object reads one row; false where it is none.
func (t *table) object(m map[string]any) bool {
	num, word := map[string]number{}, map[string]string{}
	for k, v := range m {
		k = plainKey(k)
		switch v := v.(type) {
		case float64:
			num[k] = number{v: v, ok: !math.IsNaN(v)}
		case bool:
			num[k] = number{v: map[bool]float64{true: 1}[v], ok: true}
		case string:
			word[k] = v
			if n, ok := parse([]byte(strings.TrimSpace(v))); ok {
				num[k] = n
			}
		}
	}
	first := func(names ...string) number {
		for _, n := range names {
			if v, ok := num[n]; ok && v.ok {
				return v
			}
		}
		return number{}
	}
	size, bus, us := first("size", "sizeb", "sizebytes", "bytes", "msgsize"), first("busbw", "busbwgbs", "busbandwidth"), first("time", "timeus", "timeinus", "latencyus")
	if !size.ok || !us.ok || !bus.ok || size.v < 0 || size.v > 1<<50 || us.v < 0 {
		return false
	}
	r := reports.Result{Op: "unknown", Engine: "rccl", Memory: "hip", Source: "imported: rccl-tests", Mode: "pipelined", Aggregate: 1, Groups: 1, Settled: true,
		Bytes: int64(size.v), Count: int64(first("count", "numelements", "elements").v), Dtype: word["type"] + word["dtype"], Redop: word["redop"],
		InPlace: first("inplace").v != 0, Seconds: []float64{us.v / 1e6}, Stated: &reports.Stated{Busbw: bus.pointer()}}
	if r.Redop == "none" {
		r.Redop = ""
	}
	if a := first("algbw", "algbwgbs"); a.ok {
		r.Stated.Algbw = &a.v
	}
	if w := first("wrong", "nwrong", "errors"); w.ok && w.v >= 0 {
		r.Wrong = new(int64(math.Min(w.v, 1<<62)))
	}
	if n := first("ranks", "nranks", "ngpus", "gpus"); n.ok && n.v >= 1 && n.v < maxRanks {
		r.Ranks = int(n.v)
	}
	if n := first("nodes", "nnodes"); n.ok && n.v >= 1 && n.v < maxRanks {
		r.Nodes = int(n.v)
	}
	for _, k := range []string{"name", "test", "collective", "coll"} {
		if op, err := collectives.ParseOp(opName(word[k])); err == nil {
			r.Op = op.String()
		}
	}
	t.rows = append(t.rows, r)
	return true
}

func (t *table) records(s *source) error {
	if len(t.rows) == 0 {
		return nil
	}
	w := World{Run: s.run(), Tool: "rccl-tests", Rows: len(t.rows), Groups: 1, Beside: 1, State: NoSummary, Line: 1, Notes: []string{"rows from JSON objects; the report has no summary"}}
	for i, r := range t.rows {
		r.Run = w.Run
		if r.Op != "unknown" {
			w.Op, w.OpFrom = r.Op, "named in the text"
		}
		if i == 0 && r.Ranks > 0 {
			w.Ranks, w.RanksFrom = [2]int{r.Ranks, r.Ranks}, "listed"
		}
		w.Failed = w.Failed || r.Wrong != nil && *r.Wrong > 0
		if err := s.give(1, &r); err != nil {
			return err
		}
	}
	s.world(w)
	return nil
}
