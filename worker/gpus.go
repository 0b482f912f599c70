package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/worker/gpu"
)

// gpus are the GPUs of a node's ranks.
type gpus struct {
	driver   *gpu.Driver
	own      []gpu.Info // of each local rank
	exchange *gpu.Exchange
	islands  [][]int // of every node, while a case is in GPU memory
	peers    string  // how far peer access may go
}

// findGPUs gives each local rank a GPU, in turn, after those of other nodes of
// the plan on this machine.
func (r *runner) findGPUs() coordinator.GPUs {
	d, err := gpu.Open()
	if err != nil {
		return coordinator.GPUs{None: err.Error()}
	}
	all, err := d.Devices()
	if err != nil {
		return coordinator.GPUs{None: err.Error()}
	}
	before := 0
	for _, n := range r.plan.Nodes[:r.plan.Node] {
		if n.Addr == r.plan.Nodes[r.plan.Node].Addr {
			before += n.Ranks
		}
	}
	r.gpus = gpus{driver: d, exchange: gpu.NewExchange(r.abort)}
	var reply coordinator.GPUs
	for i := range r.ranks {
		g := all[(before+i)%len(all)]
		if g.Compute() < gpu.MinCompute {
			return coordinator.GPUs{None: fmt.Sprintf("%s has compute capability %d.%d, and busbw needs %d.0", g, g.Major, g.Minor, gpu.MinCompute/10)}
		}
		r.gpus.own, reply.Own = append(r.gpus.own, g), append(reply.Own, g.String())
		reply.IDs = append(reply.IDs, g.UUID)
	}
	reply.Islands, reply.Notes, err = r.findIslands()
	if err != nil {
		return coordinator.GPUs{None: err.Error()}
	}
	var at []string
	for _, g := range r.gpus.own {
		at = append(at, strings.ToLower(g.PCI))
	}
	r.useGPUs(at, len(slices.Compact(slices.Sorted(slices.Values(reply.Islands)))) == 1)
	return reply
}

// findIslands puts each rank on the first island whose members all reach its
// GPU's memory, and it theirs.
func (r *runner) findIslands() (islands []int, notes []string, err error) {
	near := r.nearness()
	to, _ := near.peers()
	if r.gpus.peers = "as far as " + to; near.settings["NCCL_P2P_DISABLE"] == "1" {
		r.gpus.peers = "off: NCCL_P2P_DISABLE=1"
	}
	for i := range r.gpus.own {
		mine := 0
		for j := 0; j < i; j++ {
			if islands[j] != mine {
				continue
			}
			why, err := r.apart(i, j, near)
			if err != nil {
				return nil, nil, err
			}
			if why != "" {
				if also := near.bridged(r.gpus.own[j], r.gpus.own[i]); also != "" {
					why += "; " + also
				}
				if note := fmt.Sprintf("GPUs %d and %d do not reach each other's memory: %s", r.gpus.own[j].Ordinal, r.gpus.own[i].Ordinal, why); len(notes) < 4 {
					notes = append(notes, note)
				}
				mine, j = mine+1, -1
			}
		}
		islands = append(islands, mine)
	}
	return islands, notes, nil
}

// apart says why two local ranks do not reach each other's memory; "": they do.
func (r *runner) apart(i, j int, near nearness) (string, error) {
	a, b := r.gpus.own[i], r.gpus.own[j]
	if a.Ordinal == b.Ordinal {
		return "", nil // to NCCL, too, the way is shorter than any that is switched off
	}
	if r.plan.Settings["NCCL_P2P_DISABLE"] == "1" {
		return "NCCL_P2P_DISABLE=1", nil
	}
	if why := near.apart(a, b); why != "" {
		return why, nil
	}
	there, err := r.gpus.driver.CanAccess(a, b)
	if err != nil {
		return "", err
	}
	back, err := r.gpus.driver.CanAccess(b, a)
	if err == nil && !(there && back) {
		return "the driver offers no peer access", nil
	}
	return "", err
}

// sit takes a rank's place on its GPU, on the rank's thread, which moves to the
// processors next to it.
func (k *rank) sit(r *runner) error {
	if k.seat != nil {
		return nil
	}
	info := r.gpus.own[k.global-r.first]
	g, err := r.gpus.driver.Device(info.Ordinal)
	if err == nil {
		if list, err := fs.ReadFile(r.root, path.Join("sys/bus/pci/devices", info.PCI, "local_cpulist")); err == nil {
			collectives.PinNear(k.global-r.first, strings.TrimSpace(string(list)))
		}
		if k.seat, err = g.Seat(); err != nil {
			err = errors.Join(err, g.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("rank %d: %w", k.global, err)
	}
	return nil
}

// seat makes the ranks ready for buffers in GPU memory.
func (r *runner) seat(b coordinator.CaseBody) error {
	if r.gpus.own == nil {
		return errors.New("a case in GPU memory, but no GPUs were found")
	}
	if len(b.Islands) != len(r.plan.Nodes) {
		return fmt.Errorf("islands of %d nodes, the plan has %d", len(b.Islands), len(r.plan.Nodes))
	}
	for i, n := range b.Islands {
		if len(n) != r.plan.Nodes[i].Ranks {
			return fmt.Errorf("islands of %d ranks for node %d, it has %d", len(n), i, r.plan.Nodes[i].Ranks)
		}
	}
	r.gpus.islands = b.Islands
	if err := r.each(func(k *rank) error { return k.sit(r) }); err != nil {
		return err
	}
	own := b.Islands[r.plan.Node]
	return r.each(func(k *rank) error {
		for _, o := range r.players() {
			if own[o.global-r.first] != own[k.global-r.first] {
				continue
			}
			if yes, why, err := k.seat.Reach(o.seat.Device); err != nil || !yes {
				return errors.Join(err, fmt.Errorf("rank %d: %s cannot reach %s, though the driver said it could: %s; NCCL_P2P_DISABLE=1 does without", k.global, k.seat.Device, o.seat.Device, why))
			}
		}
		return k.stage(r)
	})
}

// stage makes the link to ranks whose memory the GPU does not reach.
func (k *rank) stage(r *runner) (err error) {
	if k.staged != nil {
		return nil
	}
	var here []int
	for _, o := range r.ranks {
		if o != k && r.plan.Settings["NCCL_SHM_DISABLE"] != "1" {
			here = append(here, o.global)
		}
	}
	if k.staged, err = gpu.NewLink(k.seat, k.global, r.gpus.exchange, here, nil); err == nil {
		k.wire = collectives.NewWire(k.staged, r.total())
	}
	return err
}

// gpuLinkName is linkName for buffers in GPU memory: "cuda" for peer access,
// "staged" for host memory between ranks of this process, then "tcp" or "verbs".
func (r *runner) gpuLinkName() string {
	var cuda, staged, apart bool
	wire := "tcp"
	for _, k := range r.players() {
		t := r.team(r.live, k)
		cuda = cuda || t.Together()
		for i, g := range t.Global {
			if t.Node[i] != t.Node[t.Me] {
				here := k.staged.Here(g)
				staged, apart = staged || here, apart || !here
				if !here && k.queues.link != nil {
					wire = "verbs"
				}
			}
		}
	}
	var names []string
	for _, n := range []struct {
		is   bool
		name string
	}{{cuda, "cuda"}, {staged, "staged"}, {apart, wire}} {
		if n.is {
			names = append(names, n.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "+")
}
