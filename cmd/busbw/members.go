package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/olekukonko/tablewriter"
	"github.com/spf13/cobra"

	"busbw/coordinator"
)

func membersCommand() *cobra.Command {
	var c clusterFlags
	var format string
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the members of a cluster",
		Long: `List the members of a cluster, which address each is reached at and why that one.
Exit status 3: a member cannot be used.`,
		Example: `  busbw members --join 10.0.0.1 --secret-file key
  busbw members --join 10.0.0.1 --secret-file key --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := tableOrJSON(format); err != nil {
				return err
			}
			if len(c.join) == 0 {
				return usageError{fmt.Errorf("--join is needed: the address of any member")}
			}
			if err := c.valid(); err != nil {
				return err
			}
			cl, err := c.enter(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer cl.Close()
			if err := pause(cmd.Context(), settle); err != nil {
				return err
			}
			return printMembers(cmd.OutOrStdout(), cl.Members(), format == "json")
		},
	}
	c.add(cmd)
	formatFlag(cmd.Flags(), &format, "one of table, json")
	return cmd
}

// printMembers shows all but the members that only measure.
func printMembers(out io.Writer, members []coordinator.Member, asJSON bool) error {
	bad := false
	for _, m := range members {
		bad = bad || m.Problem != ""
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(members); err != nil {
			return err
		}
	} else {
		t := tablewriter.NewTable(out)
		t.Header("host", "id", "role", "state", "ranks", "address", "because", "version")
		for _, m := range members {
			why := m.Why
			if m.Problem != "" {
				why = "cannot be used: " + m.Problem
			}
			ranks := ""
			if m.Role == coordinator.RoleWorker {
				ranks = fmt.Sprint(m.Ranks)
			}
			if err := t.Append(m.Host, fmt.Sprintf("%.8s", m.ID), m.Role, m.State, ranks, m.Data.String(), why, m.Version); err != nil {
				return err
			}
		}
		if err := t.Render(); err != nil {
			return err
		}
	}
	if bad {
		return errFound
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
