package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

func newSecret(t *testing.T) Secret {
	t.Helper()
	_, s, err := WriteSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gossip starts a member on loopback. The caller joins and leaves.
func gossip(t *testing.T, s Secret, role, host string, seeds ...string) *Gossip {
	t.Helper()
	id, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	self := Member{
		Host: host, Role: role, API: netip.MustParseAddrPort("127.0.0.1:1"), Fingerprint: id.Fingerprint, Ranks: 2, Version: "test",
		Machine: MachineID(), Data: DataAddr{"lo", loopback.Addr()}, Why: "test",
	}
	g, err := StartGossip(GossipOptions{Secret: s, Seeds: seeds, Bind: loopback, Self: self, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// wait waits until ok says so of the members.
func (g *Gossip) wait(t *testing.T, what string, limit time.Duration, ok func([]Member) bool) {
	t.Helper()
	late := time.After(limit)
	for {
		changed := g.Changed()
		ms := g.Members()
		if ok(ms) {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%s: not after %s: %d members: %v", what, limit, len(ms), ms)
		}
	}
}

func alive(n int) func([]Member) bool {
	return func(ms []Member) bool {
		return n == len(slices.DeleteFunc(ms, func(m Member) bool { return m.State != StateAlive || m.Problem != "" }))
	}
}

// TestSettle: 64 members on one machine get to know each other. On two idle
// cores that takes about two seconds; the limit is for machines that are not idle.
func TestSettle(t *testing.T) {
	n := 64
	if testing.Short() {
		n = 16
	}
	secret := newSecret(t)
	seed := gossip(t, secret, RoleRun, "seed")
	defer seed.Leave()
	began := time.Now()
	all := []*Gossip{seed}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range n {
		g := gossip(t, secret, RoleWorker, "same", seed.Addr())
		defer g.list.Shutdown() // without 64 goodbyes
		all = append(all, g)
		go g.Keep(ctx)
	}
	for _, g := range all {
		g.wait(t, "all members", time.Minute-time.Since(began), alive(n+1))
	}
	t.Logf("%d members settled in %s", n, time.Since(began).Round(time.Millisecond))
	ids := map[string]bool{}
	for _, m := range seed.Members() {
		ids[m.ID] = true
	}
	if len(ids) != n+1 {
		t.Errorf("%d ids; want each member to have its own, whatever its host is called", len(ids))
	}
}

func TestLeaveAndDie(t *testing.T) {
	secret := newSecret(t)
	a := gossip(t, secret, RoleRun, "a")
	defer a.Leave()
	b, c := gossip(t, secret, RoleWorker, "b", a.Addr()), gossip(t, secret, RoleWorker, "c", a.Addr())
	for _, g := range []*Gossip{b, c} {
		if err := g.Join(); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range []*Gossip{a, b, c} {
		g.wait(t, "three members", 5*time.Second, alive(3))
	}
	state := func(host, want string) func([]Member) bool {
		return func(ms []Member) bool {
			return slices.ContainsFunc(ms, func(m Member) bool { return m.Host == host && m.State == want })
		}
	}
	if a.bereaved() {
		t.Error("nobody died yet")
	}
	known := func(g *Gossip) bool {
		_, ok := a.Find(g.Self().Fingerprint)
		return ok
	}
	if !known(b) || !known(c) || known(&Gossip{}) {
		t.Error("fingerprints of members are not known, or that of nobody is")
	}
	if err := b.Leave(); err != nil {
		t.Fatal(err)
	}
	a.wait(t, "b left", 5*time.Second, state("b", StateLeft))
	if known(b) {
		t.Error("a member that left is still let in")
	}
	c.list.Shutdown()
	a.wait(t, "c died", 20*time.Second, state("c", StateDead))
	if !a.bereaved() {
		t.Error("a death is not noticed")
	}
	if !known(c) {
		t.Error("a member that gossip lost a moment ago is shut out")
	}
	a.mu.Lock()
	a.members[c.Self().ID].since = time.Now().Add(-2 * forgive)
	a.mu.Unlock()
	if known(c) {
		t.Error("a member that is long dead is let in")
	}
}

func TestWrongSecret(t *testing.T) {
	a := gossip(t, newSecret(t), RoleWorker, "a")
	defer a.Leave()
	began := time.Now()
	_, err := Join(t.Context(), JoinOptions{Secret: newSecret(t), Seeds: []string{a.Addr()}, Bind: loopback, Log: slog.New(slog.DiscardHandler), Patience: 20 * time.Second})
	if !errors.Is(err, ErrSecret) || !strings.Contains(err.Error(), a.Addr()) || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if ms := a.Members(); len(ms) != 1 {
		t.Errorf("a member without the secret got in: %v", ms)
	}
}

func TestJoinNobody(t *testing.T) {
	_, err := Join(t.Context(), JoinOptions{Secret: newSecret(t), Seeds: []string{"127.0.0.1:1"}, Bind: loopback, Log: slog.New(slog.DiscardHandler), Patience: time.Second})
	if err == nil || errors.Is(err, ErrSecret) || !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Join(ctx, JoinOptions{Secret: newSecret(t), Seeds: []string{"127.0.0.1:1"}, Bind: loopback, Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestPortInUse(t *testing.T) {
	secret := newSecret(t)
	a := gossip(t, secret, RoleWorker, "a")
	defer a.Leave()
	_, err := Join(t.Context(), JoinOptions{Secret: secret, Bind: netip.MustParseAddrPort(a.Addr()), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), a.Addr()) || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "--bind") {
		t.Errorf("%v", err)
	}
}

func TestWaitWorkers(t *testing.T) {
	secret := newSecret(t)
	c, err := Join(t.Context(), JoinOptions{Secret: secret, Bind: loopback, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := gossip(t, secret, RoleWorker, "w2", c.Addr())
	defer w.Leave()
	v := gossip(t, secret, RoleWorker, "w1", c.Addr())
	defer v.Leave()
	time.AfterFunc(100*time.Millisecond, func() { w.Join() })
	time.AfterFunc(200*time.Millisecond, func() { v.Join() })
	var have []int
	ms, err := c.WaitWorkers(t.Context(), 2, func(n int) { have = append(have, n) })
	if err != nil || len(ms) != 2 || ms[0].Host != "w1" || ms[1].Host != "w2" || !slices.Equal(have, []int{0, 1, 2}) {
		t.Errorf("%v, %v, told %v", ms, err, have)
	}
	// A member that cannot be used is named when the wait is in vain.
	c.gossip.note(&memberlist.Node{Name: "odd", Meta: []byte("{}")}, StateAlive)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.WaitWorkers(ctx, 3, nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2 of 3 workers") || !strings.Contains(err.Error(), "member ? (odd) cannot be used") {
		t.Errorf("%v", err)
	}
}

func TestSeedAddr(t *testing.T) {
	for in, want := range map[string]string{
		"node1": "node1:7946", "node1:99": "node1:99", "10.0.0.1": "10.0.0.1:7946", "2001:db8::1": "[2001:db8::1]:7946", "[2001:db8::1]:5": "[2001:db8::1]:5",
		"": "", ":7946": "", "a:b": "", "a:70000": "", "http://x/": "", "a b": "",
	} {
		got, err := seedAddr(in)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
}

// TestGone bounds the memory that members which are no more take.
func TestGone(t *testing.T) {
	g := &Gossip{members: map[string]*seen{}, changed: make(chan struct{})}
	for i := range maxGone + 50 {
		n := &memberlist.Node{Name: string(rune('a'+i%26)) + strings.Repeat("x", i/26)}
		g.note(n, StateAlive)
		g.note(n, StateDead)
	}
	if len(g.members) > maxGone {
		t.Errorf("%d members are kept", len(g.members))
	}
}

// TestWarnings: memberlist's chatter is left out, as is what asks nothing of the
// user; a repeated warning is told once, members by their hosts, and a hostile
// one cannot write on the screen.
func TestWarnings(t *testing.T) {
	const id = "b261be0102030405060708090a0b0c0d"
	var b strings.Builder
	host := func(s string) string { return map[string]string{id: "node7"}[s] }
	w := &warnings{log: slog.New(slog.NewTextHandler(&b, nil)), name: host, last: map[string]time.Time{}}
	for _, line := range []string{
		"[DEBUG] memberlist: Stream connection from=1", "[WARN] memberlist: Refuting a suspect message (from: " + id + ")",
		"[WARN] memberlist: Was able to connect to " + id + " over TCP but UDP probes failed, network may be misconfigured",
		"[WARN] memberlist: Was able to connect to b over TCP but UDP probes failed", "[ERR] memberlist: Failed x: use of closed network connection",
		"[ERR] memberlist: Push/Pull with " + strings.Repeat("f", 32) + " failed: EOF", "[ERR] memberlist: Failed to \x1b[31m decode\n",
	} {
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	got := b.String()
	for _, want := range []string{"connect to node7 over TCP", "Push/Pull with a member not heard of yet failed", "Failed to [31m decode"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in the log:\n%s", want, got)
		}
	}
	if strings.Count(got, "level=WARN") != 3 || strings.Contains(got, "Refuting") || strings.Contains(got, "Stream") || memberID.MatchString(got) || strings.Contains(got, "closed") {
		t.Errorf("log:\n%s", got)
	}
}
