package worker

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/rdma"
	"busbw/worker/gpu"
	"busbw/worker/topo"
)

// devices measures this node's own devices, one after the other: each active
// RDMA port against itself, and the copies of each GPU.
func (r *runner) devices(b coordinator.DevicesBody) (any, error) {
	if b.Bytes < 4096 || b.Bytes > 1<<30 || !(b.Seconds >= 0) || b.Seconds > 60 {
		return nil, fmt.Errorf("tests of devices with %d bytes for %g s", b.Bytes, b.Seconds)
	}
	var reply coordinator.DevicesReply
	none := func(test, why string) { reply.None = append(reply.None, coordinator.NoDevice{Test: test, Why: why}) }
	infos, why := cudaDevices()
	if rails, s, no := r.rails(); no != "" {
		none(coordinator.NICLoopback, no)
	} else {
		for _, rail := range rails {
			reply.Tests = append(reply.Tests, r.loopback(rail, s, infos, b)...)
		}
	}
	if why != "" {
		none(coordinator.HostToDevice, why)
	}
	for i, g := range infos {
		reply.Tests = append(reply.Tests, r.copies(g, b)...)
		if to := infos[(i+1)%len(infos)]; to.Ordinal != g.Ordinal {
			reply.Tests = append(reply.Tests, r.peerCopy(g, to, b)...)
		}
	}
	return reply, nil
}

// rails are the active ports that the settings choose; why not, without one.
func (r *runner) rails() (rails []rdma.Rail, s rdma.Settings, none string) {
	s, _, err := rdma.ParseSettings(r.plan.Settings)
	if err != nil {
		return nil, s, err.Error()
	}
	hcas, err := rdma.HCAs(r.root)
	if err != nil {
		return nil, s, err.Error()
	}
	if len(hcas) == 0 {
		return nil, s, "no RDMA device"
	}
	rails, passed := rdma.Rails(hcas, s)
	if len(rails) == 0 {
		return nil, s, "no port can be used: " + strings.Join(passed, "; ")
	}
	if err := rdma.Available(); err != nil {
		return nil, s, err.Error()
	}
	return rails, s, ""
}

// cudaDevices lists the GPUs of the CUDA driver; why none, without one.
func cudaDevices() ([]gpu.Info, string) {
	d, err := gpu.Open()
	if err != nil {
		return nil, err.Error()
	}
	infos, err := d.Devices()
	if err != nil {
		return nil, err.Error()
	}
	return infos, ""
}

// beside runs f on a thread of its own on a processor of a kernel list ("":
// any), so that what it allocates lies near it.
func beside(list string, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		collectives.PinNear(0, strings.TrimSpace(list))
		f()
	}()
	<-done
}

// loopback measures a port against itself: in host memory, and in the memory
// of the GPU that is nearest to it.
func (r *runner) loopback(rail rdma.Rail, s rdma.Settings, gpus []gpu.Info, b coordinator.DevicesBody) []coordinator.DeviceTest {
	near := topo.ReadDevice(r.root, rail.HCA.PCI)
	out := coordinator.DeviceTest{Test: coordinator.NICLoopback, Device: rail.String(), Kind: rail.HCA.Type, Memory: "host"}
	test := func(t coordinator.DeviceTest, memory deviceMemory) (coordinator.DeviceTest, bool) {
		beside(near.CPUs, func() {
			d, err := rdma.Open(rail, s)
			if err != nil {
				t.Error = err.Error()
				return
			}
			t.LineGBps = r.describe(d).LineGBps
			times, err := r.toItself(d, b, memory)
			if err = errors.Join(err, d.Close()); err != nil {
				t.Error = err.Error()
				return
			}
			t.Seconds, t.Warmup = times.Seconds, times.Warmup
		})
		return t, t.Error == ""
	}
	host, ok := test(out, nil)
	if !ok || len(gpus) == 0 {
		return []coordinator.DeviceTest{host}
	}
	g := nearestGPU(gpus, func(pci string) string { return topo.Distance(near, topo.ReadDevice(r.root, pci)) })
	mem := gpus[g]
	out.Memory, out.Notes = "cuda", []string{"in the memory of " + mem.String()}
	device, _ := test(out, func(d *rdma.Device) (*rdma.Region, func() error, error) {
		return registerGPU(d, mem.Ordinal, pairMemory(b.Bytes))
	})
	return []coordinator.DeviceTest{host, device}
}

