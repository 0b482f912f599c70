package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"busbw/reports"
	"busbw/reports/imports"
)

func reportCommand() *cobra.Command {
	format, plot := "table", false
	cmd := &cobra.Command{
		Use:   "report FILE…",
		Short: "Render results again, in any format",
		Long: `Render the results of one or several runs. FILE is what busbw run wrote
(JSON lines, plain or zstd), or a log of another benchmark (busbw import --help);
"-" reads standard input.`,
		Example: `  busbw report results/20261130-101500-3f2a.jsonl.zst
  busbw report --plot results/20261130-101500-3f2a.jsonl.zst
  busbw report --format html FILE > report.html
  busbw report --format nccl results/*.jsonl.zst
  zstdcat FILE | busbw report --format csv -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s needs a file; busbw run leaves one in results/", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			return renderFiles(cmd.OutOrStdout(), cmd.ErrOrStderr(), files, format, plot)
		},
	}
	formatFlag(cmd.Flags(), &format, "one of "+strings.Join(reports.Formats(), ", "))
	cmd.Flags().BoolVar(&plot, "plot", false, "draw busbw and time against size in the terminal, after the text")
	return cmd
}

func knownFormat(format string) error {
	for _, f := range reports.Formats() {
		if f == format {
			return nil
		}
	}
	return usageError{fmt.Errorf("unknown format %q; the formats are %s", format, strings.Join(reports.Formats(), ", "))}
}

// renderFiles renders the results of all files together. Wrong data is its error.
func renderFiles(out, errs io.Writer, files []string, format string, plot bool) error {
	var all []reports.Result
	for _, name := range files {
		results, warnings, err := imports.Load(name)
		for _, w := range warnings {
			fmt.Fprintln(errs, "busbw: warning:", w)
		}
		if err != nil {
			return err
		}
		all = append(all, results...)
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: no results in it", strings.Join(files, ", "))
	}
	if err := reports.Render(out, format, all); err != nil {
		return err
	}
	if plot {
		if err := reports.Plot(out, all); err != nil {
			return err
		}
	}
	if reports.Found(all) {
		return errFound
	}
	return nil
}
