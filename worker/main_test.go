package worker

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbw/coordinator"
)

// The test binary is also the worker and the runner that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "worker":
			exit(workerMain(os.Args[2:]))
		case "owner":
			exit(own(context.Background(), os.Args[2], os.Args[3], func() {
				fmt.Println("started")
				time.Sleep(time.Hour)
			}))
		case RunnerVerb:
			if len(os.Args) > 2 && os.Args[2] == GPUsVerb {
				exit(fakeDriver())
			}
			exit(puppet(os.Stdin, os.Stdout))
		}
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	// memberlist's last probes end within seconds.
	for deadline := time.Now().Add(10 * time.Second); code == 0 && runtime.NumGoroutine() > before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			fmt.Printf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			code = 1
		}
	}
	os.Exit(code)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "busbw:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// workerMain is what cmd/busbw does for "worker".
func workerMain(args []string) error {
	fl := flag.NewFlagSet("worker", flag.ContinueOnError)
	bind := fl.String("bind", "", "")
	join := fl.String("join", "", "")
	file := fl.String("secret-file", "", "")
	ranks := fl.Int("ranks", 0, "")
	name := fl.String("name", "", "")
	if err := fl.Parse(args); err != nil {
		return err
	}
	secret, err := coordinator.ReadSecret(*file)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return Serve(ctx, Options{
		Secret: secret, Seeds: []string{*join}, Bind: netip.MustParseAddrPort(*bind), Ranks: *ranks, Name: *name,
		Version: "test", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Out: os.Stderr,
	})
}

// own joins a cluster of one worker, runs a job on it and calls then.
func own(ctx context.Context, seed, secretFile string, then func()) error {
	secret, err := coordinator.ReadSecret(secretFile)
	if err != nil {
		return err
	}
	c, err := coordinator.Join(ctx, coordinator.JoinOptions{
		Secret: secret, Seeds: []string{seed}, Bind: netip.MustParseAddrPort("127.0.0.1:0"), Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ms, err := c.WaitWorkers(ctx, 1, nil)
	if err != nil {
		return err
	}
	nodes, err := coordinator.PlanNodes(ms, 0)
	if err != nil {
		return err
	}
	s, err := c.Start(ctx, ms, coordinator.Plan{Run: "own", Nodes: nodes})
	if err != nil {
		return err
	}
	if _, err := s.Do(ctx, "batch", func(int) any { return map[int]string{} }, time.Second); err != nil {
		return err
	}
	then()
	return errors.Join(s.Close(), c.Close())
}

// fakeDriver is the process that asks the GPU driver, as a test wants it.
func fakeDriver() error {
	b, _ := os.ReadFile(filepath.Join(os.Getenv("TMPDIR"), "driver"))
	switch string(b) {
	case "":
		return PrintGPUs(os.Stdout)
	case "hang":
		time.Sleep(time.Hour)
	case "die":
		syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Hour)
	}
	fmt.Println(string(b))
	return nil
}

// puppet is a runner that does what a test tells it: each command's body has,
// by node, what that node does; a node that is not named answers with its
// number.
func puppet(in io.Reader, out io.Writer) error {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	var plan coordinator.Plan
	if err := dec.Decode(&plan); err != nil {
		return err
	}
	for {
		var c coordinator.Command
		if err := dec.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		act := map[int]string{}
		if err := json.Unmarshal(c.Body, &act); err != nil {
			return err
		}
		e := coordinator.Event{Seq: c.Seq, Kind: coordinator.EventOK}
		verb, arg, _ := strings.Cut(act[plan.Node], " ")
		switch verb {
		case "":
			e.Body, _ = json.Marshal(plan.Node)
		case "plan":
			e.Body, _ = json.Marshal(plan)
		case "env":
			e.Body, _ = json.Marshal(os.Environ())
		case "big":
			e.Body, _ = json.Marshal(strings.Repeat("x", 4<<20))
		case "hang":
			time.Sleep(time.Hour)
		case "deaf": // to SIGTERM
			signal.Ignore(syscall.SIGTERM)
			time.Sleep(time.Hour)
		case "progress":
			enc.Encode(coordinator.Event{Kind: coordinator.EventHeartbeat, Progress: &coordinator.Progress{Rank: 2, Iteration: 7, Step: 3}})
			time.Sleep(time.Hour)
		case "die":
			return errors.New(arg)
		case "panic":
			panic(arg)
		case "kill":
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "freeze":
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		case "garbage":
			fmt.Fprintln(out, "this is no event")
		case "fail":
			e.Kind, e.Error = coordinator.EventFailed, &coordinator.Fault{Rank: 2, Peer: 0, Link: "tcp", Step: "iteration 1 step 4", Text: arg}
		case "shut": // the peer is gone
			e.Kind, e.Error = coordinator.EventFailed, &coordinator.Fault{Rank: 0, Peer: 2, Link: "tcp", Text: "peer closed the connection", Consequence: true}
		default:
			return fmt.Errorf("puppet: %q?", verb)
		}
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
}
