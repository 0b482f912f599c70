package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// timing is memberlist's preset for a network, or for one machine, with full
// exchanges often enough that a rumour lost on the way is made good within
// seconds. Compression would cost memory to save a few hundred bytes.
func timing(local bool) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.PushPullInterval = 10 * time.Second
	if local {
		c = memberlist.DefaultLocalConfig()
		c.PushPullInterval = 5 * time.Second
		// Packets on loopback may be large, so that the news of 64 members
		// starting at once fits in one, and so may be told more often: 16
		// times by each, so that hardly one of 64² pairs misses each other
		// until the next full exchange (e⁻¹⁶; memberlist's 4 times: e⁻⁴).
		c.UDPBufferSize = 32 << 10
		c.RetransmitMult = 8
		// Local members share the cores with the ranks under test: a late
		// answer is no reason to call one dead.
		c.ProbeTimeout, c.TCPTimeout = 500*time.Millisecond, 5*time.Second
	}
	c.EnableCompression = false
	// In a cluster of two or three nobody can confirm a suspicion; do not wait
	// six times as long for it.
	c.SuspicionMaxTimeoutMult = 2
	return c
}

// ErrSecret marks a member that answered, but not in our language.
var ErrSecret = errors.New("it answers but cannot be understood: does it have the same secret?")

// joinCause says why no seed took this member. memberlist has no error values
// for it.
func joinCause(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "EOF"), strings.Contains(text, "decrypt"), strings.Contains(text, "connection reset"):
		return ErrSecret
	case strings.Contains(text, "no such host"):
		return errNoHost
	case strings.Contains(text, "connection refused"):
		return errors.New("nobody listens there: start busbw worker on that machine, or correct --join")
	case strings.Contains(text, "timeout"), strings.Contains(text, "timed out"):
		return errors.New("no answer: is the machine up, and does a firewall let TCP and UDP of that port through?")
	case strings.Contains(text, "no route"), strings.Contains(text, "unreachable"):
		return errors.New("no route to that machine")
	}
	text = strings.TrimPrefix(clean(text, 500), "1 error occurred:")
	return errors.New(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "*")))
}

// errNoHost does not get better by waiting.
var errNoHost = errors.New("that name is not known here: use an IP address, or correct --join")

// seedAddr completes "HOST" or "HOST:PORT" or a bare IPv6 address.
func seedAddr(s string) (string, error) {
	s = strings.TrimSpace(s)
	if a, err := netip.ParseAddr(s); err == nil {
		return net.JoinHostPort(a.String(), strconv.Itoa(GossipPort)), nil
	}
	if s == "" {
		return "", fmt.Errorf("join: an empty address")
	}
	if host, port, err := net.SplitHostPort(s); err == nil {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "" {
			return "", fmt.Errorf("join %q: want HOST or HOST:PORT", s)
		}
		return s, nil
	}
	if strings.ContainsAny(s, ":/ ") {
		return "", fmt.Errorf("join %q: want HOST or HOST:PORT", s)
	}
	return net.JoinHostPort(s, strconv.Itoa(GossipPort)), nil
}

// metaDelegate gives memberlist our description; we send no data by gossip.
type metaDelegate struct{ text atomic.Pointer[[]byte] }

func (d *metaDelegate) NodeMeta(int) []byte             { return *d.text.Load() }
func (*metaDelegate) NotifyMsg([]byte)                  {}
func (*metaDelegate) GetBroadcasts(_, _ int) [][]byte   { return nil }
func (*metaDelegate) LocalState(bool) []byte            { return nil }
func (*metaDelegate) MergeRemoteState(_ []byte, _ bool) {}

// warnings passes on memberlist's warnings and errors, not its chatter, with
// members by their hosts instead of their ids. One that begins with the same
// words comes every second while its cause lasts; it is passed on once a minute.
// What asks nothing of the user is for debugging: that a suspicion was answered,
// as on a busy machine; a packet that was lost or dropped, which is sent again.
// Sending on a port that Leave has closed is no news, and a name that cannot be
// resolved is Join's own error.
type warnings struct {
	log  *slog.Logger
	name func(id string) string // of a member; empty where it is not known
	mu   sync.Mutex
	last map[string]time.Time // by the first words; memberlist has some fifty
}

// harmless begin the warnings that ask nothing of the user.
var harmless = regexp.MustCompile(`^(Refuting |handler queue full|Failed to send (gossip|ack|nack|UDP|indirect)|Failed to forward ack|Failed fallback TCP ping)`)

// memberID is an id as StartGossip makes them.
var memberID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

func (w *warnings) Write(line []byte) (int, error) {
	for _, level := range []string{"[WARN] memberlist: ", "[ERR] memberlist: "} {
		_, msg, ok := strings.Cut(string(line), level)
		if !ok || strings.Contains(msg, net.ErrClosed.Error()) || strings.Contains(msg, "failed to resolve") || !w.fresh(msg) {
			continue
		}
		at := slog.LevelWarn
		if harmless.MatchString(msg) {
			at = slog.LevelDebug
		}
		w.log.Log(context.Background(), at, "gossip: "+clean(memberID.ReplaceAllStringFunc(msg, w.called), 300))
	}
	return len(line), nil
}

// called is what a member is called in messages.
func (w *warnings) called(id string) string {
	if name := w.name(id); name != "" {
		return name
	}
	return "a member not heard of yet"
}

func (w *warnings) fresh(msg string) bool {
	words := strings.Fields(msg)
	key := strings.Join(words[:min(3, len(words))], " ")
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.last[key]; ok && time.Since(t) < time.Minute || len(w.last) > 1000 {
		return false
	}
	w.last[key] = time.Now()
	return true
}
