package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"

	"busbw/coordinator"
	"busbw/reports"
)

// launcher starts launches on a cluster one after another. A node that ends
// one is left out of the next, and reported.
type launcher struct {
	cluster *cluster
	errs    io.Writer
	id      string // of the run
	ranks   int    // on each node; 0: as each offers
	next    int    // launch
	lost    []reports.Finding
}

// mostLost is after how many lost nodes a launcher gives up.
const mostLost = 8

// launch runs do on a launch over members, again without the node to blame
// where one fails. It returns who took part in the last one.
func (l *launcher) launch(ctx context.Context, members []coordinator.Member, req *coordinator.Request, do func(ctx context.Context, s *coordinator.Sweep) error) ([]coordinator.Member, error) {
	for {
		if len(members) == 0 {
			return nil, errors.New("no node is left to measure")
		}
		nodes, err := coordinator.PlanNodes(members, l.ranks)
		if err != nil {
			return members, err
		}
		err = l.once(ctx, members, nodes, req, do)
		var fail *coordinator.Failure
		if !errors.As(err, &fail) || ctx.Err() != nil || len(l.lost) == mostLost {
			return members, err
		}
		culprit := fail.Node
		if fail.Suspect >= 0 {
			culprit = fail.Suspect
		}
		fmt.Fprintf(l.errs, "%v; going on without node %s\n", err, nodes[culprit].Host)
		l.lost = append(l.lost, reports.Finding{
			ID: "launch", Verdict: reports.Fail, Node: nodes[culprit].Host, Subject: "ranks of this node", Got: "a launch ended because of it",
			Want: "that it takes part", Evidence: []reports.Evidence{{From: "launch", Value: fail.Error()}},
			Remedy: "look at that node's worker and its link; the other nodes were measured without it",
		})
		members = slices.Delete(slices.Clone(members), culprit, culprit+1)
	}
}

func (l *launcher) once(ctx context.Context, members []coordinator.Member, nodes []coordinator.PlanNode, req *coordinator.Request, do func(ctx context.Context, s *coordinator.Sweep) error) (err error) {
	token := make([]byte, 32)
	rand.Read(token)
	number := l.next
	l.next++
	session, err := l.cluster.Start(ctx, members, coordinator.Plan{Run: l.id, Launch: number, Nodes: nodes, Settings: req.Settings, NCCL: req.NCCL})
	for tries := 0; err != nil && ctx.Err() == nil && tries < 2; tries++ {
		// A worker may not have heard of this coordinator yet, or still be ending the launch before.
		if perr := pause(ctx, settle); perr != nil {
			return perr
		}
		session, err = l.cluster.Start(ctx, members, coordinator.Plan{Run: l.id, Launch: number, Nodes: nodes, Settings: req.Settings, NCCL: req.NCCL})
	}
	if err != nil {
		return err
	}
	defer func() {
		if cerr := session.Close(); err == nil {
			err = cerr
		}
	}()
	sweep := &coordinator.Sweep{Run: l.id, Launch: number, Nodes: nodes, Source: "busbw " + version, Token: token}
	if _, err := sweep.Open(ctx, session, req); err != nil {
		return err
	}
	return do(ctx, sweep)
}
