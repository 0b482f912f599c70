package main

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"busbw/coordinator"
	"busbw/worker"
	"busbw/worker/topo"
)

func workerCommand() *cobra.Command {
	var c clusterFlags
	var ranks int
	var name string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run on a node: join the cluster and wait for jobs",
		Long: `Run on a node. The worker joins the cluster and, when busbw run asks, starts a
process with this node's ranks. It takes one job at a time and outlives them.`,
		Example: `  busbw worker --secret-file key                          # the first node
  busbw worker --secret-file key --join 10.0.0.1          # the others
  NCCL_SOCKET_IFNAME=ib0 busbw worker --secret-file key --join 10.0.0.1 --ranks 8`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.valid(); err != nil {
				return err
			}
			if ranks < 1 || ranks > 1024 {
				return usageError{fmt.Errorf("--ranks %d: want 1 to 1024", ranks)}
			}
			if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }) {
				return usageError{fmt.Errorf("--name %q: want at most 64 bytes that can be printed", name)}
			}
			secret, err := coordinator.ReadSecret(c.secretFile)
			if err != nil {
				return err
			}
			return worker.Serve(cmd.Context(), worker.Options{
				Secret: secret, Seeds: c.join, Bind: c.gossipAddr(coordinator.GossipPort), Want: c.want(), Ranks: ranks,
				Name: name, Version: version, Log: logger(cmd.ErrOrStderr()), Out: cmd.ErrOrStderr(),
			})
		},
	}
	c.add(cmd)
	cmd.Flags().IntVar(&ranks, "ranks", offered(os.DirFS("/")), "ranks that this node offers (default: one for each NVIDIA GPU, else for each processor)")
	cmd.Flags().StringVar(&name, "name", "", "name to show instead of the host name")
	return cmd
}

// offered is how many ranks a node has unless it is told.
func offered(root fs.FS) (n int) {
	gpus, _ := topo.GPUs(root) // what cannot be seen is not offered
	for _, g := range gpus {
		if g.Vendor == "nvidia" {
			n++
		}
	}
	if n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// runnerCommand is the process that a worker starts for a job. It is not for
// people.
func runnerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:    worker.RunnerVerb,
		Short:  "Hold a node's ranks for one launch (started by the worker)",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			return worker.Run(version, os.Stdin, os.Stdout)
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:    worker.GPUsVerb,
		Short:  "Ask this machine's GPU driver, for an agent that must outlive it",
		Hidden: true,
		Args:   noArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return worker.PrintGPUs(cmd.OutOrStdout()) },
	})
	cmd.AddCommand(&cobra.Command{
		Use:    worker.ProbeVerb,
		Short:  "Register memory with every RDMA port, for a check that must outlive it",
		Hidden: true,
		Args:   noArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return worker.PrintProbes(cmd.OutOrStdout()) },
	})
	return cmd
}
