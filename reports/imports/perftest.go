package imports

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"busbw/reports"
)

// perftest is one run of a test of linux-rdma's perftest.
type perftest struct {
	line    int
	op      string // "write_bw", "send_lat", …
	both    bool   // bidirectional: rates are the sum of both directions
	info    map[string]string
	gpu     string // device name, where GPU memory is used; "?" for one without name
	columns []string
	unit    float64 // GB/s of one of the printed rate's units
	unitIs  string
	rows    [][]number
	failed  string // why there is no row
	clocks  int    // warnings about the CPU's frequency
}

var (
	perfTitle   = regexp.MustCompile(`^(RDMA_Write(?:_With_Imm)?|RDMA_Read|Send|Atomic\S*|RDMA_Atomic|Raw \w+)\s+(?:\S+\s+)?(Bidirectional )?(?:Post List )?(?:\S+\s+)?(BW|Latency|BW_Test|Latency_Test)\b`)
	perfCommand = regexp.MustCompile(`\bib_(write|read|send|atomic)_(bw|lat)\b`)
	perfKey     = regexp.MustCompile(`([A-Za-z][\w ./*-]{0,40}?)\s*:\s*(\S{1,100})`)
	perfUnit    = regexp.MustCompile(`\[(MB|MiB|GB|GiB|Gb|Mb|KB|KiB)/s(?:ec)?\]`)
	perfColumn  = regexp.MustCompile(`#bytes|#sl|#iterations|BW peak|BW average|MsgRate|t_min|t_max|t_typical|t_avg|t_stdev|99\.9+%|99%|tps average|CPU_Util`)
	errnoWord   = regexp.MustCompile(`with error=(\d{1,5})`)
	cudaName    = regexp.MustCompile(`device name = \[([^\]]{0,100})\]?`)
)

// perfUnits is GB/s of each unit: perftest's M is 2^20 bytes under either name,
// its Gb 1e9 bits.
var perfUnits = map[string]float64{"MB": 1048576 / 1e9, "MiB": 1048576 / 1e9, "GB": 1.073741824, "GiB": 1.073741824, "KB": 1024 / 1e9, "KiB": 1024 / 1e9, "Gb": 1.0 / 8, "Mb": 1e-3 / 8}

// perftest takes the lines of a perftest run.
func (s *stream) perftest(t []byte) (taken bool, err error) {
	if c := t[0]; c != 'R' && c != 'S' && c != 'A' { // no title
	} else if m := perfTitle.FindSubmatch(t); m != nil {
		if err := s.startPerf(); err != nil {
			return true, err
		}
		s.perf.op = perfOp(string(m[1]), string(m[3]))
		s.perf.both = len(m[2]) > 0
		return true, nil
	}
	p := s.perf
	switch {
	case bytes.HasPrefix(t, []byte("#bytes")) && perfColumn.Match(t):
		if p == nil || p.columns != nil {
			if err := s.startPerf(); err != nil {
				return true, err
			}
			p = s.perf
		}
		for _, c := range perfColumn.FindAll(t, 20) {
			p.columns = append(p.columns, string(c))
		}
		if m := perfUnit.FindSubmatch(t); m != nil {
			p.unit, p.unitIs = perfUnits[string(m[1])], string(m[1])+"/s"
		}
		return true, nil
	case bytes.HasPrefix(t, []byte("Couldn't allocate MR")):
		if p == nil || p.failed != "" || len(p.rows) > 0 {
			if err := s.startPerf(); err != nil {
				return true, err
			}
			p = s.perf
		}
		p.failed = mrFailure(t, p.gpu)
		return true, nil
	case bytes.HasPrefix(t, []byte("initializing CUDA")) || bytes.Contains(t, []byte("allocated GPU buffer")) || bytes.HasPrefix(t, []byte("creating CUDA Ctx")):
		if p == nil || p.failed != "" {
			if err := s.startPerf(); err != nil {
				return true, err
			}
			p = s.perf
		}
		if p.gpu == "" {
			p.gpu = "?"
		}
		return true, nil
	case bytes.Contains(t, []byte("device name = [")):
		if m := cudaName.FindSubmatch(t); m != nil {
			if p == nil || p.failed != "" {
				if err := s.startPerf(); err != nil {
					return true, err
				}
				p = s.perf
			}
			p.gpu = strings.TrimSpace(string(m[1]))
			return true, nil
		}
	case bytes.Contains(t, []byte("Conflicting CPU frequency")):
		if p != nil {
			p.clocks++
		}
		return true, nil
	}
	if p == nil {
		return false, nil
	}
	if len(p.columns) > 0 && (t[0] >= '0' && t[0] <= '9') {
		if row := p.row(fields(t, s.buf[:])); row != nil {
			s.keep(&p.rows, row)
			return true, nil
		}
	}
	if p.columns == nil && bytes.IndexByte(t, ':') > 0 && !bytes.Contains(t, []byte("Test ")) && len(p.info) < maxKept {
		return p.keys(t), nil
	}
	if len(p.columns) > 0 && len(p.rows) == 0 && (bytes.Contains(t, []byte("Failed status")) || bytes.Contains(t, []byte("ompletion with error"))) {
		p.failed = strings.TrimSpace(string(t[:min(len(t), 200)]))
	}
	return bytes.HasPrefix(t, []byte("-----")) || perfCommand.Match(t), nil
}

