package coordinator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Roles of members.
const (
	RoleWorker = "worker" // runs ranks
	RoleRun    = "run"    // a coordinator
)

// States of members.
const (
	StateAlive = "alive"
	StateDead  = "dead" // stopped answering
	StateLeft  = "left" // said goodbye
)

// Member is what gossip says of one process of the cluster.
type Member struct {
	ID          string         // generated at start; never the host name
	Host        string         // to show; two members may have the same
	Role        string         // RoleWorker or RoleRun
	API         netip.AddrPort // HTTPS
	Fingerprint Fingerprint    // of the certificate that API shows
	Ranks       int            // how many the worker offers
	Version     string
	Machine     string   // equal for members that share a kernel and a network namespace
	Data        DataAddr // where data is sent to
	Why         string   // reason of that choice
	Others      []DataAddr
	State       string
	Problem     string // not empty: what it says of itself cannot be used, and why
}

// String names a member in messages.
func (m Member) String() string { return fmt.Sprintf("%s (%.8s)", m.Host, m.ID) }

// Bounds on what a member may say of itself.
const (
	maxMeta    = 512 // bytes; memberlist's MetaMaxSize
	maxHost    = 64  // bytes, as Linux bounds host names
	maxVersion = 40
	maxWhy     = 60
	maxRanks   = 1024
)

// meta is a member as it travels in the gossip.
type meta struct {
	Format      int            `json:"v"`
	Host        string         `json:"h"`
	Role        string         `json:"r"`
	API         netip.AddrPort `json:"p"`
	Fingerprint string         `json:"f"`
	Ranks       int            `json:"n,omitempty"`
	Version     string         `json:"x"`
	Machine     string         `json:"m"`
	Data        DataAddr       `json:"d"`
	Why         string         `json:"w,omitempty"`
	Others      []DataAddr     `json:"o,omitempty"`
	Left        bool           `json:"l,omitempty"`
}

const metaFormat = 1

// encode is the member as gossip meta. Other addresses that do not fit are
// left out from the last; everything else is bounded and fits.
func (m Member) encode() ([]byte, error) {
	t := meta{
		Format: metaFormat, Host: clean(m.Host, maxHost), Role: m.Role, API: m.API, Fingerprint: m.Fingerprint.String(), Ranks: m.Ranks,
		Version: clean(m.Version, maxVersion), Machine: m.Machine, Data: m.Data, Why: clean(m.Why, maxWhy), Others: m.Others,
		Left: m.State == StateLeft,
	}
	for {
		b, err := json.Marshal(t)
		if err != nil {
			return nil, fmt.Errorf("gossip meta: %w", err)
		}
		if len(b) <= maxMeta {
			return b, nil
		}
		switch {
		case len(t.Others) > 0:
			t.Others = t.Others[:len(t.Others)-1]
		case t.Why != "":
			t.Why = ""
		case len(t.Host) > 16: // characters that JSON writes as six
			t.Host = clean(t.Host, 16)
		default:
			return nil, fmt.Errorf("gossip meta has %d bytes, more than the %d allowed", len(b), maxMeta)
		}
	}
}

// leaving is the member as it says goodbye.
func (m Member) leaving() Member {
	m.State = StateLeft
	return m
}

// decodeMember reads what a member says of itself. The member comes back in
// any case; Problem tells why it cannot be used.
func decodeMember(id string, raw []byte) Member {
	m := Member{ID: clean(id, 64), Host: "?", State: StateAlive}
	var t meta
	if len(raw) > maxMeta || !utf8.Valid(raw) {
		m.Problem = fmt.Sprintf("its description (%d bytes) is too long or not text", len(raw))
		return m
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		m.Problem = "its description cannot be read: " + clean(err.Error(), 120)
		return m
	}
	m.Host, m.Role, m.API, m.Ranks = clean(t.Host, maxHost), clean(t.Role, 16), t.API, t.Ranks
	m.Version, m.Machine, m.Data, m.Why, m.Others = clean(t.Version, maxVersion), clean(t.Machine, 16), t.Data, clean(t.Why, maxWhy), t.Others
	if t.Left {
		m.State = StateLeft
	}
	m.Data.Iface = clean(m.Data.Iface, 16)
	for i := range m.Others {
		m.Others[i].Iface = clean(m.Others[i].Iface, 16)
	}
	if m.Host == "" {
		m.Host = "?"
	}
	f, err := parseFingerprint(t.Fingerprint)
	m.Fingerprint = f
	switch {
	case t.Format != metaFormat:
		m.Problem = fmt.Sprintf("it speaks gossip format %d, this busbw speaks %d: install one version everywhere", t.Format, metaFormat)
	case err != nil:
		m.Problem = err.Error()
	case m.Role != RoleWorker && m.Role != RoleRun:
		m.Problem = fmt.Sprintf("unknown role %q", m.Role)
	case m.Ranks < 0 || m.Ranks > maxRanks:
		m.Problem = fmt.Sprintf("offers %d ranks; want 0 to %d", m.Ranks, maxRanks)
	case m.Role == RoleWorker && (!m.API.IsValid() || m.API.Port() == 0 || !m.Data.Addr.IsValid()):
		m.Problem = "gives no address to reach it at"
	}
	return m
}

// clean makes text from outside safe to print: one line, no control or
// direction-changing characters, at most n bytes of valid UTF-8.
func clean(s string, n int) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			r = ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			continue
		}
		if b.Len()+utf8.RuneLen(r) > n {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// sortMembers puts workers first, hosts as people count (gpu2 before gpu10),
// then addresses: the order in which nodes, and so ranks, are numbered.
func sortMembers(ms []Member) {
	slices.SortFunc(ms, func(a, b Member) int {
		return cmp.Or(
			-cmp.Compare(a.Role, b.Role), // "worker" before "run"
			naturalCompare(a.Host, b.Host),
			a.Data.Addr.Compare(b.Data.Addr),
			a.API.Compare(b.API),
			strings.Compare(a.ID, b.ID),
		)
	})
}

// naturalCompare compares runs of digits as numbers.
func naturalCompare(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			x, y := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// CheckAddresses refuses members that cannot reach each other: between several
// machines no data address may be loopback, and none may occur twice on
// different machines.
func CheckAddresses(members []Member, self Member) error {
	several := slices.ContainsFunc(members, func(m Member) bool { return m.Machine != self.Machine })
	if !several {
		return nil
	}
	const advice = "start that worker with --advertise ADDRESS, or with NCCL_SOCKET_IFNAME naming the right interface"
	owner := map[netip.Addr]Member{}
	for _, m := range members {
		a := m.Data.Addr
		if a.IsLoopback() || a.IsLinkLocalUnicast() {
			return fmt.Errorf("node %s advertises %s, which other machines cannot reach (%s): %s", m, m.Data, m.Why, advice)
		}
		if o, ok := owner[a]; ok && o.Machine != m.Machine {
			return fmt.Errorf("nodes %s and %s are different machines but both advertise %s: %s", o, m, m.Data, advice)
		}
		owner[a] = m
	}
	return nil
}
