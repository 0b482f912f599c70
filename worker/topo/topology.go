package topo

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"busbw/rdma"
	"busbw/reports"
)

// Read makes the topology of a machine from its files and its GPUs.
func Read(name string, root fs.FS, gpus []reports.GPU, noGPUs string) reports.Topology {
	t := reports.Topology{Node: name, GPUs: gpus, NoGPUs: noGPUs}
	if gpus == nil && noGPUs == "" {
		t.GPUs = []reports.GPU{} // none: that is known
	}
	var devices []Device
	for _, g := range gpus {
		devices = append(devices, ReadDevice(root, g.PCI))
	}
	t.NICs, t.Virtual, t.NoNICs = nics(root)
	for _, n := range t.NICs {
		devices = append(devices, ReadDevice(root, n.PCI))
	}
	t.Bonds = bonds(gpus)
	t.Paths = matrix(devices, len(gpus), t.Bonds, gpus)
	t.Shared = shared(root, devices, names(t))
	t.Use = near(t)
	t.Odd = odd(t)
	return t
}

// names are the devices as the matrix calls them.
func names(t reports.Topology) (out []string) {
	for i := range t.GPUs {
		out = append(out, fmt.Sprintf("GPU%d", i))
	}
	for _, n := range t.NICs {
		out = append(out, n.Name)
	}
	return out
}

// maxNICs is far above any machine whose virtual functions are left out.
const maxNICs = 1024

// nics lists the RDMA devices, or, where there are none, the network
// interfaces that are devices on the PCI bus. Virtual functions of an adapter
// that is here itself are only counted.
func nics(root fs.FS) (out []reports.NIC, virtual int, why string) {
	out = []reports.NIC{}
	hcas, err := rdma.HCAs(root)
	if err != nil {
		why = err.Error()
	}
	for _, h := range hcas {
		if Virtual(root, h.PCI) {
			virtual++
			continue
		}
		n := reports.NIC{Name: h.Name, RDMA: true, PCI: h.PCI, NUMA: h.NUMA}
		for _, p := range h.Ports {
			up := p.State == rdma.PortActive
			if n.Up == nil || up {
				n.Up, n.Layer = &up, p.LinkLayer
			}
			if up && p.Gbps > 0 && (n.Gbps == nil || p.Gbps > *n.Gbps) {
				n.Gbps = &p.Gbps
			}
		}
		n.Netdev = netdevs(root, h.PCI)
		n.CPUs = ReadDevice(root, h.PCI).CPUs
		out = append(out, n)
	}
	if len(out) == 0 {
		out = interfaces(root)
	}
	slices.SortStableFunc(out, func(a, b reports.NIC) int { return natural(a.Name, b.Name) })
	if len(out) > maxNICs {
		return []reports.NIC{}, virtual, fmt.Sprintf("%d network adapters: want at most %d", len(out), maxNICs)
	}
	return out, virtual, why
}

// Virtual says whether a PCI function is a virtual one of an adapter of this
// machine; one that a virtual machine was given looks like any other.
func Virtual(root fs.FS, address string) bool {
	if !addressForm.MatchString(address) {
		return false
	}
	_, err := fs.Stat(root, path.Join(pciDevices, address, "physfn"))
	return err == nil
}

