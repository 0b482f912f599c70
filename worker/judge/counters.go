package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"busbw/rdma"
	"busbw/reports"
)

// Counters are two readings of a port's counters. Without the second, which
// is nil, only saturation can be told.
type Counters struct {
	Origin
	Node, Subject string
	Ethernet      bool
	Before, After rdma.Counters
	Apart         time.Duration // 0: not told
	Gbps          float64       // rate of the port; 0: not told
}

// severity is what a counter's growth during a measurement means
// (Linux ABI documentation sysfs-class-infiniband; mlx5 hw_counters).
type severity struct {
	name    string
	verdict reports.Verdict
	roce    reports.Verdict // where it differs on Ethernet
	what    string
	remedy  string
}

const (
	cable  = "cable, module or port at either end"
	engine = "the receiving program, not the fabric"
)

// severities; a counter that is not here says nothing about health.
var severities = []severity{
	{"link_downed", reports.Fail, "", "the link went down and could not be retrained", cable},
	{"link_error_recovery", reports.Fail, "", "the link was retrained", cable},
	{"symbol_error", reports.Warn, "", "errors on the lanes", cable},
	{"port_rcv_errors", reports.Fail, "", "damaged packets were received", cable},
	{"local_link_integrity_errors", reports.Fail, "", "the local physical layer passed its error threshold", cable},
	{"excessive_buffer_overrun_errors", reports.Fail, "", "credits were violated", cable},
	{"port_rcv_remote_physical_errors", reports.Pass, "", "packets arrived that a switch had marked bad: the fault is elsewhere", "follow the path upstream"},
	{"port_xmit_discards", reports.Warn, "", "packets were dropped at a congested or inactive egress", "congestion, or the peer's port"},
	{"port_xmit_wait", reports.Pass, "", "data waited for credit: congestion, no error", "compare with the other ports only"},
	{"VL15_dropped", reports.Warn, "", "management packets were dropped", "the subnet manager's load"},
	{"port_rcv_switch_relay_errors", reports.Warn, "", "a switch could not relay", "routing in the subnet manager"},
	{"port_xmit_constraint_errors", reports.Warn, "", "packets were filtered by partition", "the P_Key table"},
	{"port_rcv_constraint_errors", reports.Warn, "", "packets were filtered by partition", "the P_Key table"},
	{"hw_counters/req_transport_retries_exceeded", reports.Fail, "", "a queue pair gave up after its last retry", "loss in the fabric, or a dead peer"},
	{"hw_counters/local_ack_timeout_err", reports.Fail, reports.Warn, "acknowledgements did not come in time", "loss in the fabric"},
	{"hw_counters/packet_seq_err", reports.Fail, reports.Warn, "packets were lost", "loss in the fabric"},
	{"hw_counters/implied_nak_seq_err", reports.Fail, reports.Warn, "packets were lost", "loss in the fabric"},
	{"hw_counters/out_of_sequence", reports.Warn, "", "packets came out of order (adaptive routing does that too)", "loss in the fabric, unless adaptive routing is on"},
	{"hw_counters/roce_adp_retrans", reports.Warn, "", "adaptive retransmission", "loss in the fabric"},
	{"hw_counters/roce_adp_retrans_to", reports.Warn, "", "adaptive retransmission after a timeout", "loss in the fabric"},
	{"hw_counters/roce_slow_restart", reports.Warn, "", "slow restart after loss", "loss in the fabric"},
	{"hw_counters/rnr_nak_retry_err", reports.Warn, "", "the receiver was not ready", engine},
	{"hw_counters/out_of_buffer", reports.Warn, "", "the receiver had posted nothing", engine},
	{"hw_counters/np_ecn_marked_roce_packets", reports.Pass, "", "congestion was marked", "congestion control works"},
	{"hw_counters/np_cnp_sent", reports.Pass, "", "congestion was notified", "congestion control works"},
	{"hw_counters/rp_cnp_handled", reports.Pass, "", "the sender slowed down", "congestion control works"},
	{"rx_discards_phy", reports.Fail, "", "the port had no buffer for what came in", "priority flow control and its buffers"},
	{"rx_symbol_err_phy", reports.Warn, "", "errors on the lanes", cable},
	{"rx_crc_errors_phy", reports.Fail, "", "damaged frames were received", cable},
	{"link_down_events_phy", reports.Fail, "", "the link went down", cable},
}

