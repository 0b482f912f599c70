package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/worker/gpu"
	"busbw/worker/topo"
)

// maxLine bounds a command; the longest lists the address of every node.
const maxLine = 4 << 20

// runner is the process that holds a node's ranks for one launch. It obeys
// commands one at a time, and beats while it does.
type runner struct {
	version  string
	plan     coordinator.Plan
	first    int // global number of the first local rank
	abort    *collectives.Abort
	hub      *collectives.Hub
	ranks    []*rank
	clock    machineClock
	listen   *collectives.TCPListener // nil until open
	live     *liveCase
	mesh     *mesh             // nil where the ranks have no RDMA device
	counts   *gpuCounts        // nil where the ranks' buffers are in host memory
	peer     *coordinator.Peer // what joins the ranks' GPUs; nil: not known, or host memory
	root     fs.FS             // of the machine's files
	gpus     gpus
	nccl     engine
	onNCCL   atomic.Bool // the case runs on it
	beating  sync.WaitGroup
	watching atomic.Bool // the ranks have devices

	mu  sync.Mutex // one event at a time
	out *json.Encoder
}

// Run is the life of a runner process: the plan, then commands, one JSON
// object a line, from in; events, one a line, to out. It returns when in ends
// or at the command "exit".
func Run(version string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	r := &runner{version: version, abort: &collectives.Abort{}, root: os.DirFS("/"), out: json.NewEncoder(out)}
	if !lines.Scan() {
		return fmt.Errorf("runner: no plan: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
	}
	if err := json.Unmarshal(lines.Bytes(), &r.plan); err != nil {
		return fmt.Errorf("runner: plan: %w", err)
	}
	if err := r.start(); err != nil {
		return err
	}
	defer r.stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		cancel()
		r.beating.Wait()
	}()
	r.beating.Go(func() { r.beat(ctx) })
	commands := make(chan []byte)
	go r.listenTo(ctx, cancel, lines, commands)
	for line := range commands {
		var c coordinator.Command
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("runner: command: %w", err)
		}
		body, err := r.obey(ctx, c)
		r.answer(c.Seq, body, err)
		if c.Kind == coordinator.KindExit {
			return nil
		}
	}
	return lines.Err()
}

// listenTo passes on commands. When there are none any more the run is over, even
// if the ranks are busy: they give up what they wait for.
func (r *runner) listenTo(ctx context.Context, cancel context.CancelFunc, lines *bufio.Scanner, commands chan<- []byte) {
	defer close(commands)
	for lines.Scan() {
		select {
		case commands <- bytes.Clone(lines.Bytes()):
		case <-ctx.Done():
			return
		}
	}
	r.abort.Set(errOver)
	cancel()
	if r.onNCCL.Load() {
		r.abandon()
	}
}

// start makes the node's ranks, each a goroutine on a thread of its own.
func (r *runner) start() error {
	if r.plan.Node < 0 || r.plan.Node >= len(r.plan.Nodes) {
		return fmt.Errorf("runner: node %d of %d", r.plan.Node, len(r.plan.Nodes))
	}
	r.first = r.firstOf(r.plan.Node)
	local := r.plan.Nodes[r.plan.Node].Ranks
	if local < 1 || local > maxRanks {
		return fmt.Errorf("runner: %d ranks on a node; at most %d are possible", local, maxRanks)
	}
	if local <= 4*runtime.NumCPU() {
		runtime.GOMAXPROCS(local + 2)
	}
	debug.SetGCPercent(-1) // collection happens between batches, never in one
	r.clock = readClock()
	r.hub = collectives.NewHub(local, r.abort)
	for i, at := range topo.Places(r.root, r.first, local) {
		r.ranks = append(r.ranks, newRank(r.first+i, at))
	}
	return nil
}

// firstOf is the global number of a node's first rank.
func (r *runner) firstOf(node int) (first int) {
	for _, n := range r.plan.Nodes[:node] {
		first += n.Ranks
	}
	return first
}

