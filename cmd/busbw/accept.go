package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"busbw/coordinator"
	"busbw/coordinator/accept"
)

// acceptFlags are the flags of busbw accept, as given.
type acceptFlags struct {
	pairFlags
	profile string
	wanted  *accept.Profile // nil: none
	expect  []string        // host names that should come
	out     string
	watch   time.Duration
}

func acceptFormats() []string { return []string{"table", "json", "junit", "md"} }

func acceptCommand() *cobra.Command {
	f := acceptFlags{pairFlags: pairFlags{bytes: 16 << 20}}
	cmd := &cobra.Command{
		Use:   "accept",
		Short: "Say which nodes may go into service, and what is wrong with the others",
		Long: `Accept nodes: check each one (as busbw check does) and its devices, measure it by itself, measure all pairs, then
collectives over growing blocks of the nodes that have not failed. What fails is
left out of what follows, and the rest goes on. The end is a verdict for each
node and for the set, each with its evidence, and a diagnosis of what is slow.

A profile says what such nodes must reach (busbw profile list); without one,
nodes are judged by each other, which needs five of them.

Written to --out: passing_nodes.txt and failing_nodes.txt (one short name a
line: srun --exclude=$(paste -sd, failing_nodes.txt)), report.json, report.md,
junit.xml and results.jsonl.zst.

Exit status: 0 all may go into service, 1 could not, 2 wrong use, 3 some may
not, or it was not established: a stage was not done, or pair tests could
neither pass nor accuse a node. What else could not be read or does not apply
(one rank: nothing moves inside a node) is listed and leaves the status alone.`,
		Example: `  busbw accept --join 10.0.0.1 --secret-file key --nodes 16 --profile hgx-h100-ndr
  busbw accept --join 10.0.0.1 --secret-file key --nodes 16 --profile ./mine.yaml --format md
  busbw accept --local 2x2 --bytes 1M --min 0.5 --min-both 0.2`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.cluster.apart(cmd.Flags()); err != nil {
				return err
			}
			if err := f.valid(); err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.profile, "profile", "", "what the nodes are: a name, or a file (busbw profile list)")
	fl.IntVar(&f.nodes, "nodes", 0, "workers to wait for, with --join (0: those that are there)")
	fl.StringSliceVar(&f.expect, "expect", nil, "host names that should be there; those that are not are named and fail")
	fl.DurationVar(&f.wait, "wait", 2*time.Minute, "how long to wait for --nodes workers; then go on with those that came")
	fl.StringVar(&f.out, "out", "", "folder for the reports (default acceptance/TIME-ID)")
	formatFlag(fl, &f.format, "what is printed: "+strings.Join(acceptFormats(), ", "))
	fl.Float64Var(&f.least, "min", 0, "GB/s that every pair must reach in one direction, instead of the profile's")
	fl.Float64Var(&f.both, "min-both", 0, "GB/s of each direction while both run, instead of the profile's")
	fl.StringVar(&f.leaves, "leaves", "", "file with lines \"NODE LEAF\": which switch each node hangs on")
	fl.VarP(&f.bytes, "bytes", "b", "bytes of a bandwidth test")
	fl.IntVar(&f.rounds, "rounds", 0, fmt.Sprintf("rounds of pairs (0: every pair once, or 12 rounds of more than %d nodes)", manyNodes))
	fl.DurationVar(&f.budget, "budget", 15*time.Minute, "begin no measurement after this time")
	fl.DurationVar(&f.time, "time", 50*time.Millisecond, "measuring time of each test")
	fl.DurationVar(&f.watch, "watch", 2*time.Second, "time between two readings of the port counters, 0 to 1m (0: once)")
	fl.StringVar(&f.local, "local", "4x2", "NODESxRANKS to start on this machine, without --join")
	f.cluster.add(cmd)
	fl.IntVar(&f.ranks, "ranks", 0, "ranks on each node, with --join (0: as each worker offers)")
	underSlurm(cmd, &f.cluster)
	return cmd
}

// valid finds what is wrong before anything is started.
func (f *acceptFlags) valid() (err error) {
	if !slices.Contains(acceptFormats(), f.format) {
		return fmt.Errorf("unknown format %q; the formats are %s", f.format, strings.Join(acceptFormats(), ", "))
	}
	if f.watch < 0 || f.watch > coordinator.MaxWatch {
		return fmt.Errorf("--watch %s: want 0 to %s", f.watch, coordinator.MaxWatch)
	}
	if f.profile != "" {
		if f.wanted, err = readProfile(f.profile); err != nil {
			return err
		}
	}
	format := f.format
	f.format = "table" // which pairs know
	err = f.pairFlags.valid()
	f.format = format
	return err
}
