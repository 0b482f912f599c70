package imports

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"busbw/reports"
)

// pasted is a table that a person wrote: sizes, and times with their units
// under the names of what was compared.
type pasted struct {
	line    int
	columns []string
	sizes   []int64
	times   [][]float64 // s
}

var (
	pastedSize = regexp.MustCompile(`(?i)^(\d{1,9}(?:\.\d{1,3})?)\s?(b|k|m|g|kb|mb|gb|kib|mib|gib)\b`)
	pastedTime = regexp.MustCompile(`(\d{1,9}(?:\.\d{1,9})?)\s?(ns|us|µs|ms|s)\b`)
)

func (s *stream) pastedTable(t []byte) (taken bool, err error) {
	if len(t) > 300 {
		return false, nil
	}
	if (t[0] == 's' || t[0] == 'S') && len(t) > 5 && strings.EqualFold(string(t[:4]), "size") {
		f := strings.Fields(strings.ReplaceAll(string(t), "|", " "))
		if !strings.EqualFold(f[0], "size") || len(f) < 2 || len(f) > 9 || headerWords[f[1]] || strings.Contains(string(t), ":") {
			return false, nil
		}
		if err := s.finish(); err != nil {
			return true, err
		}
		err := s.endOthers()
		s.table = &pasted{line: s.Lines, columns: f[1:]}
		return true, err
	}
	p := s.table
	if p == nil || t[0] < '0' || t[0] > '9' || len(p.sizes) == maxRows {
		return false, nil
	}
	m := pastedSize.FindSubmatch(t)
	if m == nil {
		return false, nil
	}
	var times []float64
	for _, d := range pastedTime.FindAllSubmatch(t[len(m[0]):], 10) {
		v, err := strconv.ParseFloat(string(d[1]), 64)
		if err != nil {
			return false, nil
		}
		times = append(times, v*map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1}[string(d[2])])
	}
	if len(times) != len(p.columns) {
		return false, nil
	}
	n, _ := strconv.ParseFloat(string(m[1]), 64)
	unit := map[byte]float64{'b': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30}[m[2][0]|0x20]
	p.sizes = append(p.sizes, int64(n*unit))
	p.times = append(p.times, times)
	return true, nil
}

// finish gives a world and its records for each column.
func (p *pasted) finish(s *stream) error {
	if p == nil || len(p.sizes) == 0 {
		return nil
	}
	for c, name := range p.columns {
		w := World{Run: s.run(), Tool: "a pasted table: " + name, Rows: len(p.sizes), Line: p.line, Groups: 1, Beside: 1, State: NoSummary,
			Notes: []string{"written by hand: neither operation nor ranks are told; K and M are taken as powers of 1024"}}
		for i, size := range p.sizes {
			r := reports.Result{Run: w.Run, Op: "unknown", Engine: strings.ToLower(name), Bytes: size, Groups: 1, Aggregate: 1,
				Source: "imported: a pasted table", Seconds: []float64{p.times[i][c]}, Stated: &reports.Stated{}}
			if err := s.give(p.line, &r); err != nil {
				return err
			}
			if i == 0 || p.times[i-1][c] <= 0 {
				continue
			}
			if grew, more := p.times[i][c]/p.times[i-1][c], float64(size)/float64(max(p.sizes[i-1], 1)); grew > 5 && grew > 2*more {
				w.Notes = append(w.Notes, fmt.Sprintf("a cliff: from %d to %d B, %.0f× the data, the time grows %.0f×: a stall (buffers, credits, delayed acknowledgements), not a bandwidth", p.sizes[i-1], size, more, grew))
			}
		}
		s.world(w)
	}
	return nil
}
