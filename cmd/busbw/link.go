package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"busbw/coordinator"
	"busbw/rdma"
	"busbw/reports"
)

// linkFlags are the flags of busbw link, as given.
type linkFlags struct {
	base       runFlags // the cluster, the file, the format
	tests      []string
	size       size
	all, both  bool
	qps, depth int
	count      int
	duration   time.Duration
	members    []string // two, or none
}

func linkCommand() *cobra.Command {
	f := linkFlags{size: 64 << 10}
	cmd := &cobra.Command{
		Use:   "link [MEMBER MEMBER]",
		Short: "Measure the RDMA link between two members, or between all neighbours",
		Long: `Measure queue pairs between two members, as perftest does, without a terminal
on each: bandwidth and latency of RDMA write, read and send. Members are named
by host or by the id that busbw members shows. Without names every node is
tested with the next one round a ring; pairs without a node in common run at
once. Latency is half the round trip (of a read: the whole of it).

There is nothing to fall back to: a member without an active RDMA port is an
error that says what it lacks. The flags with one letter are those of perftest;
NCCL_IB_* variables hold as in busbw run. Exit status: 0 fine, 1 could not.`,
		Example: `  busbw link --join 10.0.0.1 --secret-file key gpu1 gpu2
  busbw link --join 10.0.0.1 --secret-file key -a --test write_bw,read_bw -q 4
  busbw link --join 10.0.0.1 --secret-file key --test write_lat -s 8 -D 60s
  busbw link                                # two workers on this machine, over its own port`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.members = args
			if cmd.Flags().Changed("all") && cmd.Flags().Changed("size") {
				return usageError{errors.New("-a and -s exclude each other")}
			}
			if err := f.base.cluster.apart(cmd.Flags()); err != nil {
				return err
			}
			tests, err := f.valid()
			if err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), tests)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringSliceVar(&f.tests, "test", []string{"write_bw", "write_lat"}, "tests: "+strings.Join(rdma.Kinds(), ", "))
	fl.VarP(&f.size, "size", "s", "bytes of a message (latency: 8 unless given)")
	fl.BoolVarP(&f.all, "all", "a", false, "sizes from 2 B to 8 MiB, by 2")
	fl.IntVarP(&f.qps, "qp", "q", 1, "queue pairs, for bandwidth")
	fl.IntVarP(&f.depth, "tx-depth", "t", 128, "messages under way on each queue pair")
	fl.BoolVarP(&f.both, "bidirectional", "b", false, "both directions at once, for bandwidth")
	fl.IntVarP(&f.count, "iters", "n", 0, "messages of a round (0: as many as last a while)")
	fl.DurationVarP(&f.duration, "duration", "D", time.Second/2, "how long to measure each size; every round, or message, is kept")
	f.base.local = "2x1"
	f.base.cluster.add(cmd)
	fl.IntVar(&f.base.nodes, "nodes", 0, "workers to wait for, with --join (0: those that are there)")
	fl.DurationVar(&f.base.wait, "wait", 2*time.Minute, "how long to wait for --nodes workers")
	fl.StringSliceVar(&f.base.rails, "rails", nil, "RDMA port (NAME or NAME:PORT) of each node (default: the nearest to its first rank)")
	formatFlag(fl, &f.base.format, "one of "+strings.Join(reports.Formats(), ", "))
	fl.StringVar(&f.base.output, "output", "", "results file (default results/TIME-ID.jsonl.zst)")
	underSlurm(cmd, &f.base.cluster)
	return cmd
}

// valid lists the tests in the order in which they run.
func (f *linkFlags) valid() ([]coordinator.PairTest, error) {
	switch {
	case len(f.members) != 0 && len(f.members) != 2:
		return nil, fmt.Errorf("give two members, or none for all neighbours, not %d", len(f.members))
	case f.base.cluster.join == nil && len(f.members) > 0:
		return nil, errors.New("members go with --join")
	case f.qps < 1 || f.qps > 127:
		return nil, fmt.Errorf("-q %d: want 1 to 127 queue pairs", f.qps)
	case f.depth < 1 || f.depth > 8192:
		return nil, fmt.Errorf("-t %d: want 1 to 8192 messages", f.depth)
	case f.count < 0 || f.count > 1<<24:
		return nil, fmt.Errorf("-n %d: want 0 to %d messages", f.count, 1<<24)
	case f.duration < 0 || f.duration > 24*time.Hour:
		return nil, fmt.Errorf("-D %s: want 0s to 24h", f.duration)
	case f.size < 1 || f.size > 1<<30:
		return nil, fmt.Errorf("-s %d: want 1 B to 1 GiB", f.size)
	}
	if err := knownFormat(f.base.format); err != nil {
		return nil, err
	}
	if f.base.cluster.join != nil {
		if err := f.base.cluster.valid(); err != nil {
			return nil, err
		}
	}
	var tests []coordinator.PairTest
	for _, kind := range f.tests {
		t, err := rdma.ParseKind(kind)
		if err != nil {
			return nil, err
		}
		for _, n := range f.sizes(t.Latency) {
			tests = append(tests, coordinator.PairTest{Kind: kind, Both: f.both && !t.Latency, Size: n, Count: f.count, Seconds: f.duration.Seconds()})
		}
	}
	return tests, nil
}

