package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"busbw/collectives/reduce"
	"busbw/rdma"
	"busbw/worker/gpu"
)

func versionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version and what this build can use here",
		Example: "  busbw version",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := tableOrJSON(format); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if format == "json" {
				return json.NewEncoder(out).Encode(map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
					"kernels": reduce.ISAs()[0], "rdma": rdmaState(os.DirFS("/")), "gpus": gpuState()})
			}
			fmt.Fprintf(out, "busbw %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			fmt.Fprintf(out, "reduction kernels: %s\n", reduce.ISAs()[0])
			fmt.Fprintf(out, "RDMA: %s\n", rdmaState(os.DirFS("/")))
			fmt.Fprintf(out, "GPUs: %s\n", gpuState())
			return nil
		},
	}
	formatFlag(cmd.Flags(), &format, "one of table, json")
	return cmd
}

// gpuState says whether the CUDA driver can be used and what it has.
func gpuState() string {
	d, err := gpu.Open()
	if err != nil {
		return err.Error()
	}
	all, err := d.Devices()
	if err != nil {
		return err.Error()
	}
	names := []string{"driver for CUDA " + gpu.Version(d.Version)}
	for _, g := range all {
		names = append(names, g.String())
	}
	return strings.Join(names, "; ")
}

// rdmaState says whether libibverbs can be used and which ports there are.
func rdmaState(root fs.FS) string {
	state := "libibverbs can be used"
	if err := rdma.Available(); err != nil {
		state = err.Error()
	}
	hcas, err := rdma.HCAs(root)
	if err != nil {
		return state + "; the devices cannot be read: " + err.Error()
	}
	rails, passed := rdma.Rails(hcas, rdma.Settings{})
	for _, r := range rails {
		passed = append(passed, fmt.Sprintf("%s: active, %s, %s", r, r.Port.LinkLayer, r.Port.Rate))
	}
	if len(passed) == 0 {
		return state + "; no RDMA device"
	}
	return state + "; " + strings.Join(passed, "; ")
}