func (s *stream) startPerf() error {
	if err := s.finish(); err != nil {
		return err
	}
	err := s.endOthers()
	s.perf = &perftest{line: s.Lines, info: map[string]string{}}
	return err
}

// perfOp names a test as its program is named, without ib_.
func perfOp(verb, kind string) string {
	verb = strings.ToLower(strings.TrimPrefix(verb, "RDMA_"))
	verb, _, _ = strings.Cut(verb, " ")
	return verb + map[bool]string{true: "_bw", false: "_lat"}[strings.HasPrefix(kind, "BW")]
}

// keys reads the "Key : value" pairs of a line.
func (p *perftest) keys(t []byte) bool {
	if i := bytes.Index(t, []byte("GID:")); i == 0 {
		name := "local_gid"
		if p.info[name] != "" {
			name = "remote_gid"
		}
		if a, ok := decimalGID(strings.TrimSpace(string(t[4:]))); ok {
			p.info[name] = a
		}
		return true
	}
	found := false
	for _, m := range perfKey.FindAllSubmatch(t, 8) {
		k := strings.ToLower(strings.TrimSpace(string(m[1])))
		switch k {
		case "device", "number of qps", "transport type", "connection type", "mtu", "link type", "gid index", "tx depth", "rx depth", "outstand reads", "dual-port", "data ex. method":
			p.info[strings.NewReplacer(" ", "_", ".", "", "-", "_").Replace(k)] = strings.TrimSuffix(string(m[2]), "[B]")
			found = true
		case "using srq", "pcie relax order", "lock-free", "ibv_wr* api", "using enhanced reorder", "cq moderation", "cqe poll batch", "max inline data", "rdma_cm qps", "use rocm memory", "local address", "remote address":
			found = true
		}
	}
	return found
}

// decimalGID reads a GID that perftest prints as 16 decimal octets.
func decimalGID(s string) (string, bool) {
	parts := strings.Split(s, ":")
	if len(parts) != 16 {
		return "", false
	}
	var a [16]byte
	for i, p := range parts {
		n, ok := integer([]byte(p))
		if !ok || n > 255 || n < 0 {
			return "", false
		}
		a[i] = byte(n)
	}
	return netip.AddrFrom16(a).String(), true
}

// row reads a line of numbers under the header; nil where it is none.
func (p *perftest) row(f [][]byte) []number {
	if len(f) < 3 || len(f) > len(p.columns)+4 {
		return nil
	}
	row := make([]number, len(f))
	for i, tok := range f {
		n, ok := parse(tok)
		if !ok {
			return nil
		}
		row[i] = n
	}
	return row
}

