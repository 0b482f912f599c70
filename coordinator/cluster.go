package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"busbw/reports"
)

// JoinOptions say how a coordinator joins a cluster.
type JoinOptions struct {
	Secret   Secret
	Seeds    []string       // "HOST" or "HOST:PORT"; none: others join us
	Bind     netip.AddrPort // for gossip; port 0: any
	Want     Want           // which of our addresses the others are told
	Version  string
	Log      *slog.Logger
	Patience time.Duration                           // for the first seed to answer; 0: 10 s
	Waiting  func(why error, patience time.Duration) // told once, when no seed answers at first; nil: nobody
}

// Cluster is a coordinator's membership.
type Cluster struct {
	gossip *Gossip
	id     *Identity
}

// Join becomes a member that runs no ranks. It returns when a seed answered.
func Join(ctx context.Context, o JoinOptions) (*Cluster, error) {
	id, err := NewIdentity()
	if err != nil {
		return nil, err
	}
	self, err := NewSelf(RoleRun, o.Version, o.Seeds, o.Bind, o.Want)
	if err != nil {
		return nil, err
	}
	self.Fingerprint = id.Fingerprint
	g, err := StartGossip(GossipOptions{Secret: o.Secret, Seeds: o.Seeds, Bind: o.Bind, Self: self.Member, Log: o.Log})
	if err != nil {
		return nil, err
	}
	c := &Cluster{g, id}
	patience := o.Patience
	if patience == 0 {
		patience = 10 * time.Second
	}
	deadline := time.Now().Add(patience)
	for told := false; ; told = true {
		err = g.Join()
		if err == nil {
			return c, nil
		}
		if errors.Is(err, ErrSecret) || errors.Is(err, errNoHost) || time.Now().After(deadline) {
			return nil, errors.Join(err, c.Close())
		}
		if !told && o.Waiting != nil {
			o.Waiting(err, patience)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), c.Close())
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// Self is a member that is about to join, with what its address was chosen
// by and from.
type Self struct {
	Member
	Toward netip.Addr // local end of the route to a seed; invalid: none
	Choice Choice
}

// NewSelf describes this process: its host name, machine and address.
func NewSelf(role, version string, seeds []string, bind netip.AddrPort, w Want) (Self, error) {
	host, err := os.Hostname()
	if err != nil {
		return Self{}, err
	}
	bound := bind.Addr().IsValid() && !bind.Addr().IsUnspecified() && !w.Advertise.IsValid()
	if bound {
		w.Advertise = bind.Addr()
	}
	if !w.Advertise.IsValid() && !w.Toward.IsValid() {
		var at []string
		for _, s := range seeds {
			a, err := seedAddr(s)
			if err != nil {
				return Self{}, err
			}
			at = append(at, a)
		}
		w.Toward = towards(at)
	}
	ifs, err := Interfaces()
	if err != nil {
		return Self{}, err
	}
	c, err := Pick(ifs, w)
	if err != nil {
		return Self{}, err
	}
	if bound {
		c.Why = "it listens only there (--bind)"
	}
	m := Member{Host: host, Role: role, Version: version, Machine: MachineID(), Data: c.DataAddr, Why: c.Why, Others: c.Others, State: StateAlive}
	return Self{m, w.Toward, c}, nil
}

// Members lists everybody in the cluster, also those that left or died lately.
func (c *Cluster) Members() []Member { return c.gossip.Members() }

// Addr is where others can join this member ("IP:PORT").
func (c *Cluster) Addr() string { return c.gossip.Addr() }

// Workers are the members that can run ranks now, in the order in which nodes
// are numbered.
func (c *Cluster) Workers() []Member {
	return slices.DeleteFunc(c.Members(), func(m Member) bool {
		return m.Role != RoleWorker || m.State != StateAlive || m.Problem != ""
	})
}

// WaitWorkers waits for n workers and returns the first n in numbering order.
// progress (nil: none) is told how many are there whenever that changes.
func (c *Cluster) WaitWorkers(ctx context.Context, n int, progress func(have int)) ([]Member, error) {
	last := -1
	for {
		changed := c.gossip.Changed() // before looking, so that no change is missed
		ws := c.Workers()
		if len(ws) != last && progress != nil {
			progress(len(ws))
		}
		last = len(ws)
		if len(ws) >= n {
			return ws[:n], nil
		}
		select {
		case <-ctx.Done():
			return ws, fmt.Errorf("%d of %d workers are there%s: start the missing ones, or ask for fewer with --nodes; busbw members shows who is there%w", len(ws), n, c.unusable(), silent{ctx.Err()})
		case <-changed:
		}
	}
}

// silent adds an error that callers match and people need not read.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// unusable tells of members that are there and cannot be used.
func (c *Cluster) unusable() string {
	for _, m := range c.Members() {
		if m.Problem != "" && m.State == StateAlive {
			return fmt.Sprintf("; member %s cannot be used: %s", m, m.Problem)
		}
	}
	return ""
}

// Start starts a runner on each of the members, which are the plan's nodes.
func (c *Cluster) Start(ctx context.Context, members []Member, plan Plan) (*Session, error) {
	if len(members) == 0 || len(members) != len(plan.Nodes) {
		return nil, fmt.Errorf("a plan of %d nodes for %d members", len(plan.Nodes), len(members))
	}
	for _, m := range members {
		if m.Problem != "" {
			return nil, fmt.Errorf("node %s cannot be used: %s", m, m.Problem)
		}
	}
	if err := CheckAddresses(members, c.gossip.Self()); err != nil {
		return nil, err
	}
	return start(ctx, c.id, c.gossip.Self(), members, plan)
}

// NodeInfo asks a worker about its machine.
func (c *Cluster) NodeInfo(ctx context.Context, m Member) (info NodeInfo, err error) {
	r := newRemote(c.id, "node "+m.String(), m)
	defer r.close()
	err = r.first(ctx, http.MethodGet, PathNode, nil, &info)
	return info, err
}

// Topology asks a worker how the devices of its machine are joined.
func (c *Cluster) Topology(ctx context.Context, m Member) (t reports.Topology, err error) {
	ctx, cancel := context.WithTimeout(ctx, nodePatience)
	defer cancel()
	r := newRemote(c.id, "node "+m.String(), m)
	defer r.close()
	if err := r.first(ctx, http.MethodGet, PathTopo, nil, &t); err != nil {
		return t, err
	}
	if err := t.Check(); err != nil {
		return reports.Topology{}, fmt.Errorf("node %s: its topology: %w", m, err)
	}
	t.Node = m.Host
	return t, nil
}

// PlanNodes are members as the nodes of a plan. ranks 0: as each offers. Nodes
// of one host name are told apart by a number: gpu1, gpu1#2.
func PlanNodes(members []Member, ranks int) ([]PlanNode, error) {
	var out []PlanNode
	for _, m := range members {
		n := m.Ranks
		if ranks > 0 {
			n = ranks
		}
		if n < 1 || n > maxRanks {
			return nil, fmt.Errorf("node %s offers %d ranks; start it with --ranks, or give busbw run --ranks", m, m.Ranks)
		}
		host := m.Host
		for i := 2; slices.ContainsFunc(out, func(p PlanNode) bool { return p.Host == host }); i++ {
			host = fmt.Sprintf("%s#%d", m.Host, i)
		}
		out = append(out, PlanNode{ID: m.ID, Host: host, Addr: m.Data.Addr.String(), Ranks: n})
	}
	return out, nil
}

// Close leaves the cluster.
func (c *Cluster) Close() error { return c.gossip.Leave() }
