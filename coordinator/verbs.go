package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// RDMA says what a node would carry data over queue pairs with.
type RDMA struct {
	None  string   `json:"none,omitempty"`  // why it cannot
	Here  bool     `json:"here"`            // the machine has an RDMA device, usable or not
	Rails []Rail   `json:"rails,omitempty"` // of each local rank
	Notes []string `json:"notes,omitempty"` // settings that have no effect, or a surprising one
}

// Rail is an RDMA port that a rank uses.
type Rail struct {
	Name     string   `json:"name"` // "mlx5_0:1"
	Address  string   `json:"address"`
	Layer    string   `json:"layer"`                   // "InfiniBand" or "Ethernet"
	MTU      int      `json:"mtu"`                     // bytes that are active
	LineGBps *float64 `json:"line_gb_per_s,omitempty"` // where it is known
}

// Hello is what the queue pairs of one rank tell those of another: package
// rdma's bytes, opaque here.
type Hello struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Data []byte `json:"data"`
}

// maxHello bounds a Hello's data: 128 queue pairs take 1088 bytes.
const maxHello = 2048

// JoinBody brings a node's ranks what their peers' queue pairs said.
type JoinBody struct {
	Hellos []Hello `json:"hellos"`
}

// JoinReply says what the devices made of it.
type JoinReply struct {
	QPs        int      `json:"qps"`
	MTU        int      `json:"mtu"`        // least of all connections; 0: the node has none
	Attributes []string `json:"attributes"` // of the queue pairs, each different text once
}

// PortsReply is what a node's RDMA ports and GPUs counted.
type PortsReply struct {
	Moved []Moved `json:"moved,omitempty"`
	Sent  []Sent  `json:"sent,omitempty"`
	// Effective is what settings came to, where that shows only afterwards.
	Effective map[string]string `json:"effective,omitempty"`
	// Unread is why the GPUs' counters are not known.
	Unread string `json:"unread,omitempty"`
}

// Sent is what a GPU sent over its NVLinks in the timed part of a case.
type Sent struct {
	Device  string  `json:"device"` // "GPU3"
	Bytes   uint64  `json:"bytes"`
	Seconds float64 `json:"seconds"` // from the mark to the reading
	Carries float64 `json:"carries"` // GB/s that its links carry each way; 0: not known
}

// Moved is a counter of one port that moved, or that can move no more.
type Moved struct {
	Device    string `json:"device"`
	Name      string `json:"name"`
	Add       uint64 `json:"add"`
	Saturated bool   `json:"saturated,omitempty"`
}

// agree decides whether queue pairs carry data between the nodes: only where
// every node has them. facts are for the header of the run.
func (s *Sweep) agree(nodes []OpenReply) (facts []string) {
	if len(nodes) < 2 && s.req.Settings["NCCL_SHM_DISABLE"] != "1" {
		return nil
	}
	why, here := "", false
	for i, n := range nodes {
		here = here || n.RDMA.Here
		switch name := NodeName(s.Nodes, i); {
		case why != "":
		case n.RDMA.None != "" || len(n.RDMA.Rails) != s.Nodes[i].Ranks:
			why = fmt.Sprintf("%s has no RDMA: %s", name, clean(n.RDMA.None, 400))
		case n.RDMA.Rails[0].Layer != nodes[0].RDMA.Rails[0].Layer:
			why = fmt.Sprintf("%s is on %s, %s on %s", name, clean(n.RDMA.Rails[0].Layer, 20), NodeName(s.Nodes, 0), clean(nodes[0].RDMA.Rails[0].Layer, 20))
		}
	}
	if why != "" {
		if here {
			s.notes = append(s.notes, "between nodes over TCP, not RDMA: "+why)
		}
		facts = append(facts, "link between nodes: tcp ("+why+")")
		for _, x := range settings() {
			if v := s.req.Settings[x.name]; strings.HasPrefix(x.name, "NCCL_IB_") && x.name != "NCCL_IB_DISABLE" && v != x.def && v != "" {
				idle := fmt.Sprintf("%s=%s has no effect: data between nodes goes over TCP", x.name, v)
				s.notes, facts = append(s.notes, idle), append(facts, idle)
			}
		}
		return facts
	}
	s.verbs = &reports.Verbs{}
	mtus := map[int]string{}
	for i, n := range nodes {
		var own []string
		for _, r := range n.RDMA.Rails {
			name := clean(r.Name, 64) + " " + clean(r.Address, 100)
			s.verbs.Rails = append(s.verbs.Rails, name)
			mtus[r.MTU] = NodeName(s.Nodes, i)
			if !slices.Contains(own, name) {
				own = append(own, name)
			}
		}
		if i < 8 {
			facts = append(facts, fmt.Sprintf("link between nodes: verbs; %s: %s", NodeName(s.Nodes, i), strings.Join(own, ", ")))
		}
		for _, t := range n.RDMA.Notes {
			if t = clean(t, 200); !slices.Contains(s.notes, t) && len(s.notes) < 32 {
				s.notes = append(s.notes, t)
			}
		}
	}
	if len(mtus) > 1 {
		s.notes = append(s.notes, "the ports' MTUs differ: "+mtuList(mtus)+"; every connection takes the smaller of its two")
	}
	return append(facts, s.notes...)
}

func mtuList(mtus map[int]string) string {
	var b []string
	for m, where := range mtus {
		b = append(b, fmt.Sprintf("%d on %s", m, where))
	}
	slices.Sort(b)
	return strings.Join(b, ", ")
}

