package coordinator

import (
	"context"
	"fmt"

	"busbw/collectives"
)

// limits measures what the machines allow: one node of each machine measures,
// while the others of that machine wait. Asked again, the larger figures count.
func (s *Sweep) limits(ctx context.Context, nodes []OpenReply) (facts []string, err error) {
	ranksOn := s.ranksOn(nodes)
	measures := make([]bool, len(nodes))
	seen := map[string]bool{}
	for i, n := range nodes {
		measures[i], seen[n.Machine] = !seen[n.Machine], true
	}
	const seconds = 0.3
	replies, err := ask[LimitsReply](ctx, s, KindLimits, func(i int) any {
		return LimitsBody{Measure: measures[i], Threads: min(nodes[i].CPUs, ranksOn[nodes[i].Machine]), Seconds: seconds}
	}, grace)
	if err != nil {
		return nil, err
	}
	for i := range replies {
		if !measures[i] {
			replies[i].MemoryGBps = nil // it was not asked
		}
	}
	s.larger(replies)
	return s.takeLimits(ctx, nodes)
}

// ranksOn counts the ranks on each machine.
func (s *Sweep) ranksOn(nodes []OpenReply) map[string]int {
	ranks := map[string]int{}
	for i, n := range nodes {
		ranks[n.Machine] += s.Nodes[i].Ranks
	}
	return ranks
}

// takeLimits computes with the limits that are known, and measures nothing.
func (s *Sweep) takeLimits(_ context.Context, nodes []OpenReply) (facts []string, err error) {
	replies, ranksOn, nodesOn := s.Known.replies, s.ranksOn(nodes), map[string]int{}
	for _, n := range nodes {
		nodesOn[n.Machine]++
	}
	s.machine = Machine{Shared: nodesOn[nodes[0].Machine]}
	slowest := 0
	for i, r := range replies {
		if nodesOn[nodes[i].Machine] != s.machine.Shared {
			s.mixed = true // some nodes share a machine and some do not
		}
		if r.MemoryGBps == nil {
			continue
		}
		if s.machine.Memory == 0 || *r.MemoryGBps < s.machine.Memory {
			s.machine.Memory, s.machine.MemoryHow, slowest = *r.MemoryGBps, r.MemoryHow, i
		}
	}
	if s.machine.Memory > 0 {
		facts = append(facts, fmt.Sprintf("memory bandwidth of %s: %.1f GB/s (%s)", s.Nodes[slowest].Host, s.machine.Memory, s.machine.MemoryHow))
	} else {
		facts = append(facts, "memory bandwidth: not measured")
	}
	facts = append(facts, s.peer(replies)...)
	facts = append(facts, s.wire(nodes, replies)...)
	if s.mixed {
		facts = append(facts, "some nodes share a machine and others do not: results are shown without a limit")
	}
	s.fabric = fabricOf(s.machine, len(nodes), ranksOn[nodes[0].Machine])
	return facts, nil
}

// gpuLimits is limits for buffers in GPU memory, of which host memory says
// nothing.
func (s *Sweep) gpuLimits(ctx context.Context, nodes []OpenReply) (facts []string, err error) {
	replies, err := ask[LimitsReply](ctx, s, KindLimits, func(int) any { return LimitsBody{} }, grace)
	if err != nil {
		return nil, err
	}
	facts = s.peer(replies)
	machines := map[string]bool{}
	for _, n := range nodes {
		machines[n.Machine] = true
	}
	if s.machine.Shared = 1; len(machines) == len(nodes) {
		facts = append(facts, s.wire(nodes, replies)...)
	}
	return facts, nil
}