func mrFailure(t []byte, gpu string) string {
	m := errnoWord.FindSubmatch(t)
	where := "memory registration failed"
	if gpu != "" || m != nil && (string(m[1]) == "14" || string(m[1]) == "93") {
		where = "GPU memory registration failed"
	}
	switch {
	case m != nil && string(m[1]) == "12":
		return "memory registration failed (ENOMEM): the locked-memory limit; see ulimit -l"
	case m != nil && string(m[1]) == "14":
		return where + " (error 14, EFAULT): no peer-memory module took the address; load nvidia_peermem, or use --use_cuda_dmabuf"
	case m != nil && string(m[1]) == "93":
		return where + " (error 93, EPROTONOSUPPORT): kernel, GPU driver or HCA driver do not register dma-buf"
	case m != nil:
		return where + " (error " + string(m[1]) + ")"
	case strings.Contains(gpu, "GeForce"):
		return where + ": the driver has no GPUDirect RDMA for GeForce; that the module is loaded does not help"
	case vGPU.MatchString(gpu):
		return where + ": a vGPU (" + gpu + ") has no peer memory without passthrough"
	case gpu != "":
		return where + ": the peer-memory module is absent, or was built against another RDMA stack; that lsmod lists it proves nothing"
	}
	return where + ": without an error number; GPU memory, or the locked-memory limit"
}

var vGPU = regexp.MustCompile(`-\d+[ABCQ]$`)

// finish gives the run's records.
func (p *perftest) finish(s *stream) error {
	if p == nil || len(p.rows) == 0 && p.failed == "" && p.columns == nil {
		return nil // a title, or a GPU's name, and no test
	}
	s.held -= len(p.rows)
	w := World{Run: s.run(), Tool: "perftest", Op: p.op, OpFrom: "named in the text", Ranks: [2]int{2, 2}, RanksFrom: "a pair", Groups: 1,
		Rows: len(p.rows), Line: p.line, State: Complete, Beside: 1}
	switch {
	case len(p.rows) > 0:
	case p.failed != "":
		w.State, w.Error = Failed, p.failed
	default:
		w.State, w.Error = Hang, "header and no row: the other side never came, or the test was killed"
	}
	if p.clocks > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("the CPU's frequency was not at its maximum (%d warning%s): times are a little off; set the cpufreq governor to performance", p.clocks, map[bool]string{true: "s"}[p.clocks > 1]))
	}
	if d := p.info["device"]; strings.HasPrefix(d, "rxe") || strings.HasPrefix(d, "siw") {
		w.Notes = append(w.Notes, d+" is RDMA in software: not to be compared with an HCA")
	}
	if p.both {
		w.Notes = append(w.Notes, "bidirectional: the rate is the sum of both directions, up to twice the line rate")
	}
	base := reports.Result{Run: w.Run, Op: w.Op, Engine: "perftest", Scope: "cross", Link: "verbs", Memory: "host", Dtype: "uint8", Ranks: 2, Groups: 1,
		Mode: "pipelined", Aggregate: 1, Source: "imported: perftest", Config: p.info}
	if p.op == "" {
		base.Op = "unknown"
	}
	if strings.HasSuffix(p.op, "_lat") {
		base.Mode = "ping-pong"
	}
	if p.gpu != "" {
		base.Memory = "cuda"
		if p.gpu != "?" {
			base.Config["gpu"] = p.gpu
		}
	}
	if p.both {
		base.Config["bidirectional"] = "true"
	}
	if w.State == Failed || w.State == Hang {
		base.Error, base.Stated = w.Error, &reports.Stated{}
		if err := s.give(p.line, &base); err != nil {
			return err
		}
	}
	peaks := 0
	for _, row := range p.rows {
		r, noPeak := p.result(base, row)
		if noPeak {
			peaks++
		}
		if len(w.Notes) < maxRowNotes {
			if text := p.words(&r, row); text != "" {
				w.Notes = append(w.Notes, text)
			}
		}
		if err := s.give(p.line, &r); err != nil {
			return err
		}
	}
	if peaks > 0 {
		w.Notes = append(w.Notes, "peak 0.00 means not measured (duration mode, server side of a send test): absent in the record")
	}
	s.world(w)
	return nil
}

