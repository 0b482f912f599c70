package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"busbw/collectives/reduce"
	"busbw/coordinator"
	"busbw/coordinator/pairs"
)

// pairFlags are the flags of busbw pairs, as given.
type pairFlags struct {
	runFlags          // the cluster, the results file and the format
	bytes        size // of a bandwidth test
	rounds       int  // 0: all, or a dozen of a large cluster
	budget       time.Duration
	least, both  float64 // GB/s
	leaves, from string
	leafOf       map[string]string
}

const manyNodes = 32 // above, a dozen rounds are enough to find what is slow

func pairFormats() []string { return []string{"table", "json", "junit"} }

func pairsCommand() *cobra.Command {
	f := pairFlags{bytes: 16 << 20}
	cmd := &cobra.Command{
		Use:   "pairs",
		Short: "Measure nodes in pairs and say which node, NIC, cable, path or leaf is slow",
		Long: `Measure each node's own devices (RDMA ports against themselves, copies of GPUs),
then the nodes of a cluster in rounds of disjoint pairs: each rail by itself,
each direction apart and both at once. Then measure what looks slow again, alone
and with partners that are known to be good, and say what is slow: a node, one
NIC or cable, the path between two nodes, a leaf or an uplink, in which
direction, and how sure that is. What cannot be decided is said, with the
measurement that would.

A pair is slow if it is below --min, or, among five nodes and more, well below
the others. All being slow alike shows only against --min.

--from judges figures that exist already: a results file, or a text with lines
"nodeA nodeB GB/s" (an arrow "a -> b" means that direction) or an N×N table.

Exit status: 0 nothing is slow, as far as the figures can tell (UNKNOWN: they
scatter too much, or are of few workers of one machine without --min), 1 could
not, 2 wrong use, 3 something is slow.`,
		Example: `  busbw pairs --join 10.0.0.1 --secret-file key --nodes 16 --min 45
  busbw pairs --local 3x2 --bytes 1M
  busbw pairs --from results/20261130-101500-3f2a.jsonl.zst --format json
  busbw pairs --from table.txt`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.cluster.apart(cmd.Flags()); err != nil {
				return err
			}
			if err := f.valid(); err != nil {
				return usageError{err}
			}
			if f.from != "" {
				return f.judge(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.from, "from", "", "judge these figures instead of measuring; - is standard input")
	fl.Float64Var(&f.least, "min", 0, "GB/s that every pair must reach in one direction (0: unknown)")
	fl.Float64Var(&f.both, "min-both", 0, "GB/s of each direction while both run (0: unknown)")
	fl.StringVar(&f.leaves, "leaves", "", "file with lines \"NODE LEAF\": which switch each node hangs on")
	fl.VarP(&f.bytes, "bytes", "b", "bytes of a bandwidth test")
	fl.IntVar(&f.rounds, "rounds", 0, fmt.Sprintf("rounds of pairs (0: every pair once, or 12 rounds of more than %d nodes)", manyNodes))
	fl.DurationVar(&f.budget, "budget", 10*time.Minute, "begin no measurement after this time")
	fl.DurationVar(&f.time, "time", 50*time.Millisecond, "measuring time of each round and direction")
	fl.StringVar(&f.local, "local", "4x1", "NODESxRANKS to start on this machine, without --join")
	f.cluster.add(cmd)
	fl.IntVar(&f.nodes, "nodes", 0, "workers to wait for, with --join (0: those that are there)")
	fl.DurationVar(&f.wait, "wait", 2*time.Minute, "how long to wait for --nodes workers")
	fl.IntVar(&f.ranks, "ranks", 0, "rails: ranks on each node, with --join (0: as each worker offers)")
	formatFlag(fl, &f.format, "one of "+strings.Join(pairFormats(), ", "))
	fl.StringVar(&f.output, "output", "", "results file (default results/TIME-ID.jsonl.zst)")
	underSlurm(cmd, &f.cluster)
	return cmd
}

// valid finds what is wrong before anything is started.
func (f *pairFlags) valid() (err error) {
	switch {
	case !slices.Contains(pairFormats(), f.format):
		return fmt.Errorf("unknown format %q; the formats are %s", f.format, strings.Join(pairFormats(), ", "))
	case f.least < 0 || f.both < 0:
		return fmt.Errorf("--min and --min-both cannot be negative")
	case f.bytes < 8192 || f.bytes > 1<<30:
		return fmt.Errorf("--bytes %s: want 8K to 1G: less measures latency", &f.bytes)
	case f.rounds < 0 || f.budget <= 0 || f.time <= 0:
		return fmt.Errorf("--rounds cannot be negative, and --budget and --time must be above 0")
	}
	if f.leaves != "" {
		if f.leafOf, err = readLeaves(f.leaves); err != nil {
			return err
		}
	}
	if f.from != "" {
		if f.cluster.join != nil {
			return fmt.Errorf("--from judges figures that exist: leave out --join")
		}
		return nil
	}
	return f.place()
}

// place checks where ranks are to run.
func (f *runFlags) place() error {
	if f.cluster.join == nil {
		n, _, err := parseLocal(f.local)
		if err == nil && n < 2 {
			return fmt.Errorf("--local %s: want two nodes or more", f.local)
		}
		return err
	}
	if f.nodes < 0 || f.ranks < 0 {
		return fmt.Errorf("--nodes and --ranks cannot be negative")
	}
	return f.cluster.valid()
}

// limits are the absolute limits that were given.
func (f *pairFlags) limits() pairs.Limits {
	return pairs.Limits{GBps: f.least, BothGBps: f.both, Source: "--min"}
}

// request is how each pair test runs.
func (f *pairFlags) request() (*coordinator.Request, error) {
	r := &coordinator.Request{Verb: "pairs", Dtype: reduce.Float, Redop: reduce.Sum, Time: f.time, Warmup: 2, Aggregate: 1, Checks: 1, Mode: coordinator.Barrier, Rotate: true, Huge: true}
	var err error
	r.Settings, r.Notes, err = coordinator.Environ()
	return r, err
}

// readLeaves reads "NODE LEAF" lines; "#" begins a remark.
func readLeaves(name string) (map[string]string, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--leaves: %w", err)
	}
	defer in.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(in, 1<<20))
	for n := 1; lines.Scan(); n++ {
		body, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(body)
		switch {
		case len(f) == 0:
			continue
		case len(f) != 2:
			return nil, fmt.Errorf("--leaves %s line %d: want a node and its leaf", name, n)
		}
		out[f[0]] = f[1]
	}
	return out, lines.Err()
}

// leavesOf are the leaves of named nodes; nil where none is known.
func (f *pairFlags) leavesOf(nodes []string) []string {
	var out []string
	known := false
	for _, n := range nodes {
		l := f.leafOf[n]
		known = known || l != ""
		out = append(out, l)
	}
	if !known {
		return nil
	}
	return out
}