// peer takes the slowest of what joins the GPUs of a node; one node that does
// not know leaves it unknown.
func (s *Sweep) peer(replies []LimitsReply) []string {
	where := -1
	for i, r := range replies {
		switch {
		case r.Peer == nil && where < 0:
		case r.Peer == nil || i > 0 && where < 0 || !(r.Peer.GBps > 0):
			return []string{"links between the GPUs of a node: not known on every node, so they are no limit"}
		case where < 0 || r.Peer.GBps < replies[where].Peer.GBps:
			where = i
		}
	}
	if where < 0 {
		return nil // host memory
	}
	p := replies[where].Peer
	s.machine.Peer, s.machine.PeerName, s.machine.PeerHow = p.GBps, clean(p.Name, 20), clean(p.How, 200)
	return []string{fmt.Sprintf("%s: %.1f GB/s a rank each way (%s, slowest on %s)", s.machine.PeerName, p.GBps, s.machine.PeerHow, s.Nodes[where].Host)}
}

// wire finds what carries bytes between the nodes: the loopback of the one
// machine that they share, or each node's network interface.
func (s *Sweep) wire(nodes []OpenReply, replies []LimitsReply) []string {
	if len(nodes) < 2 {
		return nil
	}
	if s.verbs != nil {
		return s.rails(nodes)
	}
	if s.machine.Shared == len(nodes) {
		r := replies[0]
		if r.LoopbackGBps == nil {
			return []string{"loopback stream: not measured"}
		}
		s.machine.Wire, s.machine.WireName, s.machine.WireHow = *r.LoopbackGBps, "loopback stream", r.LoopbackHow
		return []string{fmt.Sprintf("loopback stream: %.2f GB/s (%s)", *r.LoopbackGBps, r.LoopbackHow)}
	}
	least, where := 0.0, 0
	for i, n := range nodes {
		if n.LineGBps == nil {
			return []string{fmt.Sprintf("NIC line rate: node %s does not know the speed of %q, so results between nodes have no limit", s.Nodes[i].Host, n.Iface)}
		}
		if least == 0 || *n.LineGBps < least {
			least, where = *n.LineGBps, i
		}
	}
	s.machine.Wire = least * float64(len(nodes)) // every node sends at its own rate
	s.machine.WireName, s.machine.WireHow = "NIC line rate", "speed that the kernel reports for "+nodes[where].Iface
	return []string{fmt.Sprintf("NIC line rate: %.2f GB/s a node (%s, slowest on %s)", least, nodes[where].Iface, s.Nodes[where].Host)}
}

// rails is wire for RDMA ports: each node's carry what they carry of payload.
func (s *Sweep) rails(nodes []OpenReply) []string {
	if s.machine.Shared > 1 {
		return []string{"NIC line rate: nodes of one machine share its RDMA ports, so results between nodes have no limit"}
	}
	mtu := 0
	for _, n := range nodes {
		for _, r := range n.RDMA.Rails {
			if mtu == 0 || r.MTU < mtu {
				mtu = r.MTU
			}
		}
	}
	least, how, where := 0.0, "", 0
	for i, n := range nodes {
		gbps, what := railRate(n.RDMA.Rails, mtu)
		if !(gbps > 0) {
			return []string{fmt.Sprintf("NIC line rate: node %s does not know the rate of %s, so results between nodes have no limit", s.Nodes[i].Host, what)}
		}
		if least == 0 || gbps < least {
			least, how, where = gbps, what, i
		}
	}
	s.machine.Wire, s.machine.WireName, s.machine.WireHow = least*float64(len(nodes)), "NIC line rate", how
	return []string{fmt.Sprintf("NIC line rate: %.2f GB/s a node (%s, slowest on %s)", least, how, s.Nodes[where].Host)}
}

// fabricOf is the simple machine that predictions assume: half of the memory
// traffic is payload, and the ranks of a machine share its memory and its
// loopback evenly. The latencies are those of this program's links on an idle
// machine (docs/performance.md).
func fabricOf(m Machine, nodes, ranks int) (f collectives.Fabric) {
	if m.Memory == 0 || (m.Wire == 0 && nodes > 1) {
		return f
	}
	f.Intra = collectives.Uniform(300e-9, m.Memory/2/float64(ranks))
	wire := max(m.Wire, 1) / float64(ranks*nodes)
	if nodes > 1 && m.Shared < nodes { // a node's NIC is its own
		wire = m.Wire / float64(nodes)
	}
	f.Cross = collectives.Uniform(6e-6, wire)
	return f
}
