package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"busbw/reports"
	"busbw/worker/capture"
	"busbw/worker/judge"
)

const driver = judge.Origin("GPU driver")

func checkGPUs(s *survey) []reports.Finding {
	out := judge.GPUs(s.GPUs, s.NoGPUs, "")
	seen := s.kind(judge.GPU)
	if len(s.GPUs) == 0 {
		if len(seen) == 0 && s.has(pciDir) {
			return []reports.Finding{finding("gpu-count", "GPUs", reports.NA, "no GPU on the PCI bus")}
		}
		if len(seen) > 0 {
			out[0].Got = fmt.Sprintf("%d GPUs on the PCI bus; %s", len(seen), or(s.NoGPUs, "the driver shows none"))
		}
		return out
	}
	var lost []string
	for _, d := range seen {
		known := false
		for _, g := range s.GPUs {
			known = known || g.PCI == d.Addr || g.PCI == ""
		}
		if !known {
			lost = append(lost, d.Addr)
		}
	}
	if len(lost) > 0 {
		f := finding("gpu-count", "GPUs that the driver does not show", reports.Fail, strings.Join(lost, ", "))
		f.Want, f.Remedy = "every GPU of the PCI bus", "look at the kernel log for why the driver left it out; reset or reboot"
		f.Evidence = evidence("/"+pciDir, f.Got)
		out = append(out, f)
	}
	return out
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func checkNVLinks(s *survey) []reports.Finding {
	var nv []reports.GPU
	for _, g := range s.GPUs {
		if g.Vendor == "nvidia" {
			nv = append(nv, g)
		}
	}
	return append(judge.NVLinks(nv, driver, "", nil), judge.NVLinkErrors(nv, driver, "")...)
}

func checkFabric(s *survey) []reports.Finding { return judge.Fabric(s.GPUs, driver, "") }

func checkGPUMemory(s *survey) []reports.Finding { return judge.GPUMemory(s.GPUs, driver, "") }

func checkClocks(s *survey) []reports.Finding {
	return append(judge.GPUClocks(s.GPUs, driver, ""), judge.GPULoad(s.GPUs, driver, "")...)
}

// logs are where distributions keep the kernel's log, the first that exists is read.
var logs = []string{"var/log/kern.log", "var/log/messages", "var/log/dmesg"}

func checkKernel(s *survey) []reports.Finding {
	if len(s.pci) == 0 && len(s.GPUs) == 0 {
		return []reports.Finding{finding("gpu-xid", "kernel log", reports.NA, "neither GPU nor RDMA device on a PCI bus")}
	}
	log, from := s.opts.KernelLog, "kernel log"
	for _, name := range logs {
		if log == "" {
			if log = s.text(name); log != "" {
				from = "/" + name
			}
		}
	}
	if log == "" {
		f := finding("gpu-xid", "kernel log", reports.Unknown, "the kernel log cannot be read")
		f.Remedy = "run as root, or allow it (kernel.dmesg_restrict=0)"
		return []reports.Finding{f}
	}
	out, found := capture.Kernel(log, "", judge.Origin(from))
	if !found {
		out = []reports.Finding{finding("gpu-xid", "kernel log", reports.Pass, "no Xid and no hardware error")}
	}
	return out
}

// checkDirect tries to register GPU memory with every NIC where that can be
// tried, and says what the files tell otherwise.
func checkDirect(s *survey) []reports.Finding {
	gpus := max(len(s.GPUs), len(s.kind(judge.GPU)))
	if gpus == 0 || len(s.hcas) == 0 {
		return []reports.Finding{finding("gpudirect", "GPUDirect RDMA", reports.NA, fmt.Sprintf("%d GPUs, %d RDMA devices: nothing to connect", gpus, len(s.hcas)))}
	}
	d := judge.GPUDirect{Origin: "node", NICs: len(s.hcas), GPUs: gpus}
	if s.has("sys/module") {
		m := s.has("sys/module/nvidia_peermem") || s.has("sys/module/nv_peer_mem")
		d.Module = &m
	}
	if peers, err := fs.ReadDir(s.Root, "sys/kernel/mm/memory_peers"); err == nil {
		r := false
		for _, p := range peers {
			r = r || strings.HasPrefix(p.Name(), "nv_mem") || strings.HasPrefix(p.Name(), "nvidia")
		}
		d.Registered = &r
	} else if errors.Is(err, fs.ErrNotExist) && d.Module != nil && *d.Module && s.has("sys/kernel/mm") {
		// Kernels whose own RDMA core has no list of peers leave the question open.
		d.Registered = nil
	}
	for _, g := range s.GPUs {
		if g.DMABuf != nil && (d.DMABuf == nil || !*g.DMABuf) {
			d.DMABuf = g.DMABuf
		}
	}
	var out []reports.Finding
	for _, p := range s.opts.Probes {
		x, yes := d, p.GPU != ""
		x.Subject = fmt.Sprintf("%s port %d", p.HCA, p.Port)
		if x.Proved, x.Why = &yes, p.Why; yes {
			x.How = p.GPU
		}
		out = append(out, judge.Direct(x)...)
	}
	if out == nil {
		out = judge.Direct(d)
		if s.opts.NoProbes != "" {
			out[0].Evidence = append(out[0].Evidence, reports.Evidence{From: "registering", Value: s.opts.NoProbes})
		}
	}
	return out
}
