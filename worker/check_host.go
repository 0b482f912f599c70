package worker

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

// checkMemlock reads the limits of the process that runs the check: on a node
// that is the worker, whose runners inherit them.
func checkMemlock(s *survey) []reports.Finding {
	m := judge.Memlock{Origin: "/proc/self/limits", Needed: len(s.hcas) > 0}
	soft := ""
	for l := range strings.Lines(s.text("proc/self/limits")) {
		if rest, ok := strings.CutPrefix(l, "Max locked memory"); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				soft = f[0]
			}
		}
	}
	n, err := strconv.ParseInt(soft, 10, 64)
	switch {
	case soft == "unlimited":
		m.Bytes = -1
	case err != nil:
		return []reports.Finding{finding("memlock", "locked memory", reports.Unknown, "the limit is not told (/proc/self/limits)")}
	default:
		m.Bytes = n
	}
	m.Privileged = privileged(s.text("proc/self/status"))
	for _, p := range s.opts.Probes {
		if strings.Contains(p.Host, "cannot register") && m.Refused == "" {
			m.Refused = p.Host
		}
	}
	return append(judge.Locked(m), checkRegister(s)...)
}

// checkRegister reports what registering host memory with each port showed.
func checkRegister(s *survey) []reports.Finding {
	var out []reports.Finding
	if s.opts.NoProbes != "" && len(s.hcas) > 0 {
		out = append(out, finding("memlock-register", "registering memory", reports.Unknown, s.opts.NoProbes))
	}
	for _, p := range s.opts.Probes {
		f := finding("memlock-register", fmt.Sprintf("%s port %d", p.HCA, p.Port), reports.Pass, fmt.Sprintf("%d MiB of host memory register", probeBytes>>20))
		if p.Host != "" {
			f.Verdict, f.Got, f.Want = reports.Fail, p.Host, f.Got
			f.Remedy = "the message says what is missing: libibverbs and its provider, access to /dev/infiniband, or the limit on locked memory"
			f.Evidence = evidence("libibverbs", p.Host)
		}
		out = append(out, f)
	}
	return out
}

// privileged: bit 14 of the effective capabilities is CAP_IPC_LOCK.
func privileged(status string) *bool {
	for l := range strings.Lines(status) {
		if v, ok := strings.CutPrefix(l, "CapEff:"); ok {
			if n, err := strconv.ParseUint(strings.TrimSpace(v), 16, 64); err == nil {
				p := n&(1<<14) != 0
				return &p
			}
		}
	}
	return nil
}

func checkShm(s *survey) []reports.Finding {
	f := finding("shm", "/dev/shm", reports.Unknown, "the list of mounts cannot be read")
	f.Want = "1 GiB or more (NCCL's shared memory transport)"
	mounts := s.text("proc/self/mounts")
	if mounts == "" {
		return []reports.Finding{f}
	}
	f.Verdict, f.Got, f.Remedy = reports.Warn, "not mounted", "mount a tmpfs there; containers: --shm-size=1g, or an emptyDir of medium Memory"
	for l := range strings.Lines(mounts) {
		w := strings.Fields(l)
		if len(w) < 4 || w[1] != "/dev/shm" {
			continue
		}
		f.Evidence = evidence("/proc/self/mounts", strings.TrimSpace(l))
		f.Verdict, f.Got = reports.Pass, "half of the memory (no size given)"
		for o := range strings.SplitSeq(w[3], ",") {
			v, ok := strings.CutPrefix(o, "size=")
			if !ok {
				continue
			}
			f.Got = v
			if b, ok := bytesOf(v); ok && b < 1<<30 {
				f.Verdict = reports.Warn
			}
		}
	}
	if f.Verdict == reports.Pass {
		f.Remedy = ""
	} else if len(s.GPUs) == 0 && len(s.kind(judge.GPU)) == 0 {
		f.Verdict, f.Remedy, f.Got = reports.NA, "", f.Got+"; without GPUs nothing here needs more"
	}
	return []reports.Finding{f}
}

