package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// GossipPort is where workers listen for gossip unless told otherwise.
const GossipPort = 7946

// GossipOptions say how a process joins a cluster.
type GossipOptions struct {
	Secret Secret
	Seeds  []string       // "HOST" or "HOST:PORT" of members; none: be the first
	Bind   netip.AddrPort // port 0: any; no address: all of the advertised family
	Self   Member         // ID is filled in; Data.Addr is what others are told
	Log    *slog.Logger
}

// Gossip is a member's view of the cluster.
type Gossip struct {
	list  *memberlist.Memberlist
	self  Member
	seeds []string
	log   *slog.Logger
	meta  metaDelegate

	mu      sync.Mutex
	members map[string]*seen
	changed chan struct{} // closed at the next change
}

// seen is a member with when its state last changed.
type seen struct {
	Member
	since time.Time
}

// StartGossip opens the gossip port. Nobody is joined yet.
func StartGossip(o GossipOptions) (*Gossip, error) {
	var id [16]byte
	rand.Read(id[:])
	o.Self.ID, o.Self.State = hex.EncodeToString(id[:]), StateAlive
	g := &Gossip{self: o.Self, log: o.Log, members: map[string]*seen{}, changed: make(chan struct{})}
	for _, s := range o.Seeds {
		seed, err := seedAddr(s)
		if err != nil {
			return nil, err
		}
		g.seeds = append(g.seeds, seed)
	}
	text, err := o.Self.encode()
	if err != nil {
		return nil, err
	}
	key, err := o.Secret.gossipKey()
	if err != nil {
		return nil, fmt.Errorf("gossip key: %w", err)
	}
	at := o.Self.Data.Addr
	bind := o.Bind.Addr()
	if !bind.IsValid() {
		bind = netip.IPv4Unspecified()
		if at.Is6() {
			bind = netip.IPv6Unspecified()
		}
	}
	cfg := timing(at.IsLoopback())
	cfg.Name = o.Self.ID
	cfg.BindAddr, cfg.BindPort = bind.String(), int(o.Bind.Port())
	cfg.AdvertiseAddr, cfg.AdvertisePort = at.String(), int(o.Bind.Port())
	cfg.SecretKey = key
	g.meta.text.Store(&text)
	cfg.Delegate, cfg.Events = &g.meta, g
	cfg.Logger = log.New(&warnings{log: o.Log, name: g.host, last: map[string]time.Time{}}, "", 0)
	if g.list, err = memberlist.Create(cfg); err != nil {
		return nil, fmt.Errorf("gossip on %s: %w (is another worker running? another port: --bind)", net.JoinHostPort(cfg.BindAddr, strconv.Itoa(cfg.BindPort)), err)
	}
	return g, nil
}

// Join tells the seeds of this member. One seed that answers is enough.
func (g *Gossip) Join() error {
	if len(g.seeds) == 0 {
		return nil
	}
	n, err := g.list.Join(g.seeds)
	if n > 0 {
		return nil
	}
	return fmt.Errorf("joining %s: %w", strings.Join(g.seeds, ", "), joinCause(err))
}

// Keep joins until ctx ends: at first while no seed answers; later when this
// member finds itself alone, because the seeds were started anew; and now and
// then after others died, because it may have been the network that was cut.
func (g *Gossip) Keep(ctx context.Context) {
	if len(g.seeds) == 0 {
		return
	}
	told, last := false, time.Time{}
	for wait := 500 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		alone := g.list.NumMembers() <= 1
		if alone || time.Since(last) > mend && g.bereaved() {
			err := g.Join()
			last = time.Now()
			if err != nil && alone && !told {
				g.log.Warn("no member found yet, trying on", "error", err)
			}
			told = err != nil && alone
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

const (
	mend  = 30 * time.Second // between attempts to mend a cut
	mourn = 10 * time.Minute // after which the dead are believed dead
)

// bereaved says whether somebody died lately.
func (g *Gossip) bereaved() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		if m.State == StateDead && time.Since(m.since) < mourn {
			return true
		}
	}
	return false
}

// Self is this member as the others see it.
func (g *Gossip) Self() Member { return g.self }

// Addr is where this member can be joined ("IP:PORT").
func (g *Gossip) Addr() string {
	n := g.list.LocalNode()
	return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))
}

// Members lists everybody seen, this member too, in numbering order.
func (g *Gossip) Members() []Member {
	g.mu.Lock()
	var out []Member
	for _, m := range g.members {
		out = append(out, m.Member)
	}
	g.mu.Unlock()
	sortMembers(out)
	return out
}

// host is where a member runs; empty where nobody has told.
func (g *Gossip) host(id string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id == g.self.ID {
		return g.self.Host
	}
	if m := g.members[id]; m != nil {
		return m.Host
	}
	return ""
}

// Changed is closed at the next change of the members.
func (g *Gossip) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// forgive is how long a member that stopped answering gossip may still use its
// certificate: a machine under full load loses packets.
const forgive = time.Minute

// Find is the member that shows the certificate f and has not left.
func (g *Gossip) Find(f Fingerprint) (Member, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		if m.Fingerprint == f && m.Problem == "" && (m.State == StateAlive || m.State == StateDead && time.Since(m.since) < forgive) {
			return m.Member, true
		}
	}
	return Member{}, false
}

// Leave says goodbye and closes the ports. Who does not hear it in time finds
// out by probing.
func (g *Gossip) Leave() error {
	// memberlist's own goodbye looks like a death to the others, so the
	// description says it first.
	if text, err := g.self.leaving().encode(); err == nil && g.list.NumMembers() > 1 {
		g.meta.text.Store(&text)
		_ = g.list.UpdateNode(goodbye)
		_ = g.list.Leave(goodbye)
	}
	return g.list.Shutdown()
}

// goodbye bounds each of two rounds of gossip.
const goodbye = time.Second

// NotifyJoin, NotifyUpdate and NotifyLeave are memberlist's callbacks.
func (g *Gossip) NotifyJoin(n *memberlist.Node)   { g.note(n, StateAlive) }
func (g *Gossip) NotifyUpdate(n *memberlist.Node) { g.note(n, StateAlive) }
func (g *Gossip) NotifyLeave(n *memberlist.Node)  { g.note(n, StateDead) }

// maxGone bounds the memory spent on members that are no more.
const maxGone = 1000

func (g *Gossip) note(n *memberlist.Node, state string) {
	m := decodeMember(n.Name, n.Meta)
	if m.State != StateLeft {
		m.State = state
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members[n.Name] = &seen{m, time.Now()}
	var gone []string
	for name, s := range g.members {
		if s.State != StateAlive {
			gone = append(gone, name)
		}
	}
	if len(gone) > maxGone {
		slices.SortFunc(gone, func(a, b string) int { return g.members[a].since.Compare(g.members[b].since) })
		delete(g.members, gone[0])
	}
	close(g.changed)
	g.changed = make(chan struct{})
}
