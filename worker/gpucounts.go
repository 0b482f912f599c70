package worker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"busbw/coordinator"
	"busbw/rdma"
	"busbw/reports"
	"busbw/worker/nvml"
	"busbw/worker/topo"
)

// gpuCounts follows what the GPUs that hold ranks' buffers count.
type gpuCounts struct {
	read   func() (map[string]map[string]uint64, error) // by "GPU3"; nil: nothing counts
	carry  map[string]float64                           // GB/s each way over the NVLinks of each; 0: not known
	before map[string]map[string]uint64                 // at the beginning of the case
	marked map[string]map[string]uint64                 // when timing began
	since  time.Time
	failed error // the first reading since the snapshot that gave none
}

// useGPUs tells the runner which GPUs hold its ranks' buffers, by rank, as PCI
// addresses, and whether they read each other's memory. What is known of them
// becomes a limit, and what NVML counts is followed; what is not known is left
// out.
func (r *runner) useGPUs(addresses []string, direct bool) {
	n := &Node{Root: r.root}
	d, err := nvml.Open() // stays open as long as the process
	if err == nil {
		n.GPUs, err = d.GPUs()
	}
	if err != nil {
		n.GPUs, _ = topo.GPUs(r.root) // of AMD; without an answer no GPU is known
	}
	for i := range n.GPUs {
		topo.Locate(r.root, &n.GPUs[i])
	}
	r.knowGPUs(n, addresses, direct)
	if err == nil && r.counts != nil {
		r.counts.read = d.Counters
	}
}

// knowGPUs is useGPUs with what is known of the node.
func (r *runner) knowGPUs(n *Node, addresses []string, direct bool) {
	c := &gpuCounts{carry: map[string]float64{}}
	var mine []int
	for _, a := range addresses {
		i := slices.IndexFunc(n.GPUs, func(g reports.GPU) bool { return g.PCI == a })
		if i < 0 {
			return
		}
		if !slices.Contains(mine, i) {
			mine = append(mine, i)
		}
		c.carry[fmt.Sprintf("GPU%d", n.GPUs[i].Index)] = topo.Carries(n.GPUs[i])
	}
	r.counts = c
	t := n.Topology()
	if !direct {
		t.Bonds = nil // through host memory, over PCIe
	}
	if len(mine) < len(addresses) {
		return // ranks of one GPU need no link
	}
	if name, gbps, how, ok := topo.Peer(t, mine); ok {
		r.peer = &coordinator.Peer{Name: name, GBps: gbps, How: how}
	}
}

// snapshot reads the counters before a case. A driver that does not answer is
// told of with what moved, for then nothing is known to have moved.
func (c *gpuCounts) snapshot() {
	if c != nil && c.read != nil {
		c.before, c.failed = c.read()
		c.marked = nil
	}
}

// mark is the moment at which timing begins.
func (c *gpuCounts) mark() {
	if c != nil && c.read != nil {
		var err error
		c.marked, err = c.read()
		c.failed = cmp.Or(c.failed, err)
		c.since = time.Now()
	}
}

// moved is what the counters have done since the snapshot, and what has gone
// over NVLink since the mark; an error means that this is not known.
func (c *gpuCounts) moved() (moved []coordinator.Moved, sent []coordinator.Sent, err error) {
	if c == nil || c.read == nil {
		return nil, nil, nil
	}
	took := time.Since(c.since).Seconds()
	after, err := c.read()
	if err = cmp.Or(c.failed, err); err != nil {
		return nil, nil, err
	}
	for _, g := range slices.Sorted(maps.Keys(c.carry)) {
		for _, d := range rdma.Counters(c.before[g]).Changed(after[g]) {
			moved = append(moved, coordinator.Moved{Device: g, Name: d.Name, Add: d.Add, Saturated: d.Saturated})
		}
		const tx = "nvlink_tx_bytes"
		was, ok1 := c.marked[g][tx]
		is, ok2 := after[g][tx]
		if ok1 && ok2 && is >= was && took > 0 {
			sent = append(sent, coordinator.Sent{Device: g, Bytes: is - was, Seconds: took, Carries: c.carry[g]})
		}
	}
	return moved, sent, nil
}
