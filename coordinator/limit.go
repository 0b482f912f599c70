package coordinator

import "busbw/collectives"

// A lower bound on time gives an upper bound on busbw. Three bounds are known
// without knowing the algorithm, as long as ranks reduce and not switches
// (reports.AboveWire): memory traffic (each rank's input is read once and each
// output written once), what a GPU's links to its node carry, and the bytes
// that must cross between nodes. The slowest of them is the limit, and it is
// named.

// memoryBytes is the least traffic of one group of n ranks, in units of S.
func memoryBytes(op collectives.Op, n int) float64 {
	f := float64(n)
	switch op {
	case collectives.AllReduce, collectives.AllToAll, collectives.SendRecv:
		return 2 * f
	case collectives.Broadcast, collectives.Scatter, collectives.Gather:
		if op == collectives.Broadcast {
			return f // one read, n−1 writes
		}
		return 2
	default: // reduce, reduce_scatter, all_gather: S on one side, n·S on the other
		return f + 1
	}
}

// crossBytes is the least number of bytes that one group of n ranks on k
// nodes (equal shares) must move between nodes, in units of S. All_gather and
// its mirror reduce_scatter: each node lacks (k−1)/k of S. All_reduce is both.
func crossBytes(op collectives.Op, n, k int) float64 {
	f := float64(k - 1)
	switch op {
	case collectives.AllReduce:
		return 2 * f
	case collectives.AllToAll:
		return float64(n) * f / float64(k)
	case collectives.Gather, collectives.Scatter:
		return f / float64(k)
	case collectives.SendRecv:
		if k < 2 {
			return 0
		}
		return float64(k)
	default:
		return f
	}
}

// memoryHost is where buffers are that ranks of a node read by themselves
// (reports.Result, Memory); all others are carried by NVLink or PCIe.
const memoryHost = "host"

// Machine is what the limits are computed from: GB/s, 0 where unknown.
type Machine struct {
	Memory    float64 // read plus write traffic of one machine
	MemoryHow string
	Wire      float64 // bytes a second between nodes, all nodes added
	WireName  string  // "loopback stream" or "NIC line rate"
	WireHow   string
	Peer      float64 // what one rank sends to the others of its node where they do not read its memory through the host's: NVLink, XGMI, PCIe
	PeerName  string
	PeerHow   string
	Shared    int // nodes that share one machine's memory
}

// Bound is the named limit of a group's busbw, GB/s a rank; ok is false where
// nothing is known or one rank is alone. groups run at the same time on nodes
// in all; the group has n ranks on k nodes.
func (m Machine) Bound(op collectives.Op, n, k, groups, nodes int) (name, how string, gbps float64, ok bool) {
	factor, ok := op.BusFactor(n)
	if !ok {
		return "", "", 0, false
	}
	var worst float64 // seconds for S = 1 GB
	if m.Memory > 0 {
		machines := float64(nodes) / float64(max(1, m.Shared))
		worst, name, how = memoryBytes(op, n)*float64(groups)/(m.Memory*machines), "memory bandwidth", m.MemoryHow
	}
	// Every op has a rank that must send or receive what busbw counts, so that
	// busbw is at most what a rank's links carry: to its own node, and its share
	// of the wire where the group is on several.
	if m.Peer > 0 && n > k {
		rate := m.Peer
		if k > 1 {
			rate += m.Wire / float64(groups*n)
		}
		if t := factor / rate; t > worst {
			worst, name, how = t, m.PeerName, m.PeerHow
		}
	}
	if cross := crossBytes(op, n, k) * float64(groups); cross > 0 {
		if m.Wire == 0 {
			return "", "", 0, false // the wire may be the limit and is not known
		}
		if t := cross / m.Wire; t > worst {
			worst, name, how = t, m.WireName, m.WireHow
		}
	}
	if worst == 0 {
		return "", "", 0, false
	}
	return name, how, factor / worst, true
}