// bytesOf reads the size of a mount: "65536k", "1g".
func bytesOf(s string) (int64, bool) {
	units := map[byte]int64{'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30}
	u := int64(1)
	if n := len(s); n > 0 && units[s[n-1]|0x20] > 0 {
		u, s = units[s[n-1]|0x20], s[:n-1]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n * u, err == nil && n < 1<<40
}

func checkGovernor(s *survey) []reports.Finding {
	count := map[string]int{}
	const dir = "sys/devices/system/cpu"
	for _, n := range s.names(dir) {
		if strings.HasPrefix(n, "cpu") && strings.Trim(n, "cpu0123456789") == "" {
			if g := s.word(path.Join(dir, n, "cpufreq"), "scaling_governor"); g != "" {
				count[g]++
			}
		}
	}
	f := finding("governor", "CPU frequency governor", reports.NA, "the CPUs' frequency is not this kernel's to set")
	if len(count) > 0 {
		f.Verdict, f.Got = reports.Pass, ""
		var all []string
		for g, n := range count {
			all = append(all, fmt.Sprintf("%s on %d CPUs", g, n))
		}
		slices.Sort(all)
		f.Got = strings.Join(all, ", ")
		f.Evidence = evidence("/"+dir+"/cpu*/cpufreq/scaling_governor", f.Got)
		if len(count) > 1 || count["performance"] == 0 {
			f.Verdict, f.Want, f.Remedy = reports.Warn, "performance", "cpupower frequency-set -g performance, and at boot"
		}
	}
	return []reports.Finding{f}
}

func checkClockSource(s *survey) []reports.Finding {
	v := s.word("sys/devices/system/clocksource/clocksource0", "current_clocksource")
	f := finding("clocksource", "clock source", reports.Pass, v)
	switch v {
	case "":
		f.Verdict, f.Got = reports.Unknown, "not told"
	case "hpet", "acpi_pm", "jiffies", "refined-jiffies":
		f.Verdict, f.Want = reports.Warn, "tsc (or the hypervisor's own)"
		f.Remedy = "the kernel has given up on the CPU's counter: look at its log; reading the time is slow and blurs small messages"
		f.Evidence = evidence("/sys/devices/system/clocksource/clocksource0/current_clocksource", v)
	}
	return []reports.Finding{f}
}

func checkHostName(s *survey) []reports.Finding {
	host := s.word("proc/sys/kernel", "hostname")
	if host == "" || host == "(none)" {
		host = s.word("etc", "hostname")
	}
	var at []netip.Addr
	for l := range strings.Lines(s.text("etc/hosts")) {
		l, _, _ = strings.Cut(l, "#")
		w := strings.Fields(l)
		if len(w) < 2 || !slices.Contains(w[1:], host) {
			continue
		}
		if a, err := netip.ParseAddr(w[0]); err == nil && len(at) < 16 {
			at = append(at, a)
		}
	}
	return []reports.Finding{judge.HostName(host, at, "", "/etc/hosts")}
}

// checkRoutes looks for one network behind two interfaces at one metric
// (/proc/net/route: interface destination gateway flags … metric mask, hexadecimal).
func checkRoutes(s *survey) []reports.Finding {
	f := finding("routes", "IPv4 routes", reports.Pass, "every network is behind one interface")
	text := s.text("proc/net/route")
	if text == "" {
		f.Verdict, f.Got = reports.Unknown, "the routes cannot be read"
		return []reports.Finding{f}
	}
	seen := map[string]string{}
	var out []reports.Finding
	for l := range strings.Lines(text) {
		w := strings.Fields(l)
		if len(w) < 8 || len(w[1]) != 8 || w[1] == "Destination" {
			continue
		}
		key := w[1] + "/" + w[7] + " " + w[6]
		if other, ok := seen[key]; ok && other != w[0] {
			g := finding("routes", "network "+hexIPv4(w[1]), reports.Warn, "behind "+other+" and "+w[0]+" at metric "+w[6])
			g.Want, g.Remedy = "one interface, or different metrics", "give the interfaces different networks or metrics, or name one (--iface, NCCL_SOCKET_IFNAME): which the kernel takes is arbitrary"
			g.Evidence = evidence("/proc/net/route", strings.TrimSpace(l))
			out = append(out, g)
		}
		seen[key] = w[0]
	}
	if out == nil {
		out = []reports.Finding{f}
	}
	return out
}

// hexIPv4 writes the kernel's little-endian form as an address.
func hexIPv4(s string) string {
	n, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		return s
	}
	return netip.AddrFrom4([4]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}).String()
}

func checkHugePages(s *survey) []reports.Finding {
	for l := range strings.Lines(s.text("proc/meminfo")) {
		if v, ok := strings.CutPrefix(l, "HugePages_Total:"); ok {
			return []reports.Finding{finding("hugepages", "reserved huge pages", reports.Pass, strings.TrimSpace(v)+" (busbw needs none)")}
		}
	}
	return []reports.Finding{finding("hugepages", "reserved huge pages", reports.Unknown, "not told")}
}
