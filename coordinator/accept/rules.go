package accept

import (
	"fmt"
	"slices"
	"strings"

	"busbw/collectives"
	"busbw/coordinator/pairs"
	"busbw/reports"
)

// allAlike: nobody stands out, and everybody is below the limit.
func (in *Input) allAlike() (out []Diagnosis) {
	if in.Pairs == nil {
		return nil
	}
	for _, c := range in.Pairs.Culprits {
		if c.Kind != pairs.All {
			continue
		}
		gbps := c.GBps * 8
		d := Diagnosis{Subject: "every pair", Sure: "low", Cause: "something that all nodes have in common", Because: c.Why,
			Not: []string{"not one node, NIC or cable: they agree with each other"},
			Do:  "compare settings, firmware and slots with a cluster that reaches the limit; is the profile the right one for this hardware?"}
		name := lesserSlot(gbps, c.Want*8)
		link := ""
		if len(in.Results) > 0 {
			link = in.link()
		}
		switch {
		case c.OneMachine:
			d.Cause, d.Do = "the nodes are workers of one machine: they share its processors, memory and loopback", "measure between machines, or hold them against a limit for one machine"
		case strings.Contains(link, "tcp") && in.Profile == nil:
			d.Cause = "the pairs ran over TCP: if the limit is one of RDMA, that is why"
			d.Do = "see in the head of the run why RDMA was not used; busbw check tells of ports"
		case strings.Contains(link, "tcp") && !in.limitOn(link):
			d.Cause, d.Sure = "the pairs ran over TCP, and the limit is one of RDMA", "high"
			d.Do = "see in the head of the run why RDMA was not used; busbw check tells of ports"
		case name != "":
			d.Cause, d.Sure = fmt.Sprintf("probably every node's slot: %.0f Gb/s is what %s carries", gbps, name), "medium"
			d.Do = "read the NICs' current_link_speed and width under load; a wrong BIOS setting is on all nodes alike"
		case in.Profile != nil && in.Profile.NICs != nil && gbps < 0.55*in.Profile.NICs.Gbps && gbps > 0.4*in.Profile.NICs.Gbps:
			d.Cause, d.Sure = "half of the ports' rate on all nodes: a switch or a speed setting of the generation before", "low"
		}
		d.Sure = leastSure(d.Sure, c.Sure)
		return []Diagnosis{d} // both ways say the same
	}
	return nil
}

// limitOn says whether the profile's limit on pairs is one for that link.
func (in *Input) limitOn(link string) bool {
	return slices.ContainsFunc(in.Profile.Limits, func(l Limit) bool { return strings.HasPrefix(l.Test, "pair") && l.Link == link })
}

// gdr: the same test over the same NICs, in device and in host memory.
func (in *Input) gdr() (out []Diagnosis) {
	for i := range in.Results {
		dev := &in.Results[i]
		if dev.Memory != "device" || dev.Scope == "intra" || len(dev.Seconds) == 0 || dev.Bytes < 1<<20 {
			continue
		}
		for k := range in.Results {
			host := &in.Results[k]
			if host.Memory != "host" || host.Op != dev.Op || host.Scope != dev.Scope || host.Bytes != dev.Bytes || host.Ranks != dev.Ranks || len(host.Seconds) == 0 {
				continue
			}
			slow, fast := reports.Median(dev.Seconds), reports.Median(host.Seconds)
			if slow < 1.3*fast {
				continue
			}
			d := Diagnosis{Subject: "GPUDirect RDMA", Sure: "medium", Cause: "GPU memory does not reach the NICs directly: distance, ACS, IOMMU, or no peer memory",
				Because: []string{fmt.Sprintf("%s %s of %s takes %.0f %% longer from GPU memory than from host memory over the same NICs", dev.Scope, dev.Op, Size(dev.Bytes), 100*(slow/fast-1))},
				Not:     []string{"not the network: host memory is fast over it"}, Do: "look at GPU–NIC distance, ACS on the bridges between them, and nvidia_peermem or dma-buf"}
			for _, f := range in.Findings {
				if (f.Verdict == reports.Fail || f.Verdict == reports.Warn) && slices.Contains([]string{"gpudirect", "pcie-acs", "pcie-iommu", "gpu-nic-distance"}, f.ID) {
					d.Sure = "high"
					d.Because = append(d.Because, strings.TrimSpace(f.Node+" ")+": "+say(f))
				}
			}
			return []Diagnosis{d}
		}
	}
	return nil
}

