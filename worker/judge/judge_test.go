package judge

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"busbw/rdma"
	"busbw/reports"
)

func ptr[T any](v T) *T { return &v }

// expect wants one finding of each verdict given, with a word in what was
// found or in the remedy.
func expect(t *testing.T, name string, fs []reports.Finding, want ...string) {
	t.Helper()
	if len(fs) != len(want) {
		t.Fatalf("%s: %d findings, want %d: %+v", name, len(fs), len(want), fs)
	}
	for i, w := range want {
		v, word, _ := strings.Cut(w, " ")
		if fs[i].Verdict != reports.Verdict(v) || !strings.Contains(fs[i].Got+" "+fs[i].Remedy, word) {
			t.Errorf("%s: %+v, want %s with %q", name, fs[i], v, word)
		}
	}
}

func TestStates(t *testing.T) {
	ib := func(state, phys, lid, sm int) Port {
		return Port{Device: "mlx5_0", Num: 1, Layer: "InfiniBand", State: state, Phys: phys, LID: &lid, SMLID: &sm}
	}
	eth := func(state, phys int) Port {
		return Port{Device: "mlx5_1", Num: 1, Layer: "Ethernet", State: state, Phys: phys, LID: ptr(0), SMLID: ptr(0)}
	}
	for _, c := range []struct {
		name string
		port Port
		want string
	}{
		{"up", ib(4, 5, 3, 1), "pass"},
		{"RoCE has no LID", eth(4, 5), "pass"},
		{"polling", ib(1, 2, 0, 0), "fail cable"},
		{"disabled", ib(1, 3, 0, 0), "fail enable"},
		{"the only RoCE interface switched off", eth(1, 3), "fail enable"},
		{"training", ib(1, 4, 0, 0), "fail training"},
		{"recovering", ib(4, 6, 3, 1), "fail retrains"},
		{"no subnet manager", ib(2, 5, 0, 0), "fail no subnet manager"},
		{"no subnet manager, physical state not told", ib(2, 0, 0xffff, 0), "fail no subnet manager"},
		{"subnet manager gone wrong", ib(2, 5, 0, 7), "fail LID 7"},
		{"armed", ib(3, 5, 3, 1), "warn"},
		{"virtual function", ib(1, 5, 0xffff, 1), "fail virt_enabled"},
		{"down, link up, no subnet manager", ib(1, 5, 5, 0), "fail sminfo"},
		{"RoCE interface down", eth(1, 5), "fail interface"},
		{"physical state not told", ib(1, 0, 0, 0), "fail both possible"},
		{"nothing told", ib(0, 0, 0, 0), "unknown"},
		{"contradiction", ib(4, 2, 3, 1), "unknown contradict"},
	} {
		expect(t, c.name, States([]Port{c.port}), c.want)
		f := States([]Port{c.port})[0]
		if c.port.State == 1 && c.port.Phys == 5 && c.port.Layer == "InfiniBand" && strings.Contains(f.Remedy, "replace the cable") && !strings.Contains(f.Remedy, "do not replace") {
			t.Errorf("%s blames the cable: %s", c.name, f.Remedy)
		}
	}
	// one of several RoCE interfaces may be meant to be off
	expect(t, "an Ethernet port switched off", States([]Port{ib(4, 5, 3, 1), eth(1, 3)}), "pass", "warn")
	// the second port of a card whose first works may be left empty
	a, b := ib(4, 5, 3, 1), ib(1, 2, 0, 0)
	a.PCI, b.PCI, b.Device = "0000:3b:00.0", "0000:3b:00.1", "mlx5_1"
	expect(t, "unused port", States([]Port{a, b}), "pass", "warn another port of this card works")
}

