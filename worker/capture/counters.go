package capture

import (
	"regexp"
	"strconv"
	"strings"

	"busbw/rdma"
	"busbw/reports"
	"busbw/worker/judge"
)

// names of counters in the diagnostics of infiniband, and the kernel's.
var counterNames = map[string]string{
	"SymbolErrorCounter": "symbol_error", "SymbolErrors": "symbol_error", "LinkErrorRecoveryCounter": "link_error_recovery", "LinkRecovers": "link_error_recovery", "LinkDownedCounter": "link_downed", "LinkDowned": "link_downed",
	"PortRcvErrors": "port_rcv_errors", "RcvErrors": "port_rcv_errors", "PortRcvRemotePhysicalErrors": "port_rcv_remote_physical_errors", "RcvRemotePhysErrors": "port_rcv_remote_physical_errors",
	"PortRcvSwitchRelayErrors": "port_rcv_switch_relay_errors", "RcvSwRelayErrors": "port_rcv_switch_relay_errors", "PortXmitDiscards": "port_xmit_discards", "XmtDiscards": "port_xmit_discards", "PortXmitConstraintErrors": "port_xmit_constraint_errors", "XmtConstraintErrors": "port_xmit_constraint_errors",
	"PortRcvConstraintErrors": "port_rcv_constraint_errors", "RcvConstraintErrors": "port_rcv_constraint_errors", "LocalLinkIntegrityErrors": "local_link_integrity_errors", "LinkIntegrityErrors": "local_link_integrity_errors",
	"ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors", "ExcBufOverrunErrors": "excessive_buffer_overrun_errors", "VL15Dropped": "VL15_dropped", "PortXmitWait": "port_xmit_wait", "XmtWait": "port_xmit_wait",
}

var (
	queryHead  = regexp.MustCompile(`GUID\s+(0x[0-9a-fA-F]+)\s+port\s+(\w+):`)
	queryPair  = regexp.MustCompile(`\[(\w+) == (\d+)`)
	queryNode  = regexp.MustCompile(`^\s*Errors for (?:0x[0-9a-fA-F]+ )?"([^"]*)"`)
	perfHead   = regexp.MustCompile(`^#\s*Port(?: extended)? counters:\s*Lid\s+(\d+)\s+port\s+(\d+)`)
	perfLine   = regexp.MustCompile(`^\s*(\w+):\.{2,}\s*(\d+)\s*$`)
	sysCounter = regexp.MustCompile(`/?sys/class/infiniband/([\w.-]+)/(?:ports/(\d{1,3})/)?(counters|hw_counters)/(\w+)[:=\s]\s*(\d+)(?:\s+(\d+))?\s*$`)
	rdmaStat   = regexp.MustCompile(`^\s*link ([\w.-]+)/(\d{1,3}) ((?:\w+ \d+\s*)+)$`)
	ethtoolLn  = regexp.MustCompile(`^\s*(rx_discards_phy|rx_symbol_err_phy|rx_crc_errors_phy|link_down_events_phy):\s*(\d+)\s*$`)
)

// series collects one or two readings for each port.
type series struct {
	node  string
	order []string
	by    map[string]*judge.Counters
}

func (c *series) at(subject string, from judge.Origin) *judge.Counters {
	x := c.by[subject]
	if x == nil {
		x = &judge.Counters{Origin: from, Node: c.node, Subject: subject, Before: rdma.Counters{}}
		if len(c.order) < 1<<16 {
			c.by[subject] = x
			c.order = append(c.order, subject)
		}
	}
	return x
}

// put adds a value; the second of one name is the second reading.
func put(c *judge.Counters, name string, v uint64) {
	if _, ok := c.Before[name]; !ok {
		c.Before[name] = v
		return
	}
	if c.After == nil {
		c.After = rdma.Counters{}
	}
	c.After[name] = v
}

// readCounters reads ibqueryerrors, perfquery, ethtool -S and files of /sys.
func readCounters(s section) []reports.Finding {
	c := &series{node: s.node, by: map[string]*judge.Counters{}}
	subject, node := "", ""
	for _, l := range s.lines {
		if m := sysCounter.FindStringSubmatch(l); m != nil {
			dir, where := "/sys/class/infiniband/"+m[1], m[1]
			if m[2] != "" {
				dir, where = dir+"/ports/"+m[2], where+" port "+m[2]
			}
			name := m[4]
			if m[3] == "hw_counters" {
				name = "hw_counters/" + name
			}
			x := c.at(where, judge.Origin(dir+"/"+m[3]))
			for _, v := range m[5:] {
				if n, err := strconv.ParseUint(v, 10, 64); err == nil {
					put(x, name, n)
				}
			}
			continue
		}
		if m := rdmaStat.FindStringSubmatch(l); m != nil {
			x := c.at(m[1]+" port "+m[2], "rdma statistic")
			w := strings.Fields(m[3])
			for i := 0; i+1 < len(w) && i < 256; i += 2 {
				if n, err := strconv.ParseUint(w[i+1], 10, 64); err == nil {
					put(x, "hw_counters/"+w[i], n)
				}
			}
			continue
		}
		if m := queryNode.FindStringSubmatch(l); m != nil {
			node = strings.TrimSpace(m[1]) + " "
		}
		if m := queryHead.FindStringSubmatch(l); m != nil {
			x := c.at(node+"GUID "+m[1]+" port "+m[2], "ibqueryerrors")
			for _, p := range queryPair.FindAllStringSubmatch(l, 64) {
				if n, err := strconv.ParseUint(p[2], 10, 64); err == nil && counterNames[p[1]] != "" {
					put(x, counterNames[p[1]], n)
				}
			}
			continue
		}
		if m := perfHead.FindStringSubmatch(l); m != nil {
			subject = "LID " + m[1] + " port " + m[2]
		}
		if m := perfLine.FindStringSubmatch(l); m != nil && counterNames[m[1]] != "" {
			if n, err := strconv.ParseUint(m[2], 10, 64); err == nil {
				put(c.at(or(subject, "port"), "perfquery"), counterNames[m[1]], n)
			}
		}
		if m := ethtoolLn.FindStringSubmatch(l); m != nil {
			if n, err := strconv.ParseUint(m[2], 10, 64); err == nil {
				x := c.at("network interface", "ethtool -S")
				x.Ethernet = true
				put(x, m[1], n)
			}
		}
	}
	var out []reports.Finding
	for _, name := range c.order {
		out = append(out, judge.CounterDeltas(*c.by[name])...)
	}
	return out
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
