package capture

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	ncclUses   = regexp.MustCompile(`NCCL INFO (?:Bootstrap ?: ?Using|NET/Socket ?: ?Using|NET ?: ?Using interface)\s*(.*)$`)
	ncclAddr   = regexp.MustCompile(`(?:\[\d+\])?([A-Za-z][\w.@-]{0,31}):([0-9a-fA-F:.]+(?:%[\w.-]+)?)<\d+>`)
	ifHead     = regexp.MustCompile(`^(?:\d+:\s+)?([a-zA-Z][\w.@-]{0,31}?)(?:@\S+)?:?\s+(?:Link encap|flags=|<[A-Z_,]+>|mtu\b)`)
	inet       = regexp.MustCompile(`\binet6? (?:addr: ?)?([0-9a-fA-F:.]+)`)
	connectBad = regexp.MustCompile(`connect(?:\(\))? to ([0-9a-fA-F:.]+) failed:? (.*)$`)
	remoteIs   = regexp.MustCompile(`remote=\[?([0-9a-fA-F:.]+?)\]?:\d+`)
	rankOf     = regexp.MustCompile(`\(?rank=(\d+), ?size=(\d+)`)
	hostsLine  = regexp.MustCompile(`^\s*(127\.\d+\.\d+\.\d+|::1)\s+(\S.*)$`)
)

// readAddresses judges the addresses that a job announced to its peers, and
// those of an interface list to which a connection failed.
func readAddresses(s section) []reports.Finding {
	var as []judge.Address
	add := func(name, addr string) {
		addr, _, _ = strings.Cut(addr, "%")
		if a, err := netip.ParseAddr(addr); err == nil {
			if x := (judge.Address{Iface: name, Addr: a}); !slices.Contains(as, x) && len(as) < 256 {
				as = append(as, x)
			}
		}
	}
	owner := map[string]string{} // address → interface, of ifconfig or ip addr
	iface := ""
	var out []reports.Finding
	for _, l := range s.lines {
		if m := ncclUses.FindStringSubmatch(l); m != nil {
			for _, x := range ncclAddr.FindAllStringSubmatch(m[1], 64) {
				add(x[1], x[2])
			}
		}
		if m := ifHead.FindStringSubmatch(l); m != nil {
			iface = m[1]
		}
		if m := inet.FindStringSubmatch(l); m != nil && iface != "" && len(owner) < 4096 {
			owner[m[1]] = iface
		}
		if m := connectBad.FindStringSubmatch(l); m != nil {
			a, err := netip.ParseAddr(m[1])
			if name := owner[m[1]]; err == nil && name != "" {
				out = append(out, judge.Interfaces([]judge.Address{{Iface: name, Addr: a}}, s.node, "interfaces")...)
				f := &out[len(out)-1]
				f.Evidence = append(f.Evidence, reports.Evidence{From: "message", Value: shorten(l)})
				if others := usable(owner, name); f.Verdict == reports.Fail && others != "" {
					f.Remedy = "name the right interface (NCCL_SOCKET_IFNAME; MPI: --mca btl_tcp_if_include): here " + others
				}
			}
		}
	}
	if len(as) > 0 {
		out = append(judge.Interfaces(as, s.node, "NCCL log"), out...)
	}
	return append(out, s.loopback()...)
}

// usable names the other interfaces of a list, in order.
func usable(owner map[string]string, bad string) string {
	var names []string
	for addr, name := range owner {
		a, err := netip.ParseAddr(addr)
		if err == nil && name != bad && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			names = append(names, name+" "+addr)
		}
	}
	slices.Sort(names)
	return strings.Join(names[:min(4, len(names))], ", ")
}

// loopback finds a rank that looked for a peer at its own loopback address:
// the earliest such line is the cause, whatever failed later.
func (s section) loopback() []reports.Finding {
	for i, l := range s.lines {
		m := remoteIs.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		a, err := netip.ParseAddr(m[1])
		if err != nil || !a.Unmap().IsLoopback() {
			continue
		}
		f := reports.Finding{ID: "rendezvous-loopback", Node: s.node, Subject: "announced address", Verdict: reports.Fail, Want: "an address that other nodes reach",
			Got:      m[1] + ": a peer was looked for on the own machine's loopback; its host name resolves to it",
			Evidence: []reports.Evidence{{From: "message", Value: shorten(l)}},
			Remedy:   "announce an address (--advertise, --iface, GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME), or give the host name its network address in /etc/hosts; exceptions after this line are consequences"}
		for _, near := range s.lines[i:min(i+3, len(s.lines))] {
			if r := rankOf.FindStringSubmatch(near); r != nil {
				f.Got = m[1] + ": rank " + r[1] + " of " + r[2] + " looked for a peer on its own machine's loopback; the peer's host name resolves to it"
				f.Evidence = append(f.Evidence, reports.Evidence{From: "message", Value: shorten(near)})
				break
			}
		}
		return []reports.Finding{f}
	}
	return nil
}

// readHosts finds names of the machine at loopback addresses in a hosts file.
func readHosts(s section) []reports.Finding {
	var out []reports.Finding
	for _, l := range s.lines {
		m := hostsLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		text, _, _ := strings.Cut(m[2], "#")
		for _, name := range strings.Fields(text) {
			if !strings.HasPrefix(name, "localhost") && !strings.HasPrefix(name, "ip6-") && len(out) < 32 {
				a, err := netip.ParseAddr(m[1])
				if err == nil {
					out = append(out, judge.HostName(name, []netip.Addr{a}, s.node, "hosts file"))
				}
				break
			}
		}
	}
	return out
}
