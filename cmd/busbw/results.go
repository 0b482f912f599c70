package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"busbw/reports"
)

func resultsCommand() *cobra.Command {
	dir := "results"
	cmd := &cobra.Command{
		Use:   "results",
		Short: "List, show, prune and archive the results of earlier runs",
		Long: `List the results files of a folder, newest first: when, what, ranks and nodes,
best busbw, wrong data. "3 of 12" results: the run was interrupted (run --resume
FILE goes on); "not ended": it was killed, or is still running. An index in the folder (index.json) saves reading the
files again; it may be deleted at any time. Folders of busbw sweep and busbw
accept are listed below; prune and archive leave them alone.`,
		Example: `  busbw results
  busbw results show 3f2a1b9c                # by the beginning of a run's id or a file's name
  busbw results prune --keep 20 --dry-run
  busbw results prune --older 720h
  busbw results archive                      # zstd for plain files`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listResults(cmd.OutOrStdout(), dir) },
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", dir, "folder of results files")
	cmd.AddCommand(showCommand(&dir), pruneCommand(&dir), archiveCommand(&dir))
	return cmd
}

func listResults(out io.Writer, dir string) error {
	all, err := reports.History(dir)
	if err != nil {
		return err
	}
	folders, err := foldersIn(dir)
	if err != nil {
		return err
	}
	if len(all)+len(folders) == 0 {
		return fmt.Errorf("%s: no results files (.jsonl, .jsonl.zst), no sweeps and no acceptances; busbw run leaves files in results/, busbw accept folders in acceptance/ (--dir)", dir)
	}
	text := ""
	if len(all) > 0 {
		if text, err = reports.HistoryTable(all); err != nil {
			return err
		}
	}
	kind := ""
	for _, f := range folders {
		if f.kind != kind {
			kind = f.kind
			text += kind + ":\n"
		}
		text += "  " + plainName(filepath.Join(dir, f.name)) + f.verdict + "\n"
	}
	_, err = io.WriteString(out, text)
	return err
}

// plainName is a name as it is, in quotes where it could steer a terminal.
func plainName(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

// folder is a sweep's or an acceptance's, with several files in it.
type folder struct{ name, kind, verdict string }

// What stands over folders of each kind.
const (
	sweepFolders  = "sweeps, of several files each (busbw results show FOLDER shows what one has found, busbw sweep --resume FOLDER goes on with it)"
	acceptFolders = "acceptances (busbw results show FOLDER shows one, busbw report --format html FOLDER as a page)"
)

// foldersIn are the folders of sweeps in dir, then those of acceptances, each by
// name, which begins with the time.
func foldersIn(dir string) (folders []folder, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("results folder: %w", err)
	}
	var accepted []folder
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, e.Name(), manifestName)); err == nil {
			folders = append(folders, folder{e.Name(), sweepFolders, ""})
		}
		if f, err := os.Open(filepath.Join(dir, e.Name(), "report.json")); err == nil {
			verdict := ": cannot be read"
			if a, err := reports.ReadAround(f, e.Name()); err == nil {
				verdict = ": " + string(a.Verdict()) + " (" + reports.Tally(a.Findings) + ")"
			}
			f.Close()
			accepted = append(accepted, folder{e.Name(), acceptFolders, verdict})
		}
	}
	return append(folders, accepted...), nil
}

// findFolder is the one folder of a sweep or an acceptance whose name, or the id
// in it (TIME-ID-sweep), begins so; none is the error where there is none.
func findFolder(dir, what string, none error) (folder, error) {
	folders, err := foldersIn(dir)
	if err != nil {
		return folder{}, err
	}
	var found []folder
	var names []string
	for _, f := range folders {
		if f.name == what {
			return f, nil
		}
		parts := strings.SplitN(f.name, "-", 3)
		if strings.HasPrefix(f.name, what) || len(parts) == 3 && strings.HasPrefix(parts[2], what) {
			found, names = append(found, f), append(names, f.name)
		}
	}
	switch len(found) {
	case 0:
		return folder{}, none
	case 1:
		return found[0], nil
	}
	return folder{}, fmt.Errorf("%q may be %s; give more of the name", what, strings.Join(names[:min(len(names), 5)], ", "))
}

