package accept

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"busbw/collectives"
	"busbw/coordinator/pairs"
	"busbw/reports"
)

// Learn makes a profile of results from nodes that are known to be good: each
// limit is the median of what will be judged by it, less what chance takes off,
// at least margin of it, and at most half (or margin, where that is more). The
// warnings name limits that are low because the figures scatter.
func Learn(name string, results []reports.Result, margin float64) (*Profile, []string, error) {
	p := &Profile{Name: name, Title: "learned from known-good results"}
	if len(results) == 0 {
		return nil, nil, fmt.Errorf("%w %s: no results to learn from", ErrProfile, name)
	}
	hosts := results[len(results)-1].Hosts
	source := fmt.Sprintf("learned from %d nodes (%.60s), run %s", len(hosts), strings.Join(hosts, " "), results[len(results)-1].Run)
	var warnings []string
	add := func(l Limit, vs []float64, unsure float64) {
		var odd string
		if l.AtLeast, odd = lower(vs, unsure, margin); odd != "" {
			warnings = append(warnings, l.how()+": "+odd)
		}
		l.Unit, l.Source = "GB/s", source
		p.Limits = append(p.Limits, l)
	}
	type key struct {
		test, scope, memory, engine, link string
		ranks                             int
	}
	largest := map[key][]reports.Result{}
	for _, r := range results {
		k := key{r.Op, r.Scope, r.Memory, r.Engine, r.Link, r.Ranks}
		if r.Scope == pairs.Scope || len(r.Seconds) == 0 || r.Error != "" || r.Wrong != nil && *r.Wrong > 0 || r.Source == "" {
			continue
		}
		if !slices.Contains([]string{"intra", "cross", "global"}, r.Scope) {
			continue
		}
		if _, err := collectives.ParseOp(r.Op); err != nil {
			continue
		}
		switch old := largest[k]; {
		case old == nil || r.Bytes > old[0].Bytes:
			largest[k] = []reports.Result{r}
		case r.Bytes == old[0].Bytes:
			largest[k] = append(old, r)
		}
	}
	var ks []key
	for k := range largest {
		ks = append(ks, k)
	}
	slices.SortFunc(ks, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.test, b.test), cmp.Compare(a.scope, b.scope), cmp.Compare(a.memory, b.memory), cmp.Compare(a.engine, b.engine), cmp.Compare(a.link, b.link), cmp.Compare(a.ranks, b.ranks))
	})
	for _, k := range ks {
		r := largest[k][0]
		p.Ranks = max(p.Ranks, r.Ranks*r.Groups/max(1, r.Nodes))
		vs, unsure := judged(largest[k])
		if len(vs) == 0 {
			continue
		}
		l := Limit{Test: r.Op, Scope: r.Scope, Memory: limitMemory(r.Memory), Engine: r.Engine, Ranks: r.Ranks, Bytes: Size(r.Bytes)}
		if slices.Contains([]string{"verbs", "tcp", "memory"}, r.Link) {
			l.Link = r.Link
		}
		add(l, vs, unsure)
	}
	learnDevices(results, add)
	if t, _, err := pairs.FromResults(results); err == nil {
		rep, err := pairs.Judge(t, pairs.Limits{})
		if err != nil {
			return nil, nil, err
		}
		if len(rep.Culprits) > 0 && len(t.Nodes) >= fewest {
			c := rep.Culprits[0]
			return nil, nil, fmt.Errorf("%w %s: these results are not those of good nodes: %s: %s", ErrProfile, name, c.Kind, c.Subject())
		}
		in := Input{Results: results, Table: t}
		for _, lv := range rep.Levels {
			var vs []float64
			for _, s := range t.Bandwidth {
				if s.Way == lv.Way {
					vs = append(vs, s.Value)
				}
			}
			l := Limit{Test: "pair", Memory: limitMemory(in.memory()), Bytes: Size(pairBytes(results))}
			if lv.Way == pairs.Both {
				l.Test = "pair both ways"
			}
			if slices.Contains([]string{"verbs", "tcp"}, in.link()) {
				l.Link = in.link()
			}
			add(l, vs, 0)
		}
	}
	if len(p.Limits) == 0 {
		return nil, nil, fmt.Errorf("%w %s: nothing in these results can be a limit: want busbw run, pairs or accept results of good nodes", ErrProfile, name)
	}
	return p, warnings, p.check()
}