// nvlinkUnused: a broken link costs some per cent, or half; eight times too
// slow is another way altogether.
func (in *Input) nvlinkUnused() (out []Diagnosis) {
	if in.Profile == nil || in.Profile.GPUs == nil || in.Profile.GPUs.NVLinks == 0 {
		return nil
	}
	for _, l := range in.Profile.Limits {
		op, err := collectives.ParseOp(l.Test)
		if err != nil || l.Scope != "intra" {
			continue
		}
		for i := range in.Results {
			r := &in.Results[i]
			if !l.fits(r) {
				continue
			}
			for g, v := range groups(r, op) {
				if v <= 0 || v > l.value()/8 || g >= len(r.Hosts) {
					continue
				}
				d := Diagnosis{Node: r.Hosts[g], Subject: "NVLink", Cause: "NVLink is not used at all: a setting or the topology that the library sees, not a broken link", Sure: "medium",
					Because: []string{fmt.Sprintf("%.1f GB/s inside the node where %g are wanted: %.0f times too slow, and a broken link costs half at most", v, l.AtLeast, l.value()/v)},
					Not:     []string{"not a broken link"}, Do: "run again without the overrides, and look at nvidia-smi topo -m inside the container"}
				for _, name := range []string{"NCCL_TOPO_FILE", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_GRAPH_FILE", "NCCL_SHM_DISABLE", "NCCL_NVLS_ENABLE"} {
					if s := r.Config[name]; s != "" {
						d.Sure = "high"
						d.Because = append(d.Because, fmt.Sprintf("%s=%s is set", name, s))
					}
				}
				out = append(out, d)
			}
		}
	}
	return out
}

// lag is how much longer than its neighbours' a rank's iterations must take.
const lag = 1.3

// slowRank: in one group all ranks but one agree.
func (in *Input) slowRank() (out []Diagnosis) {
	said := map[string]int{} // which of out it is
	for i := range in.Results {
		r := &in.Results[i]
		if r.Scope == pairs.Scope || r.Ranks < 4 || r.Bytes < 1<<20 || len(r.RankP50) != r.Ranks*r.Groups {
			continue
		}
		for g := range r.Groups {
			p := r.RankP50[g*r.Ranks : (g+1)*r.Ranks]
			mid := reports.Median(p)
			slow, at := 0, 0
			for k, s := range p {
				if s > lag*mid {
					slow, at = slow+1, k
				}
			}
			if slow != 1 || mid <= 0 {
				continue
			}
			who := fmt.Sprintf("rank %d of group %d", at, g)
			node := ""
			if r.Scope == "intra" && g < len(r.Hosts) {
				node, who = r.Hosts[g], fmt.Sprintf("rank %d of the node", at)
			}
			why := fmt.Sprintf("%s %s of %s: its median is %.2f times that of its neighbours", r.Scope, r.Op, Size(r.Bytes), p[at]/mid)
			if k, ok := said[node+who]; ok {
				out[k].Sure = "medium"
				out[k].Because = append(out[k].Because, why)
				continue
			}
			said[node+who] = len(out)
			out = append(out, Diagnosis{Node: node, Subject: who, Cause: "that rank's GPU, NIC or core: its iterations are slow by themselves", Sure: "low", // once: by chance
				Because: []string{why},
				Do:      "look at that device's clocks, throttling, errors and slot; measure it in pairs"})
		}
	}
	return out
}

// impossible: nothing is faster than its wire.
func (in *Input) impossible() (out []Diagnosis) {
	if in.Profile == nil || in.Profile.NICs == nil || in.Table == nil || in.link() != "verbs" || in.Profile.NICs.Gbps == 0 {
		return nil
	}
	wire := in.Profile.NICs.Gbps / 8
	for _, s := range in.Table.Bandwidth {
		if s.Value > 1.02*wire {
			return []Diagnosis{{Subject: in.Table.Nodes[s.A] + " – " + in.Table.Nodes[s.B], Cause: "the figure is above the port's rate: the profile is another machine's, or the data did not arrive", Sure: "high",
				Because: []string{fmt.Sprintf("%.1f GB/s measured, and the profile's ports carry %.1f", s.Value, wire)}, Do: "check the profile and the data check before believing any figure"}}
		}
	}
	return nil
}
