// Package rdma finds RDMA devices, connects RC queue pairs over libibverbs
// (loaded at run time) and runs the executor's Link over them.
package rdma

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// HCA is an RDMA device as /sys/class/infiniband/NAME shows it. What the
// machine does not say is nil or "".
type HCA struct {
	Name     string
	Type     string // hca_type, "MT4129"
	Firmware string // fw_ver
	NodeGUID string // node_guid
	PCI      string // device/uevent PCI_SLOT_NAME, "0000:3b:00.0"
	Path     string // PCI path below /sys/devices, "pci0000:3a/0000:3a:00.0/0000:3b:00.0"
	NUMA     *int   // device/numa_node; nil where the kernel says −1
	Ports    []Port
}

// Port is /sys/class/infiniband/NAME/ports/NUM.
type Port struct {
	Num        int
	State      int    // state: 1 down, 2 init, 3 armed, 4 active
	Phys       int    // phys_state: 2 polling, 3 disabled, 5 link up, 6 recovery
	LinkLayer  string // link_layer: "InfiniBand" or "Ethernet"
	LID, SMLID uint16
	Rate       string  // rate, as it stands
	Gbps       float64 // its number; the label behind it is wrong on some kernels
	Width      int     // lanes
	GIDs       []GID   // zero entries left out
	PKeys      []uint16
}

// Port states and physical states (Documentation/ABI/stable/sysfs-class-infiniband).
const (
	PortActive = 4
	PhysUp     = 5
)

// GID is a row of a port's GID table.
type GID struct {
	Index  int
	Addr   netip.Addr // IPv4 where the GID is an IPv4-mapped one
	Raw    [16]byte
	Type   string // "IB/RoCE v1", "RoCE v2", "" where unreadable
	Netdev string
}

const infiniband = "sys/class/infiniband"

// HCAs reads every RDMA device under the root of a machine. A machine without
// any has none, and no error.
func HCAs(root fs.FS) ([]HCA, error) {
	names, err := list(root, infiniband)
	if err != nil {
		return nil, err
	}
	var out []HCA
	for _, name := range names {
		h := HCA{Name: name}
		dir := path.Join(infiniband, name)
		h.Type, h.Firmware, h.NodeGUID = word(root, dir, "hca_type"), word(root, dir, "fw_ver"), word(root, dir, "node_guid")
		for line := range strings.Lines(word(root, dir, "device/uevent")) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PCI_SLOT_NAME="); ok {
				h.PCI = v
			}
		}
		if to, err := fs.ReadLink(root, dir); err == nil { // ../../devices/PATH/infiniband/NAME
			if _, p, ok := strings.Cut(to, "devices/"); ok {
				h.Path = strings.TrimSuffix(p, "/infiniband/"+name)
			}
		}
		if h.PCI == "" { // a copy of some files only
			h.PCI = pciOf(root, dir, h.Path)
		}
		if n, err := strconv.Atoi(word(root, dir, "device/numa_node")); err == nil && n >= 0 {
			h.NUMA = &n
		}
		nums, err := list(root, path.Join(dir, "ports"))
		if err != nil {
			return nil, err
		}
		for _, s := range nums {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > 255 {
				return nil, fmt.Errorf("RDMA device %s: port %q is not a number from 1 to 255", name, s)
			}
			p, err := readPort(root, path.Join(dir, "ports", s), n)
			if err != nil {
				return nil, fmt.Errorf("RDMA device %s port %d: %w", name, n, err)
			}
			h.Ports = append(h.Ports, p)
		}
		slices.SortFunc(h.Ports, func(a, b Port) int { return a.Num - b.Num })
		out = append(out, h)
	}
	return out, nil
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// pciOf is the PCI address at the end of a device's path, or of the link to
// its device; "" where neither tells.
func pciOf(root fs.FS, dir, devicePath string) string {
	to, _ := fs.ReadLink(root, path.Join(dir, "device"))
	for _, p := range []string{path.Base(devicePath), path.Base(to)} {
		if pciAddress.MatchString(p) {
			return p
		}
	}
	return ""
}

// list is the names in a directory, in order; none where it does not exist.
func list(root fs.FS, dir string) ([]string, error) {
	es, err := fs.ReadDir(root, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range es {
		names = append(names, e.Name())
	}
	return names, nil
}

// word is a file's text without the white space around it; "" where it cannot be read.
func word(root fs.FS, dir, file string) string {
	f, err := root.Open(path.Join(dir, file))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxWord))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// maxWord is far above any of the files that are read here, bytes.
const maxWord = 64 << 10

var rateLine = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) Gb/sec \(([0-9]+)X`)

func readPort(root fs.FS, dir string, num int) (Port, error) {
	p := Port{Num: num, LinkLayer: word(root, dir, "link_layer"), Rate: word(root, dir, "rate")}
	p.State, p.Phys = code(word(root, dir, "state")), code(word(root, dir, "phys_state"))
	p.LID, p.SMLID = hex16(word(root, dir, "lid")), hex16(word(root, dir, "sm_lid"))
	if m := rateLine.FindStringSubmatch(p.Rate); m != nil {
		gbps, err1 := strconv.ParseFloat(m[1], 64)
		width, err2 := strconv.Atoi(m[2])
		if err1 == nil && err2 == nil && gbps < 1e6 && width <= 32 {
			p.Gbps, p.Width = gbps, width
		}
	}
	keys, err := indexed(root, path.Join(dir, "pkeys"))
	if err != nil {
		return p, err
	}
	for _, i := range keys {
		p.PKeys = append(p.PKeys, hex16(word(root, dir, "pkeys/"+strconv.Itoa(i))))
	}
	rows, err := indexed(root, path.Join(dir, "gids"))
	if err != nil {
		return p, err
	}
	for _, i := range rows {
		s := strconv.Itoa(i)
		a, err := netip.ParseAddr(word(root, dir, "gids/"+s))
		if err != nil || !a.Is6() || a.IsUnspecified() {
			continue // an empty row reads as zeros, and some kernels refuse to read it
		}
		// gid_attrs/types of an unused row gives EINVAL: absent, not a fault of the node.
		p.GIDs = append(p.GIDs, GID{Index: i, Raw: a.As16(), Addr: a.Unmap(), Type: word(root, dir, "gid_attrs/types/"+s), Netdev: word(root, dir, "gid_attrs/ndevs/"+s)})
	}
	return p, nil
}

// indexed is the numbers that name the files of a table, in order.
func indexed(root fs.FS, dir string) ([]int, error) {
	names, err := list(root, dir)
	var out []int
	for _, s := range names {
		if i, err := strconv.Atoi(s); err == nil && i >= 0 {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out, err
}

// code reads "4: ACTIVE"; 0 is what no port has.
func code(s string) int {
	s, _, _ = strings.Cut(s, ":")
	n, _ := strconv.Atoi(s)
	return n
}

func hex16(s string) uint16 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 16)
	return uint16(n)
}
