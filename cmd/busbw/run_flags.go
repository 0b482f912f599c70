package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"busbw/collectives"
	"busbw/collectives/reduce"
	"busbw/coordinator"
)

// what adds the flags that say what is measured, and how. Defaults that other
// commands have too, but differently, are those that f holds.
func (f *runFlags) what(fl *pflag.FlagSet) {
	fl.VarP(&f.minBytes, "minbytes", "b", "smallest size")
	fl.VarP(&f.maxBytes, "maxbytes", "e", "largest size")
	fl.IntVarP(&f.factor, "stepfactor", "f", f.factor, "multiply the size by this; 1 adds -i instead (nccl-tests' default)")
	fl.VarP(&f.stepBytes, "stepbytes", "i", "add this to the size (implies -f 1)")
	fl.StringSliceVar(&f.sizes, "sizes", nil, "exactly these sizes, instead of -b -e -f -i")
	fl.IntVarP(&f.iters, "iters", "n", 0, "timed iterations of each size (0: as many as fit --time)")
	fl.IntVarP(&f.warmup, "warmup_iters", "w", -1, "warm-up iterations (-1: until two windows agree within 5 %)")
	fl.IntVarP(&f.agg, "agg_iters", "m", 1, "collectives in one timed iteration")
	fl.IntVarP(&f.checks, "check", "c", 1, "rounds of data check of each size (0: none)")
	fl.StringVarP(&f.redop, "redop", "o", "sum", "reduction: "+names(reduce.Ops()))
	fl.StringVarP(&f.dtype, "datatype", "d", "float", "element type: "+names(reduce.Dtypes()))
	fl.IntVarP(&f.root, "root", "r", 0, "root rank of broadcast, reduce, gather, scatter")
	fl.IntVarP(&f.blocking, "blocking", "z", 3, "0 or 2: iterations follow each other; 1: a timed barrier in each; 3: an untimed barrier before each")
	fl.StringSliceVar(&f.ops, "op", f.ops, "operations: "+names(collectives.Ops()))
	fl.StringSliceVar(&f.algos, "algo", []string{"auto"}, "algorithms, or auto (busbw run --help lists them)")
	fl.StringSliceVar(&f.scopes, "scope", f.scopes, "intra: each node by itself; cross: one rank a node; global: all ranks")
	fl.StringVar(&f.inPlace, "inplace", "", "out, in or both (default out; both for --format nccl)")
	fl.DurationVar(&f.time, "time", f.time, "measuring time of each size, where -n is 0")
	fl.DurationVar(&f.timeout, "timeout", 0, "longest wait for one batch of iterations, and on NCCL for joining and for a check (0: from the expected time)")
	fl.BoolVar(&f.noRotate, "no-rotate", false, "use the same buffers in every iteration, so that they may stay in the caches")
	fl.BoolVar(&f.huge, "huge", true, "ask for transparent huge pages")
	fl.BoolVar(&f.noGraph, "no-graph", false, "on GPUs start every pass of small sizes by itself, instead of replaying a CUDA graph")
	fl.StringVar(&f.memory, "memory", "auto", "where the buffers are: "+strings.Join(coordinator.Memories(), ", ")+" (auto: gpu where every node has one GPU a rank)")
}

// where adds the flags that say on which nodes.
func (f *runFlags) where(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.local, "local", "2x2", "NODESxRANKS to start on this machine, without --join")
	f.cluster.add(cmd)
	fl.IntVar(&f.nodes, "nodes", 0, "workers to wait for, with --join (0: those that are there)")
	fl.DurationVar(&f.wait, "wait", 2*time.Minute, "how long to wait for --nodes workers")
	fl.IntVar(&f.ranks, "ranks", 0, "ranks on each node, with --join (0: as each worker offers)")
	fl.StringSliceVar(&f.rails, "rails", nil, "RDMA ports (NAME or NAME:PORT) that the ranks of each node use, in turn (default: each the nearest)")
}

// newRunFlags are the defaults of busbw run.
func newRunFlags() runFlags {
	return runFlags{
		minBytes: 8, maxBytes: 64 << 20, stepBytes: 1 << 20, factor: 8, time: 250 * time.Millisecond,
		ops: []string{"all_reduce", "broadcast"}, scopes: coordinator.Scopes(),
	}
}
