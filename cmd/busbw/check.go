package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"busbw/coordinator"
	"busbw/reports"
	"busbw/worker"
	"busbw/worker/capture"
)

// checkFlags are the flags of busbw check.
type checkFlags struct {
	cluster clusterFlags
	nodes   int
	wait    time.Duration
	root    string
	from    []string
	format  string
	watch   time.Duration
	rate    float64
	all     bool
}

func checkCommand() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a node, or all of them, before anything is measured",
		Long: `Check RDMA ports, PCIe, GPUs, GPUDirect and the host's settings: on this machine, on a copy of another one's files (--root), on all members of a
cluster (--join), or in what other programs printed (--from: ibstat, ibstatus, ibv_devinfo, iblinkinfo, ibqueryerrors, perfquery, show_gids, lspci -vvv, mlxlink,
nvidia-smi nvlink -s, ulimit, lsmod, kernel logs, files of /sys and /proc with their names, NCCL logs). Nothing is changed and root is not needed; what only root
may read is "unknown" without it. Exit status 3: a check failed.`,
		Example: `  busbw check
  busbw check --all --watch 10s                     # every finding; counters over ten seconds, with traffic
  busbw check --root /mnt/node7 --format json       # a copy of /sys, /proc and /etc of another machine
  ibstat | busbw check --from -
  busbw check --from node1.txt,node2.txt --format junit
  busbw check --join 10.0.0.1 --secret-file key --nodes 16`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.cluster.apart(cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	fl := cmd.Flags()
	f.cluster.add(cmd)
	fl.IntVar(&f.nodes, "nodes", 0, "with --join: workers to wait for, and to name when they do not come")
	fl.DurationVar(&f.wait, "wait", 2*time.Minute, "with --nodes: how long to wait for them")
	fl.StringVar(&f.root, "root", "/", "folder with the machine's files")
	fl.StringSliceVar(&f.from, "from", nil, "files with captured output of other programs, - for standard input")
	formatFlag(fl, &f.format, "output: "+strings.Join(reports.FindingFormats(), ", "))
	fl.DurationVar(&f.watch, "watch", time.Second, "time between two readings of the port counters, 0 to 1m with --join; 0: read once")
	fl.Float64Var(&f.rate, "rate", 0, "rate that every active RDMA port should have, Gb/s (default: the ports are compared with each other)")
	fl.BoolVar(&f.all, "all", false, "list passes and what does not apply too")
	return cmd
}

func (f *checkFlags) valid() error {
	if !slices.Contains(reports.FindingFormats(), f.format) {
		return usageError{fmt.Errorf("--format %q: want one of %s", f.format, strings.Join(reports.FindingFormats(), ", "))}
	}
	if f.watch < 0 || f.watch > time.Hour {
		return usageError{fmt.Errorf("--watch %s: want 0 to 1h", f.watch)}
	}
	if f.rate < 0 || f.rate > 1e5 {
		return usageError{fmt.Errorf("--rate %g: want a rate in Gb/s, for example 400", f.rate)}
	}
	if f.nodes < 0 {
		return usageError{fmt.Errorf("--nodes %d: want a number of workers", f.nodes)}
	}
	if len(f.cluster.join) > 0 {
		if err := f.cluster.valid(); err != nil {
			return err
		}
		if f.watch > coordinator.MaxWatch {
			return usageError{fmt.Errorf("--watch %s: want 0 to %s with --join", f.watch, coordinator.MaxWatch)}
		}
	}
	ways := 0
	for _, on := range []bool{len(f.from) > 0, f.root != "/", len(f.cluster.join) > 0} {
		if on {
			ways++
		}
	}
	if ways > 1 {
		return usageError{errors.New("--from, --root and --join exclude each other")}
	}
	return nil
}

func (f *checkFlags) run(cmd *cobra.Command) error {
	if err := f.valid(); err != nil {
		return err
	}
	var found []reports.Finding
	var err error
	switch {
	case len(f.from) > 0:
		found, err = f.captures(cmd.InOrStdin())
	case len(f.cluster.join) > 0:
		found, err = f.members(cmd.Context(), cmd.ErrOrStderr())
	default:
		found, err = f.machine(cmd.Context(), cmd.ErrOrStderr())
	}
	if err != nil {
		return err
	}
	if err := f.print(cmd.OutOrStdout(), found); err != nil {
		return err
	}
	if err := cmd.Context().Err(); err != nil {
		return fmt.Errorf("interrupted: the checks shown are those that had run: %w", err)
	}
	if reports.Worst(found) == reports.Fail {
		return errFound
	}
	return nil
}