// nearestGPU is the first of the GPUs that are nearest by topo's words.
func nearestGPU(gpus []gpu.Info, distance func(pci string) string) (best int) {
	for i := range gpus {
		if topo.Nearer(distance(gpus[i].PCI), distance(gpus[best].PCI)) {
			best = i
		}
	}
	return best
}

// pairMemory is what both halves of one end of a link test of so many bytes take.
func pairMemory(bytes int) int64 { return 2 * ((int64(bytes) + 4095) &^ 4095) }

// deviceMemory makes memory that a port may reach, and what gives it back; nil
// stands for host memory.
type deviceMemory func(*rdma.Device) (*rdma.Region, func() error, error)

// toItself connects a port with itself and measures RDMA writes.
func (r *runner) toItself(d *rdma.Device, b coordinator.DevicesBody, memory deviceMemory) (times coordinator.PairTimes, err error) {
	abort := &collectives.Abort{} // ends the serving end where this one fails
	var ends [2]*rdma.Pair
	for i := range ends {
		cfg := rdma.PairConfig{Rank: i, Peer: 1 - i, MaxSize: b.Bytes, Abort: abort}
		if memory != nil {
			var free func() error
			if cfg.Memory, free, err = memory(d); err != nil {
				return times, err
			}
			defer func() { err = errors.Join(err, free()) }()
		}
		if ends[i], err = rdma.NewPair(d, cfg); err != nil {
			return times, err
		}
		defer func() { err = errors.Join(err, ends[i].Close()) }()
	}
	for i, p := range ends {
		if err := p.Connect(ends[1-i].Hello()); err != nil {
			return times, err
		}
	}
	served := make(chan error, 1)
	go func() { served <- ends[1].Serve() }()
	times, err = timePair(ends[0], rdma.Test{Verb: rdma.Write, Size: b.Bytes}, 0, b.Seconds)
	if err == nil {
		err = ends[0].End()
	}
	abort.Set(err)
	return times, errors.Join(err, <-served)
}

// copies measures a GPU's copies from and to host memory near it.
func (r *runner) copies(g gpu.Info, b coordinator.DevicesBody) []coordinator.DeviceTest {
	in := coordinator.DeviceTest{Test: coordinator.HostToDevice, Device: g.String(), Kind: g.Name, Memory: "cuda", Warmup: gpu.CopyWarmup}
	out := in
	out.Test = coordinator.DeviceToHost
	beside(topo.ReadDevice(r.root, strings.ToLower(g.PCI)).CPUs, func() {
		err := onDevice(g, func(d *gpu.Device) (err error) {
			in.Seconds, out.Seconds, err = d.CopyTimes(int64(b.Bytes), spell(b))
			return err
		})
		if err != nil {
			in.Error, out.Error = err.Error(), err.Error()
		}
	})
	return []coordinator.DeviceTest{in, out}
}

// peerCopy measures copies from one GPU's memory into another's, where the
// driver offers that.
func (r *runner) peerCopy(g, to gpu.Info, b coordinator.DevicesBody) []coordinator.DeviceTest {
	// Bridges join some pairs and not others: only the same two of other nodes are alike.
	t := coordinator.DeviceTest{Test: coordinator.GPUToGPU, Device: fmt.Sprintf("%s to GPU %d", g, to.Ordinal), Kind: fmt.Sprintf("%s %d to %d", g.Name, g.Ordinal, to.Ordinal), Memory: "cuda", Warmup: gpu.CopyWarmup}
	if can, err := r.peers(g, to); err != nil || !can {
		return nil // the two do not reach each other's memory, or the copies of one of them have failed already
	}
	beside(topo.ReadDevice(r.root, strings.ToLower(g.PCI)).CPUs, func() {
		err := onDevice(g, func(d *gpu.Device) error {
			return onDevice(to, func(p *gpu.Device) (err error) {
				t.Seconds, err = d.PeerTimes(p, int64(b.Bytes), spell(b))
				return err
			})
		})
		if err != nil {
			t.Error = err.Error()
		}
	})
	return []coordinator.DeviceTest{t}
}

func (r *runner) peers(g, to gpu.Info) (bool, error) {
	d, err := gpu.Open()
	if err != nil {
		return false, err
	}
	return d.CanAccess(g, to)
}

// onDevice opens a GPU for f.
func onDevice(g gpu.Info, f func(*gpu.Device) error) error {
	d, err := gpu.Open()
	if err != nil {
		return err
	}
	dev, err := d.Device(g.Ordinal)
	if err != nil {
		return err
	}
	return errors.Join(f(dev), dev.Close())
}

// spell is how long each device is measured.
func spell(b coordinator.DevicesBody) time.Duration { return dur(b.Seconds) }
