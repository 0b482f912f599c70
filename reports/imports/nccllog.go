package imports

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// ncclLog is what NCCL's own lines (NCCL_DEBUG) tell.
type ncclLog struct {
	version string
	last    string            // host of the last line
	env     map[string]string // "set by environment" since the last test
	seen    map[string]string // the same, of the whole text
	network string            // "IB", "Socket", a plugin's name
	gdrOff  []string          // HCAs without GPUDirect RDMA
	vias    map[string]int    // channels by transport
	nvls    string            // "24 coll channels, 0 nvls channels, …"
	sizes   map[int64]bool    // ranks of the communicators
	warns   []string          // distinct, in order
	more    int               // warnings beyond those
	where   map[string]string // evidence: "name:line" by what it is for
}

const maxKept = 64 // of each kind

// ncclWarn is the finding that NCCL's own warnings make.
const ncclWarn = "nccl-warn"

func (n *ncclLog) init() {
	n.env, n.seen, n.vias, n.sizes, n.where = map[string]string{}, map[string]string{}, map[string]int{}, map[int64]bool{}, map[string]string{}
}

// line takes a line with " NCCL " at i. It returns what is not NCCL's: text
// before NCCL's in the same line, or the whole of another kind of line.
func (n *ncclLog) line(raw []byte, i, at int) (rest []byte) {
	t := raw[i+6:]
	warn := bytes.HasPrefix(t, []byte("WARN "))
	if !warn && !bytes.HasPrefix(t, []byte("INFO ")) {
		if bytes.HasPrefix(t, []byte("TRACE ")) {
			return nil
		}
		return raw
	}
	t = t[5:]
	head := raw[:i]
	if b := bytes.LastIndex(head, []byte(" [")); b >= 0 {
		start := bytes.LastIndexAny(head[:b], " \t") + 1
		rest = head[:start]
		host := head[start:b]
		for range 2 { // pid and thread
			if c := bytes.LastIndexByte(host, ':'); c > 0 {
				host = host[:c]
			}
		}
		if c := bytes.LastIndexByte(host, '>'); c >= 0 {
			host = bytes.TrimPrefix(host[c+1:], []byte(":"))
		}
		if string(host) != n.last && len(host) < 256 {
			n.last = string(host)
		}
	}
	if len(rest) > 0 && !bytes.ContainsAny(rest, "0123456789") {
		rest = nil
	}
	if warn {
		n.warning(raw[len(rest):], at)
		return rest
	}
	n.info(t, at)
	return rest
}

func (n *ncclLog) warning(t []byte, at int) {
	w := strings.TrimSpace(string(t[:min(len(t), 300)]))
	switch {
	case len(n.warns) == maxKept:
		n.more++
	case !slices.Contains(n.warns, w):
		n.warns = append(n.warns, w)
	}
}

func (n *ncclLog) info(t []byte, at int) {
	if bytes.HasPrefix(t, []byte("Channel ")) {
		if i := bytes.LastIndex(t, []byte(" via ")); i >= 0 {
			via, _, _ := bytes.Cut(t[i+5:], []byte(" "))
			via, _, _ = bytes.Cut(via, []byte("("))
			if c, ok := n.vias[string(via)]; ok || len(n.vias) < maxKept {
				n.vias[string(via)] = c + 1
			}
			if n.where["via"] == "" {
				n.where["via"] = fmt.Sprint(at)
			}
		}
		return
	}
	if i := bytes.Index(t, []byte(" set by environment to ")); i >= 0 {
		f := bytes.Fields(t[:i])
		value := strings.TrimRight(strings.TrimSpace(string(t[i+23:min(len(t), i+23+200)])), ".")
		if len(f) > 0 && len(n.env) < 4*maxKept && len(n.seen) < 4*maxKept && len(f[len(f)-1]) < 64 {
			name := string(f[len(f)-1])
			n.env[name], n.seen[name] = value, value
			n.where[name] = fmt.Sprint(at)
		}
		return
	}
	if i := bytes.Index(t, []byte("anks ")); i > 0 { // nranks, nRanks
		f := bytes.Fields(t[i+5:])
		if len(f) > 0 {
			if v, ok := integer(bytes.Trim(f[0], ",")); ok && v > 0 && len(n.sizes) < maxKept {
				n.sizes[v] = true
			}
		}
	}
	switch {
	case bytes.Contains(t, []byte("Using network ")):
		_, v, _ := bytes.Cut(t, []byte("Using network "))
		if f := bytes.Fields(v); len(f) > 0 && len(f[0]) < 40 {
			n.network = string(f[0])
			n.where["network"] = fmt.Sprint(at)
		}
	case bytes.Contains(t, []byte("GPU Direct RDMA Disabled for HCA")):
		_, v, _ := bytes.Cut(t, []byte("for HCA "))
		if hca := strings.TrimSpace(n.last + " " + string(v[:min(len(v), 60)])); len(n.gdrOff) < maxKept && !slices.Contains(n.gdrOff, hca) {
			n.gdrOff = append(n.gdrOff, hca)
			n.where["gdr"] = fmt.Sprint(at)
		}
	case bytes.Contains(t, []byte(" nvls channels")):
		n.nvls = strings.TrimSpace(string(t[:min(len(t), 120)]))
		n.where["nvls"] = fmt.Sprint(at)
	case bytes.Contains(t, []byte("NCCL version ")):
		if m := libVersion.FindSubmatch(t); m != nil && len(m[2]) < 80 {
			n.version = string(m[2])
		}
	}
}

