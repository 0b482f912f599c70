package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
	proved   map[string]bool // schedules, by what they were made of
	Run      string          // id
	Launch   int
	Nodes    []PlanNode
	Source   string // "busbw VERSION"
	Token    []byte // 32 random bytes of this launch
	session  doer
	req      *Request
	addrs    []string
	machines []string
	machine  Machine
	fabric   collectives.Fabric
	mixed    bool // machines differ in kind: no limit is known
}

// limit on one command beyond its own running time: connecting hundreds of
// ranks and touching gigabytes takes a while on a slow machine.
const grace = 60 * time.Second

// Open has every node listen, compares what they say of themselves and
// measures the machine's limits. It returns facts worth telling.
func (s *Sweep) Open(ctx context.Context, session doer, req *Request) (facts []string, err error) {
	s.session, s.req = session, req
	replies, err := ask[OpenReply](ctx, s, KindOpen, func(int) any { return OpenBody{Token: s.Token} }, grace)
	if err != nil {
		return nil, err
	}
	for i, r := range replies {
		s.addrs, s.machines = append(s.addrs, r.Addr), append(s.machines, r.Machine)
		if r.Version != replies[0].Version {
			return nil, fmt.Errorf("node %s runs busbw %s and node %s runs %s: install one version everywhere", s.Nodes[i].Host, r.Version, s.Nodes[0].Host, replies[0].Version)
		}
	}
	return s.limits(ctx, replies)
}

