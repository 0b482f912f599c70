// Package topo tells how the GPUs and network adapters of a node are joined:
// by NVLink, by the PCI tree and across sockets. It reads files and values
// only, so that a copy of a machine's /sys is as good as the machine.
package topo

import (
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Device is a function on the PCI bus, as /sys/bus/pci/devices/ADDRESS shows
// it. What is not told is nil, "" or 0.
type Device struct {
	Address string   // "0000:3b:00.0"
	Path    []string // host bridge, bridges, the device itself: "pci0000:3a", "0000:3a:01.0", "0000:3b:00.0"
	Vendor  uint16
	ID      uint16
	Class   uint32 // 24 bits: 0x030200 is a 3D controller
	NUMA    *int   // nil where the kernel says −1
	CPUs    string // near it, "0-47,96-143"
	Now     Link   // what the link to the port above runs at
	Max     Link   // what the device can
}

// Link is a PCIe link.
type Link struct {
	GTs   float64 // transfers a second of a lane, 1e9: 2.5, 5, 8, 16, 32, 64
	Lanes int
}

// gtps are the speeds of the generations, from the first on.
var gtps = []float64{2.5, 5, 8, 16, 32, 64, 128}

// Gen is the PCIe generation, 0 where unknown.
func (l Link) Gen() int {
	for i, s := range gtps {
		if l.GTs == s {
			return i + 1
		}
	}
	return 0
}

// GBps is what the link carries each way after line coding (8b/10b up to
// 5 GT/s, 128b/130b up to 32, then flits of 256 bytes of which 14 are not
// payload; PCIe base specification), 0 where unknown.
func (l Link) GBps() float64 {
	coding := 128.0 / 130
	switch {
	case l.GTs <= 5:
		coding = 0.8
	case l.GTs > 32:
		coding = 242.0 / 256
	}
	return l.GTs * coding * float64(l.Lanes) / 8
}

const pciDevices = "sys/bus/pci/devices"

var addressForm = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// Addresses lists the PCI functions of a machine, in order.
func Addresses(root fs.FS) ([]string, error) {
	es, err := fs.ReadDir(root, pciDevices)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range es {
		if addressForm.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// ReadDevice reads a PCI function; only Address is set where there is none.
func ReadDevice(root fs.FS, address string) Device {
	d := Device{Address: address}
	if !addressForm.MatchString(address) {
		return d
	}
	dir := path.Join(pciDevices, address)
	if to, err := fs.ReadLink(root, dir); err == nil {
		d.Path = treePath(to)
	}
	d.Vendor, d.ID, d.Class = uint16(hexWord(root, dir, "vendor")), uint16(hexWord(root, dir, "device")), uint32(hexWord(root, dir, "class"))
	if n, err := strconv.Atoi(word(root, dir, "numa_node")); err == nil && n >= 0 {
		d.NUMA = &n
	}
	d.CPUs = word(root, dir, "local_cpulist")
	d.Now = readLink(root, dir, "current")
	d.Max = readLink(root, dir, "max")
	return d
}

// treePath cuts what lies before the host bridge from a link of
// /sys/bus/pci/devices ("../../../devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0";
// on Hyper-V the bridge lies deeper).
func treePath(link string) []string {
	parts := strings.Split(link, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "pci") && strings.Contains(p, ":") {
			return parts[i:]
		}
	}
	return nil
}

// readLink reads current_link_speed ("16.0 GT/s PCIe") and …_width ("16"); a
// virtual machine may say "Unknown" and 255 or 63 (the register's ones).
func readLink(root fs.FS, dir, which string) (l Link) {
	speed, _, _ := strings.Cut(word(root, dir, which+"_link_speed"), " ")
	gts, err1 := strconv.ParseFloat(speed, 64)
	lanes, err2 := strconv.Atoi(word(root, dir, which+"_link_width"))
	if l = (Link{gts, lanes}); err1 != nil || err2 != nil || l.Gen() == 0 || l.Lanes < 1 || l.Lanes > 32 {
		return Link{}
	}
	return l
}

// maxFile is far above any of the files that are read here.
const maxFile = 64 << 10

// word is a file's text without the white space around it; "" where it cannot
// be read.
func word(root fs.FS, dir, file string) string {
	f, err := root.Open(path.Join(dir, file))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func hexWord(root fs.FS, dir, file string) uint64 {
	v, _ := strconv.ParseUint(strings.TrimPrefix(word(root, dir, file), "0x"), 16, 32)
	return v
}

// Bridges are the PCI bridges above a device, from the root port down.
func (d Device) Bridges() (out []string) {
	for _, b := range d.above() {
		if addressForm.MatchString(b) {
			out = append(out, b)
		}
	}
	return out
}

// Accelerates says whether a device is of the display (03) or processing (12)
// class and of a maker whose GPUs take part in collectives; a server's console
// adapter is neither's.
func (d Device) Accelerates() bool {
	class := d.Class >> 16
	return (class == 0x03 || class == 0x12) && (d.Vendor == nvidia || d.Vendor == amd)
}

// above is the chain of bridges over a device, the host bridge first.
func (d Device) above() []string {
	if len(d.Path) == 0 {
		return nil
	}
	return d.Path[:len(d.Path)-1]
}
