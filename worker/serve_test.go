package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbw/coordinator"
)

func quiet(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// local starts a cluster of worker processes and checks that no process
// of it stays; TestMain looks for goroutines.
func local(t *testing.T, nodes int) *coordinator.Local {
	t.Helper()
	l, err := coordinator.StartLocal(t.Context(), coordinator.LocalOptions{Nodes: nodes, Ranks: 2, Version: "test", Log: quiet(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pids := l.Pids()
		for _, pid := range pids {
			pids = append(pids, children(pid)...)
		}
		logs := l.Logs()
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Log(logs)
		}
		for _, pid := range pids {
			if !goneSoon(pid) {
				t.Errorf("process %d is still there", pid)
			}
		}
	})
	return l
}

// children are the processes whose parent is pid.
func children(pid int) (out []int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, t := range tasks {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()))
		for _, f := range strings.Fields(string(b)) {
			n, _ := strconv.Atoi(f)
			out = append(out, n)
		}
	}
	return out
}

func goneSoon(pid int) bool {
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if s := processState(pid); s == 0 || s == 'Z' {
			return true
		}
	}
	return false
}

// launch starts a job on all workers.
func launch(t *testing.T, l *coordinator.Local, run string) *coordinator.Session {
	t.Helper()
	s, err := tryLaunch(t, l.Cluster, l.Workers, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func tryLaunch(t *testing.T, c *coordinator.Cluster, ms []coordinator.Member, run string) (*coordinator.Session, error) {
	t.Helper()
	nodes, err := coordinator.PlanNodes(ms, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c.Start(t.Context(), ms, coordinator.Plan{Run: run, Nodes: nodes, Settings: map[string]string{"NCCL_ALGO": "Ring", "NCCL_BUFFSIZE": "", "LD_PRELOAD": "x"}})
}

// tell is Do with what each node shall do.
func tell(s *coordinator.Session, act map[int]string, limit time.Duration) ([]json.RawMessage, error) {
	return s.Do(context.Background(), "batch", func(int) any { return act }, limit)
}

func TestLaunch(t *testing.T) {
	t.Setenv("NCCL_DEBUG", "INFO")
	t.Setenv("BUSBW_TEST_TOKEN", "hidden")
	l := local(t, 3)
	s := launch(t, l, "run1")
	for range 20 {
		got, err := tell(s, nil, 5*time.Second)
		if err != nil || string(slices.Concat(got[0], got[1], got[2])) != "012" {
			t.Fatalf("answers %s, %v; want 0 1 2", got, err)
		}
	}
	got, err := tell(s, map[int]string{0: "plan", 1: "env", 2: "big"}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var plan coordinator.Plan
	if err := json.Unmarshal(got[0], &plan); err != nil || plan.Node != 0 || len(plan.Nodes) != 3 || plan.Nodes[2].Host != "local2" || plan.Nodes[0].Addr != "127.0.0.1" {
		t.Errorf("plan of node 0: %+v, %v", plan, err)
	}
	if env := string(got[1]); !strings.Contains(env, "NCCL_ALGO=Ring") || !strings.Contains(env, "PATH=") || strings.Contains(env, "NCCL_DEBUG") ||
		strings.Contains(env, "BUSBW_TEST_TOKEN") || strings.Contains(env, "LD_PRELOAD") || strings.Contains(env, "BUFFSIZE") {
		t.Errorf("environment of a runner: %s", env)
	}
	if len(got[2]) != 4<<20+2 {
		t.Errorf("a large answer came with %d bytes", len(got[2]))
	}
	info, err := l.NodeInfo(t.Context(), l.Workers[1])
	if err != nil || info.CPUs < 1 || info.Memory < 1<<20 || info.Version != "test" || info.Job != "run1-0" || info.Host != "local1" {
		t.Errorf("node info %+v, %v", info, err)
	}
	if top, err := l.Topology(t.Context(), l.Workers[2]); err != nil || top.Node != "local2" || len(top.Paths) != len(top.GPUs)+len(top.NICs) {
		t.Errorf("topology %+v, %v", top, err)
	}
}

func TestBusy(t *testing.T) {
	l := local(t, 2)
	s := launch(t, l, "first")
	_, err := tryLaunch(t, l.Cluster, l.Workers, "second")
	if err == nil || !strings.Contains(err.Error(), "busy with job first-0 of ") || !strings.Contains(err.Error(), " since ") || !strings.Contains(err.Error(), "node 0 (local0)") {
		t.Fatalf("second job: %v", err)
	}
	if _, err := tell(s, nil, 5*time.Second); err != nil {
		t.Fatalf("the first job suffered: %v", err)
	}
	s.Close()
	for _, m := range l.Workers {
		if info, err := l.NodeInfo(t.Context(), m); err != nil || info.Job != "" {
			t.Errorf("after Close, %s still has job %q, %v", m, info.Job, err)
		}
	}
	launch(t, l, "third")
}

// TestFaults breaks a launch in every way and expects the one message, in
// time, and workers that take the next job.
func TestFaults(t *testing.T) {
	t.Parallel()
	l := local(t, 2)
	for _, c := range []struct {
		name  string
		act   map[int]string
		limit time.Duration // of the command
		soon  time.Duration // for the verdict
		want  []string
	}{
		{"crash", map[int]string{0: "shut", 1: "die out of luck"}, time.Minute, 5 * time.Second, []string{"node 1 (local1): its runner failed: exit status 1", "out of luck", "while measuring", "then node 0 (local0), rank 0 with peer rank 2 on node 1 (local1) over tcp: peer closed"}},
		{"panic", map[int]string{1: "panic at the disco"}, time.Minute, 5 * time.Second, []string{"node 1 (local1)", "exit status 2", "panic: at the disco"}},
		{"killed", map[int]string{0: "kill"}, time.Minute, 5 * time.Second, []string{"node 0 (local0): its runner was killed by signal 9"}},
		{"frozen", map[int]string{0: "freeze"}, time.Minute, 8 * time.Second, []string{"node 0 (local0): its runner is stopped"}},
		{"error", map[int]string{0: "shut", 1: "fail reduce from 0 chunk 5: bad data"}, time.Minute, 5 * time.Second, []string{"node 1 (local1), rank 2 with peer rank 0 on node 0 (local0) over tcp at iteration 1 step 4: reduce from 0 chunk 5: bad data"}},
		{"only consequences", map[int]string{0: "shut", 1: "hang"}, time.Minute, 6 * time.Second, []string{"node 0 (local0), rank 0 with peer rank 2", "suspect is node 1 (local1)"}},
		{"garbage", map[int]string{1: "garbage"}, time.Minute, 5 * time.Second, []string{"node 1 (local1): its runner wrote what is no event", "this is no event"}},
		{"slow", map[int]string{1: "progress"}, time.Second, 5 * time.Second, []string{"node 1 (local1), rank 2", `no answer to "batch" within 1s`, "all other nodes answered", "rank 2 had done 7 iterations and 3 steps of the next"}},
		{"deaf", map[int]string{0: "deaf"}, time.Second, 5 * time.Second, []string{`node 0 (local0)`, `no answer to "batch" within 1s`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := launch(t, l, "x")
			began := time.Now()
			_, err := tell(s, c.act, c.limit)
			var f *coordinator.Failure
			if !errors.As(err, &f) {
				t.Fatalf("got %v, want a Failure", err)
			}
			t.Logf("%v: %v", time.Since(began).Round(time.Millisecond), err)
			if d := time.Since(began); d > c.soon {
				t.Errorf("the verdict took %s", d)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("no %q in it", w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Error("more than one line")
			}
			if _, again := tell(s, nil, time.Second); again == nil || again.Error() != err.Error() {
				t.Errorf("asked again: %v", again)
			}
			s.Close()
			if s, err = tryLaunch(t, l.Cluster, l.Workers, "after"); err != nil {
				t.Fatalf("the workers take no job after it: %v", err)
			}
			if _, err := tell(s, nil, 5*time.Second); err != nil {
				t.Error(err)
			}
			s.Close()
		})
	}
}

// TestWorkerLost kills and stops the agents themselves.
func TestWorkerLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		sig  syscall.Signal
		soon time.Duration
		want string

		again string // of the next launch
	}{
		{"killed", syscall.SIGKILL, 3 * time.Second, "its worker ended the connection", "listen any more"},
		{"told to end", syscall.SIGTERM, 4 * time.Second, "its runner was stopped: the worker is stopping", "listen any more"},
		{"stopped", syscall.SIGSTOP, 9 * time.Second, "no sign of life for", "answer (stopped,"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := local(t, 2)
			s := launch(t, l, "x")
			victim := l.Pids()[slices.IndexFunc(l.Workers, func(m coordinator.Member) bool { return m.Host == "local1" })]
			runners := children(victim)
			if len(runners) != 1 {
				t.Fatalf("worker has %d children", len(runners))
			}
			time.AfterFunc(200*time.Millisecond, func() { syscall.Kill(victim, c.sig) })
			began := time.Now()
			_, err := tell(s, map[int]string{0: "hang", 1: "hang"}, time.Minute)
			t.Logf("%v: %v", time.Since(began).Round(time.Millisecond), err)
			if err == nil || !strings.Contains(err.Error(), "node 1 (local1)") || !strings.Contains(err.Error(), c.want) || time.Since(began) > c.soon {
				t.Errorf("after %s: %v; want %q", time.Since(began), err, c.want)
			}
			if c.sig != syscall.SIGSTOP && !goneSoon(runners[0]) {
				t.Error("the runner outlived its worker")
			}
			s.Close()
			began = time.Now()
			_, err = tryLaunch(t, l.Cluster, l.Workers, "all")
			t.Logf("%v: %v", time.Since(began).Round(time.Millisecond), err)
			if err == nil || !strings.Contains(err.Error(), "node 1 (local1): its worker does not "+c.again) || time.Since(began) > c.soon {
				t.Errorf("a launch on it, after %s: %v; want %q", time.Since(began), err, c.again)
			}
			// The other worker goes on.
			rest, err := tryLaunch(t, l.Cluster, l.Workers[:1], "rest")
			if err != nil {
				t.Fatal(err)
			}
			rest.Close()
		})
	}
}

// TestOwnerLost kills a coordinator that has a job: the worker, here in this
// process, ends the runner and takes the next job.
func TestOwnerLost(t *testing.T) {
	path, secret, err := coordinator.WriteSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := &coordinator.Tail{}, make(chan error, 1)
	loopback := netip.MustParseAddrPort("127.0.0.1:0")
	go func() {
		ended <- Serve(ctx, Options{Secret: secret, Bind: loopback, Ranks: 1, Version: "test", Log: quiet(t), Out: out})
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	seed := ""
	for seed == "" {
		time.Sleep(5 * time.Millisecond)
		_, after, _ := strings.Cut(out.String(), "gossip ")
		seed, _, _ = strings.Cut(after, "\n")
	}
	owner := exec.Command(os.Args[0], "owner", seed, path)
	said, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); line != "started\n" {
		t.Fatalf("owner said %q, %v", line, err)
	}
	runners := slices.DeleteFunc(children(os.Getpid()), func(pid int) bool { return pid == owner.Process.Pid })
	owner.Process.Kill()
	owner.Wait()
	if len(runners) != 1 || !goneSoon(runners[0]) {
		t.Errorf("runners %v outlived their owner, or were none", runners)
	}
	if err := own(ctx, seed, path, func() {}); err != nil {
		t.Errorf("next job: %v", err)
	}
}

func TestInterrupt(t *testing.T) {
	l := local(t, 2)
	s := launch(t, l, "x")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	began := time.Now()
	_, err := s.Do(ctx, "batch", func(int) any { return map[int]string{0: "hang", 1: "hang"} }, time.Minute)
	if !errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}