func showCommand(dir *string) *cobra.Command {
	format := "table"
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Render one run, sweep or acceptance of the folder",
		Long: `Render what busbw results lists, named by the beginning of its id or of its
file's or folder's name, or as listed. Of a sweep: which settings are better so
far (table, md, json; other formats show its launches), and how to go on.`,
		Example: "  busbw results show 3f2a1b9c --format detail\n  busbw results show results/20261130-101500-3f2a-sweep",
		Args:    oneArg("RUN, the beginning of a run's id or of a file's or folder's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			what := args[0]
			if p := filepath.Clean(what); filepath.Dir(p) == filepath.Clean(*dir) || strings.HasSuffix(what, "/") {
				what = filepath.Base(p) // as listed, or completed by a shell
			}
			file, err := reports.Find(*dir, what)
			if errors.Is(err, reports.ErrNoRun) {
				var f folder
				f, err = findFolder(*dir, what, err)
				if file = filepath.Join(*dir, f.name); err == nil && f.kind == sweepFolders && sweepFormat(format) {
					return showSweep(cmd.OutOrStdout(), cmd.ErrOrStderr(), file, format)
				}
			}
			if err != nil {
				return err
			}
			return renderFiles(cmd.OutOrStdout(), cmd.ErrOrStderr(), []string{file}, format, false)
		},
	}
	formatFlag(cmd.Flags(), &format, "one of "+strings.Join(reports.Formats(), ", "))
	return cmd
}

func pruneCommand(dir *string) *cobra.Command {
	keep, older, dry := 0, time.Duration(0), false
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete old results files",
		Long: `Delete the results files beyond the newest --keep, or those older than --older;
with both, a file must be both. Files that cannot be read are kept.`,
		Example: "  busbw results prune --keep 20 --dry-run\n  busbw results prune --older 720h --keep 10",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep < 0 || older < 0 || !cmd.Flags().Changed("keep") && !cmd.Flags().Changed("older") {
				return usageError{errors.New("say what to delete: --keep N (at least 0), --older DURATION (720h is 30 days), or both")}
			}
			all, err := reports.History(*dir)
			if err != nil {
				return err
			}
			n, bytes := 0, int64(0)
			for i, e := range all {
				if i < keep || e.Problem != "" || older > 0 && time.Since(e.Time) < older {
					continue
				}
				n, bytes = n+1, bytes+e.Size
				fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(*dir, e.File))
				if dry {
					continue
				}
				if err := os.Remove(filepath.Join(*dir, e.File)); err != nil {
					return fmt.Errorf("prune: %w", err)
				}
			}
			what := "deleted"
			if dry {
				what = "would be deleted"
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%d of %s %s, %.1f MB\n", n, plural(len(all), "file"), what, float64(bytes)/1e6)
			if dry || n == 0 {
				return nil
			}
			_, err = reports.History(*dir) // the index
			return err
		},
	}
	cmd.Flags().IntVar(&keep, "keep", 0, "keep the newest N files")
	cmd.Flags().DurationVar(&older, "older", 0, "delete only files older than this, for example 720h")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be deleted")
	return cmd
}

func archiveCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:     "archive",
		Short:   "Compress plain results files with zstd",
		Example: "  busbw results archive --dir results",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := reports.History(*dir)
			if err != nil {
				return err
			}
			n, total := 0, int64(0)
			for _, e := range all {
				if !strings.HasSuffix(e.File, ".jsonl") || e.Problem != "" {
					continue
				}
				archive, saved, err := reports.Archive(*dir, e.File)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(*dir, archive))
				n, total = n+1, total+saved
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s archived, %.1f MB saved\n", plural(n, "file"), float64(total)/1e6)
			_, err = reports.History(*dir)
			return err
		},
	}
}

// oneArg wants exactly one argument, which what names.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{fmt.Errorf("%s takes one argument, %s; got %d", cmd.CommandPath(), what, len(args))}
		}
		return nil
	}
}
