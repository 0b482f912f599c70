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

	"busbw/collectives"
	"busbw/coordinator/plan"
	"busbw/reports"
)

// planFlags are the flags of busbw plan, as given.
type planFlags struct {
	run           runFlags // its sizes
	like          []string
	whatIf        string
	ops, algos    []string
	nodes         []int
	stepBytes     size
	buckets       int
	compute       time.Duration
	overlap       float64
	check, sample bool
	format        string
	output        string
}

func planCommand() *cobra.Command {
	f := planFlags{run: runFlags{minBytes: 1 << 20, maxBytes: 16 << 30, stepBytes: 1 << 20}}
	cmd := &cobra.Command{
		Use:   "plan [CLUSTER.yaml]",
		Short: "Predict collectives on a cluster that is described, not measured",
		Long: `Predict what collectives take on a cluster that is described in YAML, that is
like the one of a results file but larger, or both (then the file's latencies
and bandwidths count). The schedules are those that busbw run executes,
simulated on a model of paths, shared NICs and leaf uplinks (docs/plan.md).

Every prediction has an interval and names what bounds it. With --like,
predictions beyond twice what was measured are marked. Records that --output
writes are ordinary results: busbw report and busbw compare take them.`,
		Example: `  busbw plan --example > cluster.yaml             # a description with comments
  busbw plan cluster.yaml --sizes 2G --nodes 64,512
  busbw plan cluster.yaml --what-if four-nics.yaml --op all_reduce,alltoall
  busbw plan cluster.yaml --step-bytes 14G --compute 300ms --overlap 0.8 --nodes 8,64,512
  busbw plan --like results/RUN.jsonl.zst --nodes 16,32
  busbw plan --like results/RUN.jsonl.zst --check  # how far off is it?`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, files []string) error {
			if f.sample {
				_, err := io.WriteString(cmd.OutOrStdout(), plan.Example)
				return err
			}
			if err := f.valid(files); err != nil {
				return usageError{err}
			}
			return f.predict(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), files)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringSliceVar(&f.ops, "op", []string{"all_reduce"}, "operations: "+names(collectives.Ops()))
	fl.StringSliceVar(&f.algos, "algo", []string{"best"}, "algorithms, or best: the one that is predicted to be fastest")
	fl.VarP(&f.run.minBytes, "minbytes", "b", "smallest size")
	fl.VarP(&f.run.maxBytes, "maxbytes", "e", "largest size")
	fl.IntVarP(&f.run.factor, "stepfactor", "f", 8, "multiply the size by this; 1 uses -i")
	fl.VarP(&f.run.stepBytes, "stepbytes", "i", "add this to the size, with -f 1")
	fl.StringSliceVar(&f.run.sizes, "sizes", nil, "exactly these sizes, instead of -b -e -f -i")
	fl.IntSliceVar(&f.nodes, "nodes", nil, "numbers of nodes (default: as described or measured, with --what-if each as it is described)")
	fl.StringSliceVar(&f.like, "like", nil, "results files to take latencies and bandwidths from")
	fl.StringVar(&f.whatIf, "what-if", "", "another description, to compare with")
	fl.Var(&f.stepBytes, "step-bytes", "training step: bytes that it communicates, instead of sizes")
	fl.IntVar(&f.buckets, "buckets", 1, "training step: collectives that these bytes are split into")
	fl.DurationVar(&f.compute, "compute", 0, "training step: its computation")
	fl.Float64Var(&f.overlap, "overlap", 0, "training step: share of the communication that can run beside the computation, 0 to 1")
	fl.BoolVar(&f.check, "check", false, "with --like: fit half of the results and say how well they predict the rest")
	fl.BoolVar(&f.sample, "example", false, "print a description to start from")
	formatFlag(fl, &f.format, "table, or of the records: "+strings.Join(slices.DeleteFunc(reports.Formats(), func(s string) bool { return s == "table" }), ", "))
	fl.StringVar(&f.output, "output", "", "file to write the predictions to, as results")
	return cmd
}

// valid checks what can be checked without reading a file.
func (f *planFlags) valid(files []string) error {
	if err := knownFormat(f.format); err != nil {
		return err
	}
	switch {
	case len(files) > 1:
		return fmt.Errorf("busbw plan takes one description, got %d; another one goes with --what-if", len(files))
	case len(files) == 0 && len(f.like) == 0:
		return errors.New("busbw plan needs a description (busbw plan --example prints one) or --like FILE")
	case f.check && len(f.like) == 0:
		return errors.New("--check needs results: --like FILE")
	case f.whatIf != "" && (f.stepBytes > 0 || f.format != "table" || f.output != ""):
		return errors.New("--what-if prints a table of its own: leave out --step-bytes, --format and --output")
	case f.stepBytes == 0 && (f.compute != 0 || f.overlap != 0 || f.buckets != 1):
		return errors.New("--compute, --overlap and --buckets go with --step-bytes")
	}
	if f.stepBytes > 0 {
		return plan.Step{Bytes: int64(f.stepBytes), Buckets: f.buckets, Compute: f.compute, Overlap: f.overlap}.Check()
	}
	return nil
}

// describe reads a description; what is wrong with it is wrong use.
func describe(name string) (*plan.Cluster, error) {
	r, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, err := plan.Read(r)
	if errors.Is(err, plan.ErrDescription) {
		return nil, usageError{fmt.Errorf("%s: %w", name, err)}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if c.Name == "" {
		c.Name = name
	}
	return c, nil
}

// machine is a description with the paths of --like, if given.
func (f *planFlags) machine(file string, measured []reports.Result) (*plan.Machine, error) {
	var c *plan.Cluster
	if file != "" {
		var err error
		if c, err = describe(file); err != nil {
			return nil, err
		}
	}
	if len(f.like) == 0 {
		return c.Described(), nil
	}
	m, err := plan.Calibrate(measured, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(f.like, ", "), err)
	}
	return m, nil
}

func (f *planFlags) predict(ctx context.Context, out, errs io.Writer, files []string) error {
	var measured []reports.Result
	for _, name := range f.like {
		results, warnings, err := reports.ReadFile(name)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			fmt.Fprintln(errs, "busbw: warning:", w)
		}
		measured = append(measured, results...)
	}
	if f.check {
		return check(out, measured)
	}
	m, err := f.machine(strings.Join(files, ""), measured)
	if err != nil {
		return err
	}
	planned, err := f.cases(m)
	if err != nil {
		return usageError{err}
	}
	if err := f.introduce(out, m); err != nil {
		return err
	}
	if f.whatIf == "" {
		got, err := predictions(ctx, errs, m, planned)
		return f.show(out, errs, m, got, err)
	}
	n, err := f.machine(f.whatIf, measured)
	if err != nil {
		return err
	}
	if err := f.introduce(out, n); err != nil {
		return err
	}
	a, err := predictions(ctx, errs, m, planned)
	if err != nil {
		return err
	}
	if planned, err = f.cases(n); err != nil { // its own number of nodes, unless --nodes says
		return usageError{err}
	}
	b, err := predictions(ctx, errs, n, planned)
	if err != nil {
		return err
	}
	return plan.Versus(out, a, b, m.Name, n.Name)
}

// check prints how well half of the results predict the rest.
func check(out io.Writer, measured []reports.Result) error {
	h, err := plan.Check(measured)
	if err != nil {
		return err
	}
	return h.Write(out)
}