func TestRates(t *testing.T) {
	port := func(gbps float64, width int) Port {
		return Port{Device: "mlx5_0", Num: 1, Layer: "InfiniBand", Type: "MT4129", State: 4, Phys: 5, Gbps: gbps, Width: width}
	}
	down := port(10, 4)
	down.State = 1
	none := port(0, 0)
	expect(t, "alone", Rates([]Port{port(400, 4)}, 0), "pass")
	expect(t, "made for less", Rates([]Port{port(200, 2)}, 0), "pass")
	expect(t, "stale", Rates([]Port{down}, 400), "n/a")
	expect(t, "not told", Rates([]Port{none}, 400), "unknown")
	expect(t, "one of four", Rates([]Port{port(400, 4), port(400, 4), port(200, 4), port(400, 4)}, 0), "pass", "pass", "fail", "pass")
	expect(t, "one of two", Rates([]Port{port(400, 4), port(200, 4)}, 0), "pass", "warn")
	expect(t, "one lane", Rates([]Port{port(100, 1)}, 0), "fail lanes")
	expect(t, "lowest speed", Rates([]Port{port(10, 4)}, 0), "fail fell back")
	expect(t, "profile", Rates([]Port{port(200, 4)}, 400), "fail")
	unknown := port(10, 4)
	unknown.Type = ""
	expect(t, "lowest speed of an unknown card", Rates([]Port{unknown}, 0), "warn")
	expect(t, "quarter", Rates([]Port{port(100, 4)}, 0), "warn")
	// On RoCE the label is often wrong, and is not looked at.
	e := port(100, 1)
	e.Layer, e.Type = "Ethernet", "MT4125"
	expect(t, "RoCE", Rates([]Port{e}, 0), "pass")
}

func TestMTU(t *testing.T) {
	p := Port{Device: "mlx5_0", Num: 1, Layer: "Ethernet", State: 4, Netdev: "eth2"}
	for mtu, want := range map[int]string{9000: "pass", 4200: "pass", 1500: "warn 1024 B: headers leave 92.6", 0: "unknown"} {
		p.NetMTU = mtu
		expect(t, "interface MTU", MTUs([]Port{p}), want)
	}
	p.Layer, p.MTU = "InfiniBand", 2048
	expect(t, "InfiniBand 2048", MTUs([]Port{p}), "pass 98.7")
}

func TestPKeys(t *testing.T) {
	table := func(chosen int, keys ...uint16) PKeys {
		p := PKeys{Subject: "mlx5_0 port 1", Keys: map[int]uint16{}, Chosen: chosen}
		for i, k := range keys {
			p.Keys[i] = k
		}
		return p
	}
	expect(t, "default", PKeyTable(table(-1, 0xffff, 0)), "pass")
	expect(t, "limited", PKeyTable(table(-1, 0x7fff, 0)), "fail limited")
	expect(t, "second row", PKeyTable(table(-1, 0x7fff, 0x8001)), "warn NCCL_IB_PKEY=1")
	expect(t, "empty first row", PKeyTable(table(-1, 0, 0x8001)), "warn NCCL_IB_PKEY=1")
	expect(t, "told", PKeyTable(table(1, 0x7fff, 0x8001)), "pass")
	expect(t, "empty", PKeyTable(table(-1)), "unknown")
}

func TestCounters(t *testing.T) {
	c := func(before, after rdma.Counters) Counters {
		return Counters{Subject: "mlx5_0 port 1", Before: before, After: after, Apart: time.Second, Gbps: 400}
	}
	old := rdma.Counters{"link_downed": 25, "symbol_error": 3, "port_xmit_wait": 7}
	expect(t, "history", CounterDeltas(c(old, old)), "pass older counts")
	expect(t, "one reading", CounterDeltas(c(old, nil)), "unknown reboots")
	expect(t, "one clean reading", CounterDeltas(c(rdma.Counters{"link_downed": 0, "port_xmit_wait": 9}, nil)), "pass congestion")
	expect(t, "flap", CounterDeltas(c(old, rdma.Counters{"link_downed": 26})), "fail +1")
	expect(t, "symbol", CounterDeltas(c(old, rdma.Counters{"symbol_error": 4})), "warn")
	expect(t, "many symbols", CounterDeltas(c(old, rdma.Counters{"symbol_error": 4000})), "fail 1e-12")
	expect(t, "congestion", CounterDeltas(c(old, rdma.Counters{"port_xmit_wait": 70000})), "pass", "pass congestion")
	expect(t, "saturated", CounterDeltas(c(rdma.Counters{"link_downed": 255}, rdma.Counters{"link_downed": 255})), "pass", "unknown saturated")
	expect(t, "elsewhere", CounterDeltas(c(rdma.Counters{"port_rcv_remote_physical_errors": 0}, rdma.Counters{"port_rcv_remote_physical_errors": 5})), "pass", "pass elsewhere")
	roce := c(rdma.Counters{"hw_counters/packet_seq_err": 0}, rdma.Counters{"hw_counters/packet_seq_err": 5})
	expect(t, "loss", CounterDeltas(roce), "fail")
	roce.Ethernet = true
	expect(t, "loss on RoCE", CounterDeltas(roce), "warn")
	expect(t, "none", CounterDeltas(c(nil, nil)), "unknown")
}

