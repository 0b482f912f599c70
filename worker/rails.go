package worker

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/rdma"
)

// port is an RDMA port that ranks of this node use.
type port struct {
	rail   rdma.Rail
	before rdma.Counters // of the case
}

// openRails opens the RDMA device of every rank: the nearest to it, or those
// that the user lists. A node that has none says why; a setting that asks for
// what this node does not have is an error.
func (r *runner) openRails(names []string) (coordinator.RDMA, error) {
	var reply coordinator.RDMA
	if len(r.plan.Nodes) < 2 && r.plan.Settings["NCCL_SHM_DISABLE"] != "1" {
		reply.None = "there is one node"
		return reply, nil
	}
	s, force, err := rdma.ParseSettings(r.plan.Settings)
	if err != nil {
		return reply, err
	}
	hcas, err := rdma.HCAs(r.root)
	if err != nil {
		return reply, fmt.Errorf("RDMA devices: %w", err)
	}
	reply.Here = len(hcas) > 0
	rails, passed := rdma.Rails(hcas, s)
	switch {
	case s.Disable:
		reply.None = "NCCL_IB_DISABLE is 1"
	case len(hcas) == 0:
		reply.None = "it has no RDMA device"
	case len(rails) == 0:
		reply.None = "no port can be used: " + strings.Join(passed, "; ")
	default:
		if err := rdma.Available(); err != nil {
			reply.None = err.Error()
		}
	}
	if reply.None != "" {
		if len(names) > 0 {
			return reply, fmt.Errorf("--rails %s: %s", strings.Join(names, ","), reply.None)
		}
		return reply, nil
	}
	err = r.on(r.ranks, func(k *rank) (err error) {
		local := k.global - r.first
		rail := rdma.Nearest(rails, rdma.PlaceOf(r.root, cpu()), local)
		if len(names) > 0 {
			if rail, err = rdma.Named(rails, names, local); err != nil {
				return err
			}
		}
		k.queues.device, err = rdma.Open(rail, s)
		return err
	})
	if err != nil {
		for _, k := range r.ranks {
			k.queues.close()
		}
		if errors.Is(err, rdma.ErrSetting) || len(names) > 0 {
			return reply, err
		}
		reply.None = err.Error()
		return reply, nil
	}
	r.mesh = &mesh{shapes: map[string]bool{}, peers: map[int][]int{}}
	for _, k := range r.ranks {
		reply.Rails = append(reply.Rails, r.describe(k.queues.device))
	}
	reply.Notes = append(s.Warnings(), s.Idle(force, reply.Rails[0].Layer)...)
	r.watch()
	return reply, nil
}

// describe is a rail as the coordinator knows it.
func (r *runner) describe(d *rdma.Device) coordinator.Rail {
	out := coordinator.Rail{Name: d.Rail.String(), Address: "GID " + d.GID.String(), Layer: d.Rail.Port.LinkLayer, MTU: d.MTU}
	if out.Layer == "InfiniBand" {
		out.Address = fmt.Sprintf("LID %d", d.Rail.Port.LID)
	}
	if gb := d.Rail.Port.Gbps / 8; gb > 0 {
		out.LineGBps = &gb
	}
	if d.Rail.HCA.PCI == "" && d.GID.Netdev != "" { // Soft-RoCE reports a rate of its own making where the interface has none
		out.LineGBps = lineRate(r.root, d.GID.Netdev)
	}
	return out
}

// watch begins to follow the events and counters of the devices.
func (r *runner) watch() {
	for _, k := range r.ranks {
		rail := k.queues.device.Rail
		if !slices.ContainsFunc(r.mesh.ports, func(p port) bool { return p.rail.String() == rail.String() }) {
			r.mesh.ports = append(r.mesh.ports, port{rail: rail})
		}
	}
	r.watching.Store(true)
}

// trouble is an event of a port or a device that ends the run, or nil. It is
// asked beside the ranks, which may be busy or idle.
func (r *runner) trouble() error {
	if !r.watching.Load() {
		return nil
	}
	for _, k := range r.ranks {
		if err := k.queues.device.Trouble(); err != nil {
			return &collectives.LinkError{Rank: k.global, Peer: -1, Link: "verbs", Err: err}
		}
	}
	return nil
}

// snapshot reads the counters of ports and GPUs before a case.
func (r *runner) snapshot() (err error) {
	r.counts.snapshot()
	if r.mesh == nil {
		return nil
	}
	for i := range r.mesh.ports {
		p := &r.mesh.ports[i]
		if p.before, err = rdma.ReadCounters(r.root, p.rail.HCA.Name, p.rail.Port.Num); err != nil {
			return fmt.Errorf("counters of %s: %w", p.rail, err)
		}
	}
	return nil
}

// counted is what ports and GPUs have counted since the snapshot.
func (r *runner) counted() (any, error) {
	var reply coordinator.PortsReply
	var err error
	if reply.Moved, reply.Sent, err = r.counts.moved(); err != nil {
		reply.Unread = err.Error()
	}
	if reply.Effective = r.launched(); r.onNCCL.Load() {
		reply.Effective = r.toldNCCL()
	}
	if r.mesh == nil {
		return reply, nil
	}
	for _, p := range r.mesh.ports {
		after, err := rdma.ReadCounters(r.root, p.rail.HCA.Name, p.rail.Port.Num)
		if err != nil {
			return nil, fmt.Errorf("counters of %s: %w", p.rail, err)
		}
		for _, d := range p.before.Changed(after) {
			reply.Moved = append(reply.Moved, coordinator.Moved{Device: p.rail.String(), Name: d.Name, Add: d.Add, Saturated: d.Saturated})
		}
	}
	return reply, nil
}
