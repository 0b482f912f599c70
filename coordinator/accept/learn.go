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
// limit is the median less what chance takes off it, at least margin of it, and
// at most half (or margin, where that is more).
func Learn(name string, results []reports.Result, margin float64) (*Profile, error) {
	p := &Profile{Name: name, Title: "learned from known-good results"}
	if len(results) == 0 {
		return nil, fmt.Errorf("%w %s: no results to learn from", ErrProfile, name)
	}
	hosts := results[len(results)-1].Hosts
	source := fmt.Sprintf("learned from %d nodes (%.60s), run %s", len(hosts), strings.Join(hosts, " "), results[len(results)-1].Run)
	type key struct{ test, scope, memory, engine, link string }
	largest := map[key]reports.Result{}
	for _, r := range results {
		k := key{r.Op, r.Scope, r.Memory, r.Engine, r.Link}
		if r.Scope == pairs.Scope || len(r.Seconds) == 0 || r.Error != "" || r.Wrong != nil && *r.Wrong > 0 || r.Source == "" {
			continue
		}
		if !slices.Contains([]string{"intra", "cross", "global"}, r.Scope) {
			continue
		}
		if _, err := collectives.ParseOp(r.Op); err != nil {
			continue
		}
		if old, ok := largest[k]; !ok || r.Bytes > old.Bytes {
			largest[k] = r
		}
	}
	var ks []key
	for k := range largest {
		ks = append(ks, k)
	}
	slices.SortFunc(ks, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.test, b.test), cmp.Compare(a.scope, b.scope), cmp.Compare(a.memory, b.memory), cmp.Compare(a.engine, b.engine), cmp.Compare(a.link, b.link))
	})
	for _, k := range ks {
		r := largest[k]
		op, _ := collectives.ParseOp(r.Op)
		p.Ranks = max(p.Ranks, r.Ranks*r.Groups/max(1, r.Nodes))
		var vs []float64
		for _, s := range r.Seconds {
			if v, ok := busbw(op, r.Ranks, r.Bytes, s); ok {
				vs = append(vs, v)
			}
		}
		if r.Scope == "intra" {
			vs = append(vs, groups(&r, op)...)
		}
		if len(vs) == 0 {
			continue
		}
		l := Limit{Test: r.Op, Scope: r.Scope, Memory: limitMemory(r.Memory), Engine: r.Engine, Ranks: r.Ranks, Bytes: Size(r.Bytes), AtLeast: lower(vs, margin), Unit: "GB/s", Source: source}
		if slices.Contains([]string{"verbs", "tcp", "memory"}, r.Link) {
			l.Link = r.Link
		}
		p.Limits = append(p.Limits, l)
	}
	p.Limits = append(p.Limits, learnDevices(results, source, margin)...)
	if t, _, err := pairs.FromResults(results); err == nil {
		rep, err := pairs.Judge(t, pairs.Limits{})
		if err != nil {
			return nil, err
		}
		if len(rep.Culprits) > 0 && len(t.Nodes) >= fewest {
			c := rep.Culprits[0]
			return nil, fmt.Errorf("%w %s: these results are not those of good nodes: %s: %s", ErrProfile, name, c.Kind, c.Subject())
		}
		in := Input{Results: results, Table: t}
		for _, lv := range rep.Levels {
			var vs []float64
			for _, s := range t.Bandwidth {
				if s.Way == lv.Way {
					vs = append(vs, s.Value)
				}
			}
			l := Limit{Test: "pair", Memory: limitMemory(in.memory()), Bytes: Size(pairBytes(results)), AtLeast: lower(vs, margin), Unit: "GB/s", Source: source}
			if lv.Way == pairs.Both {
				l.Test = "pair both ways"
			}
			if slices.Contains([]string{"verbs", "tcp"}, in.link()) {
				l.Link = in.link()
			}
			p.Limits = append(p.Limits, l)
		}
	}
	if len(p.Limits) == 0 {
		return nil, fmt.Errorf("%w %s: nothing in these results can be a limit: want busbw run, pairs or accept results of good nodes", ErrProfile, name)
	}
	return p, p.check()
}

// limitMemory is how a limit calls the memory of a result.
func limitMemory(memory string) string {
	if inGPU(memory) {
		return "device"
	}
	return memory
}

// learnDevices makes a limit of each test of devices that were alike; where a
// node has several kinds, the slowest sets it.
func learnDevices(results []reports.Result, source string, margin float64) (out []Limit) {
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
	for _, r := range twins {
		l := Limit{Test: strings.ReplaceAll(r.Op, "_", " "), Memory: limitMemory(r.Memory), Bytes: Size(r.Bytes), AtLeast: lower(by[twin(r)], margin), Unit: "GB/s", Source: source}
		if i := slices.IndexFunc(out, func(o Limit) bool { return o.Test == l.Test && o.Memory == l.Memory }); i < 0 {
			out = append(out, l)
		} else if l.AtLeast < out[i].AtLeast {
			out[i] = l
		}
	}
	return out
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

// lower is the median less 3.5 robust standard deviations, at least margin and
// at most half of it, with three significant digits.
func lower(vs []float64, margin float64) float64 {
	mid := reports.Median(vs)
	var dev []float64
	for _, v := range vs {
		dev = append(dev, math.Abs(v-mid))
	}
	v := mid - max(min(oddDev*1.4826*reports.Median(dev), mid/2), margin*mid)
	scale := math.Pow(10, math.Floor(math.Log10(v))-2)
	short, err := strconv.ParseFloat(strconv.FormatFloat(math.Floor(v/scale)*scale, 'g', 3, 64), 64)
	if err != nil { // cannot be: it was formatted here
		return v
	}
	return short
}

// YAML is the profile as a file.
func (p *Profile) YAML() ([]byte, error) { return yaml.Marshal(p) }