func TestLinks(t *testing.T) {
	root := PCI{Addr: "0000:3a:00.0", Kind: Bridge, Speed: 32, MaxSpeed: 32, Width: 16, MaxWidth: 16}
	dev := func(kind Kind, speed float64, width int) PCI {
		return PCI{Addr: "0000:3b:00.0", Kind: kind, Speed: speed, MaxSpeed: 32, Width: width, MaxWidth: 16, Path: []string{root.Addr}, PortGbps: 400}
	}
	expect(t, "full", Links([]PCI{root, dev(NIC, 32, 16)}), "pass")
	expect(t, "slow NIC", Links([]PCI{root, dev(NIC, 8, 8)}), "fail 63 Gb/s raw")
	expect(t, "NIC at Gen4", Links([]PCI{root, dev(NIC, 16, 16)}), "fail less than the 400 Gb/s")
	expect(t, "idle GPU", Links([]PCI{root, dev(GPU, 2.5, 16)}), "unknown save power")
	expect(t, "narrow GPU", Links([]PCI{root, dev(GPU, 2.5, 8)}), "fail")
	busy := dev(GPU, 2.5, 16)
	busy.Busy = ptr(true)
	expect(t, "busy GPU", Links([]PCI{root, busy}), "fail")
	small := root
	small.MaxSpeed, small.Speed = 16, 16
	expect(t, "small slot", Links([]PCI{small, dev(NIC, 16, 16)}), "warn less than")
	expect(t, "virtual machine", Links([]PCI{{Addr: "0000:00:05.0", Kind: NIC}}), "unknown")
	// A switch between: its own upstream link counts, once.
	up := PCI{Addr: "0000:3b:00.0", Kind: Bridge, Speed: 32, MaxSpeed: 32, Width: 8, MaxWidth: 16, Path: []string{root.Addr}}
	down := PCI{Addr: "0000:3c:00.0", Kind: Bridge, Speed: 32, MaxSpeed: 32, Width: 16, MaxWidth: 16}
	nic := dev(NIC, 32, 16)
	nic.Addr, nic.Path = "0000:3d:00.0", []string{root.Addr, up.Addr, down.Addr}
	two := nic
	two.Addr = "0000:3e:00.0"
	fs := Links([]PCI{root, up, down, nic, two})
	fails := 0
	for _, f := range fs {
		if f.Verdict == reports.Fail {
			fails++
			if f.Subject != "PCI bridge "+up.Addr {
				t.Errorf("blamed %s", f.Subject)
			}
		}
	}
	if fails != 1 {
		t.Errorf("%d failures of %+v", fails, fs)
	}
}

func TestACS(t *testing.T) {
	b := func(v uint16) PCI { return PCI{Addr: "0000:3a:00.0", Kind: Bridge, ACS: &v} }
	expect(t, "redirect", ACSRedirects([]PCI{b(0x1d), b(0x08), b(1), b(0), {Kind: Bridge}, {Kind: Bridge, ACSDenied: true}}), "fail", "fail", "warn", "pass", "n/a", "unknown")
}

