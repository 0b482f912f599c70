package topo

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"busbw/reports"
)

// PCI vendors and classes (PCI code and ID assignment specification).
const (
	nvidia = 0x10de
	amd    = 0x1002

	displayVGA  = 0x0300
	display3D   = 0x0302
	displayElse = 0x0380
	accelerator = 0x1200
)

// maxGPUs is far above any machine.
const maxGPUs = 1024

// GPUs lists the GPUs that a machine's files show, in PCI order, with what the
// files tell of them; each names what only its driver would tell.
func GPUs(root fs.FS) ([]reports.GPU, error) {
	addresses, err := Addresses(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("/%s is not there: the PCI bus cannot be seen", pciDevices)
	}
	if err != nil {
		return nil, err
	}
	kfd := readKFD(root)
	var gpus []reports.GPU
	for _, a := range addresses {
		dir := path.Join(pciDevices, a)
		vendor, class := hexWord(root, dir, "vendor"), hexWord(root, dir, "class")>>8
		var g reports.GPU
		switch {
		case vendor == nvidia && (class == displayVGA || class == display3D):
			g = nvidiaFiles(root, a)
		case vendor == amd && (kfd.node[a] != nil || class == accelerator || class == displayElse):
			g = kfd.gpu(root, a)
		default:
			continue
		}
		if Virtual(root, a) { // a share that waits for a virtual machine
			continue
		}
		if len(gpus) == maxGPUs {
			return nil, fmt.Errorf("more than %d GPUs", maxGPUs)
		}
		g.Index = len(gpus)
		Locate(root, &g)
		gpus = append(gpus, g)
	}
	return gpus, nil
}

// Locate fills in what a machine's files tell of where a GPU is, as far as its
// driver did not: NUMA node, processors, PCIe link.
func Locate(root fs.FS, g *reports.GPU) {
	d := ReadDevice(root, g.PCI)
	if g.NUMA == nil {
		g.NUMA = d.NUMA
	}
	if g.CPUs == "" {
		g.CPUs = d.CPUs
	}
	for _, f := range []struct {
		to    **int
		value int
	}{{&g.PCIeGen, d.Now.Gen()}, {&g.PCIeWidth, d.Now.Lanes}, {&g.PCIeGenMax, d.Max.Gen()}, {&g.PCIeWidthMax, d.Max.Lanes}} {
		if *f.to == nil && f.value > 0 {
			*f.to = &f.value
		}
	}
}

// nvidiaFiles reads what the NVIDIA driver shows below /proc.
func nvidiaFiles(root fs.FS, address string) reports.GPU {
	g := reports.GPU{Vendor: "nvidia", PCI: address, Absent: []string{"nvlinks, fabric, memory, ecc, clocks, counters: only NVML tells these"}}
	for line := range strings.Lines(word(root, "proc/driver/nvidia/gpus", address+"/information")) {
		switch k, v, _ := strings.Cut(line, ":"); strings.TrimSpace(k) {
		case "Model":
			g.Name = strings.TrimSpace(v)
		case "GPU UUID":
			if v = strings.TrimSpace(v); !strings.Contains(v, "?") { // not asked of the GPU yet
				g.UUID = v
			}
		}
	}
	if g.Name == "" {
		g.Name = fmt.Sprintf("NVIDIA GPU, device 0x%04x", ReadDevice(root, address).ID)
		g.Absent = append(g.Absent, "name: no NVIDIA driver shows it")
	}
	return g
}

// kfd is the topology of AMD's compute driver
// (/sys/class/kfd/kfd/topology/nodes, Linux drivers/gpu/drm/amd/amdkfd).
type kfd struct {
	node map[string]*kfdNode // GPUs, by PCI address
	at   map[int]string      // PCI address, by node number
}

type kfdNode struct {
	dir   string
	props map[string]uint64
}

const kfdNodes = "sys/class/kfd/kfd/topology/nodes"

// linkXGMI is HSA_IOLINK_TYPE_XGMI of the driver's io_links.
const linkXGMI = 11

func readKFD(root fs.FS) kfd {
	k := kfd{map[string]*kfdNode{}, map[int]string{}}
	es, _ := fs.ReadDir(root, kfdNodes) // no such folder: no AMD GPU
	for _, e := range es {
		n, err := strconv.Atoi(e.Name())
		dir := path.Join(kfdNodes, e.Name())
		p := properties(root, dir)
		if err != nil || p["simd_count"] == 0 { // a processor
			continue
		}
		at := p["location_id"]
		a := fmt.Sprintf("%04x:%02x:%02x.%d", p["domain"], at>>8&0xff, at>>3&0x1f, at&7)
		k.node[a], k.at[n] = &kfdNode{dir, p}, a
	}
	return k
}

// properties reads lines of a name and a number.
func properties(root fs.FS, dir string) map[string]uint64 {
	out := map[string]uint64{}
	for line := range strings.Lines(word(root, dir, "properties")) {
		if f := strings.Fields(line); len(f) == 2 {
			if v, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				out[f[0]] = v
			}
		}
	}
	return out
}

// gpu reads an AMD GPU.
func (k kfd) gpu(root fs.FS, address string) reports.GPU {
	dir := path.Join(pciDevices, address)
	g := reports.GPU{Vendor: "amd", PCI: address, Absent: []string{"ecc, clocks, power, counters: not among what busbw reads of amdgpu"}}
	if g.Name = word(root, dir, "product_name"); g.Name == "" {
		g.Name = fmt.Sprintf("AMD GPU, device 0x%04x", ReadDevice(root, address).ID)
	}
	g.UUID = word(root, dir, "unique_id")
	if v, err := strconv.ParseUint(word(root, dir, "mem_info_vram_total"), 10, 64); err == nil {
		g.MemoryBytes = &v
	}
	if v, err := strconv.Atoi(word(root, dir, "gpu_busy_percent")); err == nil {
		g.UtilisationPct = &v
	}
	n := k.node[address]
	if n == nil {
		g.Absent = append(g.Absent, "xgmi: the GPU is not in amdkfd's topology (is the amdgpu driver loaded?)")
		return g
	}
	if v := n.props["gfx_target_version"]; v > 0 {
		g.Capability = fmt.Sprintf("gfx%d%x%x", v/10000, v/100%100, v%100)
	}
	ls, _ := fs.ReadDir(root, path.Join(n.dir, "io_links"))
	for _, l := range ls {
		p := properties(root, path.Join(n.dir, "io_links", l.Name()))
		to, ok := k.at[int(p["node_to"])]
		if p["type"] != linkXGMI || !ok {
			continue
		}
		x := reports.XGMI{PCI: to}
		if mb := p["max_bandwidth"]; mb > 0 {
			v := float64(mb) / 1000
			x.GBps = &v
		}
		g.XGMI = append(g.XGMI, x)
	}
	return g
}
