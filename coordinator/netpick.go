package coordinator

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Interface is a network interface as a plain value, so that somebody's odd
// machine is a text fixture.
type Interface struct {
	Name    string
	Up      bool
	Kind    string // "loopback", "physical", "bridge", "tunnel", "bond", "vlan" or "virtual"
	Ports   []string
	Default bool // carries a default route
	Addrs   []netip.Prefix
}

// DataAddr is an address that peers can send data to, and its interface.
type DataAddr struct {
	Iface string     `json:"i,omitempty"`
	Addr  netip.Addr `json:"a"`
}

func (d DataAddr) String() string {
	if d.Iface == "" {
		return d.Addr.String()
	}
	return d.Iface + " " + d.Addr.String()
}

// Passed is an address, or an interface without one, that was not chosen.
type Passed struct {
	Iface  string `json:"iface"`
	Addr   string `json:"addr,omitempty"`
	Reason string `json:"reason"`
}

func (p Passed) String() string {
	return strings.TrimSpace(p.Iface+" "+p.Addr) + ": " + p.Reason
}

// Choice is the data address of a node, why it was chosen, the other usable
// ones, and what was passed over and why.
type Choice struct {
	DataAddr
	Why    string     `json:"why"`
	Others []DataAddr `json:"others,omitempty"`
	Passed []Passed   `json:"passed,omitempty"`
}

// Want says what a user asked for.
type Want struct {
	Names     string     // NCCL_SOCKET_IFNAME: prefixes, "=" exact, "^" exclude
	Family    string     // NCCL_SOCKET_FAMILY: "", "AF_INET" or "AF_INET6"
	Advertise netip.Addr // exactly this address
	Toward    netip.Addr // local address of the route to another member
}

// Pick chooses the address at which other nodes reach this one. Interfaces
// count by what they are and which address they have, never by name alone: a
// container's only uplink may be called veth0.
func Pick(ifs []Interface, w Want) (Choice, error) {
	if w.Advertise.IsValid() {
		return advertised(ifs, w.Advertise), nil
	}
	match, named := ifaceList(w.Names)
	var c Choice
	var usable []scored
	for _, i := range ifs {
		if !match(i.Name) {
			c.Passed = append(c.Passed, Passed{i.Name, "", fmt.Sprintf("not in NCCL_SOCKET_IFNAME=%s", w.Names)})
			continue
		}
		if len(i.Addrs) == 0 || !i.Up {
			c.Passed = append(c.Passed, Passed{i.Name, "", unusable(i)})
			continue
		}
		for _, p := range i.Addrs {
			a := p.Addr().Unmap()
			if why := unfit(ifs, i, a, w, named); why != "" {
				c.Passed = append(c.Passed, Passed{i.Name, a.String(), why})
				continue
			}
			usable = append(usable, score(i, a, w))
		}
	}
	if len(usable) == 0 {
		return lastResort(ifs, c, w)
	}
	slices.SortStableFunc(usable, func(a, b scored) int { return b.score - a.score })
	c.DataAddr, c.Why = usable[0].DataAddr, usable[0].why
	if named {
		c.Why = fmt.Sprintf("NCCL_SOCKET_IFNAME=%s", w.Names)
	}
	for _, u := range usable[1:] {
		c.Others = append(c.Others, u.DataAddr)
	}
	return c, nil
}

// advertised is the choice when the user gave the address.
func advertised(ifs []Interface, a netip.Addr) Choice {
	a = a.Unmap()
	for _, i := range ifs {
		for _, p := range i.Addrs {
			if p.Addr().Unmap() == a {
				return Choice{DataAddr: DataAddr{i.Name, a}, Why: "given with --advertise"}
			}
		}
	}
	return Choice{DataAddr: DataAddr{"", a}, Why: "given with --advertise; no interface of this machine has it"}
}

func unusable(i Interface) string {
	if !i.Up {
		return "interface is down"
	}
	return "no address"
}

