package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"busbw/coordinator"
	"busbw/reports"
)

// sweepFlags are the flags of busbw sweep, as given.
type sweepFlags struct {
	run                    runFlags
	env, files             []string
	matrix, engine, margin string
	launches, twice        int
	seed                   uint64
	budget                 time.Duration
	format, output, resume string
}

// defaultMargin is the least difference that a sweep claims unless told otherwise.
const defaultMargin = "2%"

func sweepCommand() *cobra.Command {
	f := sweepFlags{run: newRunFlags()}
	f.run.minBytes, f.run.factor, f.run.time = 1<<10, 16, 100*time.Millisecond
	f.run.ops, f.run.scopes, f.run.format = []string{"all_reduce"}, []string{"global"}, "table"
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Find out which settings are better, and whether that is so",
		Long: `Launch every setting several times, in turn, and say which is better for which
sizes, how sure that is, and what one setting for all would cost.

The base (no setting changed) is launched first on its own, to learn how much
launches of one thing differ. Then come blocks of all settings in a random order
and its reverse, so that a machine that gets slower favours none. "faster" is
claimed where the difference is significant over all tests together, and beyond
--margin and that noise. Wrong data and results above the wire's rate disqualify
a setting, however fast. What each setting did is read back from the ranks; one
without any effect is told, and cannot win. With --engine nccl any NCCL_* variable
can be swept: every launch is new processes, and what took effect is read from
NCCL's own log.

Every launch is kept in a folder, a results file for each setting: an
interrupted sweep goes on with --resume, and busbw compare and report take the
files. Exit status: 0 fine, 1 could not, 2 wrong use, 3 wrong data was found.

Settings of the native engine:
` + coordinator.SettingsHelp() + `
A matrix is YAML (docs/sweep.md has all of it):
  matrix: {NCCL_ALGO: [Ring, Tree], NCCL_BUFFSIZE: [1048576, 4194304]}
  exclude: [{NCCL_ALGO: Tree, NCCL_BUFFSIZE: 1048576}]
  variants: [{name: site, file: site.env}, {name: wide, env: {NCCL_MIN_CTAS: 4}}]
`,
		Example: `  busbw sweep --env NCCL_ALGO=Ring,Tree --env NCCL_MIN_CTAS=1,2,4 --budget 10m
  busbw sweep --engine nccl --env NCCL_ALGO=Ring,Tree,NVLS --env NCCL_PROTO=LL,Simple
  busbw sweep --matrix settings.yaml --op all_reduce,broadcast --launches 10
  busbw sweep --file old=old.env --file new=new.env --join 10.0.0.1 --secret-file key
  busbw sweep --resume results/20261130-101500-3f2a-sweep`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.start(cmd)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringArrayVar(&f.env, "env", nil, "NAME=VALUE,VALUE: a setting and its values; several make every combination")
	fl.StringVar(&f.matrix, "matrix", "", "YAML file of settings")
	fl.StringArrayVar(&f.files, "file", nil, "NAME=FILE: a named setting of -x NAME=VALUE or NAME=VALUE lines")
	fl.StringVar(&f.engine, "engine", "native", "one of "+strings.Join(coordinator.SweptEngines(), ", "))
	fl.IntVar(&f.launches, "launches", 0, "launches of each setting (0: as many as the number of tests needs, 6 or more)")
	fl.IntVar(&f.twice, "aa", 6, "launches of the base before all others, to learn the noise (0: none)")
	fl.Uint64Var(&f.seed, "seed", 0, "of the random order (0: a new one, which is kept)")
	fl.DurationVar(&f.budget, "budget", 0, "longest time for all; fewer launches where more do not fit (0: no limit)")
	fl.StringVar(&f.margin, "margin", defaultMargin, "least difference that is claimed")
	f.run.what(fl)
	f.run.where(cmd)
	formatFlag(fl, &f.format, "one of "+strings.Join(reports.TuningFormats(), ", "))
	fl.StringVar(&f.output, "output", "", "folder for the results (default results/TIME-ID-sweep)")
	fl.StringVar(&f.resume, "resume", "", "go on with the sweep in this folder; without anything left to do, show its report again")
	underSlurm(cmd, &f.run.cluster)
	return cmd
}

// start checks everything that can be checked before a launch.
func (f *sweepFlags) start(cmd *cobra.Command) error {
	var kept *manifest
	if f.resume != "" {
		var err error
		if kept, err = readManifest(f.resume); err != nil {
			return err
		}
		for _, name := range []string{"launches", "aa", "seed", "engine"} {
			if cmd.Flags().Changed(name) {
				return usageError{fmt.Errorf("--resume %s goes on with what the sweep began with: leave out --%s, or begin a new sweep", f.resume, name)}
			}
		}
		if err := kept.restore(cmd.Flags()); err != nil {
			return usageError{fmt.Errorf("%s: %w", f.resume, err)}
		}
	}
	if cmd.Flags().Changed("stepbytes") && !cmd.Flags().Changed("stepfactor") {
		f.run.factor = 1
	}
	if err := f.run.cluster.apart(cmd.Flags()); err != nil {
		return err
	}
	s, err := f.plan(kept)
	if err != nil {
		return usageError{err}
	}
	s.out, s.errs = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if kept == nil {
		s.manifest = manifest{Format: 1, Engine: f.engine, Run: newID(), Seed: f.seed, Variants: s.variants, Flags: given(cmd.Flags()), Version: version, Began: time.Now().UTC()}
		if s.manifest.Seed == 0 {
			s.manifest.Seed = uint64(time.Now().UnixNano())
		}
		if f.budget > 0 {
			s.manifest.Budget = f.budget.String()
		}
	}
	return s.run(cmd.Context())
}