// join takes what the queue pairs of a case said to their peers.
func (s *Sweep) join(ctx context.Context, replies []CaseReply) error {
	bodies := make([]JoinBody, len(s.Nodes))
	opened := false
	for i, r := range replies {
		opened = opened || len(r.Hellos) > 0
		for _, h := range r.Hellos {
			to := NodeOf(s.Nodes, h.To)
			if to < 0 || h.To < 0 || h.From < 0 || NodeOf(s.Nodes, h.From) != i || len(h.Data) > maxHello {
				return fmt.Errorf("node %s answers with connection data of %d bytes from rank %d to rank %d", NodeName(s.Nodes, i), len(h.Data), h.From, h.To)
			}
			bodies[to].Hellos = append(bodies[to].Hellos, h)
		}
	}
	if !opened {
		return nil
	}
	joined, err := ask[JoinReply](ctx, s, KindJoin, func(i int) any { return bodies[i] }, grace)
	if err != nil {
		return err
	}
	s.joined(joined)
	return nil
}

// joined keeps what the devices say of the queue pairs that were connected last.
func (s *Sweep) joined(nodes []JoinReply) {
	s.verbs.QPs, s.verbs.MTU, s.verbs.Attributes = 0, 0, nil
	for _, j := range nodes {
		s.verbs.QPs = max(s.verbs.QPs, j.QPs)
		if j.MTU > 0 && (s.verbs.MTU == 0 || j.MTU < s.verbs.MTU) {
			s.verbs.MTU = j.MTU
		}
		for _, a := range j.Attributes {
			if a = clean(a, 300); !slices.Contains(s.verbs.Attributes, a) && len(s.verbs.Attributes) < 16 {
				s.verbs.Attributes = append(s.verbs.Attributes, a)
			}
		}
	}
	slices.Sort(s.verbs.Attributes)
}

// ports collects the counters that moved, and what went over NVLink.
func (s *Sweep) ports(ctx context.Context, res *reports.Result) error {
	replies, err := ask[PortsReply](ctx, s, KindPorts, func(int) any { return struct{}{} }, grace)
	if err != nil {
		return err
	}
	res.NVLink = s.busiest(replies)
	byName := map[string]*reports.Counter{}
	var names []string
	for i, r := range replies {
		res.Effective = joined(res.Effective, r.Effective)
		if r.Unread != "" {
			res.Notes = append(res.Notes, fmt.Sprintf("%s: what its GPUs counted is not known: %s", NodeName(s.Nodes, i), clean(r.Unread, 200)))
		}
		for _, m := range r.Moved {
			name := clean(m.Name, 80)
			c := byName[name]
			if c == nil {
				if len(names) == 256 {
					continue // no device has so many
				}
				c = &reports.Counter{Name: name}
				byName[name], names = c, append(names, name)
			}
			c.Saturated = c.Saturated || m.Saturated
			c.Add += m.Add
			if m.Add > 0 {
				c.Devices++
			}
			if c.Most == "" || m.Add > c.MostAdd {
				c.Most, c.MostAdd = NodeName(s.Nodes, i)+" "+clean(m.Device, 64), m.Add
			}
		}
	}
	slices.Sort(names)
	for _, n := range names {
		res.Counters = append(res.Counters, *byName[n])
	}
	return nil
}

// busiest is the GPU that sent most over its NVLinks in a second of the timed
// part, nil where no GPU counts that.
func (s *Sweep) busiest(replies []PortsReply) (most *reports.LinkUse) {
	for i, r := range replies {
		for _, x := range r.Sent {
			if !(x.Seconds > 1e-6 && x.Seconds < 1e9) {
				continue
			}
			rate := float64(x.Bytes) / x.Seconds / 1e9
			if most != nil && most.GBps >= rate {
				continue
			}
			most = &reports.LinkUse{Where: NodeName(s.Nodes, i) + " " + clean(x.Device, 64), GBps: rate}
			if x.Carries >= 0.1 {
				most.Share = new(rate / x.Carries)
			}
		}
	}
	return most
}

// railRate is what the rails of a node carry of payload, GB/s, and how that
// was found; 0 where a rate is not known.
func railRate(rails []Rail, mtu int) (gbps float64, how string) {
	seen := map[string]bool{}
	for _, r := range rails {
		if seen[r.Name] {
			continue
		}
		seen[r.Name] = true
		if r.LineGBps == nil {
			return 0, clean(r.Name, 64)
		}
		gbps += *r.LineGBps * payload(r.Layer, mtu)
	}
	ports := "one RDMA port"
	if len(seen) != 1 {
		ports = fmt.Sprintf("%d RDMA ports", len(seen))
	}
	return gbps, fmt.Sprintf("rate of %s × %.1f %% payload at MTU %d", ports, 100*payload(rails[0].Layer, mtu), mtu)
}

// payload is the share of the wire that data gets in long RC writes. A packet
// has besides its payload: on InfiniBand LRH 8, BTH 12 and both CRCs 6; on RoCE
// v2 preamble and gap 20, Ethernet and FCS 18, IPv4 20, UDP 8, BTH 12, ICRC 4.
func payload(layer string, mtu int) float64 {
	over := 26
	if layer != "InfiniBand" {
		over = 82
	}
	return float64(mtu) / float64(mtu+over)
}
