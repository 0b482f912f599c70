package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"busbw/collectives/reduce"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and what this build can use here",
		Example: "  busbw version",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "busbw %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			fmt.Fprintf(out, "reduction kernels: %s\n", reduce.ISAs()[0])
			return nil
		},
	}
}
