package worker

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

func checkLinks(s *survey) []reports.Finding {
	out := judge.Links(s.pci)
	if out == nil {
		out = []reports.Finding{finding("pcie-link", "PCIe links", reports.NA, "neither RDMA device nor GPU on a PCI bus that can be seen")}
	}
	return out
}

func (s *survey) kind(k judge.Kind) []judge.PCI {
	var out []judge.PCI
	for _, d := range s.pci {
		if d.Kind == k {
			out = append(out, d)
		}
	}
	return out
}

func checkACS(s *survey) []reports.Finding {
	out := judge.ACSRedirects(s.kind(judge.Bridge))
	gpus := len(s.kind(judge.GPU))
	for i, f := range out {
		switch {
		case f.Verdict == reports.Fail && gpus == 0:
			out[i].Verdict, out[i].Remedy = reports.NA, ""
			out[i].Got += "; without GPUs nothing goes from peer to peer"
		case f.Verdict == reports.Fail && s.guest:
			out[i].Verdict = reports.Warn
		case f.Verdict == reports.Warn && gpus == 0:
			out[i].Verdict, out[i].Remedy = reports.Pass, ""
		}
	}
	return out
}

func checkTransfers(s *survey) []reports.Finding { return judge.Transfers(s.pci) }

func checkAER(s *survey) []reports.Finding { return judge.Errors(s.pci) }

// checkIOMMU looks at the domain types of the groups of NICs and GPUs
// (kernel Documentation/ABI/testing/sysfs-kernel-iommu_groups).
func checkIOMMU(s *survey) []reports.Finding {
	if len(s.pci) == 0 {
		return nil
	}
	f := finding("pcie-iommu", "IOMMU", reports.Pass, "off, or passing addresses through")
	f.Evidence = evidence("/proc/cmdline", iommuWords(s.text("proc/cmdline")))
	var translated []string
	groups := 0
	for _, d := range s.pci {
		if d.Kind == judge.Bridge {
			continue
		}
		t := s.word(path.Join(pciDir, d.Addr, "iommu_group"), "type")
		if t != "" {
			groups++
			f.Evidence = append(f.Evidence, reports.Evidence{From: "/" + path.Join(pciDir, d.Addr, "iommu_group/type"), Value: t})
		}
		if strings.HasPrefix(t, "DMA") {
			translated = append(translated, d.Subject())
		}
	}
	switch {
	case len(translated) > 0:
		f.Verdict, f.Got, f.Want = reports.Warn, "translates for "+strings.Join(translated[:min(4, len(translated))], ", "), "identity (iommu=pt) or off"
		f.Remedy = "boot with iommu=pt: with translation every transfer between GPU and NIC is checked on the way, or refused"
	case s.guest:
		f.Verdict, f.Got = reports.NA, "a virtual machine: the host's matter"
	case groups == 0 && len(s.names("sys/class/iommu")) > 0:
		f.Verdict, f.Got = reports.Unknown, "on; how it treats NICs and GPUs is not told"
	}
	return []reports.Finding{f}
}

func iommuWords(cmdline string) string {
	var out []string
	for w := range strings.FieldsSeq(cmdline) {
		if strings.Contains(w, "iommu") {
			out = append(out, w)
		}
	}
	if out == nil {
		return "nothing about the IOMMU"
	}
	return strings.Join(out, " ")
}

func checkDistance(s *survey) []reports.Finding {
	return judge.Nearest(s.Topology(), "/"+pciDir, "", s.guest)
}

// checkShared finds upstream links that several NICs share.
func checkShared(s *survey) []reports.Finding {
	sum, users := map[string]float64{}, map[string][]string{}
	for _, d := range s.kind(judge.NIC) {
		card, _, _ := strings.Cut(d.Addr, ".") // functions of one card are one NIC
		for _, b := range d.Path {
			if sum[b] += d.PortGbps; !slices.Contains(users[b], card) {
				users[b] = append(users[b], card)
			}
		}
	}
	out := s.sharedWithGPUs()
	for _, b := range s.kind(judge.Bridge) {
		raw := judge.Gbps(b.Speed, b.Width)
		if len(users[b.Addr]) < 2 || raw == 0 || sum[b.Addr] <= raw {
			continue
		}
		slices.Sort(users[b.Addr])
		f := finding("pcie-shared", b.Subject(), reports.Warn, fmt.Sprintf("%d NICs (%s) of %.0f Gb/s together behind one link of %.0f Gb/s", len(users[b.Addr]), strings.Join(users[b.Addr], ", "), sum[b.Addr], raw))
		f.Want, f.Remedy = "an upstream link that carries all of them", "expect their sum to be the upstream link's rate, or spread the cards over other slots"
		f.Evidence = evidence(string(b.Origin)+"/current_link_speed, current_link_width", fmt.Sprintf("%g GT/s x%d", b.Speed, b.Width))
		out = append(out, f)
	}
	return out
}

// sharedWithGPUs tells of GPUs and NICs behind one upstream link. Between each
// other they do not use it; it carries both where GPUDirect is off or a bridge
// below redirects what goes from peer to peer.
func (s *survey) sharedWithGPUs() (out []reports.Finding) {
	nics, gpus := map[string][]string{}, map[string][]string{}
	depth := map[string]int{}
	for _, d := range s.pci {
		if d.Kind == judge.Bridge {
			continue
		}
		for i, b := range d.Path {
			depth[b] = i
			if d.Kind == judge.NIC {
				nics[b] = append(nics[b], d.Addr)
			} else {
				gpus[b] = append(gpus[b], d.Addr)
			}
		}
	}
	why := s.throughRoot()
	for _, b := range s.kind(judge.Bridge) {
		n, g := nics[b.Addr], gpus[b.Addr]
		if len(n) == 0 || len(g) == 0 || s.lower(b.Addr, depth, nics, gpus) {
			continue
		}
		f := finding("pcie-shared", b.Subject(), reports.Pass, fmt.Sprintf("GPU %s and NIC %s share its link upwards; between each other they do not use it", strings.Join(g, ", "), strings.Join(n, ", ")))
		f.Evidence = evidence(string(b.Origin)+"/current_link_speed, current_link_width", fmt.Sprintf("%g GT/s x%d", b.Speed, b.Width))
		if why != "" && !s.guest {
			f.Verdict, f.Want = reports.Warn, "transfers between GPU and NIC that stay below it"
			f.Got = fmt.Sprintf("GPU %s and NIC %s compete for its link upwards: %s, so what goes between them crosses it twice", strings.Join(g, ", "), strings.Join(n, ", "), why)
			f.Remedy = "set that right first: each then has the switch's own bandwidth"
		}
		out = append(out, f)
	}
	return out
}

// lower says whether a bridge further down has the same devices below it: that
// one's link upwards is the first that they share.
func (s *survey) lower(b string, depth map[string]int, nics, gpus map[string][]string) bool {
	for o := range depth {
		if depth[o] > depth[b] && slices.Equal(nics[o], nics[b]) && slices.Equal(gpus[o], gpus[b]) {
			return true
		}
	}
	return false
}

// throughRoot is why what goes between GPUs and NICs goes through the root
// complex or host memory; "" where nothing says so.
func (s *survey) throughRoot() string {
	for _, f := range checkACS(s) {
		if f.Verdict == reports.Fail || f.Verdict == reports.Warn {
			return f.Subject + " redirects (ACS)"
		}
	}
	for _, f := range checkDirect(s) {
		if f.Verdict == reports.Fail {
			return "GPUDirect is off"
		}
	}
	return ""
}
