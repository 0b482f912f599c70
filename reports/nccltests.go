package reports

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// The text of nccl-tests 2.17.3 and later, so that every reader of its logs
// reads ours: same lines, widths and words, 13 columns a row. Of the words that
// readers search for, "bandwidth", "FAILED", "out-of-place" and "Out of bounds
// values" stand where nccl-tests has them and nowhere else, except that a
// failed size says FAILED, because nccl-tests would have ended in its place.
// N/A stands for what we do not have: a half that was not measured, the
// bandwidth of one rank or of wrong data, and the count of an unchecked size.

// halves are the two figures of one row; nil where not measured.
type halves struct{ out, in *Figure }

// ncclTests writes one text for each test: what one call of an nccl-tests
// program measures.
func ncclTests(b *bytes.Buffer, results []Result, _ bool) error {
	figures := Figures(results)
	byTest := map[string][]*Figure{}
	var order []string
	for i := range figures {
		k := figures[i].test()
		if byTest[k] == nil {
			order = append(order, k)
		}
		byTest[k] = append(byTest[k], &figures[i])
	}
	for _, k := range order {
		oneTest(b, byTest[k])
	}
	return nil
}

// test is the same for figures that differ in size and place only, and in the
// algorithm where that was chosen for each size, as NCCL does.
func (f *Figure) test() string {
	r := f.Result
	r.Bytes, r.InPlace, r.Algorithm = 0, false, f.wanted()
	return r.key()
}

func oneTest(b *bytes.Buffer, figures []*Figure) {
	f := figures[0]
	for _, g := range figures {
		if g.Timed {
			f = g
			break
		}
	}
	title := strings.ReplaceAll(name(f.Op), " ", "_") + "_perf"
	rows := pair(figures)
	fmt.Fprintf(b, "# Collective test starting: %s\n", title)
	fmt.Fprintf(b, "# nThread 1 nGpus 1 minBytes %d maxBytes %d step: %s warmup iters: %d iters: %d agg iters: %d validation: %d graph: 0 unalign: 0\n",
		rows[0].bytes(), rows[len(rows)-1].bytes(), step(rows), f.Warmup, f.iterations(), max(f.Aggregate, 1), validation(figures))
	fmt.Fprintf(b, "# %s: engine %s, algorithm %s, scope %s, link %s, %s, %s; times: %s\n",
		name(f.Source), name(f.Engine), name(f.wanted()), name(f.Scope), name(f.Link), name(f.Mode), f.groups(), f.timeIs())
	fmt.Fprint(b, "#\n# Using devices\n")
	devices(b, f)
	b.WriteString("#\n" +
		"#                                                              out-of-place                       in-place          \n")
	heads := "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s \n"
	fmt.Fprintf(b, heads, "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong")
	fmt.Fprintf(b, heads, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "")
	var sum float64
	var wrong int64
	var n int
	for _, h := range rows {
		if !h.timed() {
			continue
		}
		f := h.any()
		redop, root := "none", "-1"
		if f.Redop != "" {
			redop = name(f.Redop)
		}
		if f.Root != nil {
			root = strconv.Itoa(*f.Root)
		}
		fmt.Fprintf(b, "%12d  %12d  %8s  %6s  %6s%s%s\n", f.Bytes, f.Count, name(f.Dtype), redop, root, half(h.out), half(h.in))
		for _, f := range []*Figure{h.out, h.in} {
			if f == nil {
				continue
			}
			if f.Wrong != nil {
				wrong += *f.Wrong
			}
			if bus, ok := f.Busbw(); ok {
				sum += bus
				n++
			}
		}
	}
	verdict, mean := "OK", "nan"
	if wrong > 0 {
		verdict = "FAILED"
	}
	if n > 0 {
		// The plain mean of all sizes and both halves, as nccl-tests has it.
		mean = fmt.Sprintf("%.6g", sum/float64(n))
	}
	fmt.Fprintf(b, "# Out of bounds values : %d %s\n# Avg bus bandwidth    : %s \n#\n# Collective test concluded: %s\n#\n", wrong, verdict, mean, title)
	for _, f := range figures {
		for _, err := range f.Faults {
			fmt.Fprintf(b, "# error: FAILED %s %s: %s\n", f.sizeBytes(), name(f.Algorithm), prose(err.Error()))
		}
	}
	b.WriteByte('\n')
}

