package topo

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"testing/fstest"

	"busbw/reports"
)

// files is a machine's /sys and /proc in the making.
type files struct{ fstest.MapFS }

func (m files) put(name, text string) { m.MapFS[name] = &fstest.MapFile{Data: []byte(text + "\n")} }

func (m files) link(name, to string) {
	m.MapFS[name] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
}

// device adds a PCI function with all bridges above it. place is its path
// below /sys/devices, facts are its files by name.
func (m files) device(place string, facts map[string]string) string {
	parts := strings.Split(place, "/")
	for i := range parts {
		if strings.HasPrefix(parts[i], "pci") {
			continue
		}
		dir := path.Join("sys/devices", path.Join(parts[:i+1]...))
		if i < len(parts)-1 && addressForm.MatchString(parts[i]) {
			m.put(dir+"/class", "0x060400")
			m.put(dir+"/vendor", "0x1000")
			m.put(dir+"/current_link_speed", "32.0 GT/s PCIe")
			m.put(dir+"/current_link_width", "16")
		}
		if addressForm.MatchString(parts[i]) {
			m.link(path.Join(pciDevices, parts[i]), "../../../devices/"+path.Join(parts[:i+1]...))
		}
	}
	dir := path.Join("sys/devices", place)
	for k, v := range facts {
		m.put(dir+"/"+k, v)
	}
	return path.Base(place)
}

// hca adds an RDMA device with one active port.
func (m files) hca(name, place, numa string) {
	facts := map[string]string{
		"class": "0x020700", "vendor": "0x15b3", "numa_node": numa, "local_cpulist": cpusOf(numa), "uevent": "PCI_SLOT_NAME=" + path.Base(place),
		"infiniband/" + name + "/ports/1/state": "4: ACTIVE", "infiniband/" + name + "/ports/1/phys_state": "5: LinkUp", "infiniband/" + name + "/node_guid": "0",
		"infiniband/" + name + "/ports/1/link_layer": "InfiniBand", "infiniband/" + name + "/ports/1/rate": "400 Gb/sec (4X NDR)",
	}
	m.device(place, facts)
	m.link("sys/class/infiniband/"+name, "../../devices/"+place+"/infiniband/"+name)
	m.link("sys/devices/"+place+"/infiniband/"+name+"/device", "../..")
}

func cpusOf(numa string) string {
	return map[string]string{"0": "0-47", "1": "48-95"}[numa]
}

func gpuFacts(numa string) map[string]string {
	return map[string]string{
		"class": "0x030200", "vendor": "0x10de", "device": "0x2330", "numa_node": numa, "local_cpulist": cpusOf(numa),
		"current_link_speed": "2.5 GT/s PCIe", "current_link_width": "16", "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16",
	}
}

// hgx is a node of eight H100: on each socket four root ports with a switch,
// and behind each switch a GPU and an RDMA device.
func hgx() (files, []reports.GPU) {
	m := files{fstest.MapFS{}}
	var gpus []reports.GPU
	for i := range 8 {
		numa, bus := fmt.Sprint(i/4), 0x10+0x10*i
		place := fmt.Sprintf("pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/", bus, bus, bus+1)
		a := m.device(place+fmt.Sprintf("0000:%02x:00.0/0000:%02x:00.0", bus+2, bus+3), gpuFacts(numa))
		m.hca(fmt.Sprintf("mlx5_%d", i), place+fmt.Sprintf("0000:%02x:01.0/0000:%02x:00.0", bus+2, bus+4), numa)
		m.put("proc/driver/nvidia/gpus/"+a+"/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 42\nGPU UUID: \t GPU-0000000"+fmt.Sprint(i)+"\nBus Location: \t "+a)
		g := reports.GPU{Index: i, Vendor: "nvidia", Name: "NVIDIA H100 80GB HBM3", PCI: a, Fabric: &reports.Fabric{State: "completed", Status: "ok", CliqueID: new(int)}}
		for l := range 18 {
			up, gbps := true, 25.0
			g.NVLinks = append(g.NVLinks, reports.NVLink{Link: l, Up: &up, Version: 4, GBps: &gbps, RemoteKind: "switch", RemotePCI: fmt.Sprintf("0000:%02x:00.0", 6+l%4)})
		}
		Locate(m, &g)
		gpus = append(gpus, g)
	}
	return m, gpus
}

// without leaves files out.
func (m files) without(prefix string) files {
	out := files{maps.Clone(m.MapFS)}
	for name := range out.MapFS {
		if strings.HasPrefix(name, prefix) {
			delete(out.MapFS, name)
		}
	}
	return out
}
