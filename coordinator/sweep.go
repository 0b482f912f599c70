package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"busbw/collectives"
	"busbw/reports"
)

// doer is a running launch: Do gives a command to every node's runner and
// returns their answers by node, or the one error that names the culprit.
type doer interface {
	Do(ctx context.Context, kind string, body func(node int) any, timeout time.Duration) ([]json.RawMessage, error)
}

// Sweep measures a request on one launch.
type Sweep struct {
	proved    map[string]bool // schedules, by what they were made of
	Run       string          // id
	Launch    int
	Nodes     []PlanNode
	Source    string // "busbw VERSION"
	Token     []byte // 32 random bytes of this launch
	Known     Known  // limits; where an earlier launch on these nodes has some, they are not measured first
	session   doer
	req       *Request
	addrs     []string
	network   map[string]string // what carries the nodes' sockets, by name
	machines  []string
	opened    []OpenReply
	machine   Machine
	fabric    collectives.Fabric
	mixed     bool           // machines differ in kind: no limit is known
	verbs     *reports.Verbs // queue pairs carry data between nodes; nil: TCP does
	notes     []string       // that every result between nodes carries
	gpu       bool           // buffers are in GPU memory
	islands   [][]int        // then: of every node
	gpuNotes  []string       // then: that every result carries
	ncclKey   string         // the groups that ncclIDs are for
	ncclIDs   [][]byte       // of each group's communicator
	ncclNotes []string       // that every result on NCCL carries
}

// limit on one command beyond its own running time: connecting hundreds of
// ranks and touching gigabytes takes a while on a slow machine.
const grace = 60 * time.Second

// Open has every node listen, compares what they say of themselves and
// measures the machine's limits. It returns facts worth telling.
func (s *Sweep) Open(ctx context.Context, session doer, req *Request) (facts []string, err error) {
	s.session, s.req = session, req
	replies, err := ask[OpenReply](ctx, s, KindOpen, func(int) any {
		return OpenBody{Token: s.Token, Rails: req.Rails, GPUs: req.Memory == "gpu" || req.Memory == "auto"}
	}, grace)
	if err != nil {
		return nil, err
	}
	s.opened = replies
	for i, r := range replies {
		s.addrs, s.machines = append(s.addrs, r.Addr), append(s.machines, r.Machine)
		s.network = joined(s.network, overNetwork(r))
		if r.Version != replies[0].Version {
			return nil, fmt.Errorf("node %s runs busbw %s and node %s runs %s: install one version everywhere", s.Nodes[i].Host, r.Version, s.Nodes[0].Host, replies[0].Version)
		}
	}
	if facts, err = s.place(replies); err != nil {
		return facts, err
	}
	facts = append(facts, s.agree(replies)...)
	limits := s.limits
	if len(s.Known.replies) == len(replies) {
		limits = s.takeLimits
	}
	if s.gpu {
		if limits = s.gpuLimits; len(replies) > 1 && s.verbs == nil {
			s.notes = append(s.notes, "between nodes through locked host memory, over TCP")
		}
	}
	more, err := limits(ctx, replies)
	return append(facts, more...), err
}

// Measure runs one case. A refused or wrong size is a Result with the reason;
// an error means that the launch is over.
func (s *Sweep) Measure(ctx context.Context, c Case) (reports.Result, error) {
	res := s.Blank(c)
	var err error
	if !c.nccl {
		if res.Predicted, err = s.prove(c); err != nil {
			return res, err
		}
	}
	body := CaseBody{
		Scope: c.scope, Op: c.op.String(), Algorithm: c.algo, Dtype: s.req.Dtype.String(), Redop: s.req.Redop.String(),
		Root: c.params.Root, Count: c.count, InPlace: c.inPlace, Pieces: c.pieces, Channels: c.params.Channels,
		Rotate: s.req.Rotate, Huge: s.req.Huge, Addrs: s.addrs, Machines: s.machines, Verbs: s.verbs != nil, Islands: s.islands, Graph: !s.req.NoGraph && s.gpu,
	}
	if c.apart {
		body.Groups = c.groups
	}
	if c.nccl {
		if res.Error = s.shareGPU(c); res.Error != "" {
			return res, nil
		}
		if body.NCCL, err = s.communicators(ctx, c); err != nil {
			return res, err
		}
		res.Notes = append(res.Notes, s.ncclNotes...)
	}
	heavy := grace + time.Duration(float64(c.bytes)/100e6*float64(time.Second)) // touch and fill at 100 MB/s at worst
	if c.nccl && s.req.Timeout > 0 {
		heavy = s.req.Timeout // a library that hangs does so here, too
	}
	replies, err := ask[CaseReply](ctx, s, KindCase, func(int) any { return body }, heavy)
	if err != nil {
		return res, err
	}
	if s.verbs != nil {
		if err := s.join(ctx, replies); err != nil {
			return res, err
		}
	}
	if !s.gpu && !c.nccl {
		res.Effective = joined(res.Effective, onHost(s.req.Settings))
	}
	for i, r := range replies {
		if r.Refused != "" {
			res.Error = fmt.Sprintf("node %s: %s", s.Nodes[i].Host, r.Refused)
			return res, nil
		}
		if r.Digest != replies[0].Digest {
			return res, fmt.Errorf("nodes %s and %s disagree on what %s %s of %d B means: their busbw builds differ", s.Nodes[i].Host, s.Nodes[0].Host, c.op, c.algo, c.bytes)
		}
		res.Effective = joined(res.Effective, r.Effective)
		for _, n := range r.Notes[:min(len(r.Notes), 4)] {
			if n = clean(NodeName(s.Nodes, i)+": "+n, 400); len(res.Notes) < 32 {
				res.Notes = append(res.Notes, n)
			}
		}
		if len(r.Link) > len(res.Link) {
			res.Link = r.Link // the node with most kinds of peers names the link
		}
	}
	if s.verbs != nil && strings.HasSuffix(res.Link, "verbs") {
		res.Verbs = new(*s.verbs)
	}
	res.Notes = append(res.Notes, s.gpuNotes...)
	if res.Link != "memory" && res.Link != "none" && !s.gpu || strings.HasSuffix(res.Link, "tcp") || strings.HasSuffix(res.Link, "verbs") {
		res.Notes = append(res.Notes, s.notes...)
	}
	if strings.Contains(res.Link, "tcp") {
		res.Effective = joined(res.Effective, s.network)
	}
	wrong, first, err := s.check(ctx, heavy)
	if err != nil {
		return res, err
	}
	res.Wrong = wrong
	if wrong != nil && *wrong > 0 {
		res.Notes = append(res.Notes, "wrong data, first at "+first)
	}
	if err := s.time(ctx, c, &res); err != nil {
		return res, err
	}
	if res.Verbs != nil || res.Memory != memoryHost {
		if err := s.ports(ctx, &res); err != nil {
			return res, err
		}
	}
	return res, s.again(ctx, c, &res)
}