func (f *linkFlags) sizes(latency bool) (out []int) {
	switch {
	case f.all:
		for n := 2; n <= 8<<20; n *= 2 {
			out = append(out, n)
		}
		return out
	case latency && f.size == 64<<10:
		return []int{8}
	}
	return []int{int(f.size)}
}

// run measures all tests on every round of pairs.
func (f *linkFlags) run(ctx context.Context, out, errs io.Writer, tests []coordinator.PairTest) error {
	settings, notes, err := coordinator.Environ()
	if err == nil {
		_, _, err = rdma.ParseSettings(settings)
	}
	if err != nil {
		return usageError{err}
	}
	for _, n := range notes {
		fmt.Fprintln(errs, "busbw: note:", n)
	}
	id := newID()
	return f.base.measuring(ctx, errs, id, f.base.gather, func(c *cluster, file *resultFile) error {
		return f.on(ctx, c, file, id, settings, tests, out, errs)
	})
}

// on measures the links of workers that are there.
func (f *linkFlags) on(ctx context.Context, c *cluster, file *resultFile, id string, settings map[string]string, tests []coordinator.PairTest, out, errs io.Writer) (err error) {
	members, err := f.pick(c.members)
	if err != nil {
		return err
	}
	nodes, err := coordinator.PlanNodes(members, 1)
	if err != nil {
		return err
	}
	session, err := c.Start(ctx, members, coordinator.Plan{Run: id, Nodes: nodes, Settings: settings})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := session.Close(); err == nil {
			err = cerr
		}
	}()
	sweep := &coordinator.PairSweep{QPs: f.qps, Depth: f.depth}
	sweep.Run, sweep.Nodes, sweep.Source, sweep.Token = id, nodes, "busbw "+version, make([]byte, 32)
	rand.Read(sweep.Token)
	for _, t := range tests {
		sweep.MaxSize = max(sweep.MaxSize, t.Size)
	}
	facts, err := sweep.Open(ctx, session, settings, f.base.rails)
	if err != nil {
		return err
	}
	for _, t := range facts {
		fmt.Fprintln(errs, t)
	}
	show := &linkScreen{out: out, live: f.base.format == "table"}
	all, err := f.measure(ctx, sweep, tests, file, show)
	if !show.live && len(all) > 0 {
		err = errors.Join(err, reports.Render(out, f.base.format, all))
	}
	if file.n > 0 {
		fmt.Fprintf(errs, "%s kept in %s\n", plural(file.n, "result"), file.path)
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

func (f *linkFlags) measure(ctx context.Context, sweep *coordinator.PairSweep, tests []coordinator.PairTest, file *resultFile, show *linkScreen) (all []reports.Result, err error) {
	for _, round := range coordinator.Neighbours(len(sweep.Nodes)) {
		if err := sweep.Connect(ctx, round); err != nil {
			return all, err
		}
		for _, t := range tests {
			got, err := sweep.Measure(ctx, t)
			for _, r := range got {
				all = append(all, r)
				show.row(r)
				if err := file.write(r); err != nil {
					return all, err
				}
			}
			if err != nil {
				if errors.Is(err, context.Canceled) {
					return all, err
				}
				return all, fmt.Errorf("%s of %d B: %w", t.Kind, t.Size, err)
			}
		}
	}
	return all, nil
}

// pick is the members to test: those named, else all.
func (f *linkFlags) pick(members []coordinator.Member) ([]coordinator.Member, error) {
	if len(f.members) == 0 {
		if len(members) < 2 {
			return nil, fmt.Errorf("a link has two ends, and there is only %s", plural(len(members), "worker"))
		}
		return members, nil
	}
	var out []coordinator.Member
	for _, name := range f.members {
		var is []coordinator.Member
		var have []string
		for _, m := range members {
			if m.Host == name || len(name) >= 4 && strings.HasPrefix(m.ID, name) {
				is = append(is, m)
			}
			have = append(have, m.String())
		}
		if len(is) != 1 {
			return nil, usageError{fmt.Errorf("%d members are called %q; the members are %s", len(is), name, strings.Join(have, ", "))}
		}
		if slices.ContainsFunc(out, func(m coordinator.Member) bool { return m.ID == is[0].ID }) {
			return nil, usageError{fmt.Errorf("both ends of the link are %s", is[0])}
		}
		out = append(out, is[0])
	}
	return out, nil
}
