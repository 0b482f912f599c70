package judge

import (
	"fmt"
	"net/netip"
	"strings"

	"busbw/reports"
)

// Memlock is a limit on locked memory.
type Memlock struct {
	Origin
	Node, Subject string
	Bytes         int64  // −1: unlimited
	Privileged    *bool  // CAP_IPC_LOCK overrides the limit; nil: not told
	Refused       string // a message that a registration was refused; "": none
	Needed        bool   // RDMA is in use here
}

// enoughMemlock is what is taken for as good as no limit: busbw and NCCL
// register well below this for each rank, but not below the usual 64 kB and 8 MB.
const enoughMemlock = 64 << 30

// Locked judges the limit where it counts: in the process that registers
// memory, not in a login shell.
func Locked(m Memlock) []reports.Finding {
	f := reports.Finding{ID: "memlock", Node: m.Node, Subject: or(m.Subject, "locked memory"), Verdict: reports.Pass, Want: "unlimited"}
	f.Got = "unlimited"
	if m.Bytes >= 0 {
		f.Got = fmt.Sprintf("%d kB", m.Bytes/1024)
	}
	f.Evidence = []reports.Evidence{m.of("max locked memory", f.Got)}
	if m.Refused != "" {
		f.Evidence = append(f.Evidence, reports.Evidence{From: "message", Value: m.Refused})
	}
	const remedy = "raise it where ranks really run: systemd unit (LimitMEMLOCK=infinity), limits.conf and a new login, container (--ulimit memlock=-1 --cap-add=IPC_LOCK), Slurm (PropagateResourceLimits)"
	switch {
	case m.Refused != "":
		f.Verdict, f.Remedy = reports.Fail, remedy
	case m.Bytes < 0 || m.Bytes >= enoughMemlock:
	case m.Privileged != nil && *m.Privileged:
		f.Got += ", but this process may lock without limit (CAP_IPC_LOCK)"
	case !m.Needed:
		f.Verdict, f.Got = reports.NA, f.Got+"; no RDMA device here needs more"
	default:
		f.Verdict, f.Remedy = reports.Fail, remedy
	}
	return []reports.Finding{f}
}

// Address is an address of an interface, as a process announced it.
type Address struct {
	Iface string
	Addr  netip.Addr
}

// local names interfaces whose addresses are the same on many machines.
var local = []string{"docker", "virbr", "br-", "cni", "podman", "lxcbr", "lxdbr", "flannel", "cali", "weave", "nerdctl"}

// trouble says why an address cannot join nodes; "" where it can. An
// interface's name alone decides nothing but for bridges of machine-local
// networks: a container's uplink may well be called veth0.
func (a Address) trouble() string {
	ip := a.Addr.Unmap()
	switch {
	case ip.IsLoopback():
		return "loopback: every node reaches itself there"
	case ip.IsLinkLocalUnicast():
		return "link-local: cannot be routed, and needs the interface's name"
	case ip.IsUnspecified():
		return "no address"
	}
	for _, p := range local {
		if strings.HasPrefix(a.Iface, p) {
			return "a bridge inside the machine: every node has the same address there, and a connection to it ends at home"
		}
	}
	return ""
}

// Interfaces judges the addresses that a job announced to its peers.
func Interfaces(as []Address, node string, from Origin) []reports.Finding {
	var out []reports.Finding
	var good []string
	for _, a := range as {
		if a.trouble() == "" {
			good = append(good, a.Iface+" "+a.Addr.String())
		}
	}
	for _, a := range as {
		why := a.trouble()
		if why == "" {
			continue
		}
		f := reports.Finding{ID: "interface", Node: node, Subject: or(a.Iface, "address"), Verdict: reports.Fail, Got: a.Addr.String() + ": " + why, Want: "an address that other nodes reach"}
		f.Evidence = []reports.Evidence{from.of(a.Iface, a.Addr)}
		f.Remedy = "name the right interface (NCCL_SOCKET_IFNAME, --iface)"
		if len(good) > 0 {
			f.Remedy = "name the right interface (NCCL_SOCKET_IFNAME, --iface): here " + list(good)
		}
		out = append(out, f)
	}
	if len(out) == 0 && len(as) > 0 {
		out = append(out, reports.Finding{ID: "interface", Node: node, Subject: "announced addresses", Verdict: reports.Pass, Got: list(good), Evidence: []reports.Evidence{from.of("addresses", list(good))}})
	}
	return out
}

// HostName judges the addresses that /etc/hosts gives a host's own name.
func HostName(host string, at []netip.Addr, node string, from Origin) reports.Finding {
	f := reports.Finding{ID: "host-name", Node: node, Subject: "host name " + host, Verdict: reports.Pass, Want: "an address that other nodes reach"}
	var texts []string
	bad := false
	for _, a := range at {
		texts = append(texts, a.String())
		bad = bad || a.IsLoopback()
	}
	f.Got = list(texts)
	switch {
	case host == "":
		f.Verdict, f.Subject, f.Got = reports.Unknown, "host name", "not told"
	case len(at) == 0:
		f.Verdict, f.Got, f.Want = reports.NA, "not in the hosts file", ""
	case bad:
		f.Verdict = reports.Warn
		f.Got += ": loopback; programs that announce what their name resolves to are reached by nobody"
		f.Remedy = "give the name its network address in /etc/hosts, or announce an address (--advertise, --iface)"
		f.Evidence = []reports.Evidence{from.of("", host+" → "+list(texts))}
	}
	return f
}
