package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
"-" reads standard input. Given what busbw check, topo and accept write as JSON
too, the html page has the findings with what to do about them, and how GPUs and
adapters are joined. A folder of busbw accept or sweep stands for its files.

Exit status: 0 fine, 1 could not, 2 wrong use, 3 wrong data or a failed check is
in it.`,
		Example: `  busbw report results/20261130-101500-3f2a.jsonl.zst
  busbw report --plot results/20261130-101500-3f2a.jsonl.zst
  busbw report --format html FILE > report.html
  busbw report --format html FILE check.json topo.json > report.html
  busbw report --format html acceptance/20261130-101500-3f2a > report.html
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
	var around reports.Around
	for _, name := range files {
		inside, err := filesOf(name)
		if err != nil {
			return err
		}
		for _, file := range inside {
			l, err := imports.Load(file)
			for _, w := range l.Warnings {
				fmt.Fprintln(errs, "busbw: warning:", w)
			}
			if err != nil {
				return err
			}
			all = append(all, l.Results...)
			around.Add(l.Around)
		}
	}
	if len(all) == 0 && around.Empty() {
		return fmt.Errorf("%s: no results in it", strings.Join(files, ", "))
	}
	if err := reports.RenderWith(out, format, all, around); errors.Is(err, reports.ErrNoPlace) {
		return usageError{err}
	} else if err != nil {
		return err
	}
	if len(all) > 0 && !around.Empty() && !reports.ShowsAround(format) {
		fmt.Fprintf(errs, "busbw: note: %s are not shown in %s; html, table and detail show them\n", plural(len(around.Findings), "finding"), format)
	}
	if plot && len(all) > 0 {
		if err := reports.Plot(out, all); err != nil {
			return err
		}
	}
	if reports.Found(all) || len(around.Findings) > 0 && reports.Worst(around.Findings) == reports.Fail {
		return errFound
	}
	return nil
}

// filesOf is a file, or what is in a folder that busbw accept or sweep has
// written: its results, and its report of findings.
func filesOf(name string) ([]string, error) {
	info, err := os.Stat(name)
	if name == "-" || err != nil || !info.IsDir() {
		return []string{name}, nil
	}
	var files []string
	for _, pattern := range []string{"*.jsonl.zst", "*.jsonl", "report.json"} {
		found, err := filepath.Glob(filepath.Join(name, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("%s: no results in this folder: want *.jsonl.zst, *.jsonl or accept's report.json", name)
	case len(files) > maxFolder:
		return nil, fmt.Errorf("%s: %d files; name those that one report is to show (busbw results --dir %s lists them)", name, len(files), name)
	}
	return files, nil
}

// maxFolder is more files than a sweep of settings leaves.
const maxFolder = 512
