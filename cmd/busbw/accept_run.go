package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/coordinator/accept"
	"busbw/coordinator/pairs"
	"busbw/reports"
)

// acceptRun is an acceptance on its way.
type acceptRun struct {
	*launcher
	flags *acceptFlags
	req   *coordinator.Request
	file  *resultFile
	until time.Time
	in    accept.Input
}

// run accepts nodes and writes the reports. What was done before an error or
// an interruption is judged and kept.
func (f *acceptFlags) run(ctx context.Context, out, errs io.Writer) error {
	req, err := f.request()
	if err != nil {
		return usageError{err}
	}
	req.Verb = "accept"
	id := newID()
	if f.out == "" {
		f.out = filepath.Join("acceptance", time.Now().Format("20060102-150405")+"-"+id)
	}
	f.output = filepath.Join(f.out, "results.jsonl.zst")
	return f.measuring(ctx, errs, id, f.come, func(c *cluster, file *resultFile) error { return f.on(ctx, c, file, id, req, out, errs) })
}

// on accepts workers that have come.
func (f *acceptFlags) on(ctx context.Context, c *cluster, file *resultFile, id string, req *coordinator.Request, out, errs io.Writer) error {
	a := &acceptRun{launcher: &launcher{cluster: c, errs: errs, id: id, ranks: f.ranks}, flags: f, req: req, file: file, until: time.Now().Add(f.budget)}
	a.in.Profile = f.wanted
	end := a.all(ctx)
	rep := accept.Judge(a.in)
	if err := f.write(out, errs, rep); err != nil {
		return err
	}
	switch {
	case errors.Is(end, context.Canceled):
		return errors.New("interrupted: this is what was found until then")
	case end != nil:
		return end
	case rep.Verdict == reports.Fail || rep.Verdict == reports.Unknown || len(rep.Failing()) > 0:
		return errFound
	}
	return nil
}

// come gathers the workers; fewer than --nodes are not an end.
func (f *acceptFlags) come(ctx context.Context, errs io.Writer) (*cluster, error) {
	if f.cluster.join == nil || f.nodes == 0 {
		return f.gather(ctx, errs)
	}
	c, err := f.cluster.enter(ctx, errs)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	ws, err := c.WaitWorkers(wait, f.nodes, func(have int) { fmt.Fprintf(errs, "%d of %s there\n", have, plural(f.nodes, "worker")) })
	if len(ws) == 0 || ctx.Err() != nil {
		c.Close()
		return nil, err
	}
	f.crowded(ws, errs)
	return &cluster{Cluster: c, members: ws, leave: c.Close}, nil
}

// all goes through the stages.
func (a *acceptRun) all(ctx context.Context) error {
	members := a.members()
	end := "" // why nothing more is begun
	for _, s := range []struct {
		name string
		run  func(context.Context, []coordinator.Member) ([]coordinator.Member, error)
	}{
		{"checks", a.checks},
		{devicesStage, a.devices},
		{"each node by itself", a.single},
		{"pairs", a.pairs},
		{"collectives", a.collectives},
	} {
		stage := accept.Stage{Name: s.name}
		switch {
		case end != "":
			stage.Why = end
			if s.name == devicesStage && a.bare() {
				stage.Why, stage.NA = bareNodes, true
			}
		case ctx.Err() != nil:
			stage.Why = "interrupted"
		case time.Now().After(a.until):
			stage.Why = fmt.Sprintf("the time budget of %s was used up", a.flags.budget)
		default:
			fmt.Fprintf(a.errs, "%s: %s\n", s.name, plural(len(members), "node"))
			began := time.Now()
			left, err := s.run(ctx, members)
			stage.Seconds = time.Since(began).Seconds()
			var no *pointless
			var wrong *wrongProfile
			if errors.As(err, &wrong) { // the checks themselves were done
				end, err = wrong.why, nil
			}
			stage.Ran = err == nil
			if err != nil {
				stage.Why = err.Error()
			}
			stage.NA = errors.As(err, &no) && no.na
			if left != nil {
				members = left
			}
			if err != nil && !errors.As(err, &no) && end == "" && !errors.Is(err, coordinator.ErrBudget) {
				// A stage that could not be carried out leaves the others their chance.
				fmt.Fprintf(a.errs, "%s: %v\n", s.name, err)
			}
		}
		a.in.Stages = append(a.in.Stages, stage)
		a.in.Findings = append(a.in.Findings, a.lost...)
		a.lost = nil
	}
	return ctx.Err()
}

