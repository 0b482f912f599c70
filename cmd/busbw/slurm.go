package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"busbw/coordinator"
	"busbw/worker"
)

// step is a Slurm job step of several tasks, one on each node, as its tasks see
// it (srun(1), "output environment variables").
type step struct {
	task, tasks int
	first       string // the first node's name
}

// slurmStep is the step that this process is a task of. None: it has one task,
// or there is no Slurm.
func slurmStep(env func(string) string) (s step, ok bool, err error) {
	number := func(name string) int {
		n, err := strconv.Atoi(env(name))
		if err != nil {
			return -1
		}
		return n
	}
	s = step{task: number("SLURM_PROCID"), tasks: number("SLURM_STEP_NUM_TASKS"), first: firstHost(env("SLURM_STEP_NODELIST"))}
	if s.tasks < 2 || s.task < 0 || env("SLURM_STEP_ID") == "" {
		return step{}, false, nil
	}
	if nodes := number("SLURM_STEP_NUM_NODES"); nodes != s.tasks {
		return s, false, fmt.Errorf("this Slurm step has %d tasks on %d nodes, and busbw wants one on each: srun --ntasks-per-node=1 (ranks are --ranks)", s.tasks, nodes)
	}
	if s.first == "" {
		return s, false, fmt.Errorf("SLURM_STEP_NODELIST=%q names no node", env("SLURM_STEP_NODELIST"))
	}
	return s, true, nil
}

// firstHost is the first name of a list as Slurm writes it: gpu[003-010,012],login.
func firstHost(list string) string {
	var b strings.Builder
	for len(list) > 0 && list[0] != ',' {
		if list[0] != '[' {
			b.WriteByte(list[0])
			list = list[1:]
			continue
		}
		inside, rest, ok := strings.Cut(list[1:], "]")
		if !ok {
			return ""
		}
		b.WriteString(inside[:strings.IndexAny(inside+"-", ",-")])
		list = rest
	}
	return b.String()
}

// slurmPatience is how long the other tasks wait for the first to come, and it
// for them.
const slurmPatience = 2 * time.Minute

// underSlurm lets "srun busbw run" be all: every task is a worker, they meet at
// the step's first node, and the first task runs the command besides.
func underSlurm(cmd *cobra.Command, c *clusterFlags) {
	inner := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fl := cmd.Flags()
		if fl.Changed("join") || fl.Changed("local") {
			return inner(cmd, args)
		}
		s, ok, err := slurmStep(os.Getenv)
		if err != nil {
			return usageError{err}
		}
		if !ok {
			return inner(cmd, args)
		}
		if err := c.valid(); err != nil { // without a secret each task would measure a little cluster of its own
			return fmt.Errorf("%w; this is a Slurm step of %d nodes, which become one cluster (alone on each: --local)", err, s.tasks)
		}
		if s.task > 0 {
			return c.guest(cmd, s)
		}
		own, err := c.ownWorker(cmd)
		if err != nil {
			return err
		}
		port := uint16(coordinator.GossipPort)
		if c.bind != "" {
			at := c.gossipAddr(0)
			port = at.Port()
			c.bind = net.JoinHostPort(at.Addr().String(), "0")
		}
		for name, value := range map[string]string{"join": net.JoinHostPort(s.first, strconv.Itoa(int(port))), "nodes": strconv.Itoa(s.tasks)} {
			if !fl.Changed(name) {
				if err := fl.Set(name, value); err != nil {
					return err
				}
			}
		}
		err = inner(cmd, args)
		own.Process.Signal(syscall.SIGTERM)
		return errors.Join(err, ended(own.Wait()))
	}
}

// ended is nil for a worker that ended because it was told to.
func ended(err error) error {
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		return nil
	}
	return fmt.Errorf("this node's worker: %w", err)
}

// ownWorker starts the first node's worker.
func (c *clusterFlags) ownWorker(cmd *cobra.Command) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"worker"}
	for _, name := range []string{"secret-file", "advertise", "iface", "bind"} {
		if f := cmd.Flags().Lookup(name); f.Changed {
			args = append(args, "--"+name+"="+f.Value.String())
		}
	}
	own := exec.Command(exe, args...)
	own.Stderr = cmd.ErrOrStderr()
	own.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the command, which then ends it
	return own, own.Start()
}

// guest is the life of the other tasks: a worker until the command has left.
func (c *clusterFlags) guest(cmd *cobra.Command, s step) error {
	secret, err := coordinator.ReadSecret(c.secretFile)
	if err != nil {
		return err
	}
	errs := cmd.ErrOrStderr()
	return worker.Serve(cmd.Context(), worker.Options{
		Secret: secret, Seeds: []string{s.first}, Bind: c.gossipAddr(coordinator.GossipPort), Want: c.want(), Ranks: offered(os.DirFS("/")),
		Version: version, Log: logger(errs), Out: errs, Guest: slurmPatience,
	})
}
