package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"busbw/collectives"
	"busbw/collectives/reduce"
	"busbw/coordinator"
)

// liveCase is the case that the ranks are ready to run.
type liveCase struct {
	collectives.Case
	groups [][]int         // global ranks
	nccl   bool            // it runs on NCCL
	ctx    context.Context // of the runner
	sets   int             // of buffers, where runs on them are recorded; 0: they are not
	shape  string          // the same for cases whose ranks have the same peers
}

// Bounds on what a coordinator can ask of a runner.
const (
	maxIterations = 1_000_000
	maxAggregate  = 100_000
)

// prepare makes the ranks ready for a case: schedule, connections, program,
// buffers.
func (r *runner) prepare(ctx context.Context, b coordinator.CaseBody) (any, error) {
	if r.listen == nil {
		return nil, errors.New("case before open")
	}
	c, err := r.read(b)
	if err != nil {
		return nil, err
	}
	c.ctx = ctx
	if err := r.on(r.ranks, (*rank).forget); err != nil { // before buffers change
		return nil, err
	}
	if r.onNCCL.Store(c.nccl); c.nccl {
		r.beginNCCL()
	}
	r.gpus.islands = nil
	if b.Islands != nil {
		if err := r.seat(b); err != nil {
			return nil, err
		}
		if b.Graph && c.Count*int64(c.Dtype.Size()) <= graphBytes {
			c.sets = graphSets
		}
	}
	if err := r.connect(ctx, c, b); err != nil {
		return nil, err
	}
	r.live = c
	if err := r.each(func(k *rank) (err error) {
		k.program, err = k.exec.Compile(c.Case)
		return err
	}); err != nil {
		return nil, err
	}
	reply := coordinator.CaseReply{Digest: digest(b), Link: r.linkName(), Effective: r.effective(c)}
	if c.nccl {
		reply.Link = "nccl"
		if reply.Refused, err = r.joinNCCL(ctx, c, b); err != nil {
			return nil, err
		}
		reply.Effective = nil // told when it has run
		if err := r.nccl.log.begin(); err != nil {
			return nil, err
		}
	}
	if reply.Refused == "" {
		if reply.Refused, err = r.allocate(c, b); err != nil {
			return nil, err
		}
	}
	r.tellDirect(&reply)
	if reply.Hellos, err = r.hellos(); err != nil {
		return nil, err
	}
	runtime.GC()
	return reply, r.snapshot()
}

// read checks a case and finds each local rank's place in it.
func (r *runner) read(b coordinator.CaseBody) (*liveCase, error) {
	if n := len(r.plan.Nodes); len(b.Machines) != n || len(b.Addrs) != n {
		return nil, fmt.Errorf("a case with %d addresses and %d machines for %d nodes", len(b.Addrs), len(b.Machines), n)
	}
	c := &liveCase{nccl: b.NCCL != nil}
	var err error
	if c.groups, err = coordinator.GroupsOf(b, r.plan.Nodes); err != nil {
		return nil, err
	}
	if c.Op, err = collectives.ParseOp(b.Op); err != nil {
		return nil, err
	}
	if c.Dtype, err = reduce.ParseDtype(b.Dtype); err != nil {
		return nil, err
	}
	if c.Redop, err = reduce.ParseOp(b.Redop); err != nil {
		return nil, err
	}
	p := collectives.Params{Ranks: len(c.groups[0]), Root: b.Root, Pieces: b.Pieces, Channels: b.Channels}
	for _, g := range c.groups[0] {
		p.Nodes = append(p.Nodes, coordinator.NodeOf(r.plan.Nodes, g))
	}
	if c.Schedule, err = collectives.New(c.Op, b.Algorithm, p); err != nil {
		return nil, err
	}
	c.shape = fmt.Sprint(b.Scope, b.Groups, c.Op, b.Algorithm, p)
	c.Root, c.Count, c.InPlace = b.Root, b.Count, b.InPlace
	for _, k := range r.ranks {
		k.group = slices.IndexFunc(c.groups, func(g []int) bool { return slices.Contains(g, k.global) })
		if k.group < 0 { // it sits this case out
			k.current.Store(nil)
			continue
		}
		k.me = slices.Index(c.groups[k.group], k.global)
		k.apart = slices.ContainsFunc(c.groups[k.group], func(g int) bool {
			return b.Machines[coordinator.NodeOf(r.plan.Nodes, g)] != b.Machines[r.plan.Node]
		})
	}
	return c, nil
}

