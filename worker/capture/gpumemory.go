package capture

import (
	"regexp"

	"busbw/reports"
)

var (
	mrFailed   = regexp.MustCompile(`Couldn'?t allocate MR(?: with error=(\d+))?`)
	gpuContext = regexp.MustCompile(`(?i)initializing CUDA|CUDA Ctx|CUDA device|GPU buffer|use_cuda|use_rocm|\bdmabuf\b|dma-buf`)
	deviceName = regexp.MustCompile(`device name = \[([^\]]*)`)
	usesDMABuf = regexp.MustCompile(`use_cuda_dmabuf|use_rocm_dmabuf`)
	badAddress = regexp.MustCompile(`Bad address`)
	consumer   = regexp.MustCompile(`(?i)geforce|RTX \d0\d\d`)
	vgpu       = regexp.MustCompile(`-\d+[CQBA]$`)
)

// onGPU says whether a failed registration was one of GPU memory.
func (s section) onGPU() bool {
	if _, m := s.grep(mrFailed); m != nil && (m[1] == "14" || m[1] == "93" || m[1] == "95") {
		return true
	}
	return gpuContext.MatchString(s.head) || func() bool { _, m := s.grep(gpuContext); return m != nil }()
}

// readGPUMemory finds registrations of GPU memory that failed: the memory of
// GPUs and not the limit on locked memory is at fault.
func readGPUMemory(s section) []reports.Finding {
	line, m := s.grep(mrFailed)
	if m == nil || m[1] == "12" || !s.onGPU() {
		return nil
	}
	f := reports.Finding{ID: "gpudirect", Node: s.node, Subject: "registration of GPU memory", Verdict: reports.Fail, Want: "GPU memory registers with the NIC", Evidence: []reports.Evidence{{From: "message", Value: shorten(line)}}}
	product := ""
	if _, d := s.grep(deviceName); d != nil {
		product = d[1]
		f.Evidence = append(f.Evidence, reports.Evidence{From: "device", Value: product})
	}
	_, mod := s.grep(peermem)
	_, dma := s.grep(usesDMABuf)
	f.Got = "failed"
	errno := m[1]
	if _, b := s.grep(badAddress); b != nil && errno == "" {
		errno = "14"
	}
	switch {
	case consumer.MatchString(product):
		f.Got += ": the driver of consumer GPUs does not support GPUDirect RDMA; a loaded module is necessary, not sufficient"
		f.Remedy = "use a data centre or workstation GPU, or go through host memory"
	case vgpu.MatchString(product):
		f.Got += ": a virtual GPU (" + product + ") has no peer memory"
		f.Remedy = "pass the whole GPU through, or go through host memory; what the program printed after that is a consequence"
	case errno == "93" || errno == "95" || dma != nil || usesDMABuf.MatchString(s.head):
		f.Got += errnoText(errno) + ": kernel, GPU driver or NIC driver does not take dma-buf"
		f.Remedy = "kernel 5.12 and later, the open GPU kernel modules and RDMA drivers that know dma-buf; or nvidia_peermem without dma-buf"
	case mod != nil:
		f.Got += errnoText(errno) + " although nvidia_peermem is loaded: necessary, not sufficient"
		f.Remedy = "look whether it has registered (/sys/kernel/mm/memory_peers), else use dma-buf"
	default:
		f.Got += errnoText(errno) + ": no peer memory module that fits the RDMA drivers is loaded, and dma-buf was not asked for"
		f.Remedy = "load nvidia_peermem (rebuilt for these RDMA drivers), or ask for dma-buf (--use_cuda_dmabuf)"
	}
	return []reports.Finding{f}
}

func errnoText(n string) string {
	switch n {
	case "14":
		return " (14, bad address)"
	case "93":
		return " (93, protocol not supported)"
	case "95":
		return " (95, not supported)"
	}
	return ""
}
