package imports

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// The lines of nccl-tests around its table.

// banner is the line of settings.
type banner struct {
	threads, gpus, min, max, step, factor, warmup, iters, agg, validation, graph int64
}

var bannerKeys = regexp.MustCompile(`(nThread|nGpus|minBytes|maxBytes|step|warmup iters|agg iters|iters|validation|graph):?\s+(\d{1,18})(\(\w+\))?`)

func parseBanner(line []byte) (b banner, ok bool) {
	if !bytes.Contains(line, []byte("nThread")) || !bytes.Contains(line, []byte("nGpus")) {
		return b, false
	}
	b = banner{threads: -1, gpus: -1, min: -1, max: -1, step: -1, factor: -1, warmup: -1, iters: -1, agg: -1, validation: -1, graph: -1}
	for _, m := range bannerKeys.FindAllSubmatch(line, 20) {
		n, _ := integer(m[2])
		if k := string(m[1]); k != "validation" && k != "graph" && bytes.HasSuffix(line, m[0]) {
			n = -1 // the line is cut, so the number may be
		}
		switch string(m[1]) {
		case "nThread":
			b.threads = n
		case "nGpus":
			b.gpus = n
		case "minBytes":
			b.min = n
		case "maxBytes":
			b.max = n
		case "step":
			if string(m[3]) == "(bytes)" {
				b.step = n
			} else {
				b.factor = n
			}
		case "warmup iters":
			b.warmup = n
		case "iters":
			b.iters = n
		case "agg iters":
			b.agg = n
		case "validation":
			b.validation = n
		case "graph":
			b.graph = n
		}
	}
	return b, true
}

// device is a rank's line.
type device struct {
	rank, group, pid, index int64 // pid −1: not told
	host, bus, name         string
}

var deviceLine = regexp.MustCompile(`Rank\s+(\d{1,7})\s+(?:Group\s+(\d{1,7})\s+)?(?:Pid\s+(\d{1,10})\s+)?(?:on\s+(.{1,300}?)\s+|uses\s+)device\s+(\d{1,5})\s+\[([^\]]{1,40})\]\s*(.{0,200})`)

func parseDevice(line []byte) (d device, ok bool) {
	if !bytes.Contains(line, []byte("Rank ")) || !bytes.Contains(line, []byte(" device ")) {
		return d, false
	}
	m := deviceLine.FindSubmatch(line)
	if m == nil {
		return d, false
	}
	d.rank, _ = integer(m[1])
	d.group, _ = integer(m[2])
	d.pid = -1
	if len(m[3]) > 0 {
		d.pid, _ = integer(m[3])
	}
	d.host = strings.Join(strings.Fields(string(m[4])), " ")
	d.index, _ = integer(m[5])
	d.bus, d.name = string(m[6]), strings.TrimSpace(string(m[7]))
	return d, true
}

var (
	outOfBounds = regexp.MustCompile(`Out of bounds values\s*:\s*(\d{1,18})\s*(OK|FAILED)?`)
	average     = regexp.MustCompile(`Avg bus bandwidth\s*:\s*(\S{1,30})(?:\s+(OK|FAILED))?`)
	program     = regexp.MustCompile(`\b(all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoallv|alltoall|all_to_allv?|gather|scatter|sendrecv|hypercube)_(?:perf|bench)\b`)
	starting    = regexp.MustCompile(`Collective test starting:\s*(\w{1,40})`)
	flagBytes   = regexp.MustCompile(`(?:^|\s)(?:-b|--minbytes)[ =]?\s*(\d+[KMGkmg]?)\b`)
	flagMax     = regexp.MustCompile(`(?:^|\s)(?:-e|--maxbytes)[ =]?\s*(\d+[KMGkmg]?)\b`)
	passedEnv   = regexp.MustCompile(`(?:-x|--env|-genv|export|env)\s+((?:NCCL|RCCL)_\w+)[= ]([^\s'"]+)`)
	testVersion = regexp.MustCompile(`nccl-tests version (\S+) nccl-headers=(\d+) nccl-library=(\d+)`)
	libVersion  = regexp.MustCompile(`\b(NCCL|RCCL) version\s*:?\s*(\d[\w.+-]*)`)
)

// opName is the record's name of an operation for a program's.
func opName(program string) string {
	op := strings.TrimSuffix(strings.TrimSuffix(program, "_perf"), "_bench")
	return strings.Replace(op, "all_to_all", "alltoall", 1)
}

// command is a line that calls a test program.
type command struct {
	op       string
	min, max int64             // -1: not told
	env      map[string]string // set for the ranks
}

func parseCommand(line []byte) (c command, ok bool) {
	m := program.FindSubmatch(line)
	if m == nil {
		return c, false
	}
	c = command{op: opName(string(m[1])), min: -1, max: -1, env: map[string]string{}}
	if m := flagBytes.FindSubmatch(line); m != nil {
		c.min = sizeOf(string(m[1]))
	}
	if m := flagMax.FindSubmatch(line); m != nil {
		c.max = sizeOf(string(m[1]))
	}
	for _, m := range passedEnv.FindAllSubmatch(line, 64) {
		c.env[string(m[1])] = string(m[2])
	}
	return c, true
}

// sizeOf reads nccl-tests' sizes: K, M, G are powers of 1024; -1 for no size.
func sizeOf(s string) int64 {
	shift := 0
	switch s[len(s)-1] | 0x20 {
	case 'k':
		shift = 10
	case 'm':
		shift = 20
	case 'g':
		shift = 30
	}
	if shift > 0 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil && shift == 0 {
		n, err = strconv.ParseInt(s, 10, 62)
	}
	if err != nil {
		return -1
	}
	return n << shift
}

// blocking is the timing mode that a notice of the banner tells of.
func blocking(line []byte) string {
	switch {
	case !bytes.Contains(line, []byte("Blocking Enabled")):
		return ""
	case bytes.Contains(line, []byte("not timed")) || bytes.Contains(line, []byte("untimed")):
		return "barrier"
	case bytes.Contains(line, []byte("barrier")):
		return "barrier-timed"
	}
	return "pipelined"
}

// versionText is NCCL's number as people write it: 22803 is 2.28.3, 2304 was 2.3.4.
func versionText(code int64) string {
	if code < 10000 {
		return strconv.FormatInt(code/1000, 10) + "." + strconv.FormatInt(code%1000/100, 10) + "." + strconv.FormatInt(code%100, 10)
	}
	return strconv.FormatInt(code/10000, 10) + "." + strconv.FormatInt(code%10000/100, 10) + "." + strconv.FormatInt(code%100, 10)
}
