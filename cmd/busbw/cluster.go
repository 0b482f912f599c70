package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"busbw/coordinator"
)

// clusterFlags say which cluster to join and how.
type clusterFlags struct {
	join       []string
	secretFile string
	advertise  string
	iface      string
	bind       string
}

func (c *clusterFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&c.join, "join", nil, "members of the cluster to join at (HOST or HOST:PORT)")
	fl.StringVar(&c.secretFile, "secret-file", "", "file with the cluster's shared secret, mode 600 (make one: openssl rand -hex 32)")
	fl.StringVar(&c.advertise, "advertise", "", "IP address that the others reach this machine at (default: picked)")
	fl.StringVar(&c.iface, "iface", "", "interfaces to pick the address from: prefixes, =exact, ^exclude (default $NCCL_SOCKET_IFNAME)")
	fl.StringVar(&c.bind, "bind", "", "IP:PORT to listen on for gossip (default: every address; busbw run: any port)")
}

func (c *clusterFlags) valid() error {
	if c.secretFile == "" {
		return usageError{fmt.Errorf("--secret-file is needed: nobody without the cluster's secret joins")}
	}
	if c.advertise != "" {
		if _, err := netip.ParseAddr(c.advertise); err != nil {
			return usageError{fmt.Errorf("--advertise %q: want an IP address", c.advertise)}
		}
	}
	if c.bind != "" {
		if _, err := netip.ParseAddrPort(c.bind); err != nil {
			return usageError{fmt.Errorf("--bind %q: want IP:PORT, for example 10.0.0.1:7946", c.bind)}
		}
	}
	return nil
}

// apart finds flags that say nothing with --join, or nothing without it: what
// would be passed over in silence was meant to do something.
func (c *clusterFlags) apart(fl *pflag.FlagSet) error {
	if c.join != nil {
		if fl.Changed("local") {
			return usageError{fmt.Errorf("--local starts workers on this machine, and --join measures those of a cluster: leave out one of them")}
		}
		return nil
	}
	for _, name := range []string{"nodes", "ranks", "wait", "secret-file", "advertise", "iface", "bind"} {
		if !fl.Changed(name) {
			continue
		}
		instead := ""
		if fl.Lookup("local") != nil {
			instead = "; on this machine use --local NODESxRANKS"
		}
		return usageError{fmt.Errorf("--%s goes with --join%s", name, instead)}
	}
	return nil
}

// want is which of this machine's addresses the others are told.
func (c *clusterFlags) want() coordinator.Want {
	w := coordinator.Want{Names: c.iface, Family: os.Getenv("NCCL_SOCKET_FAMILY")}
	if w.Names == "" {
		w.Names = os.Getenv("NCCL_SOCKET_IFNAME")
	}
	if c.advertise != "" {
		w.Advertise = netip.MustParseAddr(c.advertise) // valid has seen it
	}
	return w
}

// gossipAddr is --bind; port is what to listen on without it.
func (c *clusterFlags) gossipAddr(port uint16) netip.AddrPort {
	if c.bind != "" {
		return netip.MustParseAddrPort(c.bind)
	}
	return netip.AddrPortFrom(netip.Addr{}, port)
}

// enter joins the cluster as a member that runs no ranks.
func (c *clusterFlags) enter(ctx context.Context, errs io.Writer) (*coordinator.Cluster, error) {
	secret, err := coordinator.ReadSecret(c.secretFile)
	if err != nil {
		return nil, err
	}
	return coordinator.Join(ctx, coordinator.JoinOptions{
		Secret: secret, Seeds: c.join, Bind: c.gossipAddr(0), Want: c.want(), Version: version, Log: logger(errs),
		Waiting: func(why error, patience time.Duration) {
			fmt.Fprintf(errs, "%v; trying for %s\n", why, patience)
		},
	})
}

// logger writes warnings and worse for people.
func logger(errs io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// cluster is what a run drives, and how to leave it.
type cluster struct {
	*coordinator.Cluster
	members []coordinator.Member
	leave   func() error
	known   coordinator.Known // limits that the launches so far have measured
}

// measuring opens the results file of a run, has the workers come, and gives
// both to do. Whatever happens, the file is closed and the cluster left.
func (f *runFlags) measuring(ctx context.Context, errs io.Writer, id string, come func(context.Context, io.Writer) (*cluster, error), do func(*cluster, *resultFile) error) (err error) {
	file, err := f.openResults(id)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := file.Close(); err == nil {
			err = cerr
		}
	}()
	c, err := come(ctx, errs)
	if err != nil {
		return err
	}
	defer func() {
		if lerr := c.leave(); err == nil {
			err = lerr
		}
	}()
	return do(c, file)
}

// gather joins the cluster, or starts one on this machine, and waits for its
// workers.
func (f *runFlags) gather(ctx context.Context, errs io.Writer) (*cluster, error) {
	if f.cluster.join == nil {
		nodes, ranks, err := parseLocal(f.local)
		if err != nil {
			return nil, usageError{err}
		}
		fmt.Fprintf(errs, "starting %s with %s each on this machine\n", plural(nodes, "worker"), plural(ranks, "rank"))
		l, err := coordinator.StartLocal(ctx, coordinator.LocalOptions{Nodes: nodes, Ranks: ranks, Version: version, Log: logger(errs)})
		if err != nil {
			return nil, err
		}
		return &cluster{Cluster: l.Cluster, members: l.Workers, leave: l.Close}, nil
	}
	c, err := f.cluster.enter(ctx, errs)
	if err != nil {
		return nil, err
	}
	members, err := f.workers(ctx, c, errs)
	if err != nil {
		c.Close()
		return nil, err
	}
	f.crowded(members, errs)
	return &cluster{Cluster: c, members: members, leave: c.Close}, nil
}

// crowded says on which workers --ranks puts more ranks than they offer.
func (f *runFlags) crowded(members []coordinator.Member, errs io.Writer) {
	var over []string
	for _, m := range members {
		if m.Ranks < f.ranks {
			over = append(over, fmt.Sprintf("%s offers %d", m, m.Ranks))
		}
	}
	if n := len(over); n > 3 {
		over = append(over[:3], fmt.Sprintf("and %d more", n-3))
	}
	if len(over) > 0 {
		fmt.Fprintf(errs, "busbw: note: --ranks %d is more than workers offer (%s): ranks share processors, GPUs and ports, and are slower for it\n", f.ranks, strings.Join(over, ", "))
	}
}

// settle is how long a run without --nodes waits for gossip to tell of
// everybody: a full exchange with the seed has happened by then.
const settle = 2 * time.Second

// workers waits for --nodes workers, or takes those that are there.
func (f *runFlags) workers(ctx context.Context, c *coordinator.Cluster, errs io.Writer) ([]coordinator.Member, error) {
	if f.nodes > 0 {
		wait, cancel := context.WithTimeout(ctx, f.wait)
		defer cancel()
		return c.WaitWorkers(wait, f.nodes, func(have int) {
			fmt.Fprintf(errs, "%d of %s there\n", have, plural(f.nodes, "worker"))
		})
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(settle):
	}
	ws := c.Workers()
	if len(ws) == 0 {
		return nil, fmt.Errorf("no worker is in the cluster: start busbw worker on each node; busbw members shows who is there")
	}
	return ws, nil
}
