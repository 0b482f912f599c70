package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"busbw/reports"
)

// The commands of link tests, which take the place of cases: pairs of nodes,
// one rank of each, measure their queue pairs.
const (
	KindPair     = "pair"      // PairBody → PairReply: open this node's end of a pair
	KindPairJoin = "pair-join" // PairReply of the peer → JoinReply: connect it
	KindPairTest = "pair-test" // PairTest → PairTimes: measure
)

// PairBody opens one end of a pair; whatever pair was open is closed.
type PairBody struct {
	Peer    int `json:"peer"` // −1: this node sits the round out
	QPs     int `json:"qps"`
	Depth   int `json:"depth"` // messages under way on each queue pair
	MaxSize int `json:"max_size"`
}

// PairReply is what the peer's end must be told.
type PairReply struct {
	Hello []byte `json:"hello,omitempty"`
}

// PairTest is one link test of one size.
type PairTest struct {
	First   bool    `json:"first"` // this node measures; the other serves
	Kind    string  `json:"kind"`  // "write_bw", "read_lat", …
	Both    bool    `json:"both"`  // both directions at once
	Size    int     `json:"size"`
	Count   int     `json:"count"`   // messages of a round; 0: as many as take a while
	Seconds float64 `json:"seconds"` // to measure for
}

// PairTimes are what the first node measured: of bandwidth a message's share
// of each round, of latency each message's time, s.
type PairTimes struct {
	Seconds  []float64 `json:"seconds"`
	Messages int       `json:"messages"` // in all; of latency more than there are Seconds where only a sample was kept
	Warmup   int       `json:"warmup"`   // messages thrown away
	Settled  bool      `json:"settled"`
}

// Neighbours are the rounds of pairs that test every node with the next one
// round a ring; the pairs of a round have no node in common and run at once.
func Neighbours(n int) (rounds [][][2]int) {
	if n < 2 {
		return nil
	}
	var even, odd [][2]int
	for i := 0; i+1 < n; i += 2 {
		even = append(even, [2]int{i, i + 1})
	}
	for i := 1; i+1 < n; i += 2 {
		odd = append(odd, [2]int{i, i + 1})
	}
	rounds = append(rounds, even)
	if n > 2 && n%2 == 0 {
		odd = append(odd, [2]int{n - 1, 0})
	}
	if len(odd) > 0 {
		rounds = append(rounds, odd)
	}
	if n > 2 && n%2 == 1 {
		rounds = append(rounds, [][2]int{{n - 1, 0}})
	}
	return rounds
}

// PairSweep runs link tests on one launch of one rank a node.
type PairSweep struct {
	Sweep
	QPs, Depth, MaxSize int
	rails               []Rail // of each node
	round               [][2]int
}

// Open has every node open its RDMA device. A node that has none is an error:
// a link test falls back to nothing.
func (p *PairSweep) Open(ctx context.Context, session doer, settings map[string]string, rails []string) (facts []string, err error) {
	p.session, p.req = session, &Request{Settings: settings, Rails: rails}
	replies, err := ask[OpenReply](ctx, &p.Sweep, KindOpen, func(int) any { return OpenBody{Token: p.Token, Rails: rails} }, grace)
	if err != nil {
		return nil, err
	}
	var without []string
	for i, r := range replies {
		if r.RDMA.None != "" || len(r.RDMA.Rails) == 0 {
			without = append(without, fmt.Sprintf("%s has no RDMA: %s", NodeName(p.Nodes, i), clean(r.RDMA.None, 400)))
			continue
		}
		p.rails = append(p.rails, r.RDMA.Rails[0])
	}
	if len(without) > 0 {
		return nil, fmt.Errorf("link tests need an active RDMA port on every member, and %d of %d have none: %s", len(without), len(replies), strings.Join(without[:min(8, len(without))], "; "))
	}
	facts = p.agree(replies)
	if p.verbs == nil {
		return nil, errors.New(strings.Join(facts, "; "))
	}
	return facts, nil
}