// CounterDeltas judges what moved between two readings. Absolute values only
// tell what has happened since the last reset, reboots included.
func CounterDeltas(c Counters) []reports.Finding {
	f := reports.Finding{ID: "rdma-counters", Node: c.Node, Subject: c.Subject, Verdict: reports.Pass, Want: "no error counter moves"}
	if len(c.Before) == 0 {
		f.Verdict, f.Got = reports.Unknown, "no counters are told (N/A without performance management)"
		return []reports.Finding{f}
	}
	if c.After == nil {
		return []reports.Finding{c.once(f)}
	}
	var out []reports.Finding
	for _, d := range c.Before.Changed(c.After) {
		i := slices.IndexFunc(severities, func(s severity) bool { return s.name == d.Name })
		if i < 0 {
			continue
		}
		s := severities[i]
		g := reports.Finding{ID: "rdma-counters", Node: c.Node, Subject: c.Subject + " " + d.Name, Verdict: s.verdict, Want: "+0"}
		if c.Ethernet && s.roce != "" {
			g.Verdict = s.roce
		}
		g.Got = fmt.Sprintf("+%d%s: %s", d.Add, c.apart(), s.what)
		if bits := c.Gbps * 1e9 * c.Apart.Seconds(); d.Name == "symbol_error" && bits > 0 && d.Add >= 10 && float64(d.Add)/bits > failBER {
			g.Verdict = reports.Fail
			g.Got += fmt.Sprintf(" (%.0e of all bits; %.0e is the InfiniBand specification's limit)", float64(d.Add)/bits, failBER)
		}
		g.Remedy = s.remedy
		if g.Verdict == reports.Pass {
			g.Got, g.Want, g.Remedy = g.Got+" ("+s.remedy+")", "", ""
		}
		if d.Saturated {
			g.Verdict, g.Got, g.Want = reports.Unknown, "saturated: it stands at the most it can hold and cannot move", ""
			if s.verdict == reports.Pass {
				g.Verdict = reports.NA
			}
			g.Remedy = "clear it (perfquery -R) and measure again"
		}
		g.Evidence = []reports.Evidence{c.of(strings.TrimPrefix(d.Name, "hw_counters/"), fmt.Sprintf("%d → %d", c.Before[d.Name], c.After[d.Name]))}
		out = append(out, g)
	}
	if worst(out) != reports.Fail && worst(out) != reports.Warn {
		f.Got = "no error counter moved" + c.apart() + c.history()
		f.Evidence = c.shown(c.After)
		out = append([]reports.Finding{f}, out...)
	}
	return out
}

func (c Counters) apart() string {
	if c.Apart <= 0 {
		return ""
	}
	return fmt.Sprintf(" in %s", c.Apart.Round(time.Second/10))
}

// history is what stood in the error counters before.
func (c Counters) history() string {
	for _, s := range severities {
		if s.verdict != reports.Pass && c.Before[s.name] > 0 {
			return "; older counts (reboots included) are no verdict"
		}
	}
	return ""
}

// shown is the counters that are not 0, as evidence.
func (c Counters) shown(from rdma.Counters) []reports.Evidence {
	var out []reports.Evidence
	for _, s := range severities {
		if v := from[s.name]; v > 0 {
			out = append(out, c.of(strings.TrimPrefix(s.name, "hw_counters/"), v))
		}
	}
	return out
}

// once judges a single reading.
func (c Counters) once(f reports.Finding) reports.Finding {
	f.Evidence = c.shown(c.Before)
	var history, full []string
	for _, s := range severities {
		v := c.Before[s.name]
		if rdma.Saturated(s.name, v) {
			full = append(full, s.name)
		}
		if v > 0 && s.verdict != reports.Pass {
			history = append(history, s.name)
		}
	}
	switch {
	case len(history) > 0:
		f.Verdict = reports.Unknown
		f.Got = "counts since the last reset, reboots included: " + list(history)
		f.Remedy = "read twice, during traffic: only what moves counts"
	default:
		f.Got = "no error since the last reset"
	}
	if c.Before["port_xmit_wait"] > 0 && !slices.Contains(full, "port_xmit_wait") {
		f.Got += "; port_xmit_wait is congestion, no error"
	}
	if slices.ContainsFunc(full, func(n string) bool { return slices.Contains(history, n) }) {
		f.Verdict = reports.Warn
	}
	if len(full) > 0 {
		f.Got += "; saturated: " + list(full)
		f.Remedy = "clear the counters (perfquery -R) and read them twice, during traffic"
	}
	return f
}

// worst is the worst verdict of findings; Pass where there are none.
func worst(fs []reports.Finding) reports.Verdict {
	rank := []reports.Verdict{reports.NA, reports.Pass, reports.Unknown, reports.Warn, reports.Fail}
	w := 0
	for _, f := range fs {
		w = max(w, slices.Index(rank, f.Verdict))
	}
	return rank[w]
}
