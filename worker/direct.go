package worker

import (
	"fmt"
	"slices"
	"strings"

	"busbw/coordinator"
	"busbw/rdma"
	"busbw/worker/gpu"
)

// GPUDirect RDMA: queue pairs read and write the memory of a rank's GPU by
// themselves, where the device takes it: as a dma-buf, else by its address, which
// nvidia_peermem translates. Else data goes through locked host memory. Which it
// is, and why, is in every result.

// direct is how a rank's RDMA device reaches its GPU's memory.
type direct struct {
	how string // "dma-buf", "peer memory"; "": it does not
	why string // it does not; "": not tried yet
	// noReads is why it only writes it: what leaves goes through host memory.
	noReads string
}

// stagedHere says that a rank's peer is on another island of this process, and
// reached through its memory.
func (r *runner) stagedHere(rank, peer int) bool {
	return r.gpus.islands != nil && r.plan.Settings["NCCL_SHM_DISABLE"] != "1" &&
		coordinator.NodeOf(r.plan.Nodes, rank) == coordinator.NodeOf(r.plan.Nodes, peer)
}

// put copies into the rank's GPU; nil where its buffers are host memory.
func (k *rank) put() func(to, from []byte) error {
	if k.seat == nil {
		return nil
	}
	return k.seat.Put
}

// directTo is what of the rank's GPU memory the link reaches.
func (k *rank) directTo(l *rdma.Link) gpu.Direct {
	if k.queues.direct.why != "" {
		return gpu.Direct{}
	}
	return gpu.Direct{
		NoReads: k.queues.direct.noReads != "",
		Reaches: func(span []byte) bool {
			return slices.ContainsFunc(k.slots.regions(), func(g *region) bool { return g.known == l && g.dev != nil && g.dev.Holds(span) })
		},
		Register: func(m *gpu.Memory) error {
			region, tried := k.queues.device.RegisterGPU(m.Address(), uint64(m.Size()), m.Export)
			if region == nil {
				return fmt.Errorf("GPU memory cannot be registered: %s", attempts(tried))
			}
			l.Use(region)
			return nil
		},
	}
}

// registerGPUs makes the ranks' buffers known to their queue pairs. Where that
// cannot be, it is not tried again, and data goes through host memory.
func (r *runner) registerGPUs() error {
	var near nearness
	if slices.ContainsFunc(r.players(), func(k *rank) bool { return k.queues.link != nil && k.queues.direct == direct{} }) {
		near = r.nearness() // before the first buffers: it asks the driver
	}
	return r.each(func(k *rank) error {
		q := &k.queues
		if t := r.team(r.live, k); q.link == nil || !t.Apart() || q.direct.why != "" {
			return nil
		}
		if q.direct.how == "" {
			q.direct.why, q.direct.noReads = near.far(k.seat.Device.Info, q.device.Rail.HCA.Name), near.noReads(k.seat.Device.Info)
		}
		if q.direct.why == "" {
			q.direct.why = k.registerGPU()
		}
		if q.direct.why != "" {
			return k.staged.Over(q.link, gpu.Direct{})
		}
		return nil
	})
}

// registerGPU says why the rank's buffers cannot be registered; "": they are.
func (k *rank) registerGPU() (why string) {
	for _, g := range k.slots.regions() {
		if g.dev == nil || g.size == 0 || g.known == k.queues.link {
			continue
		}
		export := g.dev.Export
		if !k.seat.Device.Info.DMABuf {
			export = nil
		}
		region, tried := k.queues.device.RegisterGPU(g.dev.Address(), uint64(g.dev.Size()), export)
		if region == nil {
			return attempts(tried)
		}
		k.queues.link.Use(region)
		g.known, k.queues.direct.how = k.queues.link, region.How
	}
	return ""
}

// attempts is what was tried, and the error of each.
func attempts(tried []rdma.Attempt) string {
	var all []string
	for _, a := range tried {
		all = append(all, fmt.Sprintf("%s: %v", a.How, a.Err))
	}
	return strings.Join(all, "; ")
}

// tellDirect says how far peer access may go, how data in GPU memory gets to the
// queue pairs, and, where that is the long way, why.
func (r *runner) tellDirect(reply *coordinator.CaseReply) {
	if r.gpus.islands == nil || r.live == nil || r.live.nccl {
		return
	}
	if reply.Effective == nil {
		reply.Effective = map[string]string{}
	}
	reply.Effective["gpu peer access"] = r.gpus.peers
	for _, k := range r.players() {
		if t := r.team(r.live, k); k.queues.link == nil || !t.Apart() {
			continue
		}
		how := k.queues.direct.how
		if why := k.queues.direct.why; why != "" {
			how = "off"
			if len(reply.Notes) < 4 {
				reply.Notes = append(reply.Notes, fmt.Sprintf("rank %d: GPUDirect RDMA is off, data goes through locked host memory: %s", k.global, why))
			}
		}
		if had := reply.Effective["gpu direct rdma"]; had != "" && had != how {
			how = had + "/" + how
		}
		reply.Effective["gpu direct rdma"] = how
		if no := k.queues.direct.noReads; no != "" && how != "off" {
			reply.Effective["gpu direct rdma reads"] = "off: " + no
		}
	}
}
