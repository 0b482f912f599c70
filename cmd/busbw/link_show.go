package main

import (
	"fmt"
	"io"
	"strings"

	"busbw/reports"
)

// linkScreen shows link tests, a row as soon as it is measured.
type linkScreen struct {
	out  io.Writer
	live bool
	kind string // of the last row: another kind begins with a heading
}

func (s *linkScreen) row(r reports.Result) {
	if !s.live {
		return
	}
	lat := strings.HasSuffix(r.Op, "_lat")
	if r.Op != s.kind {
		s.kind = r.Op
		fmt.Fprintf(s.out, "\n%s, queue pairs: %s, depth %s\n", r.Op, r.Config["queue_pairs"], r.Config["depth"])
		for _, n := range r.Notes {
			fmt.Fprintf(s.out, "  %s\n", n)
		}
		if lat {
			fmt.Fprintf(s.out, "%-32s %10s %10s %10s %10s %10s %10s %10s\n", "PAIR", "BYTES", "min us", "MEDIAN us", "±95 %", "p99 us", "p99.9 us", "max us")
		} else {
			fmt.Fprintf(s.out, "%-32s %10s %10s %8s %10s %10s %10s %8s\n", "PAIR", "BYTES", "GB/s", "±95 %", "Gb/s", "MB/s", "Mmsg/s", "SHARE")
		}
	}
	st, _ := reports.Describe(r.Seconds)
	width := "—"
	if st.Interval != nil && st.Median > 0 {
		width = fmt.Sprintf("%.1f %%", 100*max(st.Interval[1]-st.Median, st.Median-st.Interval[0])/st.Median)
	}
	pair := strings.Join(r.Hosts, " - ")
	if lat {
		fmt.Fprintf(s.out, "%-32.32s %10d %10.2f %10.2f %10s %10s %10s %10.2f\n", pair, r.Bytes, st.Min*1e6, st.Median*1e6, width, micros(r.Seconds, 0.99), micros(r.Seconds, 0.999), st.Max*1e6)
		return
	}
	share := "—"
	gbps := float64(r.Bytes) / st.Median / 1e9
	if r.Limit != nil {
		share = fmt.Sprintf("%.1f %%", 100*gbps/r.Limit.GBps)
	}
	fmt.Fprintf(s.out, "%-32.32s %10d %10.3f %8s %10.2f %10.1f %10.3f %8s\n", pair, r.Bytes, gbps, width, 8*gbps, 1000*gbps, 1e-6/st.Median, share)
}

func micros(sample []float64, p float64) string {
	if v, ok := reports.Percentile(sample, p); ok {
		return fmt.Sprintf("%.2f", v*1e6)
	}
	return "—"
}
