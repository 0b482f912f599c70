package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"busbw/collectives"
	"busbw/collectives/reduce"
	"busbw/coordinator"
	"busbw/rdma"
	"busbw/reports"
)

// runFlags are the flags of busbw run, as given.
type runFlags struct {
	minBytes, maxBytes, stepBytes size
	factor, iters, warmup         int
	agg, checks, root, blocking   int
	redop, dtype, inPlace         string
	sizes                         []string
	ops, algos, scopes, rails     []string
	perIter, noRotate, huge       bool
	noGraph                       bool
	time, timeout                 time.Duration
	launches                      int
	local                         string
	cluster                       clusterFlags
	nodes, ranks                  int
	wait                          time.Duration
	format, output, resume        string
	memory                        string
	engines                       []string
}

func runCommand() *cobra.Command {
	f := newRunFlags()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure collectives and print the comparison",
		Long: `Measure collectives on a cluster of workers, or, without --join, on a little
cluster that busbw starts on this machine: worker processes joined by gossip on
loopback, with shared memory inside a "node" and TCP between them. Nodes that
all have an active RDMA port exchange data over it; the run's header says what
carries it, and why not RDMA.

The flags with one letter are those of nccl-tests. Sizes take K, M, G, T (or
KiB …), powers of 1024. Exit status: 0 fine, 1 could not, 2 wrong use, 3 wrong
data was found.

Operations and their algorithms (auto picks one by size; a = b: a is another name
of b). Case, "_" and "-" of an operation's name do not count: AllReduce, all-reduce.
` + algorithmsHelp() + `
NCCL variables that are honoured, with NCCL's meaning; --algo wins over NCCL_ALGO:
` + coordinator.SettingsHelp(),
		Example: `  busbw run                                     # 2 nodes × 2 ranks on this machine
  srun --ntasks-per-node=1 busbw run --secret-file key   # on every node of a Slurm job
  busbw run --local 1x4 --op all_reduce --algo ring,tree -b 8 -e 1G -f 2
  busbw run --join 10.0.0.1 --nodes 16 --secret-file key --scope intra,cross
  busbw run --op broadcast -d bfloat16 -n 100 -w 20 --format nccl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("stepbytes") && !cmd.Flags().Changed("stepfactor") {
				f.factor = 1
			}
			req, err := f.request()
			if err != nil {
				return usageError{err}
			}
			if err := f.cluster.apart(cmd.Flags()); err != nil {
				return err
			}
			if err := f.valid(req); err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), req)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	f.what(fl)
	fl.Lookup("algo").Usage = "algorithms, of those above, or auto"
	fl.BoolVarP(&f.perIter, "per_iter", "I", false, "show min, p99, max and spread of the iterations")
	fl.StringSliceVar(&f.engines, "engine", []string{"native"}, "native: busbw's own schedules; nccl: the NCCL library of each node, in GPU memory; native,nccl: both")
	fl.IntVar(&f.launches, "launches", 1, "fresh starts of all ranks; the unit of statistics")
	f.where(cmd)
	formatFlag(fl, &f.format, "one of "+strings.Join(reports.Formats(), ", "))
	fl.StringVar(&f.output, "output", "", "results file (default results/TIME-ID.jsonl.zst)")
	fl.StringVar(&f.resume, "resume", "", "go on with the run that wrote this results file: what it holds is not measured again")
	underSlurm(cmd, &f.cluster)
	return cmd
}

// valid finds what is wrong before anything is started.
func (f *runFlags) valid(req *coordinator.Request) error {
	if err := knownFormat(f.format); err != nil {
		return err
	}
	if f.launches < 1 || f.launches > 1000 {
		return fmt.Errorf("--launches %d: want 1 to 1000", f.launches)
	}
	if f.cluster.join == nil {
		nodes, ranks, err := parseLocal(f.local)
		if err == nil {
			_, _, err = req.Cases(slices.Repeat([]coordinator.PlanNode{{Ranks: ranks}}, nodes))
		}
		return err
	}
	if f.nodes < 0 || f.ranks < 0 || f.ranks > 1024 {
		return fmt.Errorf("--nodes and --ranks cannot be negative, and a node has at most 1024 ranks")
	}
	return f.cluster.valid()
}

// request turns the flags and the environment into what is to be measured.
func (f *runFlags) request() (*coordinator.Request, error) {
	r := &coordinator.Request{
		Verb: "run", Scopes: f.scopes, Root: f.root, Iterations: f.iters, Time: f.time, Warmup: f.warmup, Aggregate: f.agg,
		Checks: f.checks, Rotate: !f.noRotate, Huge: f.huge, Timeout: f.timeout, Algorithms: f.algos, Memory: f.memory, NoGraph: f.noGraph, Engines: f.engines,
	}
	var err error
	if r.Sizes, err = f.sizeList(); err != nil {
		return nil, err
	}
	for _, o := range f.ops {
		op, err := collectives.ParseOp(o)
		if err != nil {
			return nil, err
		}
		r.Ops = append(r.Ops, op)
	}
	if r.Dtype, err = reduce.ParseDtype(f.dtype); err != nil {
		return nil, err
	}
	if r.Redop, err = reduce.ParseOp(f.redop); err != nil {
		return nil, err
	}
	if r.Mode, err = mode(f.blocking); err != nil {
		return nil, err
	}
	if r.InPlace, err = f.halves(); err != nil {
		return nil, err
	}
	if slices.Equal(f.engines, []string{"nccl"}) {
		r.Settings, err = coordinator.NCCLSettings()
	} else {
		r.Settings, r.Notes, err = coordinator.Environ()
	}
	if err != nil {
		return nil, err
	}
	if _, _, err := rdma.ParseSettings(r.Settings); err != nil {
		return nil, err
	}
	if r.Rails = f.rails; len(f.rails) > 0 {
		r.Settings[coordinator.RailsKey] = strings.Join(f.rails, ",")
	}
	if r.OnNCCL() {
		r.NCCL = coordinator.NCCLEnviron()
	}
	return r, r.Valid()
}

// sizeList is --sizes, or the sweep.
func (f *runFlags) sizeList() (out []int64, err error) {
	if f.sizes == nil {
		return sweepSizes(int64(f.minBytes), int64(f.maxBytes), int64(f.stepBytes), f.factor)
	}
	for _, s := range f.sizes {
		n, err := parseSize(s)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (f *runFlags) halves() ([]bool, error) {
	switch {
	case f.inPlace == "" && f.format == "nccl", f.inPlace == "both":
		return []bool{false, true}, nil
	case f.inPlace == "", f.inPlace == "out":
		return []bool{false}, nil
	case f.inPlace == "in":
		return []bool{true}, nil
	}
	return nil, fmt.Errorf("--inplace %q: want out, in or both", f.inPlace)
}

// mode is the timing mode for nccl-tests' -z.
func mode(z int) (string, error) {
	switch z {
	case 0, 2:
		return coordinator.Pipelined, nil
	case 1:
		return coordinator.BarrierTimed, nil
	case 3:
		return coordinator.Barrier, nil
	}
	return "", fmt.Errorf("-z %d: want 0, 1, 2 or 3", z)
}

// parseLocal reads NODESxRANKS.
func parseLocal(s string) (nodes, ranks int, err error) {
	n, err := fmt.Sscanf(strings.ToLower(s), "%dx%d", &nodes, &ranks)
	if err != nil || n != 2 || fmt.Sprintf("%dx%d", nodes, ranks) != strings.ToLower(s) || nodes < 1 || ranks < 1 || nodes > 256 || ranks > 1024 {
		return 0, 0, fmt.Errorf("--local %q: want NODESxRANKS, for example 2x2; at most 256 nodes of 1024 ranks", s)
	}
	return nodes, ranks, nil
}

// algorithmsHelp is a line for each operation.
func algorithmsHelp() string {
	var b strings.Builder
	for _, op := range collectives.Ops() {
		also := ""
		if a := collectives.Aliases(op); len(a) > 0 {
			also = " (" + strings.Join(a, ", ") + ")"
		}
		fmt.Fprintf(&b, "  %-15s %s%s\n", op, strings.Join(collectives.Algorithms(op), ", "), also)
	}
	return b.String()
}

func names[T fmt.Stringer](all []T) string {
	var s []string
	for _, v := range all {
		s = append(s, v.String())
	}
	return strings.Join(s, ", ")
}
