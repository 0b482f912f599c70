package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"busbw/coordinator"
)

const (
	stopPatience  = 2 * time.Second  // from SIGTERM to SIGKILL
	firstPatience = 15 * time.Second // for the owner to read the events
	frozen        = 2 * time.Second  // a runner stopped by a signal for so long is lost
)

// job is a runner process with its owner.
type job struct {
	id        string
	node      int
	owner     coordinator.Fingerprint
	ownerName string
	since     time.Time

	cmd    *exec.Cmd
	stderr coordinator.Tail
	events chan coordinator.Event
	done   chan struct{} // closed when the runner is gone and its last event is in events

	in     sync.Mutex
	stdin  io.WriteCloser
	taken  atomic.Bool
	heard  atomic.Int64 // Unix time in ns of the owner's last sign
	ending atomic.Pointer[string]
}

// startJob starts a runner and hands it its plan.
func startJob(id string, argv []string, p coordinator.Plan) (*job, error) {
	j := &job{id: id, node: p.Node, since: time.Now(), events: make(chan coordinator.Event, 64), done: make(chan struct{})}
	j.heardOwner()
	j.cmd = exec.Command(argv[0], argv[1:]...)
	j.cmd.Env = environment(p.Variables())
	j.cmd.Stderr, j.cmd.WaitDelay = &j.stderr, time.Second
	stdin, err := j.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	j.stdin = stdin
	stdout, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	plan, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	n := coordinator.NewNursery()
	if err := n.Start(j.cmd); err != nil {
		n.Close()
		return nil, fmt.Errorf("runner: %w", err)
	}
	go func() {
		j.relay(stdout)
		n.Close()
	}()
	go j.watch()
	j.in.Lock()
	go func() {
		defer j.in.Unlock()
		// A pipe holds 64 KiB and a plan may be larger. A runner that dies
		// meanwhile is found by relay.
		_, _ = j.stdin.Write(append(plan, '\n'))
	}()
	return j, nil
}

// send gives the runner a command, as one line.
func (j *job) send(c coordinator.Command) error {
	line, err := json.Marshal(c)
	if err == nil {
		j.in.Lock()
		defer j.in.Unlock()
		_, err = j.stdin.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("the runner takes no commands any more: %w", err)
	}
	return nil
}

// relay passes on what the runner says until it ends, then says how it ended.
func (j *job) relay(stdout io.Reader) {
	defer close(j.done)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(make([]byte, 64<<10), coordinator.MaxEvent)
	var garbage error
	for lines.Scan() {
		var e coordinator.Event
		if garbage = json.Unmarshal(lines.Bytes(), &e); garbage != nil {
			garbage = fmt.Errorf("its runner wrote what is no event: %.100q", lines.Bytes())
			break
		}
		e.Node = j.node
		j.say(e)
	}
	if garbage == nil && lines.Err() != nil {
		garbage = fmt.Errorf("its runner's events cannot be read: %w", lines.Err())
	}
	if garbage != nil {
		_ = j.cmd.Process.Kill()
	}
	err := j.cmd.Wait()
	if why := j.ending.Load(); why != nil {
		garbage = fmt.Errorf("its runner was stopped: %s", *why)
	}
	if garbage == nil {
		garbage = j.autopsy(err)
	}
	j.lost(garbage)
}

// autopsy says how a runner ended that nobody stopped.
func (j *job) autopsy(err error) error {
	how := "its runner ended without being told to"
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		how = "its runner failed: " + exit.Error()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			how = fmt.Sprintf("its runner was killed by signal %d (%s)", ws.Signal(), ws.Signal())
			if ws.Signal() == syscall.SIGKILL {
				how += ", perhaps because memory ran out (see the kernel log)"
			}
		}
	} else if err != nil {
		how += ": " + err.Error()
	}
	if said := j.stderr.String(); said != "" {
		return fmt.Errorf("%s; it said: %s", how, said)
	}
	return errors.New(how)
}

func (j *job) lost(why error) {
	j.say(coordinator.Event{Node: j.node, Kind: coordinator.EventLost, Error: &coordinator.Fault{Node: j.node, Rank: -1, Peer: -1, Text: why.Error()}})
}

// say hands an event to the reader. Where nobody reads, the runner waits,
// until it is stopped: then what it still has to say is dropped.
func (j *job) say(e coordinator.Event) {
	for {
		select {
		case j.events <- e:
			return
		default:
		}
		if j.ending.Load() != nil || j.finished() {
			return
		}
		select {
		case j.events <- e:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// watch stops a runner whose owner is gone, and reports one that is frozen.
func (j *job) watch() {
	tick := time.NewTicker(coordinator.AliveEvery)
	defer tick.Stop()
	var since time.Time // when the runner was first seen frozen
	told := false
	last := time.Now()
	for {
		select {
		case <-j.done:
			return
		case <-tick.C:
		}
		if gap := time.Since(last); gap > frozen {
			j.heard.Add(int64(gap)) // this agent itself was stopped
		}
		last = time.Now()
		patience := coordinator.OwnerGone
		if !j.taken.Load() {
			patience = firstPatience
		}
		if quiet := time.Since(time.Unix(0, j.heard.Load())); quiet > patience {
			j.stop(fmt.Sprintf("its coordinator gave no sign of life for %s", quiet.Round(time.Second)))
			return
		}
		switch {
		case processState(j.cmd.Process.Pid) != 'T':
			since = time.Time{}
		case since.IsZero():
			since = last
		case !told && last.Sub(since) >= frozen:
			told = true
			go j.lost(errors.New("its runner is stopped (signal SIGSTOP or a debugger)"))
		}
	}
}

// stop ends the runner: by closing its input and SIGTERM, and by SIGKILL if
// that is not enough. It returns when the runner is gone.
func (j *job) stop(why string) {
	j.ending.CompareAndSwap(nil, &why)
	j.stdin.Close()
	// A runner that is gone already is what we want; a stopped one has to go
	// on to hear it.
	_ = j.cmd.Process.Signal(syscall.SIGTERM)
	_ = j.cmd.Process.Signal(syscall.SIGCONT)
	if j.wait(stopPatience) {
		return
	}
	_ = j.cmd.Process.Kill()
	<-j.done
}

func (j *job) wait(d time.Duration) bool {
	select {
	case <-j.done:
		return true
	case <-time.After(d):
		return false
	}
}

func (j *job) finished() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

func (j *job) stopping() bool { return j.ending.Load() != nil }
func (j *job) take() bool     { return j.taken.CompareAndSwap(false, true) }
func (j *job) heardOwner()    { j.heard.Store(time.Now().UnixNano()) }
