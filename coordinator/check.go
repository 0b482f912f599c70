package coordinator

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"busbw/reports"
)

// NodeCheck is a worker's answer to PathCheck.
type NodeCheck struct {
	Findings []reports.Finding `json:"findings"`
	Facts    map[string]string `json:"facts"` // what should be equal on all nodes, or on none
	Time     time.Time         `json:"time"`  // the node's clock, when it answered
}

// MaxWatch is the longest time between two readings of counters that a worker
// is asked for.
const MaxWatch = time.Minute

// nodePatience is how long a node may take to look at itself: drivers that
// have to start GPUs first are slow.
const nodePatience = 2 * time.Minute

// Bounds on what a node's answer may hold.
const (
	maxFindings = 1 << 14
	maxFacts    = 1 << 10
)

// CheckNodes has every member check itself, all at once, and compares what
// should be equal. gbps is the rate that RDMA ports should have; 0: not known.
// A node that does not answer is a finding, and so is a clock that is off.
// done (nil: none) is told of every answer.
func (c *Cluster) CheckNodes(ctx context.Context, members []Member, watch time.Duration, gbps float64, done func(node string, err error)) ([]reports.Finding, error) {
	nodes, err := PlanNodes(members, 1)
	if err != nil {
		return nil, err
	}
	path := PathCheck + "?" + url.Values{"watch": {min(watch, MaxWatch).String()}, "gbps": {strconv.FormatFloat(gbps, 'g', -1, 64)}}.Encode()
	answers := make([]NodeCheck, len(members))
	errs := make([]error, len(members))
	skew := make([]clockReading, len(members))
	within, cancel := context.WithTimeout(ctx, watch+nodePatience*time.Duration(1+len(members)/64))
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	few := make(chan struct{}, 64)
	for i, m := range members {
		wg.Go(func() {
			few <- struct{}{}
			defer func() { <-few }()
			r := newRemote(c.id, "node "+nodes[i].Host, m)
			defer r.close()
			if errs[i] = r.first(within, http.MethodGet, path, nil, &answers[i]); errs[i] == nil {
				skew[i], errs[i] = r.clock(within)
			}
			if done != nil {
				mu.Lock()
				done(nodes[i].Host, errs[i])
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	var out []reports.Finding
	var facts []NodeFacts
	for i := range members {
		name := nodes[i].Host
		if errs[i] != nil {
			out = append(out, reports.Finding{ID: "node-answer", Verdict: reports.Fail, Node: name, Subject: "worker", Got: "did not answer: " + errs[i].Error(), Want: "an answer",
				Evidence: []reports.Evidence{{From: "HTTPS " + members[i].API.String(), Value: errs[i].Error()}}, Remedy: "is the node up, its worker running and reachable?"})
			continue
		}
		a := answers[i]
		for _, f := range a.Findings[:min(len(a.Findings), maxFindings)] {
			f.Node = name // whatever it says
			if !slices.Contains([]reports.Verdict{reports.Pass, reports.Warn, reports.Fail, reports.NA}, f.Verdict) {
				f.Verdict = reports.Unknown
			}
			out = append(out, f)
		}
		if len(a.Facts) > maxFacts {
			a.Facts = nil
		}
		facts = append(facts, NodeFacts{name, members[i].Machine, a.Facts})
		out = append(out, skew[i].finding(name))
	}
	return append(out, Agree(facts)...), ctx.Err()
}

// clockReading is how far a node's clock was ahead of ours, and how far that
// may be wrong: half of the time that the question took.
type clockReading struct{ ahead, unsure time.Duration }

// maxSkew is how far clocks may differ: logs of nodes must be comparable.
const maxSkew = 100 * time.Millisecond

// clock asks for a node's time a few times and keeps the quickest answer.
func (r *remote) clock(ctx context.Context) (best clockReading, err error) {
	for i := range 4 {
		var info struct {
			Time time.Time `json:"time"`
		}
		before := time.Now()
		if err := r.call(ctx, http.MethodGet, PathTime, nil, &info); err != nil {
			return best, err
		}
		rtt := time.Since(before)
		if i == 0 || rtt/2 < best.unsure {
			best = clockReading{info.Time.Sub(before.Add(rtt / 2)), rtt / 2}
		}
	}
	return best, nil
}

func (k clockReading) finding(node string) reports.Finding {
	f := reports.Finding{ID: "clock-offset", Verdict: reports.Pass, Node: node, Subject: "clock", Want: "within " + maxSkew.String() + " of this machine's"}
	f.Got = fmt.Sprintf("%s ahead of this machine's, ±%s", k.ahead.Round(time.Microsecond), k.unsure.Round(time.Microsecond))
	f.Evidence = []reports.Evidence{{From: "HTTPS " + PathTime, Value: f.Got}}
	switch off := k.ahead.Abs(); {
	case off > maxSkew+k.unsure:
		f.Verdict, f.Remedy = reports.Warn, "run chrony or ntpd on every node; times of its log and of others cannot be compared (measurements do not need it)"
	case off+k.unsure > maxSkew && k.unsure > maxSkew:
		f.Verdict = reports.Unknown
	}
	return f
}