const (
	devicesStage = "devices of each node"
	bareNodes    = "no node has an RDMA device or a GPU"
)

// bare says that every node told of its devices, and has none to test.
func (a *acceptRun) bare() bool {
	return len(a.in.Topologies) == len(a.cluster.members) && !accept.HaveDevices(a.in.Topologies)
}

// pointless is why a stage was not begun.
type pointless struct {
	why string
	na  bool // these nodes have nothing that it would measure
}

func (p *pointless) Error() string { return p.why }

// members names who came, and who should have.
func (a *acceptRun) members() []coordinator.Member {
	f := a.flags
	for _, m := range a.cluster.members {
		a.in.Nodes = append(a.in.Nodes, m.Host)
	}
	for _, e := range f.expect {
		if !slices.ContainsFunc(a.in.Nodes, func(n string) bool { return n == e || strings.HasPrefix(n, e+".") }) {
			a.in.Nodes = append(a.in.Nodes, e)
			a.in.Findings = append(a.in.Findings, reports.Finding{ID: "member", Verdict: reports.Fail, Node: e, Subject: "worker", Got: "it never joined", Want: "a member of the cluster",
				Remedy: "is the node up, and busbw worker running on it with the same secret?"})
		}
	}
	if n := len(a.cluster.members); n < f.nodes {
		a.in.Findings = append(a.in.Findings, reports.Finding{ID: "member", Verdict: reports.Fail, Subject: "workers", Got: fmt.Sprintf("%d came", n), Want: fmt.Sprintf("%d (--nodes)", f.nodes),
			Remedy: "busbw members shows who is there; --expect names who should be"})
	}
	return a.cluster.members
}

// devices measures each node's ports against themselves and its GPUs' copies,
// all nodes at once: what is slow here is slow everywhere, and no cable's fault.
func (a *acceptRun) devices(ctx context.Context, members []coordinator.Member) ([]coordinator.Member, error) {
	d := deviceRun{bytes: int(a.flags.bytes), time: a.flags.time}
	left, err := a.launch(ctx, members, a.req, func(ctx context.Context, s *coordinator.Sweep) error { return d.measure(ctx, s, a.keep) })
	a.in.NoDevices = d.none
	switch {
	case err != nil || d.n > 0:
	case a.bare():
		err = &pointless{bareNodes, true}
	default:
		err = &pointless{"no node has a port or a GPU that can be tested: " + d.why(), false}
	}
	return a.withPorts(left, d.none), err
}

// withPorts leaves out the nodes that have no RDMA port to use where others
// have: with them everything would go over TCP, and say nothing of the others.
func (a *acceptRun) withPorts(members []coordinator.Member, none map[string]map[string]string) []coordinator.Member {
	var with []coordinator.Member
	for _, m := range members {
		if none[m.Host][coordinator.NICLoopback] == "" {
			with = append(with, m)
		}
	}
	if len(with) == 0 || len(with) == len(members) {
		return members
	}
	for _, m := range members {
		if why := none[m.Host][coordinator.NICLoopback]; why != "" {
			fmt.Fprintf(a.errs, "node %s is left out of what follows, as others have RDMA: %s\n", m.Host, why)
			a.in.Findings = append(a.in.Findings, reports.Finding{ID: "nic-loopback", Verdict: reports.Fail, Node: m.Host, Subject: "RDMA ports", Got: why,
				Want:   fmt.Sprintf("a port that can be used, as on %d of %d nodes", len(with), len(members)),
				Remedy: "see what busbw check says of its ports and devices; the node was left out of all tests between nodes, which would else go over TCP"})
		}
	}
	return with
}

// single measures each node by itself, all at once.
func (a *acceptRun) single(ctx context.Context, members []coordinator.Member) ([]coordinator.Member, error) {
	for _, m := range members {
		if n := a.ranksOf(m); n < 2 {
			return nil, &pointless{fmt.Sprintf("node %s has one rank: nothing moves inside it", m.Host), !slices.ContainsFunc(members, func(m coordinator.Member) bool { return m.Ranks > 1 })}
		}
	}
	left, err := a.launch(ctx, members, a.req, func(ctx context.Context, s *coordinator.Sweep) error {
		return a.blocks(ctx, s, 1, collectives.AllReduce, int64(a.flags.bytes))
	})
	if err == nil {
		err = a.onNCCL(ctx, left, "intra")
	}
	return left, err
}

