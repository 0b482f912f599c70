package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// LocalOptions describe a cluster on this machine.
type LocalOptions struct {
	Nodes, Ranks int
	Version      string
	Log          *slog.Logger
	// Worker is the command line that starts a worker; nil: this program's own
	// "worker". These flags are added: --bind --join --secret-file --ranks --name.
	Worker []string
}

// Local is a cluster of worker processes on loopback that lives as long as it
// is not closed.
type Local struct {
	*Cluster
	Workers []Member
	dir     string
	nursery *Nursery
	procs   []*localWorker
	wait    sync.WaitGroup // for their ends
}

// localWorker is one worker process.
type localWorker struct {
	cmd  *exec.Cmd
	log  Tail
	gone chan struct{}
	err  error // of its end
}

// StartLocal starts Nodes workers with Ranks ranks each and returns when all
// are members. Each counts as a node, although they share the machine.
func StartLocal(ctx context.Context, o LocalOptions) (l *Local, err error) {
	dir, err := os.MkdirTemp("", "busbw-")
	if err != nil {
		return nil, fmt.Errorf("local cluster: %w", err)
	}
	l = &Local{dir: dir, nursery: NewNursery()}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
			l = nil
		}
	}()
	path, secret, err := WriteSecret(dir)
	if err != nil {
		return l, err
	}
	bind := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	if l.Cluster, err = Join(ctx, JoinOptions{Secret: secret, Bind: bind, Version: o.Version, Log: o.Log}); err != nil {
		return l, err
	}
	argv := o.Worker
	if argv == nil {
		exe, err := os.Executable()
		if err != nil {
			return l, fmt.Errorf("local cluster: %w", err)
		}
		argv = []string{exe, "worker"}
	}
	for i := range o.Nodes {
		args := append(argv[1:len(argv):len(argv)], "--bind", bind.String(), "--join", l.Addr(), "--secret-file", path,
			"--ranks", strconv.Itoa(o.Ranks), "--name", "local"+strconv.Itoa(i))
		if err := l.spawn(argv[0], args); err != nil {
			return l, fmt.Errorf("local worker %d: %w", i, err)
		}
	}
	return l, l.ready(ctx, o.Nodes)
}

func (l *Local) spawn(exe string, args []string) error {
	w := &localWorker{cmd: exec.Command(exe, args...), gone: make(chan struct{})}
	w.cmd.Stdout, w.cmd.Stderr = &w.log, &w.log
	w.cmd.WaitDelay = time.Second // for a grandchild that holds the pipe
	if err := l.nursery.Start(w.cmd); err != nil {
		return err
	}
	l.procs = append(l.procs, w)
	l.wait.Go(func() {
		w.err = w.cmd.Wait()
		close(w.gone)
	})
	return nil
}

// ready waits for all workers to be members, or for the first that ends.
func (l *Local) ready(ctx context.Context, n int) (err error) {
	// 64 workers are there within a few seconds on two cores.
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	for i, w := range l.procs {
		go func() {
			select {
			case <-w.gone:
				select {
				case ended <- fmt.Errorf("local worker %d ended: %v: %s", i, w.err, clean(w.log.String(), 2000)):
					cancel()
				default:
				}
			case <-wait.Done():
			}
		}()
	}
	l.Workers, err = l.WaitWorkers(wait, n, nil)
	select {
	case e := <-ended:
		return e
	default:
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Pids are the process ids of the workers, in the order of their start.
func (l *Local) Pids() (out []int) {
	for _, w := range l.procs {
		out = append(out, w.cmd.Process.Pid)
	}
	return out
}

// Logs is what the workers wrote, each line marked with its worker.
func (l *Local) Logs() string {
	var b strings.Builder
	for i, w := range l.procs {
		for line := range strings.Lines(w.log.String()) {
			fmt.Fprintf(&b, "local%d: %s\n", i, strings.TrimRight(line, "\n"))
		}
	}
	return b.String()
}

// Close ends the workers and their runners, and removes the secret. The whole
// cluster ends, so nobody is left to say goodbye to, and workers have nothing
// to save.
func (l *Local) Close() error {
	for _, w := range l.procs {
		_ = w.cmd.Process.Kill() // one that is gone already is what we want
	}
	l.wait.Wait()
	l.nursery.Close()
	var err error
	if l.Cluster != nil {
		err = l.gossip.list.Shutdown()
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}
