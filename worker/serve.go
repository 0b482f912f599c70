// Package worker is what runs on a node: the agent that is a member of the
// cluster and takes jobs, and the runner process that holds a job's ranks.
package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"busbw/coordinator"
)

// RunnerVerb is the hidden subcommand of this program that calls Run.
const RunnerVerb = "runner"

// Options say how a worker joins a cluster and what it offers.
type Options struct {
	Secret  coordinator.Secret
	Seeds   []string
	Bind    netip.AddrPort   // of the gossip
	Want    coordinator.Want // address that the others are told
	Ranks   int
	Name    string // to show instead of the host name; empty: the host name
	Version string
	Log     *slog.Logger
	Out     io.Writer // where a person reads that it runs, and where
	Runner  []string  // command line of a runner; nil: this program's own
	// Guest ends the worker with the command that it is for: when every
	// coordinator has left, or none has come for so long. 0: it stays.
	Guest time.Duration
}

// Serve is a worker's life: it ends with ctx, or when it cannot work.
func Serve(ctx context.Context, o Options) (err error) {
	if o.Runner == nil {
		exe, err := os.Executable()
		if err != nil {
			return fmt.Errorf("worker: %w", err)
		}
		o.Runner = []string{exe, RunnerVerb}
	}
	id, err := coordinator.NewIdentity()
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	self, err := coordinator.NewSelf(coordinator.RoleWorker, o.Version, o.Seeds, o.Bind, o.Want)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if o.Name != "" {
		self.Host = o.Name
	}
	self.Ranks, self.Fingerprint = o.Ranks, id.Fingerprint
	l, err := listen(self.Data)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer l.Close()
	self.API = netip.AddrPortFrom(self.Data.Addr, uint16(l.Addr().(*net.TCPAddr).Port))
	g, err := coordinator.StartGossip(coordinator.GossipOptions{Secret: o.Secret, Seeds: o.Seeds, Bind: o.Bind, Self: self.Member, Log: o.Log})
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	a := &agent{opts: o, self: self, find: g.Find, patience: driverPatience}
	for _, p := range self.Choice.Passed {
		o.Log.Info("address passed over", "reason", p.String())
	}
	fmt.Fprintf(o.Out, "busbw worker %s (%.8s): ranks: %d, data address %s (%s), gossip %s\n", self.Host, g.Self().ID, o.Ranks, self.Data, self.Why, g.Addr())
	if o.Guest == 0 {
		return errors.Join(a.serve(ctx, l, id, g.Keep), g.Leave())
	}
	stay, leave := context.WithCancel(ctx)
	alone := make(chan error, 1)
	go func() {
		alone <- visited(stay, g, o.Guest)
		leave()
	}()
	err = a.serve(stay, l, id, g.Keep)
	leave()
	return errors.Join(err, <-alone, g.Leave())
}

// visited returns when coordinators have come and all have gone; an error: none
// has come for so long.
func visited(ctx context.Context, g *coordinator.Gossip, patience time.Duration) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for came := false; ; {
		changed, here := g.Changed(), false
		for _, m := range g.Members() {
			here = here || m.Role == coordinator.RoleRun && m.State == coordinator.StateAlive
		}
		if came && !here {
			return nil
		}
		if here {
			came = true
			limit.Stop()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-limit.C:
			return fmt.Errorf("no busbw run has come for %s: look at what the first task says", patience)
		}
	}
}

// listen opens the HTTPS port on the data address; where that belongs to no
// interface (address translation in front of us), on all.
func listen(d coordinator.DataAddr) (net.Listener, error) {
	at := netip.AddrPortFrom(d.Addr, 0).String()
	if d.Iface == "" {
		at = ":0"
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unreached.Milliseconds()))
		}); cerr != nil {
			return cerr
		}
		return err
	}}
	return lc.Listen(context.Background(), "tcp", at)
}

// unreached is how long the machine at the other end of a connection may leave
// what was sent without an acknowledgement. An owner that the network no longer
// reaches has lost its job by then, for it hears nothing either, and the node is
// wanted by the next; one that is only busy or stopped has a kernel that
// acknowledges, and OwnerGone.
const unreached = 5 * time.Second

// serve answers until ctx ends, then stops the job there may be. keep runs
// meanwhile.
func (a *agent) serve(ctx context.Context, l net.Listener, id *coordinator.Identity, keep func(context.Context)) error {
	known := func(f coordinator.Fingerprint) bool {
		_, ok := a.member(f)
		return ok
	}
	srv := &http.Server{
		Handler:           a.handler(),
		TLSConfig:         id.ServerTLS(known),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
		// Handshakes of strangers are theirs to explain.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kept := make(chan struct{})
	go func() {
		keep(ctx)
		close(kept)
	}()
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(tls.NewListener(l, srv.TLSConfig)) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("worker: %w", err)
	}
	cancel()
	a.stopAll("the worker is stopping")
	bye, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if srv.Shutdown(bye) != nil { // lets the job's last event out
		srv.Close()
	}
	<-kept
	return err
}