func TestNVLinks(t *testing.T) {
	gpu := func(name string, up, down int) reports.GPU {
		g := reports.GPU{Name: name, Vendor: "nvidia"}
		for i := range up + down {
			on := i < up
			g.NVLinks = append(g.NVLinks, reports.NVLink{Link: i, Up: &on})
		}
		return g
	}
	one := func(g reports.GPU) []reports.Finding { return NVLinks([]reports.GPU{g}, "NVML", "", nil) }
	expect(t, "H100", one(gpu("NVIDIA H100 80GB HBM3", 18, 0)), "pass")
	expect(t, "H100 with a dead link", one(gpu("NVIDIA H100 80GB HBM3", 17, 1)), "fail 6 %")
	expect(t, "H100 NVL by design", one(gpu("NVIDIA H100 NVL", 12, 6)), "pass")
	expect(t, "H100 PCIe by design", one(gpu("NVIDIA H100 PCIe", 12, 6)), "pass")
	expect(t, "H100 PCIe without bridge", one(gpu("NVIDIA H100 PCIe", 0, 18)), "warn bridge")
	expect(t, "unknown product", one(gpu("NVIDIA X1", 4, 2)), "unknown")
	expect(t, "unknown product, peers", NVLinks([]reports.GPU{gpu("NVIDIA X1", 4, 2), gpu("NVIDIA X1", 6, 0)}, "NVML", "", nil), "fail", "pass")
	expect(t, "fabric manager", NVLinks([]reports.GPU{gpu("NVIDIA H100 80GB HBM3", 0, 18), gpu("NVIDIA H100 80GB HBM3", 0, 18)}, "NVML", "", nil), "fail fabric manager")
	slow := gpu("NVIDIA A100-SXM4-80GB", 12, 0)
	for i := range slow.NVLinks {
		slow.NVLinks[i].GBps = ptr(25.0)
	}
	expect(t, "A100", one(slow), "pass")
	slow.NVLinks[3].GBps = ptr(12.5)
	expect(t, "slow link", one(slow), "fail link 3")
	expect(t, "no NVLink", one(reports.GPU{Name: "NVIDIA L40S"}), "n/a")
}

func TestGPUs(t *testing.T) {
	h := reports.GPU{Name: "NVIDIA H100 80GB HBM3"}
	eight := []reports.GPU{h, h, h, h, h, h, h, h}
	expect(t, "eight", GPUs(eight, "", ""), "pass")
	expect(t, "seven", GPUs(eight[:7], "", ""), "warn bus")
	expect(t, "not told", GPUs(nil, "no driver", ""), "unknown")
	expect(t, "none", GPUs(nil, "", ""), "n/a")
	bad := h
	bad.ECCUncorrected, bad.RemapPending = ptr(uint64(1)), ptr(true)
	expect(t, "memory", GPUMemory([]reports.GPU{bad, h}, "NVML", ""), "fail pending", "unknown")
	ok := h
	ok.ECC, ok.RemappedRows, ok.RetiredPages = ptr(true), ptr(1), ptr(0)
	expect(t, "memory", GPUMemory([]reports.GPU{ok}, "NVML", ""), "pass")
	hot, idle := h, h
	hot.Throttle, idle.Throttle = []string{"hw_thermal_slowdown"}, []string{"gpu_idle"}
	expect(t, "throttle", GPUClocks([]reports.GPU{hot}, "NVML", ""), "fail cooling", "n/a")
	idle.ProcessIDs = []int{}
	expect(t, "idle", GPUClocks([]reports.GPU{idle}, "NVML", ""), "pass", "pass")
	h.Fabric = &reports.Fabric{State: "completed", Status: "success"}
	bad.Fabric = &reports.Fabric{State: "not_started"}
	expect(t, "fabric", Fabric([]reports.GPU{h, bad}, "NVML", ""), "pass", "fail fabric manager")
}

