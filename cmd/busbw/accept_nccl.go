package main

import (
	"context"
	"fmt"
	"slices"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/coordinator/accept"
	"busbw/reports"
)

// onNCCL measures what the profile's limits of NCCL in GPU memory ask for in
// some scopes, each at its own size, where every node has GPUs. Where that is
// not possible, why is a finding: the limits stay open.
func (a *acceptRun) onNCCL(ctx context.Context, members []coordinator.Member, scopes ...string) error {
	if a.flags.wanted == nil || !a.haveGPUs(members) {
		return nil
	}
	wanted := slices.DeleteFunc(slices.Clone(a.flags.wanted.Limits), func(l accept.Limit) bool {
		_, err := collectives.ParseOp(l.Test)
		return err != nil || l.Engine != "nccl" || !slices.Contains(scopes, l.Scope) || l.Nodes > len(members)
	})
	if len(wanted) == 0 {
		return nil
	}
	settings, err := coordinator.NCCLSettings()
	if err != nil {
		return err
	}
	req := *a.req
	req.Algorithms, req.InPlace, req.Engines, req.Memory = []string{"auto"}, []bool{false}, []string{"nccl"}, "gpu"
	req.Settings, req.NCCL = settings, coordinator.NCCLEnviron()
	_, err = a.launch(ctx, members, &req, func(ctx context.Context, s *coordinator.Sweep) error {
		for _, l := range wanted {
			if err := a.oneOnNCCL(ctx, s, req, l); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		a.in.Findings = append(a.in.Findings, reports.Finding{ID: "nccl", Verdict: reports.Unknown, Subject: "collectives on NCCL", Got: err.Error(), Want: "a measurement for the profile's limits",
			Remedy: "install NCCL on every node, or see busbw run --engine nccl"})
		return nil
	}
	return err
}

// oneOnNCCL measures what one limit is for.
func (a *acceptRun) oneOnNCCL(ctx context.Context, s *coordinator.Sweep, req coordinator.Request, l accept.Limit) error {
	op, err := collectives.ParseOp(l.Test)
	if err != nil {
		return err
	}
	bytes := int64(l.Bytes)
	if bytes == 0 {
		bytes = int64(a.flags.bytes)
	}
	req.Ops, req.Scopes, req.Sizes = []collectives.Op{op}, []string{l.Scope}, []int64{bytes}
	cases, _, err := req.Cases(s.Nodes)
	if err != nil {
		return fmt.Errorf("%s %s on NCCL: %w", l.Scope, l.Test, err)
	}
	for _, c := range cases {
		r, err := s.Measure(ctx, c)
		if err != nil {
			return err
		}
		if err := a.keep(r); err != nil {
			return err
		}
	}
	return nil
}

// haveGPUs says whether the tests of devices found CUDA devices on every node.
func (a *acceptRun) haveGPUs(members []coordinator.Member) bool {
	return !slices.ContainsFunc(members, func(m coordinator.Member) bool {
		return !slices.ContainsFunc(a.in.Results, func(r reports.Result) bool {
			return r.Scope == coordinator.DeviceScope && r.Op == coordinator.HostToDevice && r.Error == "" && slices.Contains(r.Hosts, m.Host)
		})
	})
}