// judged are the figures that a limit learned of results of one test will be
// held against: each node's own where the groups are nodes, else each result's
// median. unsure is how far below their median one of them may be by chance,
// as far as its iterations tell.
func judged(rs []reports.Result) (vs []float64, unsure float64) {
	for i := range rs {
		r := &rs[i]
		op, err := collectives.ParseOp(r.Op)
		if err != nil {
			continue
		}
		if r.Scope == "intra" {
			own := slices.DeleteFunc(groups(r, op), func(v float64) bool { return v <= 0 })
			if vs = append(vs, own...); len(own) > 0 {
				continue
			}
		}
		s, ok := reports.Describe(r.Seconds)
		mid, okay := busbw(op, r.Ranks, r.Bytes, s.Median)
		if !ok || !okay {
			continue
		}
		vs = append(vs, mid)
		if s.Interval != nil {
			if low, ok := busbw(op, r.Ranks, r.Bytes, s.Interval[1]); ok {
				unsure = max(unsure, mid-low)
			}
		}
	}
	return vs, unsure
}

// limitMemory is how a limit calls the memory of a result.
func limitMemory(memory string) string {
	if inGPU(memory) {
		return "device"
	}
	return memory
}

// learnDevices adds a limit of each test of devices that were alike; where a
// node has several kinds, the slowest sets it.
func learnDevices(results []reports.Result, add func(l Limit, vs []float64, unsure float64)) {
	by := map[string][]float64{}
	var twins []*reports.Result
	for i := range results {
		r := &results[i]
		if r.Scope != deviceScope || deviceGBps(r) == 0 {
			continue
		}
		if by[twin(r)] == nil {
			twins = append(twins, r)
		}
		by[twin(r)] = append(by[twin(r)], deviceGBps(r))
	}
	for i, r := range twins {
		slower := func(o *reports.Result) bool {
			return o.Op == r.Op && limitMemory(o.Memory) == limitMemory(r.Memory) && reports.Median(by[twin(o)]) < reports.Median(by[twin(r)])
		}
		same := func(o *reports.Result) bool {
			return o.Op == r.Op && limitMemory(o.Memory) == limitMemory(r.Memory) && reports.Median(by[twin(o)]) == reports.Median(by[twin(r)])
		}
		if slices.ContainsFunc(twins, slower) || slices.ContainsFunc(twins[:i], same) {
			continue
		}
		add(Limit{Test: strings.ReplaceAll(r.Op, "_", " "), Memory: limitMemory(r.Memory), Bytes: Size(r.Bytes)}, by[twin(r)], 0)
	}
}

// pairBytes is the size of the bandwidth tests among pair tests.
func pairBytes(results []reports.Result) (n int64) {
	for _, r := range results {
		if r.Scope == pairs.Scope {
			n = max(n, r.Bytes)
		}
	}
	return n
}

// Margin is the least that a limit is below the median, without another wish.
const Margin = oddShare

// loose is the share of the median beyond which figures scatter so much that a
// limit from them says little.
const loose = 0.25

// lower is the median less 3.5 robust standard deviations or unsure, at least
// margin and at most half of it, with three significant digits. odd says that
// scatter made it low; "" where it did not.
func lower(vs []float64, unsure, margin float64) (limit float64, odd string) {
	mid := reports.Median(vs)
	var dev []float64
	for _, v := range vs {
		dev = append(dev, math.Abs(v-mid))
	}
	reach := max(oddDev*1.4826*reports.Median(dev), unsure)
	v := mid - max(min(reach, mid/2), margin*mid)
	if reach > loose*mid && reach > margin*mid {
		odd = fmt.Sprintf("figures from %.2f to %.2f GB/s scatter too much: the limit is %.0f %% below their median; measure again on an idle machine, longer (--time)", slices.Min(vs), slices.Max(vs), 100*(1-v/mid))
		if len(vs) == 1 {
			odd = fmt.Sprintf("one figure, %.2f GB/s, whose iterations scatter too much: the limit is %.0f %% below it; measure again on an idle machine, longer (--time)", mid, 100*(1-v/mid))
		}
	}
	scale := math.Pow(10, math.Floor(math.Log10(v))-2)
	short, err := strconv.ParseFloat(strconv.FormatFloat(math.Floor(v/scale)*scale, 'g', 3, 64), 64)
	if err != nil { // cannot be: it was formatted here
		return v, odd
	}
	return short, odd
}

// YAML is the profile as a file.
func (p *Profile) YAML() ([]byte, error) { return yaml.Marshal(p) }