// offSwitches are settings that take a transport away, with the values that do.
var offSwitches = []struct {
	name   string
	values []string // nil: any but 0
	what   string
}{
	{"NCCL_P2P_LEVEL", []string{"LOC", "0"}, "no direct copies between GPUs: NVLink and PCIe peer-to-peer are not used"},
	{"NCCL_P2P_DISABLE", nil, "no direct copies between GPUs: NVLink and PCIe peer-to-peer are not used"},
	{"NCCL_SHM_DISABLE", nil, "no shared memory between the processes of a node"},
	{"NCCL_IB_DISABLE", nil, "no RDMA: sockets carry the data between nodes"},
	{"NCCL_NET_GDR_LEVEL", []string{"LOC", "0"}, "no GPUDirect RDMA: data goes through host memory"},
	{"NCCL_NET_GDR_READ", []string{"0"}, "GPUs' memory is not read by the HCA"},
	{"NCCL_NVLS_ENABLE", []string{"0"}, "no NVLink SHARP"},
	{"NCCL_TOPO_FILE", nil, "the topology comes from a file, not from the machine: a file of another machine hides NVLink"},
	{"NCCL_CHECKS_DISABLE", nil, "no argument checks"},
}

// report turns what was seen into findings.
func (n *ncclLog) report(t *Text) {
	from := func(what string) []reports.Evidence {
		return []reports.Evidence{{From: t.Name + ":" + n.where[what], Value: what}}
	}
	for _, s := range offSwitches {
		v, ok := n.seen[s.name]
		if !ok || s.values != nil && !slices.Contains(s.values, v) || s.values == nil && v == "0" {
			continue
		}
		t.Findings = append(t.Findings, reports.Finding{ID: "nccl-env", Verdict: reports.Warn, Subject: s.name, Got: v, Want: "not set", Evidence: from(s.name),
			Remedy: s.what + "; unset it (also in /etc/nccl.conf and ~/.nccl.conf, which NCCL reports as environment too) and measure again"})
	}
	if n.network == "Socket" {
		t.Findings = append(t.Findings, reports.Finding{ID: "nccl-network", Verdict: reports.Warn, Subject: "network", Got: "Socket", Want: "IB, where the nodes have HCAs", Evidence: from("network"),
			Remedy: "TCP sockets carry the data between nodes; see why NCCL found no HCA (NCCL_IB_DISABLE, NCCL_IB_HCA, libibverbs, port state)"})
	}
	if len(n.gdrOff) > 0 {
		t.Findings = append(t.Findings, reports.Finding{ID: "nccl-gdr", Verdict: reports.Warn, Subject: "GPUDirect RDMA", Got: "disabled for " + strings.Join(n.gdrOff, ", "), Want: "enabled", Evidence: from("gdr"),
			Remedy: "load nvidia_peermem and see that it is registered (/sys/kernel/mm/memory_peers), or use dma-buf; NCCL before 2.23 does not know every module's name"})
	}
	if p2pOff, shm := n.seen["NCCL_P2P_DISABLE"] != "" || n.seen["NCCL_P2P_LEVEL"] == "LOC", n.via("SHM"); shm > 0 && p2pOff {
		t.Findings = append(t.Findings, reports.Finding{ID: "nccl-path", Verdict: reports.Warn, Subject: "path between GPUs of a node", Got: fmt.Sprintf("SHM on %d channels", shm), Want: "P2P", Evidence: from("via"),
			Remedy: "follows from the setting that switches P2P off"})
	}
	if strings.Contains(n.nvls, " 0 nvls") {
		t.Findings = append(t.Findings, reports.Finding{ID: "nccl-nvls", Verdict: reports.NA, Subject: "NVLink SHARP", Got: "0 nvls channels", Evidence: from("nvls"),
			Remedy: "normal before Hopper (H100), and on nodes without NVSwitch"})
	}
	for i, w := range n.warns {
		if i == 5 {
			t.Findings = append(t.Findings, reports.Finding{ID: ncclWarn, Verdict: reports.Warn, Subject: "NCCL", Got: fmt.Sprintf("%d more kinds of warnings", len(n.warns)-i+n.more)})
			break
		}
		f := reports.Finding{ID: ncclWarn, Verdict: reports.Warn, Subject: "NCCL", Got: w}
		if i == 0 && len(n.warns) > 1 {
			f.Remedy = "the first of them is the nearest to the cause"
		}
		t.Findings = append(t.Findings, f)
	}
}

// via is how many channels go by a transport.
func (n *ncclLog) via(transport string) (count int) {
	for v, c := range n.vias {
		if v == transport || strings.HasPrefix(v, transport+"/") {
			count += c
		}
	}
	return count
}

// link is how data goes between nodes, as far as it is told.
func (n *ncclLog) link() string {
	var all []string
	for v := range n.vias {
		if strings.HasPrefix(v, "NET/") {
			p := strings.Split(v, "/")
			name := "net/" + strings.ToLower(p[1])
			if p[len(p)-1] == "GDRDMA" {
				name += "/gdrdma"
			}
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	if len(all) == 0 && n.network != "" {
		return "net/" + strings.ToLower(n.network)
	}
	return strings.Join(all, "+")
}
