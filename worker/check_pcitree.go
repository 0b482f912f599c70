package worker

import (
	"encoding/binary"
	"path"
	"slices"
	"strconv"
	"strings"

	"busbw/rdma"
	"busbw/worker/judge"
	"busbw/worker/topo"
)

const pciDir = "sys/bus/pci/devices"

// readPCI reads the NICs that are RDMA devices, the GPUs, and the bridges
// above them (kernel Documentation/ABI/testing/sysfs-bus-pci).
func (s *survey) readPCI() []judge.PCI {
	nics := map[string]float64{} // PCI address → Gb/s of its active ports
	for _, h := range s.hcas {
		if h.PCI != "" {
			sum := 0.0
			for _, p := range h.Ports {
				if p.State == rdma.PortActive {
					sum += p.Gbps
				}
			}
			nics[h.PCI] = sum
		}
	}
	busy := map[string]*bool{}
	for _, g := range s.GPUs {
		if g.PCI != "" {
			busy[g.PCI] = nil
			if g.UtilisationPct != nil {
				b := *g.UtilisationPct >= 20
				busy[g.PCI] = &b
			}
		}
	}
	var out []judge.PCI
	var bridges []string
	for _, addr := range s.names(pciDir) {
		kind := judge.Other
		_, gpu := busy[addr]
		rate, nic := nics[addr]
		switch {
		case nic:
			kind = judge.NIC
		case gpu || topo.ReadDevice(s.Root, addr).Accelerates():
			kind = judge.GPU
		default:
			continue
		}
		if topo.Virtual(s.Root, addr) {
			continue // it has no link of its own
		}
		d := s.readDevice(topo.ReadDevice(s.Root, addr), kind)
		d.PortGbps, d.Busy = rate, busy[addr]
		for _, b := range d.Path {
			if !slices.Contains(bridges, b) {
				bridges = append(bridges, b)
			}
		}
		out = append(out, d)
	}
	for _, b := range bridges {
		out = append(out, s.readDevice(topo.ReadDevice(s.Root, b), judge.Bridge))
	}
	return out
}

// readDevice adds what checks alone want to know of a PCI function to what the
// topology reads.
func (s *survey) readDevice(t topo.Device, kind judge.Kind) judge.PCI {
	dir := path.Join(pciDir, t.Address)
	d := judge.PCI{Origin: judge.Origin("/" + dir), Addr: t.Address, Kind: kind, Path: t.Bridges()}
	d.Speed, d.MaxSpeed, d.Width, d.MaxWidth = t.Now.GTs, t.Max.GTs, t.Now.Lanes, t.Max.Lanes
	d.Fatal, d.NonFatal, d.Correctable = s.aer(dir, "aer_dev_fatal", "TOTAL_ERR_FATAL"), s.aer(dir, "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"), s.aer(dir, "aer_dev_correctable", "TOTAL_ERR_COR")
	readConfig(&d, []byte(s.text(path.Join(dir, "config"))))
	return d
}

// aer is the total of a file of error counts.
func (s *survey) aer(dir, file, total string) *uint64 {
	for l := range strings.Lines(s.word(dir, file)) {
		if f := strings.Fields(l); len(f) == 2 && f[0] == total {
			if v, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				return &v
			}
		}
	}
	return nil
}

// Capability ids (PCI Express base specification 7.5.3 and 7.7.11).
const (
	capExpress = 0x10
	capACS     = 0x0d
)

// readConfig takes device control and access control from configuration
// space. Without privilege the kernel gives 64 bytes: then all of it is not told.
func readConfig(d *judge.PCI, c []byte) {
	if len(c) <= 64 {
		d.ACSDenied = len(c) > 0
		return
	}
	for at, n := int(c[0x34])&^3, 0; at >= 0x40 && at+12 <= len(c) && at < 256 && n < 48; at, n = int(c[at+1])&^3, n+1 {
		if c[at] != capExpress {
			continue
		}
		ctl := binary.LittleEndian.Uint16(c[at+8:])
		d.MaxPayload = 128 << (c[at+4] & 7)
		d.Payload, d.ReadReq = 128<<(ctl>>5&7), 128<<(ctl>>12&7)
		relaxed := ctl&(1<<4) != 0
		d.Relaxed = &relaxed
	}
	if len(c) <= 256 {
		return // the rest may not be read, or does not exist
	}
	for at, n := 0x100, 0; at >= 0x100 && at+8 <= len(c) && n < 1024; n++ {
		head := binary.LittleEndian.Uint32(c[at:])
		if head == 0 || head == 0xffffffff {
			return
		}
		if head&0xffff == capACS {
			v := binary.LittleEndian.Uint16(c[at+6:])
			d.ACS = &v
		}
		at = int(head>>20) &^ 3
	}
}
