package main

import (
	"context"
	"fmt"

	"busbw/coordinator"
	"busbw/reports"
)

// checks compares every node's devices with the profile. Where no node is what
// the profile is for, going on is pointless.
func (a *acceptRun) checks(ctx context.Context, members []coordinator.Member) ([]coordinator.Member, error) {
	if a.flags.wanted == nil {
		return nil, &pointless{"no --profile says what the nodes should have"}
	}
	fits := 0
	for _, m := range members {
		t, err := a.cluster.Topology(ctx, m)
		if err != nil {
			a.in.Findings = append(a.in.Findings, reports.Finding{ID: "hardware", Verdict: reports.Unknown, Node: m.Host, Subject: "devices", Got: err.Error(), Want: "an answer"})
			continue
		}
		f, ok := a.flags.wanted.Hardware(t)
		a.in.Findings = append(a.in.Findings, f...)
		if ok {
			fits++
		}
	}
	if fits == 0 {
		return nil, &wrongProfile{pointless{fmt.Sprintf("no node is what profile %s is for: the rest would be pointless", a.flags.wanted.Name)}}
	}
	return nil, nil
}

// wrongProfile ends the acceptance.
type wrongProfile struct{ pointless }
