package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"busbw/reports"
)

// compareFlags are the flags of busbw compare, as given.
type compareFlags struct {
	format, baseline, failIf string
	margin, wire             string
}

func compareCommand() *cobra.Command {
	f := compareFlags{}
	cmd := &cobra.Command{
		Use:   "compare A B [C…]",
		Short: "Say which results differ, and how sure that is",
		Long: `Set results beside each other, size by size, and say what is shown to differ.
A, B, … are results files, or folders of them: what busbw run, busbw sweep, a
prediction or an import wrote; or logs that busbw import reads. "label=FILE"
names one, FILE#2 is the second run in a file, "-" is standard input.

The unit of statistics is the launch (busbw run --launches 10): iterations
within a launch are correlated. "faster" and "slower" are claimed only where the
difference is significant over all sizes together and its whole interval lies
beyond --margin; "~" is everything else. Below 6 launches on a side nothing is
claimed. Wrong data and results above the wire's rate are no results.

Exit status: 0 fine, 1 could not, 2 wrong use, 3 wrong or impossible data, or a
regression that --fail-if asks for.`,
		Example: `  busbw compare before.jsonl.zst after.jsonl.zst
  busbw compare old=all.log#1 new=all.log#2
  busbw compare ring=a.jsonl tree=b.jsonl --format md
  busbw compare --baseline results today.jsonl.zst --fail-if slower=5%
  zstdcat new.jsonl.zst | busbw compare old.jsonl new=- --format csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if want := 2 - min(1, len(f.baseline)); len(args) < want {
				return usageError{fmt.Errorf("%s needs two results files, or one and --baseline DIR, got %d", cmd.CommandPath(), len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.baseline, "baseline", "", "folder of earlier results that the others are compared with")
	fl.StringVar(&f.margin, "margin", "2%", "least difference that is claimed")
	fl.StringVar(&f.failIf, "fail-if", "", "slower=5%: exit with 3 where a size is shown to be slower by that much, or has lost its result")
	fl.StringVar(&f.wire, "wire", "", "GB/s that no rank can exceed, for results that do not know their wire's rate")
	formatFlag(fl, &f.format, "one of "+strings.Join(reports.CompareFormats(), ", "))
	return cmd
}

func (f *compareFlags) run(out, errs io.Writer, args []string) error {
	o, gate, err := f.valid()
	if err != nil {
		return usageError{err}
	}
	var sides []reports.Side
	var from []string // the argument of each side
	warnings := &once{errs, map[string]bool{}}
	if f.baseline != "" {
		s, err := f.history(warnings, args)
		if err != nil {
			return err
		}
		sides, from = append(sides, s), append(from, f.baseline)
	}
	for _, a := range args {
		s, err := readSide(warnings, a)
		if err != nil {
			return err
		}
		sides, from = append(sides, s), append(from, a)
	}
	distinct(sides, from)
	c, err := reports.Compare(sides, o)
	if err != nil {
		return err
	}
	if err := c.Render(out, f.format); err != nil {
		return err
	}
	return f.verdict(errs, c, gate)
}

// verdict is the exit status of a comparison.
func (f *compareFlags) verdict(errs io.Writer, c *reports.Comparison, gate float64) error {
	if f.failIf != "" {
		found := c.Regressions(gate)
		for _, r := range found {
			fmt.Fprintln(errs, "busbw: regression:", r)
		}
		switch {
		case len(found) > 0:
			return errFound
		case c.Judged() == 0:
			return errors.New("--fail-if: no size could be judged; each side needs at least 6 launches (busbw run --launches 6)")
		}
	}
	for _, r := range c.Rows {
		for _, x := range r.Cells {
			if x.Verdict == reports.Wrong || x.Verdict == reports.Beyond {
				return errFound
			}
		}
	}
	return nil
}

func (f *compareFlags) valid() (o reports.CompareOptions, gate float64, err error) {
	if !slices.Contains(reports.CompareFormats(), f.format) {
		return o, 0, fmt.Errorf("unknown format %q; the formats are %s", f.format, strings.Join(reports.CompareFormats(), ", "))
	}
	if o.Margin, err = percent(f.margin); err != nil {
		return o, 0, fmt.Errorf("--margin %q: %w", f.margin, err)
	}
	if f.failIf != "" {
		what, v, _ := strings.Cut(f.failIf, "=")
		if gate, err = percent(v); err != nil || what != "slower" {
			return o, 0, fmt.Errorf("--fail-if %q: want slower=PERCENT, for example slower=5%%", f.failIf)
		}
	}
	if f.wire != "" {
		if o.Wire, err = strconv.ParseFloat(f.wire, 64); err != nil || !(o.Wire > 0 && o.Wire < 1e9) {
			return o, 0, fmt.Errorf("--wire %q: want GB/s, for example 50", f.wire)
		}
	}
	return o, gate, nil
}

// percent reads "5%" or "5" as 0.05.
func percent(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "%")), 64)
	if err != nil || !(v >= 0 && v <= 1000) {
		return 0, errors.New("want per cent, for example 2%")
	}
	return v / 100, nil
}
