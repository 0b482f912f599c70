package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"busbw/coordinator/accept"
	"busbw/reports"
)

func profileCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "List, show and learn what nodes of a kind must reach",
		Long: `A profile says what nodes of one kind have and must reach: each limit with the
size that it holds for and its source. busbw accept --profile judges by it.`,
		Example: `  busbw profile list
  busbw profile show hgx-h100-ndr > mine.yaml     # to change it
  busbw profile learn results/20261130-101500-3f2a.jsonl.zst --name mine > mine.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown %s %q; want list, show or learn", cmd.CommandPath(), args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(profileList(), profileShow(), profileLearn())
	for _, c := range cmd.Commands() {
		c.SetFlagErrorFunc(flagError)
	}
	return cmd
}

func profileList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the profiles of the program", Example: "  busbw profile list", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tLIMITS\tNODES OF IT")
			for _, n := range accept.Names() {
				p, err := accept.Builtin(n)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%d\t%s\n", n, len(p.Limits), p.Title)
			}
			return w.Flush()
		},
	}
}

func profileShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a profile of the program as YAML", Example: "  busbw profile show hgx-a100-hdr",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s takes one name; the profiles are %s", cmd.CommandPath(), strings.Join(accept.Names(), ", "))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := accept.Text(args[0])
			if err != nil {
				return usageError{err}
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}

func profileLearn() *cobra.Command {
	name, margin := "", 0.0
	cmd := &cobra.Command{
		Use: "learn FILE…", Short: "Make a profile of results from nodes that are known to be good",
		Long: `Make a profile of results from nodes that are known to be good: what busbw run,
pairs and accept write. Each limit is the median of what it will judge (each
node's own figure, or that of all) less what chance takes off it, at least
--margin. Results whose pairs accuse a node are refused; figures that scatter
and an acceptance that did not accept its nodes are warned of.`,
		Example: "  busbw profile learn acceptance/results.jsonl.zst --name mine > mine.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s needs a results file", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(margin >= 0 && margin < 1) {
				return usageError{fmt.Errorf("--margin %g: want a share of the median, 0 to 0.99, for example 0.1", margin)}
			}
			var all []reports.Result
			for _, a := range args {
				rs, warnings, err := reports.ReadFile(a)
				if err != nil {
					return err
				}
				for _, w := range warnings {
					fmt.Fprintln(cmd.ErrOrStderr(), "busbw: warning:", w)
				}
				all = append(all, rs...)
			}
			p, warnings, err := accept.Learn(name, all, margin)
			if err != nil {
				return err
			}
			for _, a := range args {
				warnings = append(warnings, unaccepted(a)...)
			}
			for _, w := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "busbw: warning:", w)
			}
			text, err := p.YAML()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "learned", "name of the profile, without blanks")
	cmd.Flags().Float64Var(&margin, "margin", accept.Margin, "how far each limit is below the median, at least: 0.05 is 5 %")
	return cmd
}

// mostReport bounds an acceptance's report.json: 512 nodes make a few MB.
const mostReport = 64 << 20

// unaccepted warns where a results file is that of an acceptance (whose report
// lies beside it) that did not accept all its nodes.
func unaccepted(results string) []string {
	name := filepath.Join(filepath.Dir(results), "report.json")
	in, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // busbw run or pairs wrote it
	}
	var rep accept.Report
	if err == nil {
		defer in.Close()
		err = json.NewDecoder(io.LimitReader(in, mostReport)).Decode(&rep)
	}
	if err != nil {
		return []string{fmt.Sprintf("%s: %v; whether these nodes were accepted is not known", name, err)}
	}
	n := len(rep.Passing())
	if n == len(rep.Nodes) && (rep.Verdict == reports.Pass || rep.Verdict == reports.Warn) {
		return nil
	}
	w := fmt.Sprintf("%s: that acceptance ended with %s, %d of %s accepted: the profile is good only if these nodes are", results, reports.Clean(string(rep.Verdict)), n, plural(len(rep.Nodes), "node"))
	if bad := rep.Quarantined(); len(bad) > 0 {
		bad = bad[:min(len(bad), 8)]
		for i := range bad {
			bad[i] = reports.Clean(bad[i])
		}
		w += "; " + strings.Join(bad, ", ") + " failed"
	}
	return []string{w}
}

// readProfile is a profile by its name, or from a file: one with a / or a dot
// in its name.
func readProfile(name string) (*accept.Profile, error) {
	if !strings.ContainsRune(name, filepath.Separator) && !strings.Contains(name, ".") {
		return accept.Builtin(name)
	}
	in, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--profile %s: no such file; the profiles of the program are %s", name, strings.Join(accept.Names(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	defer in.Close()
	return accept.Parse(in, name)
}
