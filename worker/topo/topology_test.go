package topo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"busbw/reports"
)

func TestHGX(t *testing.T) {
	m, gpus := hgx()
	top := Read("a", m, gpus, "")
	if len(top.NICs) != 8 || top.NICs[3].Name != "mlx5_3" || top.NICs[3].Gbps == nil || *top.NICs[3].Gbps != 400 || top.NICs[3].CPUs != "0-47" {
		t.Fatalf("adapters %+v", top.NICs)
	}
	// what nvidia-smi topo -m prints of such a node
	for i := range 8 {
		for j := range 8 {
			gpu, nic := "NV18", "SYS"
			if i == j {
				gpu, nic = "X", "PIX"
			} else if i/4 == j/4 {
				nic = "NODE"
			}
			if got := top.Paths[i][j]; got != gpu {
				t.Errorf("GPU%d–GPU%d: %s, want %s", i, j, got, gpu)
			}
			if got := top.Paths[i][8+j]; got != nic || top.Paths[8+j][i] != got {
				t.Errorf("GPU%d–mlx5_%d: %s, want %s", i, j, got, nic)
			}
		}
	}
	if len(top.Odd) != 0 {
		t.Errorf("odd: %q", top.Odd)
	}
	if b := top.Bonds; len(b) != 28 || b[0].Links != 18 || b[0].Generation != 4 || *b[0].GBps != 450 || !b[0].Switch {
		t.Errorf("bonds %+v", b)
	}
	for i, s := range top.Shared {
		if want := []string{fmt.Sprintf("GPU%d", i), fmt.Sprintf("mlx5_%d", i)}; s.Port != fmt.Sprintf("0000:%02x:00.0", 0x11+0x10*i) || !slices.Equal(s.Devices, want) || s.Gen != 5 || s.Lanes != 16 {
			t.Errorf("shared %+v", s)
		}
	}
	for i := range 8 {
		cpus, nics := Beside(top, i)
		if cpus != cpusOf(fmt.Sprint(i/4)) || len(nics) != 1 || nics[0].Name != fmt.Sprintf("mlx5_%d", i) {
			t.Errorf("beside GPU%d: %q, %+v", i, cpus, nics)
		}
	}
	if cpus, nics := Beside(top, 8); cpus != "" || nics != nil {
		t.Error("there is no GPU 8")
	}
	if _, err := json.Marshal(top); err != nil {
		t.Error(err)
	}
}