// maxRanks bounds the threads and buffers that a plan can ask for.
const maxRanks = 1024

func (r *runner) stop() {
	r.abort.Set(errOver) // links need not wait for peers any more
	r.endNCCL()
	for _, k := range r.ranks {
		switch {
		case k.staged != nil:
			if k.queues.link != nil {
				k.staged.Over(nil, gpu.Direct{}) // queues close their own
			}
			k.staged.Close() // and link, which is under it
		case k.link != nil:
			k.link.Close()
		}
		k.queues.close()
		_ = k.forget() // the process ends
		k.slots.free()
		if k.seat != nil {
			k.seat.Close()
		}
		close(k.work)
	}
	if r.listen != nil {
		r.listen.Close()
	}
}

var errOver = errors.New("the launch is over")

// obey carries out one command and returns the body of its answer.
func (r *runner) obey(ctx context.Context, c coordinator.Command) (any, error) {
	switch c.Kind {
	case coordinator.KindOpen:
		return with(c.Body, r.open)
	case coordinator.KindLimits:
		return with(c.Body, r.limits)
	case coordinator.KindCase:
		return with(c.Body, func(b coordinator.CaseBody) (any, error) { return r.prepare(ctx, b) })
	case coordinator.KindJoin:
		return with(c.Body, r.join)
	case coordinator.KindMark:
		r.counts.mark()
		return struct{}{}, nil
	case coordinator.KindPorts:
		return r.counted()
	case coordinator.KindPair:
		return with(c.Body, r.openPair)
	case coordinator.KindPairJoin:
		return with(c.Body, r.joinPair)
	case coordinator.KindPairTest:
		return with(c.Body, r.testPair)
	case coordinator.KindDevices:
		return with(c.Body, r.devices)
	case coordinator.KindCheck:
		return with(c.Body, r.check)
	case coordinator.KindBatch:
		return with(c.Body, r.batch)
	case coordinator.KindNCCL:
		return with(c.Body, r.openNCCL)
	case coordinator.KindExit:
		return nil, nil
	}
	return nil, fmt.Errorf("unknown command %q: the coordinator's busbw is newer than this one", c.Kind)
}

// with decodes a command's body.
func with[T any](raw json.RawMessage, do func(T) (any, error)) (any, error) {
	var body T
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, fmt.Errorf("command body: %w", err)
	}
	return do(body)
}

func (r *runner) answer(seq uint64, body any, err error) {
	e := coordinator.Event{Node: r.plan.Node, Seq: seq, Kind: coordinator.EventOK}
	if err == nil && body != nil {
		e.Body, err = json.Marshal(body)
	}
	if err != nil {
		e.Kind, e.Error = coordinator.EventFailed, r.fault(err)
	}
	r.send(e)
}

// fault turns an error into who, where and what. A peer that went away is a
// consequence of whatever ended the peer.
func (r *runner) fault(err error) *coordinator.Fault {
	f := &coordinator.Fault{Node: r.plan.Node, Rank: -1, Peer: -1, Text: err.Error()}
	var link *collectives.LinkError
	if errors.As(err, &link) {
		f.Rank, f.Peer, f.Link = link.Rank, link.Peer, link.Link
		f.Consequence = link.Consequence()
	}
	if p := r.progress(); p != nil && f.Rank >= 0 && p.Step >= 0 {
		f.Step = fmt.Sprintf("iteration %d, step %d", p.Iteration, p.Step)
	}
	return f
}

// beat tells the coordinator twice a second that this process is alive and how
// far its slowest rank is.
func (r *runner) beat(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.send(coordinator.Event{Node: r.plan.Node, Kind: coordinator.EventHeartbeat, Progress: r.progress()})
			if err := r.trouble(); err != nil && r.abort.Set(err) {
				r.send(coordinator.Event{Node: r.plan.Node, Kind: coordinator.EventFailed, Error: r.fault(err)})
			}
		}
	}
}

func (r *runner) send(e coordinator.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Encode(e) // a broken pipe ends the process: in ends too
}
