package judge

import (
	"fmt"

	"busbw/reports"
)

// Port is what is known of an RDMA port. Nil and zero values are not told.
type Port struct {
	Origin
	Node, Device string
	Num          int
	Type, Board  string // hca_type "MT4129", board_id "MT_0000000838"
	PCI          string // "0000:3b:00.0"
	State        int    // 1 down, 2 init, 3 armed, 4 active
	Phys         int    // 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6 error recovery
	Layer        string // "InfiniBand", "Ethernet"
	LID, SMLID   *int
	Gbps         float64
	Width        int // lanes
	Netdev       string
	MTU, MaxMTU  int // active and greatest InfiniBand MTU, bytes
	NetMTU       int // of the network interface, bytes
}

// Subject names the port in findings.
func (p Port) Subject() string { return fmt.Sprintf("%s port %d", p.Device, p.Num) }

// Names of states (InfiniBand specification 14.2.5.6 PortInfo).
var (
	states = []string{"unknown", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}
	phys   = []string{"unknown", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"}
)

func name(names []string, n int) string {
	if n < 0 || n >= len(names) {
		return fmt.Sprintf("%d", n)
	}
	return names[n]
}

func (p Port) ib() bool       { return p.Layer == "InfiniBand" }
func (p Port) ethernet() bool { return p.Layer == "Ethernet" }
func (p Port) active() bool   { return p.State == 4 || p.State == 5 }

// noLID: 0xffff is the permissive LID, which stands for "none yet".
func (p Port) noLID() bool { return p.LID != nil && (*p.LID == 0 || *p.LID == 0xffff) }

// States goes down the tree from the physical to the logical state of every
// port. A port that is off beside a working one of the same card may be meant
// to be: that is a warning, and so is an Ethernet port that was switched off
// on a node where others work.
func States(ports []Port) []reports.Finding {
	works := map[string]bool{} // card, node
	for _, p := range ports {
		if p.active() {
			works[card(p)], works[p.Node] = true, true
		}
	}
	var out []reports.Finding
	for _, p := range ports {
		f := state(p)
		if p.Phys == 3 && p.ethernet() && works[p.Node] {
			f.Verdict = reports.Warn
		}
		if f.Verdict == reports.Fail && !p.active() && p.Phys != 5 && works[card(p)] {
			f.Verdict = reports.Warn
			f.Remedy = "another port of this card works: if this one is meant to be used, " + f.Remedy
		}
		out = append(out, f)
	}
	return out
}

// card is the same for the ports of one card: one device, or functions of one
// PCI device.
func card(p Port) string {
	if n := len(p.PCI); n > 2 && p.PCI[n-2] == '.' {
		return p.Node + " " + p.PCI[:n-2]
	}
	return p.Node + " " + p.Device
}

func state(p Port) reports.Finding {
	f := reports.Finding{ID: "rdma-port-state", Node: p.Node, Subject: p.Subject(), Verdict: reports.Fail, Want: "ACTIVE, LinkUp"}
	got := name(states, p.State)
	if p.Phys != 0 {
		got += ", " + name(phys, p.Phys)
	}
	f.Evidence = append(f.Evidence, p.of("state", name(states, p.State)))
	if p.Phys != 0 {
		f.Evidence = append(f.Evidence, p.of("phys_state", name(phys, p.Phys)))
	}
	if p.LID != nil && !p.ethernet() { // an Ethernet port has no LID, and 0 there means nothing
		f.Evidence = append(f.Evidence, p.of("lid", *p.LID))
	}
	if p.SMLID != nil && !p.ethernet() {
		f.Evidence = append(f.Evidence, p.of("sm_lid", *p.SMLID))
	}
	if p.Type != "" {
		f.Evidence = append(f.Evidence, p.of("hca_type", p.Type))
	}
	say := func(why, remedy string) { f.Got, f.Remedy = got+": "+why, remedy }
	switch {
	case p.State == 0 && p.Phys == 0:
		f.Verdict, f.Got = reports.Unknown, "neither state nor physical state is told"
	case p.active() && p.Phys >= 1 && p.Phys <= 4:
		f.Verdict, f.Got = reports.Unknown, got+": the two states contradict each other"
	case p.Phys == 3:
		say("disabled by an administrator or by the switch's management", "enable the port (ip link set up; ibportstate or the switch's configuration) or leave its device out")
	case p.Phys == 2:
		say("no partner at the other end", "look at the cable or module, its seating and the port at the other end (is the peer on, is its port enabled?)")
	case p.Phys == 1:
		say("the port sleeps", "enable it; then look at cable and peer")
	case p.Phys == 4:
		say("the link is training and does not come up", "look at cable or module and at the speeds that both ends allow")
	case p.Phys == 6:
		say("the link retrains after errors", "replace the cable or module, then swap the peer's port")
	case p.active() && (p.Phys == 5 || p.Phys == 0):
		f.Verdict, f.Got = reports.Pass, got
	case p.Phys == 0 && p.State == 1:
		f.Got = got + ": the physical state is not told, so cable and subnet manager are both possible"
		f.Remedy = "read the physical state (ibstat): LinkUp points at the subnet manager, anything else at cable, module or peer"
	case p.ethernet():
		say("the link is up but the network interface is not", "bring the interface up (ip link set "+or(p.Netdev, "DEV")+" up) and look at its bond, VLAN and driver")
	case p.State == 2 && p.SMLID != nil && *p.SMLID != 0:
		say(fmt.Sprintf("the subnet manager at LID %d is known but has not configured this port", *p.SMLID), "look at the subnet manager's log (is it running, does it sweep, does the link flap?); not at the cable")
	case p.State == 2:
		say("no subnet manager has configured it", "start or reach a subnet manager (opensm, or the switch's own); sminfo shows whether one answers; not a cable fault")
	case p.State == 3:
		f.Verdict = reports.Warn
		say("the subnet manager is in the middle of configuring it", "look again in a minute; if it stays, look at the subnet manager's log")
	case p.State == 1:
		say("the link is up, but the subnet manager has not activated this (virtual) port", "enable virtualization in the subnet manager (opensm: virt_enabled 2) and give the virtual function non-zero node and port GUIDs; do not replace the cable")
		if !p.noLID() && (p.SMLID == nil || *p.SMLID == 0) {
			say("the link is up, but no subnet manager has activated the port", "look whether a subnet manager runs (sminfo) and, for a virtual function, whether it has GUIDs; do not replace the cable")
		}
	default:
		f.Verdict, f.Got = reports.Unknown, got
	}
	return f
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