// check compares the data of one untimed collective with what it must be.
func (s *Sweep) check(ctx context.Context, timeout time.Duration) (*int64, string, error) {
	if s.req.Checks == 0 {
		return nil, "", nil
	}
	replies, err := ask[CheckReply](ctx, s, KindCheck, func(int) any { return CheckBody{Rounds: s.req.Checks} }, timeout*time.Duration(s.req.Checks))
	if err != nil {
		return nil, "", err
	}
	var wrong int64
	first := ""
	for _, r := range replies {
		wrong += r.Wrong
		if first == "" {
			first = r.First
		}
	}
	return &wrong, first, nil
}

// Blank is the record of a case before it is measured.
func (s *Sweep) Blank(c Case) reports.Result {
	res := reports.Result{
		Format: 1, Time: time.Now().UTC(), Run: s.Run, Launch: s.Launch, Verb: s.req.Verb, Planned: s.req.Planned, Op: c.op.String(), Algorithm: c.algo, Auto: c.auto,
		Engine: "native", Scope: c.scope, Memory: memoryHost, Dtype: s.req.Dtype.String(), Ranks: len(c.groups[0]), Nodes: len(s.Nodes),
		Groups: len(c.groups), Pairs: c.pairs, Bytes: c.count * int64(s.req.Dtype.Size()), Count: c.count, InPlace: c.inPlace,
		Mode: s.req.Mode, Aggregate: s.req.Aggregate, Config: s.req.Settings, Source: s.Source,
	}
	if res.Bytes != c.bytes {
		res.Asked = c.bytes
	}
	if c.nccl {
		res.Engine, res.Algorithm, res.Config = "nccl", "nccl", s.req.NCCL
	}
	if c.op.Blocked() {
		res.Count /= int64(res.Ranks) // as nccl-tests counts them
	}
	if c.op.Reduces() {
		res.Redop = s.req.Redop.String()
	}
	if c.op.Rooted() {
		res.Root = &c.params.Root
	}
	if s.gpu {
		res.Memory = "cuda"
	}
	for _, n := range s.Nodes {
		res.Hosts = append(res.Hosts, n.Host)
	}
	res.OneMachine = len(s.Nodes) > 1 && s.machine.Shared == len(s.Nodes)
	res.Limit = s.bound(c)
	return res
}

// bound is the limit of a case on the machines as they were measured; nil
// where it is not known.
func (s *Sweep) bound(c Case) *reports.Limit {
	k := len(slices.Compact(slices.Clone(c.params.Nodes))) // ranks are numbered node-major
	name, how, gbps, ok := s.machine.Bound(c.op, len(c.groups[0]), k, len(c.groups), len(s.Nodes))
	if !ok || s.mixed {
		return nil
	}
	return &reports.Limit{Name: name, GBps: gbps, How: how}
}

// simulated bounds the steps of a schedule that is proved and simulated here:
// some seconds of this program's time.
const simulated = 20_000_000

// prove checks that a case's schedule does what it should and predicts its
// time on the measured machine; nil where there is nothing to predict from.
// Sizes that are cut alike share their proof.
func (s *Sweep) prove(c Case) (*float64, error) {
	p := c.params
	p.Pieces = c.pieces
	sched, err := collectives.New(c.op, c.algo, p)
	if err != nil {
		return nil, err
	}
	if p.Ranks*sched.Len(0) > simulated {
		return nil, nil
	}
	key := fmt.Sprint(c.op, c.algo, p)
	if !s.proved[key] {
		if err := collectives.Check(c.op, sched, p.Root); err != nil {
			return nil, fmt.Errorf("the schedule is wrong: %w", err)
		}
		if s.proved == nil {
			s.proved = map[string]bool{}
		}
		s.proved[key] = true
	}
	if s.fabric.Intra == nil {
		return nil, nil
	}
	f := s.fabric
	f.Node = p.Nodes
	t, err := collectives.Simulate(c.op, sched, c.count*int64(s.req.Dtype.Size()), f)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// ask is Do with the answers decoded.
func ask[T any](ctx context.Context, s *Sweep, kind string, body func(int) any, timeout time.Duration) ([]T, error) {
	raw, err := s.session.Do(ctx, kind, body, timeout)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(raw))
	for i, r := range raw {
		if err := json.Unmarshal(r, &out[i]); err != nil {
			return nil, fmt.Errorf("node %s: answer to %q: %w", s.Nodes[i].Host, kind, err)
		}
	}
	return out, nil
}

func total(nodes []PlanNode) (n int) {
	for _, p := range nodes {
		n += p.Ranks
	}
	return n
}
