package capture

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"busbw/reports"
)

var (
	asyncEvent = regexp.MustCompile(`Got async (?:error )?event ?:? ?(.*)$`)
	setByEnv   = regexp.MustCompile(`\b(NCCL_\w+) set (?:by environment )?to (\S+)|(?:^|\s|-x\s)(NCCL_(?:TOPO_FILE|P2P_DISABLE|P2P_LEVEL|SHM_DISABLE|IB_DISABLE))=(\S+)`)
)

// overrides are settings that switch a fast path off, and what they cost.
var overrides = []struct {
	name, bad, what string
}{
	{"NCCL_P2P_LEVEL", "LOC", "GPUs of a node do not reach each other directly: NVLink is not used"},
	{"NCCL_P2P_DISABLE", "1", "GPUs of a node do not reach each other directly: NVLink is not used"},
	{"NCCL_SHM_DISABLE", "1", "ranks of a node go through the network where they have no peer access"},
	{"NCCL_IB_DISABLE", "1", "RDMA is not used: traffic goes over sockets"},
	{"NCCL_NET_GDR_LEVEL", "LOC", "GPUDirect RDMA is not used"},
	{"NCCL_NET", "Socket", "RDMA is not used: traffic goes over sockets"},
	{"NCCL_TOPO_FILE", "", "a topology from a file replaces the machine's own: one made for another machine switches NVLink or NICs off"},
}

// readEvents reads port events, settings left over, and who was lost, from
// NCCL's log.
func readEvents(s section) []reports.Finding {
	var out []reports.Finding
	var seen []string
	for _, l := range s.lines {
		if m := asyncEvent.FindStringSubmatch(l); m != nil && !slices.Contains(seen, m[1]) && len(seen) < 64 {
			seen = append(seen, m[1])
			f := reports.Finding{ID: "rdma-event", Node: s.node, Subject: "RDMA port", Verdict: reports.Warn, Got: "asynchronous event during the run: " + shorten(m[1]), Want: "none", Evidence: []reports.Evidence{{From: "NCCL", Value: shorten(l)}},
				Remedy: "look at the port's state and its link_downed counter"}
			if sp := speaker.FindStringSubmatch(l); sp != nil {
				f.Subject = "RDMA port of " + sp[1]
			}
			if strings.Contains(m[1], "port error") || strings.Contains(m[1], "fatal") {
				f.Verdict, f.Got = reports.Fail, "the port went down during the run ("+shorten(m[1])+"): this outranks what its counters say"
				f.Remedy = "cable, module or the switch's port: watch link_downed and the switch's log"
			}
			out = append(out, f)
		}
		for _, m := range setByEnv.FindAllStringSubmatch(l, 16) {
			out = append(out, s.override(m[1]+m[3], strings.Trim(m[2]+m[4], `"'.,;)`), l, out)...)
		}
	}
	return out
}

func (s section) override(name, value, line string, have []reports.Finding) []reports.Finding {
	for _, o := range overrides {
		if o.name != name || o.bad != "" && !strings.EqualFold(o.bad, value) {
			continue
		}
		f := reports.Finding{ID: "nccl-setting", Node: s.node, Subject: name, Verdict: reports.Warn, Got: name + "=" + value + ": " + o.what, Want: "unset", Evidence: []reports.Evidence{{From: "setting", Value: shorten(line)}},
			Remedy: "unset it and measure again before anything is blamed on the hardware"}
		if slices.ContainsFunc(have, func(h reports.Finding) bool { return h.ID == f.ID && h.Got == f.Got }) {
			return nil
		}
		return []reports.Finding{f}
	}
	return nil
}

// lost names the peer that others lost and that says nothing itself. Only the
// first failed completion of a rank is a cause; flushes (status 5) follow.
func (s section) lost() []reports.Finding {
	witness := map[string][]string{}
	var order []string
	lines := map[string]string{}
	speaks := map[string]bool{}
	note := func(peer, by, line string) {
		if _, ok := witness[peer]; !ok && len(order) < 1024 {
			order = append(order, peer)
			lines[peer] = line
		}
		if !slices.Contains(witness[peer], by) && len(witness[peer]) < 64 {
			witness[peer] = append(witness[peer], by)
		}
	}
	for _, l := range s.lines {
		if commented.MatchString(l) {
			continue
		}
		if m := speaker.FindStringSubmatch(l); m != nil {
			speaks[m[1]] = true
		}
		if m := closedBy.FindStringSubmatch(l); m != nil {
			note(m[2], m[1], l)
		}
		if m := badWC.FindStringSubmatch(l); m != nil && m[3] != "5" && m[3] != "0" {
			note(m[2], m[1], l)
		}
	}
	var out []reports.Finding
	for _, peer := range order {
		f := reports.Finding{ID: "peer-lost", Node: s.node, Subject: peer, Verdict: reports.Fail, Want: "every peer answers", Evidence: []reports.Evidence{{From: strings.Join(witness[peer], ", "), Value: shorten(lines[peer])}}}
		f.Got = fmt.Sprintf("lost by %s", strings.Join(witness[peer], ", "))
		if m := lossWC.FindStringSubmatch(lines[peer]); m != nil {
			f.Got += " (" + completion(m[1]) + ")"
		}
		switch {
		case !speaks[peer] && !isAddress(peer):
			f.Got += "; it says nothing itself: the first victim, most likely"
			f.Remedy = "look at this node first: power, kernel log (out of memory, Xid), its processes; what the others say are consequences"
		case isAddress(peer):
			f.Got += "; an address: which node has it is not told here"
			f.Remedy = "find the node of this address; where it is one that says nothing, look there first"
		default:
			f.Verdict = reports.Unknown
			f.Got += "; it has messages of its own: the earliest of all is the cause"
		}
		out = append(out, f)
	}
	return out
}

func isAddress(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF:.") == "" }

// completion is a completion status in words (ibv_wc_status).
func completion(status string) string {
	switch status {
	case "12":
		return "status 12: the peer did not answer in time, after all retries"
	case "13":
		return "status 13: the peer was not ready to receive"
	case "10":
		return "status 10: the peer refused the access"
	case "4":
		return "status 4: protection error on this side"
	case "1":
		return "status 1: a message was longer than its buffer"
	}
	return "status " + status
}
