package main

import (
	"context"
	"fmt"
	"sync"

	"busbw/coordinator"
	"busbw/reports"
)

// checks has every node check itself, and compares its devices with the
// profile. Where no node is what the profile is for, going on is pointless.
func (a *acceptRun) checks(ctx context.Context, members []coordinator.Member) ([]coordinator.Member, error) {
	wanted := a.flags.wanted
	gbps := 0.0
	if wanted != nil && wanted.NICs != nil {
		gbps = wanted.NICs.Gbps
	}
	found, err := a.cluster.CheckNodes(ctx, members, a.flags.watch, gbps, func(node string, err error) {
		if err != nil {
			fmt.Fprintf(a.errs, "%s: %v\n", node, err)
		}
	})
	if err != nil {
		return nil, err
	}
	a.in.Findings = append(a.in.Findings, found...)
	fits := 0
	topologies, errs := a.topologies(ctx, members)
	for i, m := range members {
		t := topologies[i]
		if err := errs[i]; err != nil {
			a.in.Findings = append(a.in.Findings, reports.Finding{ID: "hardware", Verdict: reports.Unknown, Node: m.Host, Subject: "devices", Got: err.Error(), Want: "an answer"})
			continue
		}
		a.in.Topologies = append(a.in.Topologies, t)
		if wanted == nil {
			continue
		}
		f, ok := wanted.Hardware(t)
		a.in.Findings = append(a.in.Findings, f...)
		if ok {
			fits++
		}
	}
	if wanted != nil && fits == 0 {
		return nil, &wrongProfile{pointless{fmt.Sprintf("no node is what profile %s is for: the rest would be pointless", wanted.Name), false}}
	}
	return nil, nil
}

// topologies asks all nodes how their devices are joined, many at once: a GPU
// driver takes a while.
func (a *acceptRun) topologies(ctx context.Context, members []coordinator.Member) ([]reports.Topology, []error) {
	out, errs := make([]reports.Topology, len(members)), make([]error, len(members))
	var wg sync.WaitGroup
	few := make(chan struct{}, 64)
	for i, m := range members {
		wg.Go(func() {
			few <- struct{}{}
			defer func() { <-few }()
			out[i], errs[i] = a.cluster.Topology(ctx, m)
		})
	}
	wg.Wait()
	return out, errs
}

// wrongProfile ends the acceptance.
type wrongProfile struct{ pointless }
