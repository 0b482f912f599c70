package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"busbw/reports"
	"busbw/reports/imports"
)

// maxShown bounds the records that import's table holds; all go to --output.
const maxShown = 20000

func importCommand() *cobra.Command {
	format, output := "table", ""
	cmd := &cobra.Command{
		Use:   "import FILE…",
		Short: "Read the logs of nccl-tests, rccl-tests, perftest and gloo's benchmark",
		Long: `Read what other benchmarks print: nccl-tests and rccl-tests of every version as
text or JSON, perftest as text or JSON, gloo's benchmark; with the prefixes of
launchers, NCCL's own lines in between, cut off, several tests in one file.
"-" reads standard input.

It says first how many worlds (communicators) the text holds and how many ranks
each has. What the text does not say stays unknown; what is worked out from
other numbers is said to be. Records go to --output and into busbw report and
busbw compare, like those of busbw run.

Exit status: 0 fine, 1 nothing to read, 2 wrong use, 3 a test failed, hung, was
cut off before its first result, found wrong data, or the ranks never formed one
communicator; also where NCCL's warnings are all that there is.`,
		Example: `  busbw import slurm-1234.out
  mpirun … all_reduce_perf -b 8 -e 8G -f 2 | busbw import -
  busbw import -o results/nccl.jsonl.zst *.log
  busbw import --format md run.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s needs a file; - reads standard input", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			return importFiles(cmd.OutOrStdout(), cmd.ErrOrStderr(), files, format, output)
		},
	}
	formatFlag(cmd.Flags(), &format, "one of "+strings.Join(reports.Formats(), ", ")+"; other than table, the summary goes to standard error")
	cmd.Flags().StringVarP(&output, "output", "o", output, "results file to write the records to")
	return cmd
}

func importFiles(out, errs io.Writer, files []string, format, output string) (err error) {
	var file *reports.Writer
	if output != "" {
		if file, err = reports.Create(output); err != nil {
			return err
		}
		defer func() {
			if cerr := file.Close(); err == nil || errors.Is(err, errFound) && cerr != nil {
				err = cerr
			}
		}()
	}
	head := out
	if format != "table" {
		head = errs
	}
	var shown []reports.Result
	found, more := false, 0
	var barren []string // files without anything to import
	for _, name := range files {
		text, err := imports.File(name, func(r reports.Result) error {
			if len(shown) < maxShown {
				shown = append(shown, r)
			} else {
				more++
			}
			if file != nil {
				return file.Write(r)
			}
			return nil
		})
		if text != nil {
			if err := text.Describe(head); err != nil {
				return err
			}
			for _, w := range text.Warnings {
				fmt.Fprintln(errs, "busbw: warning:", w)
			}
			found = found || text.Bad()
			if text.Records == 0 && len(text.Worlds) == 0 && !text.Bad() {
				barren = append(barren, name)
			}
		}
		if err != nil {
			return err
		}
	}
	if len(barren) == len(files) {
		return fmt.Errorf("%s: nothing to import", strings.Join(files, ", "))
	}
	for _, name := range barren {
		fmt.Fprintf(errs, "busbw: warning: %s: nothing to import\n", name)
	}
	if len(shown) > 0 {
		if format == "table" {
			fmt.Fprintln(out)
		}
		if err := reports.Render(out, format, shown); err != nil {
			return err
		}
	}
	if more > 0 {
		fmt.Fprintf(errs, "%s more not shown; --output keeps all\n", plural(more, "result"))
	}
	if file != nil {
		fmt.Fprintf(errs, "%s kept in %s\n", plural(len(shown)+more, "result"), output)
	}
	if found {
		return errFound
	}
	return nil
}