func TestXids(t *testing.T) {
	log := []Xid{{PCI: "0000:3b:00", Code: 79}, {PCI: "0000:3b:00", Code: 79}, {PCI: "0000:3b:00", Code: 63}, {PCI: "0000:3b:00", Code: 31}, {PCI: "0000:5d:00", Code: 999}}
	expect(t, "log", Xids(log, "", "kernel log"), "fail × 2", "pass", "warn program", "warn not in the table")
	expect(t, "clean", Xids(nil, "", "kernel log"), "pass")
}

func TestDirect(t *testing.T) {
	expect(t, "proved", Direct(GPUDirect{Proved: ptr(true)}), "pass")
	expect(t, "refused", Direct(GPUDirect{Proved: ptr(false), Why: "EFAULT", Module: ptr(true)}), "fail EFAULT")
	expect(t, "a name is no proof", Direct(GPUDirect{Module: ptr(true)}), "unknown proves nothing")
	expect(t, "registered is no proof", Direct(GPUDirect{Module: ptr(true), Registered: ptr(true)}), "unknown")
	expect(t, "missing", Direct(GPUDirect{Module: ptr(false)}), "fail missing")
	expect(t, "dma-buf", Direct(GPUDirect{Module: ptr(false), DMABuf: ptr(true)}), "unknown dma-buf")
	expect(t, "old library", Direct(GPUDirect{Module: ptr(true), Disabled: []string{"mlx5_0"}, NCCL: "2.22.3"}), "fail 2.23.4")
	expect(t, "new library", Direct(GPUDirect{Module: ptr(true), Disabled: []string{"mlx5_0"}, NCCL: "2.27.1"}), "fail not told")
	expect(t, "staged", Direct(GPUDirect{Staged: true, NCCL: "2.23.4"}), "warn host memory")
	expect(t, "used", Direct(GPUDirect{Used: true}), "pass")
}

func TestHost(t *testing.T) {
	m := Memlock{Bytes: 64 << 10, Needed: true}
	expect(t, "64 kB", Locked(m), "fail")
	m.Privileged = ptr(true)
	expect(t, "root", Locked(m), "pass CAP_IPC_LOCK")
	expect(t, "no RDMA", Locked(Memlock{Bytes: 64 << 10}), "n/a")
	expect(t, "unlimited", Locked(Memlock{Bytes: -1, Needed: true}), "pass")
	a := func(name, addr string) Address { return Address{name, netip.MustParseAddr(addr)} }
	expect(t, "a container's uplink", Interfaces([]Address{a("veth0", "2001:db8::1")}, "", ""), "pass")
	expect(t, "bridges", Interfaces([]Address{a("docker0", "172.17.0.1"), a("eth0", "10.0.0.1"), a("lo", "127.0.0.1")}, "", ""), "fail eth0", "fail eth0")
}

func TestCable(t *testing.T) {
	m := Module{State: "Active", Phys: "LinkUp", Speed: "IB-NDR", Gbps: 400, Width: "4x", Enabled: []string{"NDR", "HDR"}, Cable: []string{"NDR", "HDR"}, Opcode: "0",
		Technology: "Copper cable, passive, unequalized", Temperature: ptr(0.0), LossOfSignal: []int{1, 0, 1, 1}}
	expect(t, "passive copper has no electronics", Cable(m), "pass")
	m.Technology = "850 nm VCSEL"
	expect(t, "light lost", Cable(m), "warn light")
	m.LossOfSignal, m.Speed, m.Gbps = nil, "IB-HDR", 200
	expect(t, "slower than both can", Cable(m), "fail NDR")
	m.Cable = []string{"HDR", "EDR"}
	expect(t, "cable made for it", Cable(m), "pass")
	m.EffectiveBER = ptr(1e-9)
	expect(t, "bit errors", Cable(m), "fail 1e-12")
	down := Module{State: "Polling", Phys: "ETH_AN_FSM_ENABLE", Opcode: "2", Advice: "Negotiation failure"}
	expect(t, "down", Cable(down), "fail Negotiation")
}
