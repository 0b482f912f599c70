package imports

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"

	"busbw/reports"
)

// gloo is a table of gloo's benchmark.
type gloo struct {
	line      int
	algorithm string
	processes int64
	columns   []string
	toSecond  float64 // of the time columns' unit
	rows      [][]number
	ended     bool // the rule below the table is there
}

var (
	glooColumn = regexp.MustCompile(`size \(B\)|elements|min \([un]s\)|p50 \([un]s\)|p99 \([un]s\)|max \([un]s\)|avg \(GB/s\)|bandwidth \(GB/s\)|samples|iterations`)
	glooTitle  = regexp.MustCompile(`^(?:Algorithm:\s+)?((?i:cuda_)?(?i:allreduce|new_allreduce|allgather|allgatherv|broadcast|reduce|reduce_scatter|alltoall|barrier|gather|scatter|sendrecv|pairwise_exchange)(?i:_\w{1,40})?)$`)
	glooCount  = regexp.MustCompile(`processes=(\d{1,7})`)
)

// maxTitle is longer than any line that glooTitle matches.
const maxTitle = 100

// gloobench takes the lines of gloo's benchmark.
func (s *stream) gloobench(t []byte) (taken bool, err error) {
	switch {
	case t[0] > '9' && bytes.Contains(t, []byte("elements")) && bytes.Contains(t, []byte("p50 (")):
		if err := s.startGloo(); err != nil {
			return true, err
		}
		g := s.gloo
		g.toSecond = 1e-6
		if bytes.Contains(t, []byte("(ns)")) {
			g.toSecond = 1e-9
		}
		for _, c := range glooColumn.FindAll(t, 20) {
			name, _, _ := strings.Cut(string(c), " ")
			g.columns = append(g.columns, name)
		}
		return true, nil
	case bytes.HasPrefix(t, []byte("Options:")) && glooCount.Match(t):
		if err := s.startGloo(); err != nil {
			return true, err
		}
		s.gloo.processes, _ = integer(glooCount.FindSubmatch(t)[1])
		return true, nil
	case len(t) <= maxTitle && (t[0]|0x20 >= 'a' && t[0]|0x20 <= 's') && glooTitle.Match(t):
		if err := s.startGloo(); err != nil {
			return true, err
		}
		s.gloo.algorithm = strings.ToLower(string(glooTitle.FindSubmatch(t)[1]))
		return true, nil
	}
	g := s.gloo
	if g == nil {
		return false, nil
	}
	if t[0] == '=' && bytes.HasPrefix(t, []byte("=====")) {
		g.ended = g.ended || len(g.rows) > 0
		return true, nil
	}
	if len(g.columns) == 0 || t[0] < '0' || t[0] > '9' {
		return false, nil
	}
	f := fields(t, s.buf[:])
	if len(f) != len(g.columns) {
		return false, nil
	}
	row := make([]number, len(f))
	for i, tok := range f {
		n, ok := parse(tok)
		if !ok {
			return false, nil
		}
		row[i] = n
	}
	s.keep(&g.rows, row)
	return true, nil
}

// startGloo begins a table, or goes on with its heading.
func (s *stream) startGloo() error {
	if s.gloo != nil && len(s.gloo.columns) == 0 {
		return nil
	}
	if err := s.finish(); err != nil {
		return err
	}
	err := s.endOthers()
	s.gloo = &gloo{line: s.Lines}
	return err
}

// glooOps are our names of gloo's operations, by the beginning of its algorithms'.
var glooOps = []struct{ prefix, op string }{
	{"allreduce", "all_reduce"}, {"new_allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"broadcast", "broadcast"},
	{"reduce_scatter", "reduce_scatter"}, {"reduce", "reduce"}, {"alltoall", "alltoall"}, {"gather", "gather"}, {"scatter", "scatter"}, {"sendrecv", "sendrecv"},
}

func (g *gloo) finish(s *stream) error {
	if g == nil || len(g.columns) == 0 {
		return nil
	}
	s.held -= len(g.rows)
	w := World{Run: s.run(), Tool: "gloo benchmark", Rows: len(g.rows), Line: g.line, Groups: 1, Beside: 1, State: Complete}
	name := strings.TrimPrefix(g.algorithm, "cuda_")
	for _, o := range glooOps {
		if strings.HasPrefix(name, o.prefix) {
			w.Op, w.OpFrom = o.op, "named in the text"
			break
		}
	}
	if g.processes > 0 {
		w.Ranks, w.RanksFrom = [2]int{int(g.processes), int(g.processes)}, "listed"
	}
	base := reports.Result{Run: w.Run, Op: w.Op, Algorithm: name, Engine: "gloo", Memory: "host", Dtype: "float", Ranks: w.Ranks[0], Groups: 1,
		Mode: "pipelined", Aggregate: 1, Source: "imported: gloo benchmark"}
	if w.Op == "" {
		base.Op = "unknown"
		w.Notes = append(w.Notes, "the text does not name the operation")
	}
	if strings.HasPrefix(g.algorithm, "cuda_") {
		base.Memory = "cuda"
	}
	switch {
	case len(g.rows) == 0:
		w.State, w.Error = Hang, "header and no row: the first size never ended, or the job was killed"
		base.Error, base.Stated = w.Error, &reports.Stated{}
		if err := s.give(g.line, &base); err != nil {
			return err
		}
	case !g.ended:
		w.State = NoSummary
	}
	one := 0
	for _, row := range g.rows {
		r := g.result(base, row)
		if r.Stated.Iterations == 1 {
			one++
		}
		if err := s.give(g.line, &r); err != nil {
			return err
		}
	}
	if one > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("%d row%s of one sample: min, p50, p99 and max are the same number and say nothing of the spread", one, map[bool]string{true: "s"}[one > 1]))
	}
	if n := len(g.rows); n > 0 && !g.ended {
		w.Notes = append(w.Notes, fmt.Sprintf("the last size is %.0f elements and no rule ends the table: if the test did not stop by itself, the size after it never completed", g.get(g.rows[n-1], "elements").v))
	}
	s.world(w)
	return nil
}

func (g *gloo) get(row []number, column string) number {
	for i, c := range g.columns {
		if c == column && i < len(row) {
			return row[i]
		}
	}
	return number{}
}

func (g *gloo) result(base reports.Result, row []number) reports.Result {
	r := base
	r.Stated = &reports.Stated{Time: reports.StatedMedian}
	time := func(column string) *float64 {
		n := g.get(row, column)
		if !n.ok {
			return nil
		}
		return new(n.seconds(g.toSecond * 1e6))
	}
	elements := math.Min(g.get(row, "elements").v, 1<<48)
	r.Count, r.Bytes = int64(elements), int64(elements)*4
	if size := g.get(row, "size"); size.ok {
		r.Bytes = int64(math.Min(size.v, 1<<50))
	}
	r.Stated.Min, r.Stated.P50, r.Stated.P99, r.Stated.Max = time("min"), time("p50"), time("p99"), time("max")
	if r.Stated.P50 != nil {
		r.Seconds = []float64{*r.Stated.P50}
	}
	for _, c := range []string{"avg", "bandwidth"} { // gloo's GB is 2^30
		if n := g.get(row, c); n.ok && n.v > 0 {
			r.Stated.Algbw = new(n.v * 1.073741824)
		}
	}
	for _, c := range []string{"samples", "iterations"} {
		if n := g.get(row, c); n.ok {
			r.Stated.Iterations = int64(math.Min(n.v, 1<<50))
		}
	}
	return r
}