func (a *acceptRun) ranksOf(m coordinator.Member) int {
	if a.ranks > 0 {
		return a.ranks
	}
	return m.Ranks
}

// blocks measures one operation over all blocks of k nodes and keeps it.
func (a *acceptRun) blocks(ctx context.Context, s *coordinator.Sweep, k int, op collectives.Op, bytes int64) error {
	c, err := a.req.BlockCase(s.Nodes, k, op, bytes)
	if err != nil {
		return err
	}
	r, err := s.Measure(ctx, c)
	if err != nil {
		return err
	}
	return a.keep(r)
}

func (a *acceptRun) keep(r reports.Result) error {
	a.in.Results = append(a.in.Results, r)
	return a.file.write(r)
}

// pairs measures all pairs, and what looks slow again.
func (a *acceptRun) pairs(ctx context.Context, members []coordinator.Member) ([]coordinator.Member, error) {
	if len(members) < 2 {
		return nil, &pointless{"pairs need two nodes", len(a.cluster.members) < 2}
	}
	f := a.flags
	p := &pairRun{launcher: a.launcher, flags: &f.pairFlags, req: a.req, file: a.file, until: a.until}
	p.limits = func(link, memory string) pairs.Limits {
		l := f.wanted.PairLimits(link, memory, int64(f.bytes))
		if f.least > 0 || f.both > 0 {
			l = f.pairFlags.limits()
		}
		return l
	}
	left, err := p.measure(ctx, members)
	a.in.Table, a.in.Pairs = p.table, p.report
	a.in.Results = append(a.in.Results, p.all...)
	return left, err
}

// collectives measures growing blocks of the nodes that have not failed, up to
// all of them.
func (a *acceptRun) collectives(ctx context.Context, members []coordinator.Member) ([]coordinator.Member, error) {
	so := accept.Judge(a.in)
	bad := so.Quarantined()
	good := slices.DeleteFunc(slices.Clone(members), func(m coordinator.Member) bool {
		return slices.Contains(bad, m.Host)
	})
	if len(good) < 2 {
		return nil, &pointless{fmt.Sprintf("collectives need two nodes that have not failed, and there is %d", len(good)), len(a.cluster.members) < 2}
	}
	if n := len(members) - len(good); n > 0 {
		fmt.Fprintf(a.errs, "collectives: without %s that failed\n", plural(n, "node"))
	}
	_, err := a.launch(ctx, good, a.req, func(ctx context.Context, s *coordinator.Sweep) error {
		for _, op := range []collectives.Op{collectives.AllReduce, collectives.Broadcast, collectives.AllGather} {
			k := len(s.Nodes)
			if op == collectives.AllReduce {
				k = min(2, k)
			}
			for ; ; k = min(2*k, len(s.Nodes)) {
				if time.Now().After(a.until) {
					return coordinator.ErrBudget
				}
				if err := a.blocks(ctx, s, k, op, int64(a.flags.bytes)); err != nil {
					return err
				}
				if k == len(s.Nodes) {
					break
				}
			}
		}
		return nil
	})
	if err == nil {
		err = a.onNCCL(ctx, good, "cross", "global")
	}
	return nil, err
}

// write leaves the reports in --out, and prints one.
func (f *acceptFlags) write(out, errs io.Writer, rep *accept.Report) error {
	lines := func(names []string) func(io.Writer) error {
		return func(w io.Writer) error {
			for _, n := range names {
				if _, err := fmt.Fprintln(w, n); err != nil {
					return err
				}
			}
			return nil
		}
	}
	asJSON := func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(rep)
	}
	junit := func(w io.Writer) error { return reports.WriteFindings(w, "junit", rep.Findings()) }
	for name, write := range map[string]func(io.Writer) error{
		"passing_nodes.txt": lines(rep.Passing()), "failing_nodes.txt": lines(rep.Failing()),
		"report.json": asJSON, "report.md": rep.Markdown, "junit.xml": junit,
	} {
		file, err := os.Create(filepath.Join(f.out, name))
		if err != nil {
			return err
		}
		if err := errors.Join(write(file), file.Close()); err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	fmt.Fprintf(errs, "reports are in %s\n", f.out)
	switch f.format {
	case "json":
		return asJSON(out)
	case "md":
		return rep.Markdown(out)
	case "junit":
		return junit(out)
	}
	return rep.Table(out)
}