func netdevs(root fs.FS, address string) (out []string) {
	es, _ := fs.ReadDir(root, path.Join(pciDevices, address, "net"))
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

// interfaces are those of /sys/class/net that have a PCI device.
func interfaces(root fs.FS) []reports.NIC {
	out := []reports.NIC{}
	es, _ := fs.ReadDir(root, "sys/class/net")
	for _, e := range es {
		dir := path.Join("sys/class/net", e.Name())
		to, err := fs.ReadLink(root, dir) // ../../devices/pci0000:00/0000:00:03.0/virtio0/net/eth0
		if err != nil || strings.Contains(to, "/usb") {
			continue
		}
		parts := slices.DeleteFunc(treePath(to), func(s string) bool { return !addressForm.MatchString(s) })
		if len(parts) == 0 {
			continue
		}
		d := ReadDevice(root, parts[len(parts)-1])
		if Virtual(root, d.Address) {
			continue
		}
		n := reports.NIC{Name: e.Name(), PCI: d.Address, NUMA: d.NUMA, CPUs: d.CPUs, Layer: "Ethernet", Netdev: []string{e.Name()}}
		if s := word(root, dir, "operstate"); s != "" {
			up := s == "up"
			n.Up = &up
		}
		if mb, err := strconv.ParseFloat(word(root, dir, "speed"), 64); err == nil && mb > 0 {
			mb /= 1000
			n.Gbps = &mb
		}
		out = append(out, n)
	}
	return out
}

// natural puts mlx5_10 behind mlx5_9.
func natural(a, b string) int {
	x, y := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	if c := strings.Compare(x, y); c != 0 {
		return c
	}
	m, _ := strconv.Atoi(a[len(x):])
	n, _ := strconv.Atoi(b[len(y):])
	return m - n
}

// bonds finds the pairs of GPUs that NVLink or XGMI joins. Where the links go
// to switches, every pair shares what the lesser of its two GPUs has.
func bonds(gpus []reports.GPU) (out []reports.Bond) {
	for a := range gpus {
		for b := a + 1; b < len(gpus); b++ {
			if x, ok := bond(gpus[a], gpus[b]); ok {
				x.A, x.B = a, b
				out = append(out, x)
			}
		}
	}
	return out
}

func bond(a, b reports.GPU) (reports.Bond, bool) {
	for _, x := range a.XGMI {
		if x.PCI == b.PCI {
			return reports.Bond{GBps: x.GBps}, true
		}
	}
	direct := func(l reports.NVLink) bool {
		return l.RemoteKind != "switch" && l.RemotePCI != "" && l.RemotePCI == b.PCI
	}
	if n, gen, gbps := sum(a, direct); n > 0 {
		return reports.Bond{Links: n, Generation: gen, GBps: gbps}, true
	}
	if a.Fabric != nil && b.Fabric != nil && a.Fabric.CliqueID != nil && b.Fabric.CliqueID != nil &&
		(*a.Fabric.CliqueID != *b.Fabric.CliqueID || a.Fabric.ClusterUUID != b.Fabric.ClusterUUID) {
		return reports.Bond{}, false // partitions of one fabric do not reach each other
	}
	toSwitch := func(l reports.NVLink) bool { return l.RemoteKind == "switch" }
	n, gen, gbps := sum(a, toSwitch)
	m, genB, gbpsB := sum(b, toSwitch)
	if n == 0 || m == 0 {
		return reports.Bond{}, false
	}
	if m < n {
		n, gbps = m, gbpsB
	}
	return reports.Bond{Links: n, Generation: min(gen, genB), GBps: gbps, Switch: true}, true
}

// sum adds up the links of a GPU that are up; the rate is nil unless every one
// of them tells its own.
func sum(g reports.GPU, which func(reports.NVLink) bool) (n, gen int, gbps *float64) {
	var rate float64
	told := true
	for _, l := range g.NVLinks {
		if l.Up == nil || !*l.Up || !which(l) {
			continue
		}
		n++
		gen = l.Version
		if l.GBps == nil {
			told = false
		} else {
			rate += *l.GBps
		}
	}
	if n == 0 || !told {
		return n, gen, nil
	}
	return n, gen, &rate
}

// matrix is the word for every pair.
func matrix(devices []Device, gpus int, bonds []reports.Bond, all []reports.GPU) [][]string {
	m := make([][]string, len(devices))
	for i := range m {
		m[i] = make([]string, len(devices))
		for j := range m[i] {
			if m[i][j] = Distance(devices[i], devices[j]); i == j {
				m[i][j] = Self
			}
		}
	}
	for _, b := range bonds {
		w := XGMI
		if b.Links > 0 {
			w = fmt.Sprintf("NV%d", b.Links)
		}
		m[b.A][b.B], m[b.B][b.A] = w, w
	}
	return m
}

// links is the number of an NV# word, 0 for any other.
func links(word string) int {
	s, ok := strings.CutPrefix(word, "NV")
	n, err := strconv.Atoi(s)
	if !ok || err != nil || n < 1 {
		return 0
	}
	return n
}

// shared finds the bridges above several devices. Of bridges over the same
// devices the lowest is told: its link upwards is what they share.
func shared(root fs.FS, devices []Device, names []string) (out []reports.Shared) {
	below := map[string][]int{} // bridge → devices, ascending
	depth := map[string]int{}
	var order []string
	for i, d := range devices {
		for k, b := range d.above() {
			if k == 0 { // the host bridge is no port
				continue
			}
			if below[b] == nil {
				order = append(order, b)
			}
			below[b], depth[b] = append(below[b], i), k
		}
	}
	for _, b := range order {
		if slotOnly(devices, below[b]) || slices.ContainsFunc(order, func(o string) bool { return depth[o] > depth[b] && slices.Equal(below[o], below[b]) }) {
			continue
		}
		s := reports.Shared{Port: b}
		for _, i := range below[b] {
			s.Devices = append(s.Devices, names[i])
		}
		l := ReadDevice(root, b).Now
		if v := l.GBps(); v > 0 {
			s.GBps, s.Gen, s.Lanes = &v, l.Gen(), l.Lanes
		}
		out = append(out, s)
	}
	return out
}

// slotOnly says whether the devices are functions of one card or a single one:
// that is no sharing worth telling.
func slotOnly(devices []Device, which []int) bool {
	card := func(i int) string { a, _, _ := strings.Cut(devices[which[i]].Address, "."); return a }
	for i := range which {
		if card(i) != card(0) {
			return false
		}
	}
	return true
}
