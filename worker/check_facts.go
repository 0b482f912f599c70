package worker

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"busbw/rdma"
)

// facts are what should be equal on all nodes of a cluster, or, of the host's
// name and machine id, on none. What a node does not have is left out.
func (s *survey) facts() map[string]string {
	out := map[string]string{}
	put := func(name, value string) {
		if value != "" {
			out[name] = value[:min(len(value), 200)]
		}
	}
	put("kernel", s.word("proc/sys/kernel", "osrelease"))
	put("operating system", release(s.text("etc/os-release")))
	put("NVIDIA driver", s.word("sys/module/nvidia", "version"))
	put("AMD GPU driver", s.word("sys/module/amdgpu", "version"))
	put("RDMA driver", s.word("sys/module/mlx5_core", "version"))
	put("CPU", field(s.text("proc/cpuinfo"), "model name"))
	put("memory", wholeGiB(field(s.text("proc/meminfo"), "MemTotal")))
	put("hugepages", field(s.text("proc/meminfo"), "HugePages_Total"))
	put("IOMMU options", iommuWords(s.text("proc/cmdline")))
	put("locked memory limit", checkMemlock(s)[0].Got)
	put("CPU governor", checkGovernor(s)[0].Got)
	put("clock source", s.word("sys/devices/system/clocksource/clocksource0", "current_clocksource"))
	put("host name", s.word("proc/sys/kernel", "hostname"))
	if id := s.word("etc", "machine-id"); id != "" {
		// The id itself is confidential (machine-id(5)).
		put("machine id", fmt.Sprintf("%x (hashed)", sha256.Sum256([]byte("busbw "+id)))[:16])
	}
	var conf []string
	for _, f := range checkNCCLConf(s) {
		conf = append(conf, f.Got)
	}
	put("NCCL files", strings.Join(conf, "; "))
	s.gpuFacts(put)
	s.rdmaFacts(put)
	return out
}

func (s *survey) gpuFacts(put func(name, value string)) {
	var gpus []string
	for _, g := range s.GPUs {
		gpus = append(gpus, g.Name)
	}
	put("GPUs", tally(gpus))
}

func (s *survey) rdmaFacts(put func(name, value string)) {
	var kinds, rates, sms, mtus []string
	firmware, boards := map[string][]string{}, map[string][]string{}
	active := 0
	for i, h := range s.hcas {
		kinds = append(kinds, or(h.Type, h.Name))
		firmware[h.Type] = append(firmware[h.Type], or(h.Firmware, "not told"))
		boards[h.Type] = append(boards[h.Type], or(s.word("sys/class/infiniband/"+s.hcas[i].Name, "board_id"), "not told"))
		for _, p := range h.Ports {
			if p.State != rdma.PortActive {
				continue
			}
			active++
			rates = append(rates, fmt.Sprintf("%g Gb/s", p.Gbps))
			if p.LinkLayer == "InfiniBand" && len(p.GIDs) > 0 {
				sms = append(sms, fmt.Sprintf("subnet %x: LID %d", p.GIDs[0].Raw[:8], p.SMLID))
			}
		}
	}
	for _, p := range s.ports() {
		if p.State == rdma.PortActive && p.NetMTU > 0 {
			mtus = append(mtus, fmt.Sprint(p.NetMTU))
		}
	}
	put("RDMA devices", tally(kinds))
	if len(s.hcas) > 0 {
		put("RDMA ports active", fmt.Sprint(active))
	}
	put("RDMA port rates", tally(rates))
	slices.Sort(sms)
	put("subnet manager", strings.Join(slices.Compact(sms), ", "))
	put("RDMA interface MTU", tally(mtus))
	for k, v := range firmware {
		put("firmware of "+or(k, "RDMA devices"), tally(v))
	}
	for k, v := range boards {
		put("board of "+or(k, "RDMA devices"), tally(v))
	}
	var rows []string
	for _, t := range s.gidTables() {
		if best, err := t.Best(); t.Ethernet && err == nil {
			rows = append(rows, fmt.Sprint(best.Index))
		}
	}
	put("RoCE GID row", tally(rows))
}

// tally counts equal values: "8 × MT4129", "7 × 400 Gb/s, 1 × 200 Gb/s".
func tally(vs []string) string {
	n := map[string]int{}
	for _, v := range vs {
		n[v]++
	}
	var out []string
	for v, k := range n {
		out = append(out, fmt.Sprintf("%d × %s", k, v))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// field is the first value of "name: value" lines.
func field(text, name string) string {
	for l := range strings.Lines(text) {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// wholeGiB rounds "65870632 kB", which differs a little between equal machines.
func wholeGiB(v string) string {
	var kb int64
	if n, _ := fmt.Sscanf(v, "%d kB", &kb); n != 1 {
		return ""
	}
	return fmt.Sprintf("%d GiB", (kb+1<<19)>>20)
}

func release(text string) string {
	for l := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(l), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"`)
		}
	}
	return ""
}