// team is a rank's group as the executor sees it. With shared memory disabled
// every rank counts as a process of its own, and so does every island of GPUs.
func (r *runner) team(c *liveCase, k *rank) collectives.Team {
	t := r.teamOf(c.groups[k.group])
	t.Me = k.me
	return t
}

// teamOf is a group as its first rank sees it.
func (r *runner) teamOf(group []int) collectives.Team {
	t := collectives.Team{Global: group, Node: make([]int, len(group))}
	for i, g := range t.Global {
		n := coordinator.NodeOf(r.plan.Nodes, g)
		if t.Node[i] = n; r.gpus.islands != nil {
			t.Node[i] = n*maxRanks + r.gpus.islands[n][g-r.firstOf(n)]
		} else if r.plan.Settings["NCCL_SHM_DISABLE"] == "1" {
			t.Node[i] = g
		}
	}
	return t
}

// connect makes each rank's side of its group, and the connections that the
// schedule's own steps need and that no case before has opened.
func (r *runner) connect(ctx context.Context, c *liveCase, b coordinator.CaseBody) error {
	if b.Verbs {
		if err := r.reopen(c, b); err != nil {
			return err
		}
	}
	return r.each(func(k *rank) (err error) {
		t := r.team(c, k)
		if t.Apart() && !b.Verbs {
			peers := t.Peers(c.Schedule)
			if b.Islands != nil {
				peers = slices.DeleteFunc(peers, k.staged.Here)
			}
			if err = k.dial(ctx, r, peers, b.Addrs); err != nil {
				r.abort.Set(err) // the other ranks need not wait for this one
				return err
			}
		}
		if k.exec, err = collectives.NewRank(t, r.hub, k.wire, r.abort); err != nil {
			return err
		}
		if b.Islands != nil {
			k.exec.On(k.seat)
			k.exec.Replay(c.sets)
		}
		k.current.Store(k.exec)
		return nil
	})
}

// linkName says what carries the data of this node's ranks.
func (r *runner) linkName() string {
	memory, apart, wire := false, false, "tcp"
	players := r.players()
	switch {
	case len(players) == 0:
		return ""
	case r.gpus.islands != nil:
		return r.gpuLinkName()
	}
	for _, k := range players {
		t := r.team(r.live, k)
		memory, apart = memory || t.Together(), apart || t.Apart()
		if k.queues.link != nil {
			wire = "verbs"
		}
	}
	switch {
	case memory && apart:
		return "memory+" + wire
	case memory:
		return "memory"
	case apart:
		return wire
	}
	return "none"
}

// digest is equal on all nodes that understood a case in the same way.
func digest(b coordinator.CaseBody) string {
	text, _ := json.Marshal(b)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func (r *runner) ready() error {
	if r.live == nil {
		return errors.New("no case is prepared")
	}
	return nil
}

func validBatch(b coordinator.BatchBody) error {
	switch {
	case b.Iterations < 1 || b.Iterations > maxIterations:
		return fmt.Errorf("%d iterations: want 1 to %d", b.Iterations, maxIterations)
	case b.Aggregate < 1 || b.Aggregate > maxAggregate:
		return fmt.Errorf("%d collectives in an iteration: want 1 to %d", b.Aggregate, maxAggregate)
	case b.Mode != coordinator.Barrier && b.Mode != coordinator.Pipelined && b.Mode != coordinator.BarrierTimed:
		return fmt.Errorf("unknown timing mode %q", b.Mode)
	}
	return nil
}

func (r *runner) total() (n int) {
	for _, p := range r.plan.Nodes {
		n += p.Ranks
	}
	return n
}

// progress is that of the local rank that is furthest behind.
func (r *runner) progress() *coordinator.Progress {
	if r.onNCCL.Load() {
		return r.ncclProgress()
	}
	var slowest *coordinator.Progress
	for _, k := range r.ranks {
		x := k.current.Load()
		if x == nil { // not yet, or not in this case
			continue
		}
		p := x.Progress()
		if slowest == nil || p.Runs < uint64(slowest.Iteration) {
			slowest = &coordinator.Progress{Rank: k.global, Iteration: int(p.Runs), Step: p.Step}
		}
	}
	return slowest
}