// Paths from the field: what lies between, and the word for it.
func TestDistance(t *testing.T) {
	one, two := 0, 1
	at := func(numa *int, place string) Device {
		p := treePath("../../../devices/" + place)
		return Device{Address: p[len(p)-1], Path: p, NUMA: numa}
	}
	gpu := at(&one, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0")
	for _, tc := range []struct {
		what string
		a, b Device
		want string
	}{
		{"one switch", gpu, at(&one, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"), PIX},
		{"two functions of one card", at(&one, "pci0000:3a/0000:3a:01.0/0000:3b:00.0"), at(&one, "pci0000:3a/0000:3a:01.0/0000:3b:00.1"), PIX},
		{"a switch below the other's switch", gpu, at(&one, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:20:00.0/0000:21:00.0/0000:22:00.0"), PXB},
		{"two switches below a third", at(&one, "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0/0000:04:00.0/0000:05:00.0"),
			at(&one, "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:13:00.0/0000:14:00.0/0000:15:00.0"), PXB},
		{"two root ports of one host bridge", gpu, at(&one, "pci0000:15/0000:15:02.0/0000:30:00.0"), PHB},
		{"two host bridges of a NUMA node", gpu, at(&one, "pci0000:3a/0000:3a:01.0/0000:3b:00.0"), NODE},
		{"two sockets", gpu, at(&two, "pci0000:97/0000:97:01.0/0000:98:00.0"), SYS},
		{"no NUMA node is told", at(nil, "pci0000:15/0000:15:01.0/0000:16:00.0"), at(nil, "pci0000:3a/0000:3a:01.0/0000:3b:00.0"), NODE},
		{"one NUMA node is told", gpu, at(nil, "pci0000:3a/0000:3a:01.0/0000:3b:00.0"), SYS},
		{"virtual machine, a host bridge for each device", at(&one, "LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500/pci0001:00/0001:00:00.0"),
			at(&one, "LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505501/pci0101:00/0101:00:00.0"), NODE},
		{"nothing is known", Device{Address: "0000:01:00.0"}, gpu, Unknown},
	} {
		if got, back := Distance(tc.a, tc.b), Distance(tc.b, tc.a); got != tc.want || back != got {
			t.Errorf("%s: %s, back %s, want %s", tc.what, got, back, tc.want)
		}
	}
}

func down(gpus []reports.GPU, gpu int, ls ...int) {
	for _, l := range ls {
		no := false
		gpus[gpu].NVLinks[l] = reports.NVLink{Link: l, Up: &no}
	}
}

func TestOdd(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(files, []reports.GPU) (files, []reports.GPU)
		want   []string
	}{
		{"two links down", func(m files, g []reports.GPU) (files, []reports.GPU) {
			down(g, 3, 3, 5)
			return m, g
		}, []string{"GPU3 has 16 NVLinks up, other NVIDIA H100 80GB HBM3 have 18; down: 3, 5"}},
		{"a link down on every GPU", func(m files, g []reports.GPU) (files, []reports.GPU) {
			for i := range g {
				down(g, i, 17)
			}
			return m, g[:2]
		}, []string{"GPU0 has 17 NVLinks up, NVIDIA H100 80GB HBM3 as built has 18; down: 17", "GPU1 has 17"}},
		{"twelve of eighteen by design", func(m files, g []reports.GPU) (files, []reports.GPU) {
			for i := range g {
				g[i].Name, g[i].Fabric = "NVIDIA H100 NVL", nil
				down(g, i, 4, 5, 10, 11, 16, 17)
			}
			return m, g
		}, nil},
		{"no link up", func(m files, g []reports.GPU) (files, []reports.GPU) {
			for i := range g {
				for l := range 18 {
					down(g, i, l)
				}
				g[i].Fabric = nil
			}
			return m, g
		}, []string{"fabric manager"}},
		{"no bridge is fitted", func(m files, g []reports.GPU) (files, []reports.GPU) {
			for i := range g {
				for l := range 18 {
					down(g, i, l)
				}
				g[i].Fabric, g[i].Name = nil, "NVIDIA H100 PCIe"
			}
			return m, g
		}, nil},
		{"fabric not ready", func(m files, g []reports.GPU) (files, []reports.GPU) {
			g[2].Fabric = &reports.Fabric{State: "in_progress"}
			return m, g
		}, []string{`GPU2: its registration with the NVSwitch fabric is "in_progress"`}},
		{"fabric partitioned", func(m files, g []reports.GPU) (files, []reports.GPU) {
			other := 7
			for i := 4; i < 8; i++ {
				g[i].Fabric = &reports.Fabric{State: "completed", Status: "ok", CliqueID: &other}
			}
			return m, g
		}, []string{"partitioned: GPU0 GPU1 GPU2 GPU3 | GPU4 GPU5 GPU6 GPU7"}},
		{"a GPU on the far socket", func(m files, g []reports.GPU) (files, []reports.GPU) {
			for i := range g {
				g[i].NVLinks, g[i].Fabric = nil, nil
			}
			return m, []reports.GPU{g[0], g[1], g[2], g[5]}
		}, []string{"GPU3 reaches the other GPUs by 3 × SYS; most GPUs by 2 × NODE, 1 × SYS"}},
		{"no adapter on the socket", func(m files, g []reports.GPU) (files, []reports.GPU) {
			for i := 4; i < 8; i++ {
				m = m.without(fmt.Sprintf("sys/class/infiniband/mlx5_%d", i))
			}
			return m, g[:5]
		}, []string{"GPU4 has no adapter on its socket", "(SYS)"}},
		{"an adapter is missing", func(m files, g []reports.GPU) (files, []reports.GPU) {
			return m.without("sys/class/infiniband/mlx5_2"), g
		}, []string{"GPU2's nearest adapter, mlx5_", ", is NODE away; most GPUs have one at PIX"}},
		{"half the lanes", func(m files, g []reports.GPU) (files, []reports.GPU) {
			eight := 8
			g[6].PCIeWidth = &eight
			return m, g
		}, []string{"GPU6's PCIe link is x8 wide"}},
		{"one slow link", func(m files, g []reports.GPU) (files, []reports.GPU) {
			slow := 12.5
			g[1].NVLinks[4].GBps = &slow
			return m, g
		}, []string{"GPU1: NVLink 4 runs at 12.5 GB/s, others of it at 25"}},
	} {
		m, gpus := hgx()
		m, gpus = tc.change(m, gpus)
		top := Read("a", m, gpus, "")
		all := strings.Join(top.Odd, "\n")
		if len(tc.want) == 0 && len(top.Odd) > 0 {
			t.Errorf("%s: %q is held for odd", tc.name, top.Odd)
		}
		for _, w := range tc.want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: %q is not in %q", tc.name, w, top.Odd)
			}
		}
		if len(tc.want) > 0 && len(top.Odd) > 2 {
			t.Errorf("%s: more than the fault is held for odd: %q", tc.name, top.Odd)
		}
		if tc.name == "fabric partitioned" && (top.Paths[0][3] != "NV18" || top.Paths[0][4] != SYS) {
			t.Errorf("%s: %q", tc.name, top.Paths[0])
		}
		if tc.name == "two links down" && (top.Paths[3][0] != "NV16" || top.Paths[0][1] != "NV18") {
			t.Errorf("%s: %q", tc.name, top.Paths[3])
		}
	}
}

// Direct links: a ring of four GPUs with two links to each neighbour.
func TestDirectLinks(t *testing.T) {
	m, gpus := hgx()
	gpus = gpus[:4]
	for i := range gpus {
		gpus[i].NVLinks, gpus[i].Fabric, gpus[i].Name = gpus[i].NVLinks[:4], nil, "NVIDIA A100-PCIE-40GB"
		for l := range gpus[i].NVLinks {
			k := &gpus[i].NVLinks[l]
			k.RemoteKind, k.RemotePCI, k.Version = "gpu", gpus[(i+1+2*(l/2))%4].PCI, 3
		}
	}
	top := Read("a", m, gpus, "")
	if got := strings.Join(top.Paths[0][:4], " "); got != "X NV2 NODE NV2" {
		t.Error(got)
	}
	if name, gbps, _, _ := Peer(top, []int{0, 1, 3}); name == "NVLink" {
		t.Errorf("GPU1 and GPU3 have no link, and the limit is %s %g", name, gbps)
	}
	if b := top.Bonds[0]; b.Switch || b.Generation != 3 || *b.GBps != 50 || len(top.Odd) != 0 {
		t.Errorf("%+v, odd %q", b, top.Odd)
	}
}

// A host of virtual machines: its adapter's virtual functions are no adapters
// to choose from; a file may not be as long as it likes.
func TestVirtualFunctions(t *testing.T) {
	m, gpus := hgx()
	for i := range 16 {
		place := fmt.Sprintf("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:%02x.%d", i/8, 1+i%7)
		if i >= 14 {
			place = fmt.Sprintf("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:%02x.0", i)
		}
		m.hca(fmt.Sprintf("mlx5_%d", 20+i), place, "0")
		m.link("sys/devices/"+place+"/physfn", "../0000:14:00.0")
	}
	vgpu := m.device("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.4", gpuFacts("0"))
	m.link("sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/"+vgpu+"/physfn", "../0000:13:00.0")
	if all, err := GPUs(m); err != nil || len(all) != 8 {
		t.Errorf("%d GPUs with a share of one, %v", len(all), err)
	}
	m.put("sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0/local_cpulist", strings.Repeat("0,", 1<<20))
	top := Read("a", m, gpus, "")
	if len(top.NICs) != 8 || top.Virtual != 16 || len(top.Odd) != 0 {
		t.Errorf("%d adapters, %d virtual functions, odd %q", len(top.NICs), top.Virtual, top.Odd)
	}
	if d := ReadDevice(m, gpus[0].PCI); len(d.CPUs) > maxFile {
		t.Errorf("a file of %d bytes was read", len(d.CPUs))
	}
}

// GPUs that share a switch with two adapters take one each.
func TestAdaptersAreDealtOut(t *testing.T) {
	m := files{fstest.MapFS{}}
	var gpus []reports.GPU
	const up = "pci0000:15/0000:15:01.0/0000:16:00.0/"
	for i := range 4 {
		gpus = append(gpus, reports.GPU{Index: i, PCI: m.device(up+fmt.Sprintf("0000:17:%02x.0/0000:%02x:00.0", i, 0x20+i), gpuFacts("0"))})
	}
	m.hca("mlx5_10", up+"0000:17:08.0/0000:30:00.0", "0")
	m.hca("mlx5_9", up+"0000:17:09.0/0000:31:00.0", "0")
	top := Read("a", m, gpus, "")
	var got []string
	for i := range gpus {
		_, nics := Beside(top, i)
		got = append(got, nics[0].Name)
	}
	if want := []string{"mlx5_9", "mlx5_10", "mlx5_9", "mlx5_10"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(top.Shared) != 1 || len(top.Shared[0].Devices) != 6 || top.Shared[0].Port != "0000:16:00.0" {
		t.Errorf("shared %+v", top.Shared)
	}
	m.put("sys/devices/"+up+"0000:17:09.0/0000:31:00.0/infiniband/mlx5_9/ports/1/state", "1: DOWN")
	if _, nics := Beside(Read("a", m, gpus, ""), 0); len(nics) != 1 || nics[0].Name != "mlx5_10" {
		t.Errorf("an adapter that is down is used: %+v", nics)
	}
}

func TestGPUsFromFiles(t *testing.T) {
	m, _ := hgx()
	m.put("proc/driver/nvidia/gpus/0000:23:00.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-????????-????-????-????-????????????")
	gpus, err := GPUs(m.without("proc/driver/nvidia/gpus/0000:33:00.0"))
	if err != nil || len(gpus) != 8 {
		t.Fatal(len(gpus), err)
	}
	if g := gpus[0]; g.Name != "NVIDIA H100 80GB HBM3" || g.UUID != "GPU-00000000" || g.PCI != "0000:13:00.0" || *g.NUMA != 0 || *g.PCIeGen != 1 || *g.PCIeGenMax != 5 || *g.PCIeWidth != 16 || g.CPUs != "0-47" || len(g.Absent) != 1 {
		t.Errorf("%+v", g)
	}
	if gpus[1].UUID != "" || gpus[2].Name != "NVIDIA GPU, device 0x2330" || len(gpus[2].Absent) != 2 {
		t.Errorf("%+v, %+v", gpus[1], gpus[2])
	}
	if _, err := GPUs(fstest.MapFS{}); err == nil {
		t.Error("a machine without a PCI bus has no GPUs, and that is known")
	}
}

// A node of AMD GPUs, each linked to each.
func TestAMD(t *testing.T) {
	m := files{fstest.MapFS{}}
	m.put(kfdNodes+"/0/properties", "cpu_cores_count 96\nsimd_count 0\nlocation_id 0\ndomain 0")
	for i := range 4 {
		f := gpuFacts(fmt.Sprint(i / 2))
		f["vendor"], f["class"], f["product_name"], f["unique_id"], f["mem_info_vram_total"] = "0x1002", "0x120000", "AMD Instinct MI300X", fmt.Sprintf("abc%d", i), "206141652992"
		bus := 0x10 + 0x10*i
		m.device(fmt.Sprintf("pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0", bus, bus, bus+1), f)
		dir := fmt.Sprintf("%s/%d", kfdNodes, i+1)
		m.put(dir+"/properties", fmt.Sprintf("simd_count 1216\nlocation_id %d\ndomain 0\ngfx_target_version 90402", (bus+1)<<8))
		m.put(dir+"/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\nmax_bandwidth 64000")
		for j := range 4 {
			if j != i {
				m.put(fmt.Sprintf("%s/io_links/%d/properties", dir, j+1), fmt.Sprintf("type 11\nnode_from %d\nnode_to %d\nmax_bandwidth 64000", i+1, j+1))
			}
		}
	}
	gpus, err := GPUs(m)
	if err != nil || len(gpus) != 4 {
		t.Fatal(len(gpus), err)
	}
	if g := gpus[1]; g.Vendor != "amd" || g.Name != "AMD Instinct MI300X" || g.Capability != "gfx942" || g.UUID != "abc1" || *g.MemoryBytes != 206141652992 || len(g.XGMI) != 3 || *g.XGMI[0].GBps != 64 {
		t.Errorf("%+v", g)
	}
	top := Read("a", m, gpus, "")
	if name, gbps, _, ok := Peer(top, []int{0, 1, 2, 3}); !ok || name != "XGMI" || gbps != 192 {
		t.Errorf("%s %g %v", name, gbps, ok)
	}
	if got := strings.Join(top.Paths[0], " "); got != "X XGMI XGMI XGMI" || len(top.Bonds) != 6 || *top.Bonds[0].GBps != 64 || len(top.Odd) != 0 {
		t.Errorf("%s, %+v, %q", got, top.Bonds, top.Odd)
	}
}

func TestAcross(t *testing.T) {
	make := func(name string, change func(files, []reports.GPU) (files, []reports.GPU)) reports.Topology {
		m, gpus := hgx()
		if change != nil {
			m, gpus = change(m, gpus)
		}
		return Read(name, m, gpus, "")
	}
	a, b, c := make("a", nil), make("b", nil), make("c", nil)
	if got := Across([]reports.Topology{a, b, c}); len(got) != 0 {
		t.Errorf("equal nodes: %q", got)
	}
	weak := make("d", func(m files, g []reports.GPU) (files, []reports.GPU) {
		down(g, 2, 9)
		return m.without("sys/class/infiniband/mlx5_7"), g
	})
	got := Across([]reports.Topology{a, b, weak, c})
	if len(got) != 1 || !strings.HasPrefix(got[0], "node d: RDMA devices is [mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6], elsewhere [") || !strings.Contains(got[0], "NVLinks up on GPU2 is 17, elsewhere 18") || !strings.Contains(got[0], " more") {
		t.Errorf("%q", got)
	}
	if got := Across([]reports.Topology{a, weak}); len(got) != 1 || !strings.Contains(got[0], "none is in the majority") || !strings.Contains(got[0], "17 on d") {
		t.Errorf("two nodes that differ: %q", got)
	}
	blind := Read("e", fstest.MapFS{}, nil, "no driver")
	if got := Across([]reports.Topology{a, b, blind}); len(got) != 1 || strings.Contains(got[0], "GPU0") {
		t.Errorf("a node that knows nothing of its GPUs: %q", got)
	}
}

// What GPUs of a node can send to each other at once.
func TestPeer(t *testing.T) {
	m, gpus := hgx()
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	if name, gbps, how, ok := Peer(Read("a", m, gpus, ""), all); !ok || name != "NVLink" || gbps != 450 {
		t.Errorf("%s %g (%s) %v", name, gbps, how, ok)
	}
	down(gpus, 3, 0, 1)
	if _, gbps, how, _ := Peer(Read("a", m, gpus, ""), all); gbps != 400 || !strings.Contains(how, "GPU3") {
		t.Errorf("a GPU with 16 links: %g (%s)", gbps, how)
	}
	if _, gbps, _, _ := Peer(Read("a", m, gpus, ""), []int{0, 1}); gbps != 450 {
		t.Errorf("without that GPU: %g", gbps)
	}
	for i := range gpus {
		gpus[i].NVLinks = nil
	}
	if name, gbps, how, ok := Peer(Read("a", m, gpus, ""), all); !ok || name != "PCIe" || gbps < 55 || gbps > 57 || !strings.Contains(how, "Gen5 x16") { // 63.0 GB/s on the line
		t.Errorf("%s %g (%s) %v", name, gbps, how, ok)
	}
	gpus[5].PCIeGenMax = nil
	if _, _, _, ok := Peer(Read("a", m, gpus, ""), all); ok {
		t.Error("a GPU whose link is not known has a limit")
	}
	if _, _, _, ok := Peer(Read("a", m, gpus, ""), all[:1]); ok {
		t.Error("one GPU has a limit")
	}
}
