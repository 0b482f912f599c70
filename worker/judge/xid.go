package judge

import (
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// Xid is an error that NVIDIA's driver wrote into the kernel log.
type Xid struct {
	PCI  string // "0000:3b:00"
	Code int
	Line string // as it stands, shortened
}

// xids are the classes of Xid codes (NVIDIA's Xid catalog; where practice and
// catalog disagree, the milder).
var xids = []struct {
	codes   []int
	verdict reports.Verdict
	what    string
	remedy  string
}{
	{[]int{79}, reports.Fail, "the GPU has fallen off the bus", "reboot; if it comes back, reseat the GPU and look at its power and PCIe slot"},
	{[]int{48}, reports.Fail, "double-bit memory error", "drain the node and reset the GPU; if it comes back, replace it"},
	{[]int{62, 64, 80, 95, 109, 119, 120, 136, 140, 143, 155, 156}, reports.Fail, "the GPU or its firmware processor stopped or lost memory", "reset the GPU; if it comes back, replace it"},
	{[]int{74, 144, 145, 146, 147, 148, 149, 150}, reports.Fail, "NVLink error", "read the link's counters, reset GPUs and switches; if it comes back, the link's GPU, baseboard or switch is broken"},
	{[]int{56, 57, 58, 65, 68, 69, 73, 81, 92}, reports.Warn, "driver or hardware error", "look at what ran then; if it comes back on this GPU only, replace it"},
	{[]int{13, 31, 94}, reports.Warn, "a program's access went wrong (or wrong memory was contained)", "look at the program first; if it comes back with other programs on this GPU only, the GPU"},
	{[]int{154}, reports.Warn, "the driver recommends a recovery", "do what the line says"},
	{[]int{63, 43, 38, 44, 45}, reports.Pass, "noted by the driver, no action", ""},
}

// Xids judges the Xids of a log, one finding for each GPU and code.
func Xids(log []Xid, node string, from Origin) []reports.Finding {
	f := reports.Finding{ID: "gpu-xid", Node: node, Subject: "kernel log", Verdict: reports.Pass, Got: "no Xid"}
	if len(log) == 0 {
		return []reports.Finding{f}
	}
	type key struct {
		pci  string
		code int
	}
	count := map[key]int{}
	var out []reports.Finding
	for _, x := range log {
		count[key{x.PCI, x.Code}]++
	}
	for _, x := range log {
		k := key{x.PCI, x.Code}
		if count[k] == 0 {
			continue
		}
		g := reports.Finding{ID: "gpu-xid", Node: node, Subject: "GPU " + or(x.PCI, "at an unknown address"), Verdict: reports.Warn, Want: "no Xid",
			Got: fmt.Sprintf("Xid %d × %d: not in the table of known codes", x.Code, count[k]), Remedy: "look it up in NVIDIA's Xid catalog", Evidence: []reports.Evidence{from.of("", x.Line)}}
		for _, c := range xids {
			if slices.Contains(c.codes, x.Code) {
				g.Verdict, g.Remedy = c.verdict, c.remedy
				g.Got = fmt.Sprintf("Xid %d × %d: %s", x.Code, count[k], c.what)
			}
		}
		delete(count, k)
		out = append(out, g)
	}
	return out
}

// GPUDirect is what a node says of NICs reading and writing GPU memory.
type GPUDirect struct {
	Origin
	Node, Subject string
	Module        *bool    // nvidia_peermem or nv_peer_mem is loaded
	Registered    *bool    // it has registered with the RDMA core (memory_peers)
	DMABuf        *bool    // the GPU driver exports dma-buf
	Proved        *bool    // memory of a GPU was registered with a NIC
	How           string   // how: \"dma-buf\", \"peer memory\"
	Why           string   // why not
	Disabled      []string // HCAs for which NCCL said that it is off
	Staged        bool     // channels without it were seen
	Used          bool     // channels with GDRDMA were seen
	NCCL          string   // version
	NICs, GPUs    int
}

// Direct judges whether GPUDirect works. A module's name proves nothing; only
// a registration, or a transfer that used it, does.
func Direct(d GPUDirect) []reports.Finding {
	f := reports.Finding{ID: "gpudirect", Node: d.Node, Subject: or(d.Subject, "GPUDirect RDMA"), Verdict: reports.Unknown, Want: "GPU memory registers with the NIC"}
	tell := func(name string, b *bool, yes, no string) {
		if b != nil {
			f.Evidence = append(f.Evidence, d.of(name, map[bool]string{true: yes, false: no}[*b]))
		}
	}
	tell("nvidia_peermem", d.Module, "loaded", "not loaded")
	tell("memory_peers", d.Registered, "registered", "not registered")
	tell("dma-buf", d.DMABuf, "exported", "not exported")
	if d.NCCL != "" {
		f.Evidence = append(f.Evidence, d.of("NCCL version", d.NCCL))
	}
	if len(d.Disabled) > 0 {
		f.Evidence = append(f.Evidence, d.of("disabled for", list(d.Disabled)))
	}
	is := func(b *bool, v bool) bool { return b != nil && *b == v }
	off := len(d.Disabled) > 0
	const load = "load nvidia_peermem (modprobe, and at boot), or use a driver and kernel (5.12 and later) with dma-buf"
	switch {
	case d.Proved != nil && *d.Proved:
		f.Verdict, f.Got = reports.Pass, "memory of a GPU was registered ("+or(d.How, "how is not told")+")"
	case d.Proved != nil:
		f.Verdict, f.Got, f.Remedy = reports.Fail, "registration failed: "+d.Why, load
	case d.Used && !off:
		f.Verdict, f.Got = reports.Pass, "in use (GDRDMA)"
	case is(d.Module, false) && !is(d.Registered, true) && !is(d.DMABuf, true):
		f.Verdict, f.Got = reports.Fail, "module missing: neither nvidia_peermem nor nv_peer_mem is loaded; RDMA may work all the same, through host memory"
		f.Remedy = load
		if d.DMABuf == nil && !off && d.NCCL != "" {
			f.Got += " (dma-buf is not told)"
		}
	case is(d.Module, true) && is(d.Registered, false):
		f.Verdict, f.Got = reports.Fail, "module loaded but not registered with the RDMA core: the list of loaded modules alone shows a false OK"
		f.Remedy = "load the module after the RDMA drivers that it was built against (reinstall the GPU driver behind OFED), or use dma-buf; a test that uses dma-buf may work meanwhile"
		if is(d.DMABuf, true) {
			f.Verdict = reports.Warn
		}
	case d.Staged && !d.Used && !off && !is(d.Module, false) && !is(d.Registered, false):
		f.Verdict, f.Got = reports.Warn, "NCCL's channels go over RDMA without it (no GDRDMA in their lines): through host memory"
		f.Remedy = "look at lsmod (nvidia_peermem), dma-buf, NCCL_NET_GDR_LEVEL and the distance of GPU and NIC"
	case off && is(d.Module, true) && before(d.NCCL, 2, 23):
		f.Verdict, f.Got = reports.Fail, "software mismatch: the module is there, but NCCL "+d.NCCL+" looks for the older one's name"
		f.Remedy = "use NCCL 2.23.4 or later; the module needs no action"
	case off:
		f.Verdict, f.Got = reports.Fail, "NCCL has GPUDirect off for "+list(d.Disabled)+"; why is not told"
		f.Remedy = "look at lsmod (nvidia_peermem), /sys/kernel/mm/memory_peers/*/version and NCCL's version"
	case is(d.Registered, true):
		f.Got = "a peer memory module is registered; whether it works only a registration of GPU memory shows"
	case is(d.DMABuf, true):
		f.Got = "the GPU driver exports dma-buf; whether the NIC takes it only a registration shows"
	case is(d.Module, true):
		f.Got = "nvidia_peermem is loaded; that alone proves nothing"
	default:
		f.Got = "nothing tells"
	}
	return []reports.Finding{f}
}

// before says whether a version "2.22.3" is known and older than major.minor.
func before(version string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &a, &b); n < 2 {
		return false
	}
	return a < major || a == major && b < minor
}
