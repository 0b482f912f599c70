package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"busbw/coordinator"
	"busbw/reports"
	"busbw/worker"
	"busbw/worker/topo"
)

// topoFlags say whose topology, and how it is shown.
type topoFlags struct {
	cluster clusterFlags
	roots   []string
	files   []string
	format  string
}

// topoReport is what busbw topo says.
type topoReport struct {
	Nodes []reports.Topology `json:"nodes"`
	Odd   []string           `json:"odd,omitempty"` // what a node has that the others have not
	Mute  []string           `json:"mute,omitempty"`
}

func topoCommand() *cobra.Command {
	var f topoFlags
	cmd := &cobra.Command{
		Use:   "topo",
		Short: "Show how GPUs and network adapters are joined, and what is odd",
		Long: `Show how the GPUs and network adapters of this node are joined: NVLink, PCIe and
NUMA in the words of nvidia-smi topo -m, which adapter each GPU should use, and what
shares a PCIe port. With --join, of every member of a cluster. What is not as it is
elsewhere in the node, or on most nodes, is marked. Exit status 3: something is odd.`,
		Example: `  busbw topo                                       # this node
  busbw topo --join 10.0.0.1 --secret-file key     # all members, compared
  busbw topo --root /mnt/broken-node               # a copy of a machine's /sys and /proc
  nvidia-smi topo -m | busbw topo --from -         # a captured matrix`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.cluster.apart(cmd.Flags()); err != nil {
				return err
			}
			if err := f.valid(); err != nil {
				return err
			}
			r, err := f.read(cmd)
			if err != nil {
				return err
			}
			return r.print(cmd.OutOrStdout(), f.format == "json")
		},
	}
	f.cluster.add(cmd)
	fl := cmd.Flags()
	fl.StringSliceVar(&f.roots, "root", nil, "folder with a copy of a machine's files (sys, proc), instead of this machine; several are compared")
	fl.StringSliceVar(&f.files, "from", nil, "file with the output of nvidia-smi topo -m (-: standard input); several are compared")
	formatFlag(fl, &f.format, "one of table, json")
	return cmd
}

func (f *topoFlags) valid() error {
	ways := 0
	for _, n := range []int{len(f.roots), len(f.files), len(f.cluster.join)} {
		if n > 0 {
			ways++
		}
	}
	if ways > 1 {
		return usageError{fmt.Errorf("--join, --root and --from exclude each other: give one of them, or none for this node")}
	}
	if len(f.cluster.join) > 0 {
		if err := f.cluster.valid(); err != nil {
			return err
		}
	}
	return tableOrJSON(f.format)
}

func (f *topoFlags) read(cmd *cobra.Command) (r topoReport, err error) {
	switch {
	case len(f.cluster.join) > 0:
		r, err = f.members(cmd.Context(), cmd.ErrOrStderr())
	case len(f.files) > 0:
		for _, name := range f.files {
			t, err := fromFile(name, cmd.InOrStdin())
			if err != nil {
				return r, err
			}
			r.Nodes = append(r.Nodes, t)
		}
	default:
		roots := f.roots
		if len(roots) == 0 {
			roots = []string{"/"}
		}
		for _, root := range roots {
			name := filepath.Base(filepath.Clean(root))
			if name == "/" {
				if name, err = os.Hostname(); err != nil {
					return r, err
				}
			}
			n, err := worker.ReadNode(name, root)
			if err != nil {
				return r, err
			}
			r.Nodes = append(r.Nodes, n.Topology())
		}
	}
	if err != nil {
		return r, err
	}
	r.Odd = topo.Across(r.Nodes)
	return r, nil
}

func fromFile(name string, in io.Reader) (reports.Topology, error) {
	if name == "-" {
		t, err := topo.ParseSMI("standard input", in)
		if err != nil {
			err = fmt.Errorf("standard input: %w", err)
		}
		return t, err
	}
	file, err := os.Open(name)
	if err != nil {
		return reports.Topology{}, err
	}
	defer file.Close()
	t, err := topo.ParseSMI(filepath.Base(name), file)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return t, err
}

// atOnce is how many members are asked at a time.
const atOnce = 32

// members asks every worker of the cluster.
func (f *topoFlags) members(ctx context.Context, errs io.Writer) (r topoReport, err error) {
	c, err := f.cluster.enter(ctx, errs)
	if err != nil {
		return r, err
	}
	defer c.Close()
	if err := pause(ctx, settle); err != nil {
		return r, err
	}
	ws := c.Workers()
	if len(ws) == 0 {
		return r, fmt.Errorf("no worker is in the cluster: start busbw worker on each node; busbw members shows who is there")
	}
	fmt.Fprintf(errs, "asking %s\n", plural(len(ws), "worker"))
	ts, failed := make([]reports.Topology, len(ws)), make([]error, len(ws))
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, m := range ws {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			ts[i], failed[i] = c.Topology(ctx, m)
		})
	}
	wait.Wait()
	for i := range ws {
		if failed[i] != nil {
			r.Mute = append(r.Mute, failed[i].Error())
		} else {
			r.Nodes = append(r.Nodes, ts[i])
		}
	}
	for _, m := range c.Members() {
		if m.Role == coordinator.RoleWorker && m.State == coordinator.StateAlive && m.Problem != "" {
			r.Mute = append(r.Mute, fmt.Sprintf("node %s cannot be used: %s", m, m.Problem))
		}
	}
	if ctx.Err() != nil {
		r.Mute = append(r.Mute, "interrupted: not every node was asked")
	}
	return r, nil
}

// print shows the report and says by its error whether something is odd.
func (r topoReport) print(out io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return err
		}
	} else if err := r.text(out); err != nil {
		return err
	}
	odd := len(r.Odd) + len(r.Mute)
	for _, t := range r.Nodes {
		odd += len(t.Odd)
	}
	if odd > 0 {
		return errFound
	}
	return nil
}

// text shows nodes that are alike once.
func (r topoReport) text(out io.Writer) error {
	for i, g := range topo.Alike(r.Nodes) {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := topo.Text(out, r.Nodes[g[0]]); err != nil {
			return err
		}
		var others []string
		for _, k := range g[1:] {
			others = append(others, r.Nodes[k].Node)
		}
		if len(others) > 0 {
			if err := topo.Line(out, "the same on %d more: %s", len(others), strings.Join(others, " ")); err != nil {
				return err
			}
		}
	}
	for i, s := range append(r.Odd, r.Mute...) {
		if i == 0 {
			fmt.Fprintln(out, "\nacross the nodes:")
		}
		if err := topo.Line(out, "  ! %s", s); err != nil {
			return err
		}
	}
	return nil
}