// unfit says why other nodes cannot or should not send to an address. Who
// names interfaces gets them, whatever they are: then only addresses that
// carry no traffic are left out. A virtual network is good enough if that is
// where the cluster is.
func unfit(ifs []Interface, i Interface, a netip.Addr, w Want, named bool) string {
	switch {
	case w.Family == "AF_INET" && !a.Is4():
		return "not IPv4 (NCCL_SOCKET_FAMILY=AF_INET)"
	case w.Family == "AF_INET6" && a.Is4():
		return "not IPv6 (NCCL_SOCKET_FAMILY=AF_INET6)"
	case a.IsUnspecified() || a.IsMulticast():
		return "not the address of a host"
	case a.IsLinkLocalUnicast():
		return "link-local address: it means nothing on other links"
	case named:
		return ""
	case i.Kind == "loopback" || a.IsLoopback():
		return "loopback: only this machine reaches it"
	case w.Toward.IsValid() && a == w.Toward.Unmap():
		return ""
	case i.Kind == "tunnel":
		return "tunnel or overlay: not the network that is to be measured"
	case i.Kind == "bridge" && !uplink(ifs, i):
		return "bridge without a physical port: private to this machine, and other machines may have the same address"
	}
	return ""
}

// uplink says whether a bridge reaches the world.
func uplink(ifs []Interface, bridge Interface) bool {
	for _, p := range ifs {
		if slices.Contains(bridge.Ports, p.Name) && (p.Kind == "physical" || p.Kind == "bond" || p.Kind == "vlan") {
			return true
		}
	}
	return false
}

type scored struct {
	DataAddr
	score int
	why   string
}

// score orders usable addresses: the route to another member, then the
// default route, then real hardware; IPv4 before IPv6; then kernel order.
func score(i Interface, a netip.Addr, w Want) scored {
	s := scored{DataAddr: DataAddr{i.Name, a}, why: "first usable address"}
	if i.Kind == "physical" || i.Kind == "bond" || i.Kind == "vlan" {
		s.score, s.why = s.score+2, "first usable address of a physical interface"
	}
	if i.Default {
		s.score, s.why = s.score+4, "its interface has the default route"
	}
	if w.Toward.IsValid() && a == w.Toward.Unmap() {
		s.score, s.why = s.score+8, "the route to the cluster starts at it"
	}
	if a.Is4() {
		s.score++
	}
	return s
}

// lastResort takes loopback, good for a cluster on one machine, where nothing
// was asked for by name; or says what was seen.
func lastResort(ifs []Interface, c Choice, w Want) (Choice, error) {
	if w.Names == "" {
		for _, i := range ifs {
			for _, p := range i.Addrs {
				a := p.Addr().Unmap()
				if i.Up && a.IsLoopback() && (w.Family == "" || a.Is4() == (w.Family == "AF_INET")) {
					c.DataAddr, c.Why = DataAddr{i.Name, a}, "no other usable address: only this machine reaches it"
					c.Passed = slices.DeleteFunc(c.Passed, func(p Passed) bool { return p.Addr == a.String() })
					return c, nil
				}
			}
		}
	}
	var seen, others []string
	match, _ := ifaceList(w.Names)
	for _, p := range c.Passed {
		if match(p.Iface) {
			seen = append(seen, p.String())
		} else {
			others = append(others, p.Iface)
		}
	}
	if len(others) > 0 {
		seen = append(seen, fmt.Sprintf("NCCL_SOCKET_IFNAME=%s leaves out %s", w.Names, strings.Join(others, ", ")))
	}
	return c, fmt.Errorf("no address that other nodes can reach (%s); choose one with --advertise or NCCL_SOCKET_IFNAME", strings.Join(seen, "; "))
}

// ifaceList reads NCCL_SOCKET_IFNAME: names that are prefixes, or exact after
// a leading "=", or excluded after a leading "^". named tells whether the user
// chose interfaces, rather than leave some out.
func ifaceList(s string) (match func(name string) bool, named bool) {
	s = strings.TrimSpace(s)
	list, not := strings.CutPrefix(s, "^")
	list, exact := strings.CutPrefix(list, "=")
	var names []string
	for n := range strings.SplitSeq(list, ",") {
		n, _, _ = strings.Cut(strings.TrimSpace(n), ":") // NCCL allows a port after the name
		if n != "" {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return func(string) bool { return true }, false
	}
	return func(name string) bool {
		hit := slices.ContainsFunc(names, func(n string) bool {
			return name == n || !exact && strings.HasPrefix(name, n)
		})
		return hit != not
	}, !not
}
