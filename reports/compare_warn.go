package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// warn says what keeps differences from being put down to one thing.
func (c *Comparison) warn(sides []Side) {
	for i := 1; i < len(sides); i++ {
		var set []string
		for _, d := range c.Differ {
			what := name(d.What)
			if slices.Contains(shape, d.What) {
				what = "nodes"
			}
			if !d.Follows && d.Values[0] != d.Values[i] {
				set = appendNew(set, what)
			}
		}
		if len(set) > 1 {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s differs from %s in %d things (%s): no difference between them can be put down to one of these",
				c.Sides[i].Label, c.Sides[0].Label, len(set), strings.Join(set, ", ")))
		}
		if n := both(sides[0].Results, sides[i].Results); n > 0 {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s and %s have %d launch%s in common: what is compared with itself cannot differ",
				c.Sides[0].Label, c.Sides[i].Label, n, map[bool]string{false: "es"}[n == 1]))
		}
		if gap := between(sides[0].Results, sides[i].Results); gap != "" && !forecasts(sides[0].Results) && !forecasts(sides[i].Results) {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s and %s were measured one after the other, %s apart: a change of the machine between them would look the same; busbw sweep measures settings in turn",
				c.Sides[0].Label, c.Sides[i].Label, gap))
		}
	}
	for i, s := range sides {
		for _, off := range switchedOff(s.Results[0].Config) {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %s", c.Sides[i].Label, off))
		}
	}
}

// both is how many launches of the same run two sets of records have.
func both(a, b []Result) (n int) {
	type launch struct {
		run    string
		number int
		begun  time.Time
		bytes  int64
		time   float64 // of its first iteration
	}
	of := func(r *Result) launch {
		l := launch{r.Run, r.Launch, r.Time, r.Bytes, 0}
		if len(r.Seconds) > 0 {
			l.time = r.Seconds[0]
		}
		return l
	}
	in := map[launch]bool{}
	for i := range a {
		in[of(&a[i])] = true
	}
	seen := map[[2]any]bool{}
	for i := range b {
		if len(b[i].Seconds) == 0 || !in[of(&b[i])] || seen[[2]any{b[i].Run, b[i].Launch}] {
			continue
		}
		seen[[2]any{b[i].Run, b[i].Launch}] = true
		n++
	}
	return n
}

// between is the time from the end of one set of records to the start of the
// other; "" where they overlap or have no times.
func between(a, b []Result) string {
	alo, ahi := period(a)
	blo, bhi := period(b)
	if alo.IsZero() || blo.IsZero() {
		return ""
	}
	gap := max(blo.Sub(ahi), alo.Sub(bhi))
	if gap < 0 {
		return ""
	}
	if gap < time.Minute {
		return gap.Round(time.Second).String()
	}
	return strings.TrimSuffix(gap.Round(time.Minute).String(), "0s")
}

// switches are the values of NCCL's variables that switch a transport off
// (NCCL's user guide, environment variables).
var switches = []struct{ name, values, what string }{
	{"NCCL_P2P_DISABLE", "1", "direct access between GPUs"},
	{"NCCL_P2P_LEVEL", "LOC 0", "direct access between GPUs"},
	{"NCCL_SHM_DISABLE", "1", "shared memory inside a node"},
	{"NCCL_IB_DISABLE", "1", "RDMA"},
	{"NCCL_NET_GDR_LEVEL", "LOC 0", "RDMA straight from GPU memory"},
}

// switchedOff says which settings switch a transport off.
func switchedOff(config map[string]string) (all []string) {
	for _, s := range switches {
		if v := config[s.name]; v != "" && slices.Contains(strings.Fields(s.values), v) {
			all = append(all, fmt.Sprintf("%s=%s switches %s off", s.name, v, s.what))
		}
	}
	return all
}

// forecasts says that none of the results was measured.
func forecasts(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return !r.Foretold() })
}