// get is a row's number in a column.
func (p *perftest) get(row []number, name string) (n number) {
	for i, c := range p.columns {
		if c == name && i < len(row) {
			return row[i]
		}
	}
	return number{}
}

// result is the record of a row.
func (p *perftest) result(base reports.Result, row []number) (r reports.Result, noPeak bool) {
	r = base
	r.Stated = &reports.Stated{Time: reports.StatedMean}
	r.Bytes = int64(math.Min(p.get(row, "#bytes").v, 1<<50))
	r.Count = r.Bytes
	r.Stated.Iterations = int64(math.Min(p.get(row, "#iterations").v, 1<<50))
	if avg := p.get(row, "BW average"); avg.ok {
		gbps := avg.v * p.unit
		r.Stated.Algbw = &gbps
		if gbps > 0 && r.Bytes > 0 {
			r.Seconds = []float64{float64(r.Bytes) / (gbps * 1e9)}
		}
		peak := p.get(row, "BW peak")
		if peak.v > 0 {
			r.Stated.Peak = new(peak.v * p.unit)
		}
		if rate := p.get(row, "MsgRate"); rate.v > 0 {
			r.Stated.MessageRate = new(rate.v * 1e6)
		}
		return r, !(peak.v > 0)
	}
	us := func(name string) *float64 { return micros(p.get(row, name)) }
	r.Stated.Min, r.Stated.Max, r.Stated.P50, r.Stated.Stdev = us("t_min"), us("t_max"), us("t_typical"), us("t_stdev")
	r.Stated.P99, r.Stated.P999 = us("99%"), us("99.9%")
	at := us("t_avg")
	if r.Stated.P50 != nil {
		at, r.Stated.Time = r.Stated.P50, reports.StatedMedian
	}
	if at != nil {
		r.Seconds = []float64{*at}
	}
	return r, false
}

// maxRowNotes bounds the rows of a run that are also told in words.
const maxRowNotes = 24

// words is the row in words, "" where it tells nothing.
func (p *perftest) words(r *reports.Result, row []number) (text string) {
	if r.Stated.Algbw == nil {
		if len(r.Seconds) == 0 {
			return ""
		}
		text = fmt.Sprintf("%s %d B: %.2f µs", r.Op, r.Bytes, r.Seconds[0]*1e6)
		if r.Stated.P99 != nil {
			text += fmt.Sprintf(", 99 %% %.2f µs", *r.Stated.P99*1e6)
		}
		return text
	}
	avg, gbps := p.get(row, "BW average"), *r.Stated.Algbw
	text = fmt.Sprintf("%s %d B: average %.2f Gb/s = %.2f GB/s", r.Op, r.Bytes, gbps*8, gbps)
	if p.unitIs != "Gb/s" {
		text += fmt.Sprintf(" (printed: %s %s, of 2^20 bytes)", strconv.FormatFloat(avg.v, 'f', -1, 64), p.unitIs)
	}
	if r.Stated.Peak != nil {
		text += fmt.Sprintf(", peak %.2f Gb/s", *r.Stated.Peak*8)
	}
	if rate := p.get(row, "MsgRate"); rate.v > 0 {
		if by := rate.v * 1e6 * float64(r.Bytes) / 1e9; p.unit > 0 && (by > gbps*1.02 || by < gbps*0.98) && rate.v > 1000*rate.slack() && avg.v > 100*avg.slack() {
			text += fmt.Sprintf("; but the message rate makes %.2f Gb/s of it: the unit is not what the header says", by*8)
		}
	}
	return text
}