// plan turns the flags into variants and a request for each. The variants of a
// sweep that goes on are those that it began with.
func (f *sweepFlags) plan(kept *manifest) (*sweep, error) {
	s := &sweep{flags: f}
	var err error
	if s.margin, err = percent(f.margin); err != nil {
		return nil, fmt.Errorf("--margin %q: %w", f.margin, err)
	}
	switch {
	case !slices.Contains(reports.TuningFormats(), f.format):
		return nil, fmt.Errorf("unknown format %q; the formats are %s", f.format, strings.Join(reports.TuningFormats(), ", "))
	case f.launches < 0 || f.launches > 1000 || f.twice < 0 || f.twice > 1000:
		return nil, fmt.Errorf("--launches %d and --aa %d: want 0 to 1000", f.launches, f.twice)
	case f.budget < 0:
		return nil, errors.New("--budget cannot be negative")
	case f.resume != "" && f.output != "" && f.output != f.resume:
		return nil, errors.New("--resume goes on in the folder that it reads: leave out --output")
	}
	f.run.launches = 1 // what valid looks at
	if kept != nil {
		if f.matrix != "" || f.env != nil || f.files != nil {
			return nil, errors.New("--resume has its settings: leave out --matrix, --env and --file")
		}
		s.manifest, s.variants, f.engine = *kept, kept.Variants, cmp.Or(kept.Engine, "native")
	} else if s.variants, s.notes, err = f.variants(); err != nil {
		return nil, err
	}
	f.run.engines = []string{f.engine}
	named := slices.ContainsFunc(f.run.algos, func(a string) bool { return a != "auto" })
	for _, v := range s.variants {
		if _, set := v.Env["NCCL_ALGO"]; set && named && f.engine == "native" {
			return nil, fmt.Errorf("%s: NCCL_ALGO does nothing beside --algo %s: leave one of them out", v.Name, strings.Join(f.run.algos, ","))
		}
		req, err := f.run.request()
		if err != nil {
			return nil, err
		}
		req.Verb = "sweep"
		if req.OnNCCL() {
			req.NCCL = v.Settings
		} else {
			maps.Copy(req.Settings, v.Settings)
		}
		if err := req.Valid(); err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		s.requests = append(s.requests, req)
	}
	return s, f.run.valid(s.requests[0])
}

// variants are those of the flags.
func (f *sweepFlags) variants() ([]coordinator.Variant, []string, error) {
	m, err := f.settings()
	if err != nil {
		return nil, nil, err
	}
	f.engine = m.Engine
	return m.Variants(os.Environ())
}

// settings is the matrix of --matrix, --env and --file.
func (f *sweepFlags) settings() (m *coordinator.Matrix, err error) {
	m = &coordinator.Matrix{}
	if f.matrix != "" {
		file, err := os.Open(f.matrix)
		if err != nil {
			return nil, fmt.Errorf("--matrix: %w", err)
		}
		defer file.Close()
		beside := func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(f.matrix), name)
			}
			return readSmall(name)
		}
		if m, err = coordinator.ReadMatrix(file, beside, os.LookupEnv); err != nil {
			return nil, fmt.Errorf("%s: %w", f.matrix, err)
		}
	}
	if m.Engine == "" {
		m.Engine = f.engine
	}
	for _, e := range f.env {
		a, err := coordinator.ParseAxis(e)
		if err != nil {
			return nil, fmt.Errorf("--env %w", err)
		}
		m.Axes = append(m.Axes, a)
	}
	for _, n := range f.files {
		name, path, ok := strings.Cut(n, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--file %q: want NAME=FILE", n)
		}
		text, err := readSmall(path)
		if err != nil {
			return nil, fmt.Errorf("--file %s: %w", name, err)
		}
		env, err := coordinator.ReadLines(text, os.LookupEnv)
		if err != nil {
			return nil, fmt.Errorf("--file %s: %s: %w", name, path, err)
		}
		m.Named = append(m.Named, coordinator.Variant{Name: name, Env: env})
	}
	return m, nil
}

// readSmall reads a file of settings; one beyond a megabyte is none.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return nil, fmt.Errorf("%s is no file of settings: it is no regular file, or larger than 1 MiB", path)
	}
	return os.ReadFile(path)
}
