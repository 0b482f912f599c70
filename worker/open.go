package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/worker/gpu"
)

// open listens on the node's data address and says what this node is.
func (r *runner) open(b coordinator.OpenBody) (any, error) {
	if r.listen != nil {
		return nil, errors.New("open comes once")
	}
	if len(b.Token) != 32 {
		return nil, fmt.Errorf("a token of %d bytes, want 32", len(b.Token))
	}
	addr, err := netip.ParseAddr(r.plan.Nodes[r.plan.Node].Addr)
	if err != nil {
		return nil, fmt.Errorf("data address of node %d: %w", r.plan.Node, err)
	}
	var locals []int
	for _, k := range r.ranks {
		locals = append(locals, k.global)
	}
	threads, per := r.setting("NCCL_SOCKET_NTHREADS"), r.setting("NCCL_NSOCKS_PERTHREAD")
	cfg := collectives.TCPConfig{Source: addr, Threads: threads, Sockets: threads * per, Timeout: connectTime}
	if r.listen, err = collectives.ListenTCP(netip.AddrPortFrom(addr, 0), [32]byte(b.Token), locals, cfg); err != nil {
		return nil, err
	}
	reply := coordinator.OpenReply{Addr: r.listen.Addr().String(), Machine: coordinator.MachineID(), CPUs: runtime.NumCPU(), Version: r.version}
	reply.Iface = ifaceOf(addr)
	reply.LineGBps = lineRate(r.root, reply.Iface)
	if b.GPUs {
		reply.GPUs = r.findGPUs()
	}
	reply.RDMA, err = r.openRails(b.Rails)
	return reply, err
}

// connectTime bounds how long the connections of one case may take to set up:
// a peer process may be late by as long as a busy machine keeps it waiting.
const connectTime = 20 * time.Second

// setting is a number that the coordinator has checked; 1 without it.
func (r *runner) setting(name string) int {
	n, err := strconv.Atoi(r.plan.Settings[name])
	if err != nil {
		return 1
	}
	return n
}

// dial connects the rank with peers that it is not connected with yet.
func (k *rank) dial(ctx context.Context, r *runner, peers []int, addrs []string) (err error) {
	if len(peers) == 0 && k.staged != nil {
		return nil // the exchange needs no connection
	}
	var to []collectives.TCPPeer
	for _, p := range peers {
		addr, err := netip.ParseAddrPort(addrs[coordinator.NodeOf(r.plan.Nodes, p)])
		if err != nil {
			return fmt.Errorf("rank %d: data address of rank %d: %w", k.global, p, err)
		}
		to = append(to, collectives.TCPPeer{Rank: p, Addr: addr})
	}
	if k.link != nil {
		return k.link.Connect(ctx, to)
	}
	if k.link, err = collectives.ConnectTCP(ctx, r.listen, k.global, to, r.abort); err != nil {
		return err
	}
	if k.staged != nil {
		return k.staged.Over(k.link, gpu.Direct{})
	}
	k.wire = collectives.NewWire(k.link, r.total())
	return nil
}

// limits measures what this machine allows.
func (r *runner) limits(b coordinator.LimitsBody) (any, error) {
	reply := coordinator.LimitsReply{Peer: r.peer}
	if !b.Measure {
		return reply, nil
	}
	if b.Threads < 1 || b.Threads > maxRanks || !(b.Seconds > 0) || b.Seconds > 60 {
		return nil, fmt.Errorf("limits with %d threads for %v s", b.Threads, b.Seconds)
	}
	d := time.Duration(b.Seconds * float64(time.Second))
	mem, err := collectives.MemoryBandwidth(b.Threads, d)
	if err != nil {
		return nil, fmt.Errorf("memory bandwidth: %w", err)
	}
	reply.MemoryGBps, reply.MemoryHow = &mem.GBps, mem.How
	addr, err := netip.ParseAddr(r.plan.Nodes[r.plan.Node].Addr)
	if err != nil {
		return nil, err
	}
	loop, err := collectives.LoopbackStream(addr, d)
	if err != nil {
		return nil, fmt.Errorf("loopback stream: %w", err)
	}
	reply.LoopbackGBps, reply.LoopbackHow = &loop.GBps, loop.How
	return reply, nil
}

// ifaceOf names the interface that has an address.
func ifaceOf(addr netip.Addr) string {
	ifs, _ := net.Interfaces()
	for _, i := range ifs {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().WithZone("") == addr.WithZone("") {
				return i.Name
			}
		}
	}
	return ""
}

// lineRate is the speed of an interface in GB/s, as /sys/class/net/*/speed
// gives it in Mbit/s (Documentation/ABI/testing/sysfs-class-net); nil where the
// kernel does not know: virtual interfaces have −1, or fail.
func lineRate(root fs.FS, iface string) *float64 {
	if iface == "" {
		return nil
	}
	b, err := fs.ReadFile(root, path.Join("sys/class/net", iface, "speed"))
	if err != nil {
		return nil
	}
	mbit, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil || mbit <= 0 {
		return nil
	}
	gb := mbit / 8 / 1000
	return &gb
}

// readClock reads the machine's monotonic clock, which all its processes share,
// beside Go's, which counts from the start of this one.
func readClock() machineClock {
	var t unix.Timespec
	start := time.Now()
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail for this clock and a valid address
	return machineClock{start: start, at: float64(t.Sec) + float64(t.Nsec)/1e9}
}