// pair joins the out-of-place and in-place figures of each size, by size. A
// second figure of a size and place (the launches of an automatic algorithm
// may differ in it) has a row of its own.
func pair(figures []*Figure) []halves {
	var rows []halves
	at := map[int64]int{}
	for _, f := range figures {
		i, ok := at[f.Bytes]
		if !ok || f.InPlace && rows[i].in != nil || !f.InPlace && rows[i].out != nil {
			i = len(rows)
			at[f.Bytes] = i
			rows = append(rows, halves{})
		}
		if f.InPlace {
			rows[i].in = f
		} else {
			rows[i].out = f
		}
	}
	slices.SortStableFunc(rows, func(a, b halves) int { return int(min(max(a.bytes()-b.bytes(), -1), 1)) })
	return rows
}

func (h halves) any() *Figure {
	if h.out != nil {
		return h.out
	}
	return h.in
}

func (h halves) bytes() int64 { return h.any().Bytes }

func (h halves) timed() bool { return h.out != nil && h.out.Timed || h.in != nil && h.in.Timed }

// half is four columns: time, algbw, busbw, #wrong.
func half(f *Figure) string {
	us, alg, bus, wrong := "N/A", "N/A", "N/A", "N/A"
	if f != nil && f.Timed {
		us = fit(f.Stats.Median*1e6, 7)
		if v, ok := f.Algbw(); ok {
			alg = fit(v, 6)
		}
		if v, ok := f.Busbw(); ok {
			bus = fit(v, 6)
		}
		if f.Wrong != nil {
			wrong = fmt.Sprintf("%.6g", float64(*f.Wrong))
		}
	}
	return fmt.Sprintf("  %7s  %6s  %6s  %6s", us, alg, bus, wrong)
}

// fit is v with the most decimals, at most 2, that fit the width; an exponent
// where none do.
func fit(v float64, width int) string {
	for decimals := 2; decimals >= 0; decimals-- {
		if s := strconv.FormatFloat(v, 'f', decimals, 64); len(s) <= width {
			return s
		}
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}

// step names the sweep's step as the banner does; nccl-tests prints its
// default of 1 MiB for a sweep of one size.
func step(rows []halves) string {
	if len(rows) < 2 || rows[0].bytes() < 1 {
		return "1048576(bytes)"
	}
	a, b := rows[0].bytes(), rows[1].bytes()
	if len(rows) > 2 && rows[2].bytes()-b == b-a {
		return fmt.Sprintf("%d(bytes)", b-a)
	}
	return fmt.Sprintf("%d(factor)", b/a)
}

// validation is how many checking iterations the banner tells of.
func validation(figures []*Figure) int {
	for _, f := range figures {
		if f.Wrong != nil {
			return 1
		}
	}
	return 0
}

// maxDevices bounds the list of devices; nccl-tests cuts its list too.
const maxDevices = 4096

// devices lists the ranks in their global order, node by node, in the shape
// that readers take. A record names neither process nor bus address: the line
// has no "Pid", as that of nccl-tests 1 had none, and the brackets hold where
// the buffers are.
func devices(b *bytes.Buffer, f *Figure) {
	total := f.Ranks * max(f.Groups, 1)
	per := total
	if f.Nodes > 0 && total%f.Nodes == 0 {
		per = total / f.Nodes
	}
	for rank := range min(total, maxDevices) {
		node, local := rank/per, rank%per
		group := map[string]int{"intra": node, "cross": local}[f.Scope]
		host := "unknown"
		if node < len(f.Hosts) {
			host = shortHost(f.Hosts[node])
		}
		fmt.Fprintf(b, "#  Rank %2d Group %2d on %10s device %2d [%s] memory\n", rank, group, host, local, cmp.Or(name(f.Memory), "unknown"))
	}
	if total > maxDevices {
		b.WriteString("#  ...\n")
	}
}

// shortHost is a host's name up to its first dot, as nccl-tests cuts it; an
// address stays whole. The readers split at blanks.
func shortHost(host string) string {
	host = strings.ReplaceAll(name(host), " ", "_")
	if net.ParseIP(host) == nil {
		host, _, _ = strings.Cut(host, ".")
	}
	if host == "" {
		return "unknown"
	}
	return host
}
