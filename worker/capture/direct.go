package capture

import (
	"regexp"
	"slices"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	peermem     = regexp.MustCompile(`^\s*(nvidia_peermem|nv_peer_mem)\s+\d+\s+\d+`)
	lsmodAsk    = regexp.MustCompile(`lsmod\s*\|\s*e?grep\s.*(nvidia_peermem|nv_peer_mem|peer)`)
	lsmodWords  = regexp.MustCompile(`(?i)lsmod[^|]{0,40}?(nvidia_peermem|nv_peer_mem)\s+(present|loaded)|(nvidia_peermem|nv_peer_mem)\s+(?:is\s+)?loaded`)
	modNotFound = regexp.MustCompile(`(?i)modprobe: .*?(nvidia.peermem|nv_peer_mem).*(?:not found|invalid argument)`)
	peersGone   = regexp.MustCompile(`memory_peers/\S*\s*:?\s*.*No such file`)
	peersThere  = regexp.MustCompile(`memory_peers/(nv\w*)/version[:=\s]+(\d[\w.-]*)`)
	gdrOff      = regexp.MustCompile(`(?i)GPU Direct RDMA Disabled for (?:HCA|GPU)\s*(\d+)?\s*'?([\w.-]*)'?`)
	gdrOn       = regexp.MustCompile(`(?i)via NET/(?:IB|[\w-]+)/\d+(?:\(\d+\))?/GDRDMA|GPU Direct RDMA Enabled for`)
	gdrStaged   = regexp.MustCompile(`via NET/IB/\d+(?:\(\d+\))?(?:\s|$)`)
	ncclVersion = regexp.MustCompile(`NCCL(?: version)?:? +v?(\d+\.\d+(?:\.\d+)?)`)
	ncclNet     = regexp.MustCompile(`NCCL INFO (?:NET/IB : Using|Using network IB)`)
	cudaWorks   = regexp.MustCompile(`--use_cuda[ =]\S*\s+works`)
	dmabufOn    = regexp.MustCompile(`(?i)(?:DMA-?BUF is (?:available|supported)|Using DMABUF)`)
)

// readDirect reads what logs and module lists say of GPUDirect RDMA.
func readDirect(s section) []reports.Finding {
	d := judge.GPUDirect{Node: s.node, Origin: "output"}
	yes, no := true, false
	asked, told := false, false
	for _, l := range append([]string{s.head}, s.lines...) {
		switch {
		case peermem.MatchString(l), lsmodWords.MatchString(l):
			d.Module, told = &yes, true
		case lsmodAsk.MatchString(l):
			asked = true
		case modNotFound.MatchString(l):
			told = true
			if d.Module == nil {
				d.Module = &no
			}
		case peersGone.MatchString(l):
			told = true
			if d.Registered == nil {
				d.Registered = &no
			}
		case peersThere.MatchString(l):
			d.Registered, told = &yes, true
		case dmabufOn.MatchString(l):
			d.DMABuf = &yes
		}
		if m := gdrOff.FindStringSubmatch(l); m != nil {
			told = true
			if name := or(m[2], "HCA "+m[1]); !slices.Contains(d.Disabled, name) && len(d.Disabled) < 64 {
				d.Disabled = append(d.Disabled, name)
			}
		}
		if gdrStaged.MatchString(l) {
			d.Staged, told = true, true
		}
		if gdrOn.MatchString(l) {
			d.Used, told = true, true
		}
		if m := ncclVersion.FindStringSubmatch(l); m != nil && d.NCCL == "" {
			d.NCCL = m[1]
		}
	}
	if asked && d.Module == nil { // the list of modules was searched, and nothing came
		d.Module, told = &no, true
	}
	if !told {
		return nil
	}
	out := judge.Direct(d)
	if _, m := s.grep(ncclNet); m != nil && !d.Used {
		out[0].Evidence = append(out[0].Evidence, reports.Evidence{From: "NCCL", Value: "uses the RDMA network, which says nothing about GPUDirect (GDRDMA in its channel lines would)"})
	}
	if l, _ := s.grep(cudaWorks); l != "" {
		out[0].Evidence = append(out[0].Evidence, reports.Evidence{From: "perftest", Value: strings.TrimSpace(l)})
	}
	return out
}