// Measure runs one case. A refused or wrong size is a Result with the reason;
// an error means that the launch is over.
func (s *Sweep) Measure(ctx context.Context, c Case) (reports.Result, error) {
	res := s.Blank(c)
	var err error
	if res.Predicted, err = s.prove(c); err != nil {
		return res, err
	}
	body := CaseBody{
		Scope: c.scope, Op: c.op.String(), Algorithm: c.algo, Dtype: s.req.Dtype.String(), Redop: s.req.Redop.String(),
		Root: c.params.Root, Count: c.count, InPlace: c.inPlace, Pieces: c.pieces, Channels: c.params.Channels,
		Rotate: s.req.Rotate, Huge: s.req.Huge, Addrs: s.addrs, Machines: s.machines,
	}
	heavy := grace + time.Duration(float64(c.bytes)/100e6*float64(time.Second)) // touch and fill at 100 MB/s at worst
	replies, err := ask[CaseReply](ctx, s, KindCase, func(int) any { return body }, heavy)
	if err != nil {
		return res, err
	}
	for i, r := range replies {
		if r.Refused != "" {
			res.Error = fmt.Sprintf("node %s: %s", s.Nodes[i].Host, r.Refused)
			return res, nil
		}
		if r.Digest != replies[0].Digest {
			return res, fmt.Errorf("nodes %s and %s disagree on what %s %s of %d B means: their busbw builds differ", s.Nodes[i].Host, s.Nodes[0].Host, c.op, c.algo, c.bytes)
		}
		if len(r.Link) > len(res.Link) {
			res.Link = r.Link // the node with most kinds of peers names the link
		}
	}
	wrong, first, err := s.check(ctx, heavy)
	if err != nil {
		return res, err
	}
	res.Wrong = wrong
	if wrong != nil && *wrong > 0 {
		res.Notes = append(res.Notes, "wrong data, first at "+first)
	}
	return res, s.time(ctx, c, &res)
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

// time warms up and takes the samples.
func (s *Sweep) time(ctx context.Context, c Case, res *reports.Result) error {
	per, err := s.warm(ctx, res)
	if err != nil {
		return err
	}
	n := s.req.Iterations
	if n == 0 {
		n = min(max(int(s.req.Time.Seconds()/max(per, 1e-9)), 10), 20000)
	}
	ranks := make([][]float64, total(s.Nodes)) // medians of each batch
	var starts []skew
	for n > 0 {
		// No batch lasts much over two seconds, so that an interruption is quick.
		k := min(n, max(1, int(2/max(per, 1e-9))))
		b, err := s.batch(ctx, k, per)
		if err != nil {
			return err
		}
		res.Seconds = append(res.Seconds, b.seconds...)
		for i, m := range b.ranks {
			ranks[i] = append(ranks[i], m)
		}
		starts = append(starts, b.starts...)
		n -= k
	}
	for _, g := range c.groups {
		for _, r := range g {
			res.RankP50 = append(res.RankP50, reports.Median(ranks[r]))
		}
	}
	res.Skew = medianSkew(starts)
	return nil
}

// warm runs iterations that are thrown away: as many as asked for, or until
// the medians of two windows in a row agree within 5 %. It returns the time
// that one iteration takes.
func (s *Sweep) warm(ctx context.Context, res *reports.Result) (per float64, err error) {
	first, err := s.batch(ctx, 1, 0)
	if err != nil {
		return 0, err
	}
	agg := float64(s.req.Aggregate) // collectives in an iteration; seconds are of one
	per, res.Warmup = first.seconds[0]*agg, 1
	if s.req.Warmup >= 0 { // as many as were asked for, the first among them
		var last float64
		for left, half := s.req.Warmup-1, (s.req.Warmup+1)/2; left > 0; left -= half {
			half = min(half, left)
			b, err := s.batch(ctx, half, per)
			if err != nil {
				return 0, err
			}
			last, per = per, reports.Median(b.seconds)*agg
			res.Settled = res.Warmup > 1 && agree(per, last)
			res.Warmup += half
		}
		return per, nil
	}
	budget := time.Now().Add(max(4*s.req.Time, time.Second))
	for last, i := 0.0, 0; i < 12 && (i < 2 || time.Now().Before(budget)); i++ {
		k := min(max(int(0.01/max(per, 1e-9)), 3), 1000)
		b, err := s.batch(ctx, k, per)
		if err != nil {
			return 0, err
		}
		res.Warmup += k
		per = reports.Median(b.seconds) * agg
		if res.Settled = last > 0 && agree(per, last); res.Settled {
			break
		}
		last = per
	}
	return per, nil
}

// agree says whether two windows' medians are within 5 % of each other.
func agree(a, b float64) bool { return max(a, b) <= 1.05*min(a, b) }

// measured is a batch with the nodes' answers merged.
type measured struct {
	seconds []float64 // slowest rank of all nodes, each iteration
	ranks   []float64 // median of each global rank
	starts  []skew
}

func (s *Sweep) batch(ctx context.Context, iters int, per float64) (m measured, err error) {
	body := BatchBody{Iterations: iters, Mode: s.req.Mode, Aggregate: s.req.Aggregate}
	timeout := s.req.Timeout
	if timeout == 0 {
		timeout = grace + time.Duration(20*per*float64(iters)*float64(time.Second))
	}
	replies, err := ask[BatchReply](ctx, s, KindBatch, func(int) any { return body }, timeout)
	if err != nil {
		return m, err
	}
	m.seconds = make([]float64, iters)
	for i, r := range replies {
		if len(r.Seconds) != iters || len(r.RankP50) != s.Nodes[i].Ranks {
			return m, fmt.Errorf("node %s answered with %d samples of %d ranks; want %d of %d", s.Nodes[i].Host, len(r.Seconds), len(r.RankP50), iters, s.Nodes[i].Ranks)
		}
		for j, t := range r.Seconds {
			m.seconds[j] = max(m.seconds[j], t)
		}
		m.ranks = append(m.ranks, r.RankP50...)
		for _, g := range r.Starts {
			m.starts = append(m.starts, skew{node: i, GroupStarts: g})
		}
	}
	return m, nil
}

// Blank is the record of a case before it is measured.
func (s *Sweep) Blank(c Case) reports.Result {
	res := reports.Result{
		Format: 1, Time: time.Now().UTC(), Run: s.Run, Launch: s.Launch, Op: c.op.String(), Algorithm: c.algo, Auto: c.auto,
		Engine: "native", Scope: c.scope, Memory: "host", Dtype: s.req.Dtype.String(), Ranks: len(c.groups[0]), Nodes: len(s.Nodes),
		Groups: len(c.groups), Bytes: c.count * int64(s.req.Dtype.Size()), Count: c.count, InPlace: c.inPlace,
		Mode: s.req.Mode, Aggregate: s.req.Aggregate, Config: s.req.Settings, Source: s.Source,
	}
	if res.Bytes != c.bytes {
		res.Asked = c.bytes
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
	for _, n := range s.Nodes {
		res.Hosts = append(res.Hosts, n.Host)
	}
	k := len(slices.Compact(slices.Clone(c.params.Nodes))) // ranks are numbered node-major
	if name, how, gbps, ok := s.machine.Bound(c.op, len(c.groups[0]), k, len(c.groups), len(s.Nodes)); ok && !s.mixed {
		res.Limit = &reports.Limit{Name: name, GBps: gbps, How: how}
	}
	return res
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
	if s.fabric == (collectives.Fabric{}) {
		return nil, nil
	}
	t, err := collectives.Simulate(c.op, sched, c.count*int64(s.req.Dtype.Size()), p.Nodes, s.fabric)
	if err != nil {
		return nil, err
	}
	sec := t.Seconds()
	return &sec, nil
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