// print leaves out of a table what needs no reader, and says so.
func (f *checkFlags) print(out io.Writer, found []reports.Finding) error {
	shown := found
	if f.format == "table" && !f.all {
		shown = slices.DeleteFunc(slices.Clone(found), func(x reports.Finding) bool {
			return x.Verdict == reports.Pass || x.Verdict == reports.NA
		})
	}
	if len(shown) > 0 || f.format != "table" {
		if err := reports.WriteFindings(out, f.format, shown); err != nil {
			return err
		}
	}
	if f.format != "table" {
		return nil
	}
	hint := ""
	if len(shown) < len(found) {
		hint = " (--all lists every finding)"
	}
	_, err := fmt.Fprintf(out, "\n%s: %s%s\n", reports.Worst(found), reports.Tally(found), hint)
	return err
}

// machine checks this node, or a copy of another one's files.
func (f *checkFlags) machine(ctx context.Context, errs io.Writer) ([]reports.Finding, error) {
	o := worker.CheckOptions{Gbps: f.rate}
	if f.root != "/" {
		n, err := worker.ReadNode("", f.root)
		if err != nil {
			return nil, err
		}
		return worker.RunChecks(ctx, n, o), nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	runner := []string{exe, worker.RunnerVerb}
	o.Watch, o.KernelLog = f.watch, worker.KernelLog()
	n := worker.ThisNode(ctx, "", runner, 0)
	o.Probe(ctx, runner, time.Minute)
	if f.watch > 3*time.Second {
		fmt.Fprintf(errs, "counters are read twice, %s apart\n", f.watch)
	}
	return worker.RunChecks(ctx, n, o), nil
}

// members has every worker of the cluster check itself. Workers that --nodes
// asks for and that do not come are a finding, not an end: the others are checked.
func (f *checkFlags) members(ctx context.Context, errs io.Writer) ([]reports.Finding, error) {
	c, err := f.cluster.enter(ctx, errs)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var found []reports.Finding
	var ws []coordinator.Member
	if f.nodes > 0 {
		wait, cancel := context.WithTimeout(ctx, f.wait)
		defer cancel()
		ws, err = c.WaitWorkers(wait, f.nodes, func(have int) { fmt.Fprintf(errs, "%d of %s there\n", have, plural(f.nodes, "worker")) })
		if err != nil {
			found = append(found, reports.Finding{ID: "node-missing", Verdict: reports.Fail, Subject: "workers", Got: fmt.Sprintf("%d of %d", len(ws), f.nodes), Want: fmt.Sprint(f.nodes),
				Evidence: []reports.Evidence{{From: "gossip", Value: err.Error()}}, Remedy: "start the missing workers; busbw members shows who is there"})
		}
	} else if err := pause(ctx, settle); err != nil {
		return nil, err
	} else if ws = c.Workers(); len(ws) == 0 {
		return nil, errors.New("no worker is in the cluster: start busbw worker on each node; busbw members shows who is there")
	}
	for _, m := range c.Members() {
		if m.Role == coordinator.RoleWorker && (m.Problem != "" || m.State == coordinator.StateDead) {
			found = append(found, reports.Finding{ID: "node-answer", Verdict: reports.Fail, Node: m.String(), Subject: "worker", Got: strings.Trim(m.State+": "+m.Problem, ": "), Want: "alive and usable",
				Evidence: []reports.Evidence{{From: "gossip", Value: m.State}}, Remedy: "is the node up, its worker running and reachable?"})
		}
	}
	n := 0
	more, err := c.CheckNodes(ctx, ws, f.watch, f.rate, func(node string, err error) {
		if n++; n == len(ws) || n%16 == 0 {
			fmt.Fprintf(errs, "%d of %s answered\n", n, plural(len(ws), "node"))
		}
	})
	return append(found, more...), err
}

// captures judges files with other programs' output. One that nothing in
// recognised is an error: silence would look like a pass.
func (f *checkFlags) captures(stdin io.Reader) ([]reports.Finding, error) {
	var out []reports.Finding
	for _, name := range f.from {
		in, label := stdin, "standard input"
		if name != "-" {
			file, err := os.Open(name)
			if err != nil {
				return nil, fmt.Errorf("capture: %w", err)
			}
			defer file.Close()
			in, label = file, name
		}
		fs, err := capture.Read(in, f.rate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", label, err)
		}
		if len(f.from) > 1 {
			for i := range fs {
				fs[i].Node = strings.TrimSuffix(label+": "+fs[i].Node, ": ")
			}
		}
		out = append(out, fs...)
	}
	return out, nil
}
