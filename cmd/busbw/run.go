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
	time, timeout                 time.Duration
	launches                      int
	local                         string
	cluster                       clusterFlags
	nodes, ranks                  int
	wait                          time.Duration
	format, output, resume        string
}

func runCommand() *cobra.Command {
	f := runFlags{minBytes: 8, maxBytes: 64 << 20, stepBytes: 1 << 20}
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

Algorithms (auto picks one by size):
` + algorithmsHelp() + `
NCCL variables that are honoured, with NCCL's meaning; --algo wins over NCCL_ALGO:
` + coordinator.SettingsHelp(),
		Example: `  busbw run                                     # 2 nodes × 2 ranks on this machine
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
			if err := f.valid(req); err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), req)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.VarP(&f.minBytes, "minbytes", "b", "smallest size")
	fl.VarP(&f.maxBytes, "maxbytes", "e", "largest size")
	fl.IntVarP(&f.factor, "stepfactor", "f", 8, "multiply the size by this; 1 adds -i instead (nccl-tests' default)")
	fl.VarP(&f.stepBytes, "stepbytes", "i", "add this to the size (implies -f 1)")
	fl.StringSliceVar(&f.sizes, "sizes", nil, "exactly these sizes, instead of -b -e -f -i")
	fl.IntVarP(&f.iters, "iters", "n", 0, "timed iterations of each size (0: as many as fit --time)")
	fl.IntVarP(&f.warmup, "warmup_iters", "w", -1, "warm-up iterations (-1: until two windows agree within 5 %)")
	fl.IntVarP(&f.agg, "agg_iters", "m", 1, "collectives in one timed iteration")
	fl.IntVarP(&f.checks, "check", "c", 1, "rounds of data check of each size (0: none)")
	fl.StringVarP(&f.redop, "redop", "o", "sum", "reduction: "+names(reduce.Ops()))
	fl.StringVarP(&f.dtype, "datatype", "d", "float", "element type: "+names(reduce.Dtypes()))
	fl.IntVarP(&f.root, "root", "r", 0, "root rank of broadcast, reduce, gather, scatter")
	fl.BoolVarP(&f.perIter, "per_iter", "I", false, "show min, p99, max and spread of the iterations")
	fl.IntVarP(&f.blocking, "blocking", "z", 3, "0 or 2: iterations follow each other; 1: a timed barrier in each; 3: an untimed barrier before each")
	fl.StringSliceVar(&f.ops, "op", []string{"all_reduce", "broadcast"}, "operations: "+names(collectives.Ops()))
	fl.StringSliceVar(&f.algos, "algo", []string{"auto"}, "algorithms, or auto (see above)")
	fl.StringSliceVar(&f.scopes, "scope", coordinator.Scopes(), "intra: each node by itself; cross: one rank a node; global: all ranks")
	fl.StringVar(&f.inPlace, "inplace", "", "out, in or both (default out; both for --format nccl)")
	fl.DurationVar(&f.time, "time", 250*time.Millisecond, "measuring time of each size, where -n is 0")
	fl.IntVar(&f.launches, "launches", 1, "fresh starts of all ranks; the unit of statistics")
	fl.DurationVar(&f.timeout, "timeout", 0, "longest wait for one batch of iterations (0: from the expected time)")
	fl.BoolVar(&f.noRotate, "no-rotate", false, "use the same buffers in every iteration, so that they may stay in the caches")
	fl.BoolVar(&f.huge, "huge", true, "ask for transparent huge pages")
	fl.StringVar(&f.local, "local", "2x2", "NODESxRANKS to start on this machine, without --join")
	f.cluster.add(cmd)
	fl.IntVar(&f.nodes, "nodes", 0, "workers to wait for, with --join (0: those that are there)")
	fl.DurationVar(&f.wait, "wait", 2*time.Minute, "how long to wait for --nodes workers")
	fl.IntVar(&f.ranks, "ranks", 0, "ranks on each node, with --join (0: as each worker offers)")
	fl.StringSliceVar(&f.rails, "rails", nil, "RDMA ports (NAME or NAME:PORT) that the ranks of each node use, in turn (default: each the nearest)")
	fl.StringVar(&f.format, "format", "table", "one of "+strings.Join(reports.Formats(), ", "))
	fl.StringVar(&f.output, "output", "", "results file (default results/TIME-ID.jsonl.zst)")
	fl.StringVar(&f.resume, "resume", "", "go on with the run that wrote this results file: what it holds is not measured again")
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
		if f.nodes != 0 || f.ranks != 0 {
			return fmt.Errorf("--nodes and --ranks go with --join; on this machine use --local NODESxRANKS")
		}
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
		Scopes: f.scopes, Root: f.root, Iterations: f.iters, Time: f.time, Warmup: f.warmup, Aggregate: f.agg,
		Checks: f.checks, Rotate: !f.noRotate, Huge: f.huge, Timeout: f.timeout, Algorithms: f.algos,
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
	if r.Settings, r.Notes, err = coordinator.Environ(); err != nil {
		return nil, err
	}
	if _, _, err := rdma.ParseSettings(r.Settings); err != nil {
		return nil, err
	}
	if r.Rails = f.rails; len(f.rails) > 0 {
		r.Settings[coordinator.RailsKey] = strings.Join(f.rails, ",")
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
		fmt.Fprintf(&b, "  %-15s %s\n", op, strings.Join(collectives.Algorithms(op), ", "))
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