// Connect opens and connects the pairs of a round.
func (p *PairSweep) Connect(ctx context.Context, round [][2]int) error {
	p.round = round
	peer := make([]int, len(p.Nodes))
	for i := range peer {
		peer[i] = -1
	}
	for _, ab := range round {
		peer[ab[0]], peer[ab[1]] = ab[1], ab[0]
	}
	opened, err := ask[PairReply](ctx, &p.Sweep, KindPair, func(i int) any {
		return PairBody{Peer: peer[i], QPs: p.QPs, Depth: p.Depth, MaxSize: p.MaxSize}
	}, grace)
	if err != nil {
		return err
	}
	for i, o := range opened {
		if len(o.Hello) > maxHello {
			return fmt.Errorf("%s answers with connection data of %d bytes", NodeName(p.Nodes, i), len(o.Hello))
		}
	}
	joined, err := ask[JoinReply](ctx, &p.Sweep, KindPairJoin, func(i int) any {
		if peer[i] < 0 {
			return PairReply{}
		}
		return opened[peer[i]]
	}, grace)
	if err != nil {
		return err
	}
	p.joined(joined)
	return nil
}

// Measure runs one test on all pairs of the round at once.
func (p *PairSweep) Measure(ctx context.Context, t PairTest) ([]reports.Result, error) {
	begun := time.Now().UTC()
	replies, err := ask[PairTimes](ctx, &p.Sweep, KindPairTest, func(i int) any {
		mine := t
		for _, ab := range p.round {
			mine.First = mine.First || ab[0] == i
		}
		return mine
	}, grace+time.Duration(20*t.Seconds*float64(time.Second)))
	if err != nil {
		return nil, err
	}
	var out []reports.Result
	for _, ab := range p.round {
		r := p.record(t, ab, replies[ab[0]])
		if r.Time = begun; len(r.Seconds) == 0 {
			return out, fmt.Errorf("%s answers a link test without a time", NodeName(p.Nodes, ab[0]))
		}
		out = append(out, r)
	}
	return out, nil
}

func (p *PairSweep) record(t PairTest, ab [2]int, times PairTimes) reports.Result {
	a, b := p.rails[ab[0]], p.rails[ab[1]]
	r := reports.Result{
		Format: reports.Format, Run: p.Run, Verb: "link", Op: t.Kind, Algorithm: "rc", Engine: "native", Scope: "cross", Link: "verbs", Memory: "host",
		Dtype: "uint8", Ranks: 2, Nodes: 2, Groups: len(p.round), Bytes: int64(t.Size), Count: int64(t.Size), Mode: "pipelined", Aggregate: 1,
		Seconds: times.Seconds, Warmup: times.Warmup, Settled: times.Settled, Source: p.Source, Notes: p.notes,
		Hosts:  []string{p.Nodes[ab[0]].Host, p.Nodes[ab[1]].Host},
		Config: map[string]string{"pair": p.Nodes[ab[0]].Host + " to " + p.Nodes[ab[1]].Host, "depth": strconv.Itoa(p.Depth), "queue_pairs": strconv.Itoa(p.QPs), "messages": strconv.Itoa(times.Messages)},
		Verbs:  new(*p.verbs),
	}
	maps.Copy(r.Config, p.req.Settings)
	r.Verbs.Rails = []string{p.verbs.Rails[ab[0]], p.verbs.Rails[ab[1]]}
	switch kind := strings.TrimSuffix(t.Kind, "_lat"); {
	case kind == "read" && kind != t.Kind:
		r.Mode, r.Notes = "ping-pong", append(r.Notes, "latency is that of a whole read: request and answer")
	case kind != t.Kind:
		r.Mode, r.Notes = "ping-pong", append(r.Notes, "latency is half the round trip")
	default:
		if t.Both {
			r.Notes = append(r.Notes, "both directions at once; the rate is that of each")
		}
		mtu := min(a.MTU, b.MTU)
		ga, how := railRate([]Rail{a}, mtu)
		gb, _ := railRate([]Rail{b}, mtu)
		if g := min(ga, gb); g > 0 {
			r.Limit = &reports.Limit{Name: "NIC line rate", GBps: g, How: how}
		}
	}
	if times.Messages > len(times.Seconds) && r.Mode == "ping-pong" {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d messages were kept, evenly", len(times.Seconds), times.Messages))
	}
	return r
}
