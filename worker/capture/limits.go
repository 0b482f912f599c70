package capture

import (
	"regexp"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	limitUlimit  = regexp.MustCompile(`(?i)max locked memory\s+\(k?bytes, -l\)\s+(\d+|unlimited)`)
	limitProc    = regexp.MustCompile(`^\s*Max locked memory\s+(\d+|unlimited)\s+(\d+|unlimited)\s+bytes`)
	limitUCX     = regexp.MustCompile(`max locked memory \(ulimit -l\).*\(current: (\d+) kbytes\)`)
	limitAsk     = regexp.MustCompile(`ulimit -[HS]?l\s*$`)
	limitSaid    = regexp.MustCompile(`(?:ulimit -[HS]?l|[Mm]emlock(?: limit)?)\s*[:=]\s*(\d+|unlimited)\s*(?:kB|kbytes|KiB)?\s*$`)
	limitsConf   = regexp.MustCompile(`^\s*[\w*@%.-]+\s+(?:soft|hard|-)\s+memlock\s+(\d+|unlimited|infinity)\s*$`)
	limitValue   = regexp.MustCompile(`^\s*(\d+|unlimited)\s*$`)
	limitSystemd = regexp.MustCompile(`^\s*LimitMEMLOCK(?:Soft)?=(\d+|infinity)\s*$`)
	limitPrlimit = regexp.MustCompile(`^\s*MEMLOCK\s+max locked-in-memory.*?\s(\d+|unlimited)\s+(\d+|unlimited)\s+bytes`)
	capEff       = regexp.MustCompile(`^\s*CapEff:\s*([0-9a-fA-F]{8,16})\s*$`)
	refused      = regexp.MustCompile(`ibv_(?:reg_mr\w*|reg_dmabuf_mr|create_cq|create_qp|alloc_pd)\b.*(?:Cannot allocate memory|failed)|[Cc]ouldn'?t allocate MR|Failed to (?:create|register) (?:CQ|MR).*memory`)
	noMemory     = regexp.MustCompile(`Cannot allocate memory|errno 12\b|error 12\b`)
)

// readLimits reads limits on locked memory, and messages that came of them.
func readLimits(s section) []reports.Finding {
	m := judge.Memlock{Origin: "limits", Node: s.node, Bytes: -2, Needed: true}
	least := func(from judge.Origin, v string, unit int64) {
		n := int64(-1)
		if v != "unlimited" && v != "infinity" {
			n, _ = strconv.ParseInt(v, 10, 64)
			n *= unit
		}
		if m.Bytes == -2 || n >= 0 && (m.Bytes < 0 || n < m.Bytes) {
			m.Bytes, m.Origin = n, from
		}
	}
	suspect, message := "", ""
	asked := false
	for _, l := range s.lines {
		if asked {
			if v := limitValue.FindStringSubmatch(l); v != nil {
				least("ulimit -l", v[1], 1024)
			}
		}
		asked = limitAsk.MatchString(l)
		if v := limitSaid.FindStringSubmatch(l); v != nil {
			least("ulimit -l", v[1], 1024)
		}
		if v := limitsConf.FindStringSubmatch(l); v != nil {
			least("limits.conf", v[1], 1024)
		}
		if v := limitUlimit.FindStringSubmatch(l); v != nil {
			least("ulimit -a", v[1], 1024)
		}
		if v := limitProc.FindStringSubmatch(l); v != nil {
			least("/proc/self/limits", v[1], 1)
		}
		if v := limitPrlimit.FindStringSubmatch(l); v != nil {
			least("prlimit", v[1], 1)
		}
		if v := limitSystemd.FindStringSubmatch(l); v != nil {
			least("systemd", v[1], 1)
		}
		if v := limitUCX.FindStringSubmatch(l); v != nil {
			least("message", v[1], 1024)
			message = l
		}
		if v := capEff.FindStringSubmatch(l); v != nil {
			if n, err := strconv.ParseUint(v[1], 16, 64); err == nil {
				p := n&(1<<14) != 0
				m.Privileged = &p
			}
		}
		if refused.MatchString(l) && message == "" && suspect == "" {
			if noMemory.MatchString(l) {
				message = l
			} else {
				suspect = l
			}
		}
	}
	if suspect != "" && s.onGPU() {
		suspect = "" // GPU memory: another cause, another reader
	}
	m.Refused = shorten(or(message, suspect))
	if m.Bytes == -2 {
		if message == "" && suspect == "" {
			return nil
		}
		why := "memory could not be registered: the limit on locked memory is the usual cause"
		if message == "" {
			why = "a queue could not be made; the message does not tell why, the limit on locked memory is the usual cause"
		}
		return []reports.Finding{{ID: "memlock", Node: s.node, Subject: "locked memory", Verdict: reports.Fail, Got: why, Want: "unlimited",
			Evidence: []reports.Evidence{{From: "message", Value: m.Refused}},
			Remedy:   "read the limit inside the process that runs ranks (/proc/PID/limits); raise it there: systemd unit (LimitMEMLOCK=infinity), limits.conf and a new login, container (--ulimit memlock=-1 --cap-add=IPC_LOCK)"}}
	}
	if m.Bytes < 0 && suspect != "" && message == "" {
		m.Refused = "" // the limit is not the cause
	}
	out := judge.Locked(m)
	if strings.Contains(message, "UCX") && strings.Contains(message, "ibv_create_cq") {
		out[0].Remedy += "; where no RDMA is meant to be used the program went on without it"
	}
	return out
}
