package worker

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbw/rdma"
	"busbw/reports"
	"busbw/worker/judge"
	"busbw/worker/topo"
)

// tail is the last n bytes of a stream.
func tail(r io.Reader, n int) string {
	buf := make([]byte, 0, 4<<10) // most files of /sys are smaller
	for {
		k, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+k]
		if err != nil {
			return string(buf[max(0, len(buf)-n):])
		}
		if len(buf) > 2*n {
			buf = append(buf[:0], buf[len(buf)-n:]...)
		}
		buf = slices.Grow(buf, 512)
	}
}

// none says that the node has no RDMA device, or that they cannot be read.
func (s *survey) none(id string) []reports.Finding {
	switch {
	case s.err != nil:
		return []reports.Finding{finding(id, "RDMA devices", reports.Unknown, s.err.Error())}
	case len(s.hcas) == 0 && id == "rdma-port-state" && len(s.cards()) > 0:
		f := finding(id, "RDMA devices", reports.Unknown, fmt.Sprintf("no RDMA device, though RDMA cards are on the PCI bus: %s", strings.Join(s.cards(), ", ")))
		f.Evidence = evidence("/"+pciDir, f.Got)
		f.Remedy = "load the card's RDMA driver (mlx5_ib, rdma-core's udev rules); in a container give it /sys/class/infiniband and /dev/infiniband (--device=/dev/infiniband)"
		return []reports.Finding{f}
	case len(s.hcas) == 0 && id == "rdma-port-state":
		return []reports.Finding{finding(id, "RDMA devices", reports.NA, "no RDMA device (/sys/class/infiniband is empty or absent)")}
	}
	return nil
}

// cards are adapters on the PCI bus whose maker sells no other kind than RDMA's
// (0x15b3: Mellanox), virtual functions left out.
func (s *survey) cards() (out []string) {
	for _, addr := range s.names(pciDir) {
		dir := pciDir + "/" + addr
		if s.word(dir, "vendor") == "0x15b3" && strings.HasPrefix(s.word(dir, "class"), "0x02") && !topo.Virtual(s.Root, addr) && len(out) < 16 {
			out = append(out, addr)
		}
	}
	return out
}

func (s *survey) ports() []judge.Port {
	var out []judge.Port
	for _, h := range s.hcas {
		for _, p := range h.Ports {
			dir := fmt.Sprintf("/sys/class/infiniband/%s/ports/%d", h.Name, p.Num)
			lid, sm := int(p.LID), int(p.SMLID)
			j := judge.Port{Origin: judge.Origin(dir), Device: h.Name, Num: p.Num, Type: h.Type, Board: s.word("sys/class/infiniband/"+h.Name, "board_id"), PCI: h.PCI, State: p.State, Phys: p.Phys,
				Layer: p.LinkLayer, LID: &lid, SMLID: &sm, Gbps: p.Gbps, Width: p.Width, Netdev: s.netdev(h, p)}
			if j.Netdev != "" {
				j.NetMTU, _ = s.number("sys/class/net/"+j.Netdev, "mtu")
			}
			if x := s.probe(h.Name, p.Num); x != nil {
				j.MTU = x.MTU
			}
			out = append(out, j)
		}
	}
	return out
}

// probe is what registering memory with a port showed; nil where it was not tried.
func (s *survey) probe(hca string, port int) *Probe {
	for i, p := range s.opts.Probes {
		if p.HCA == hca && p.Port == port {
			return &s.opts.Probes[i]
		}
	}
	return nil
}

// netdev is the network interface of a port: the one that its GIDs name, else
// the only one of the same PCI device.
func (s *survey) netdev(h rdma.HCA, p rdma.Port) string {
	for _, g := range p.GIDs {
		if g.Netdev != "" {
			return g.Netdev
		}
	}
	if ns := s.names("sys/class/infiniband/" + h.Name + "/device/net"); len(ns) == 1 {
		return ns[0]
	}
	return ""
}

func checkStates(s *survey) []reports.Finding {
	return append(s.none("rdma-port-state"), judge.States(s.ports())...)
}

func checkRates(s *survey) []reports.Finding { return judge.Rates(s.ports(), s.opts.Gbps) }

func checkMTU(s *survey) []reports.Finding { return judge.MTUs(s.ports()) }

func checkPKeys(s *survey) []reports.Finding {
	var out []reports.Finding
	chosen := s.setting("NCCL_IB_PKEY")
	for _, h := range s.hcas {
		for _, p := range h.Ports {
			t := judge.PKeys{Origin: judge.Origin(fmt.Sprintf("/sys/class/infiniband/%s/ports/%d", h.Name, p.Num)), Subject: fmt.Sprintf("%s port %d", h.Name, p.Num),
				Ethernet: p.LinkLayer == "Ethernet", Keys: map[int]uint16{}, Chosen: chosen}
			if p.State != rdma.PortActive {
				continue // the subnet manager has not filled the table
			}
			for i, k := range p.PKeys {
				t.Keys[i] = k
			}
			out = append(out, judge.PKeyTable(t)...)
		}
	}
	return out
}

func (s *survey) gidTables() []judge.GIDs {
	var out []judge.GIDs
	chosen := s.setting("NCCL_IB_GID_INDEX")
	for _, h := range s.hcas {
		for _, p := range h.Ports {
			if p.State == rdma.PortActive {
				out = append(out, judge.GIDs{Origin: judge.Origin(fmt.Sprintf("/sys/class/infiniband/%s/ports/%d", h.Name, p.Num)), Node: s.Name,
					Subject: fmt.Sprintf("%s port %d", h.Name, p.Num), Ethernet: p.LinkLayer == "Ethernet", Rows: p.GIDs, Chosen: chosen})
			}
		}
	}
	return out
}

func checkGIDs(s *survey) []reports.Finding {
	var out []reports.Finding
	for _, t := range s.gidTables() {
		out = append(out, judge.GIDTable(t)...)
	}
	return append(out, judge.GIDAgreement(s.gidTables())...)
}

func checkCounters(s *survey) []reports.Finding {
	var out []reports.Finding
	for _, h := range s.hcas {
		for _, p := range h.Ports {
			key := fmt.Sprintf("%s/%d", h.Name, p.Num)
			c := judge.Counters{Origin: judge.Origin(fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/counters", h.Name, p.Num)), Subject: fmt.Sprintf("%s port %d", h.Name, p.Num),
				Ethernet: p.LinkLayer == "Ethernet", Before: s.now[key], After: s.later[key], Apart: s.apart, Gbps: p.Gbps}
			out = append(out, judge.CounterDeltas(c)...)
		}
	}
	return out
}

// ncclFiles are where NCCL finds settings besides the environment.
var ncclFiles = []string{"etc/nccl.conf", "root/.nccl.conf"}

// setting is a number that NCCL's own files set; −1: none does.
func (s *survey) setting(name string) int {
	for _, file := range ncclFiles {
		for l := range strings.Lines(s.text(file)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(l), "="); ok && strings.TrimSpace(k) == name {
				if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
					return n
				}
			}
		}
	}
	return -1
}

func checkNCCLConf(s *survey) []reports.Finding {
	var out []reports.Finding
	for _, file := range ncclFiles {
		var set []string
		for l := range strings.Lines(s.text(file)) {
			if l = strings.TrimSpace(l); strings.HasPrefix(l, "NCCL_") && len(set) < 32 && len(l) < 200 {
				set = append(set, l)
			}
		}
		if len(set) == 0 {
			continue
		}
		slices.Sort(set)
		f := finding("nccl-conf", "/"+file, reports.Warn, strings.Join(set, ", "))
		f.Want, f.Remedy = "no settings in files, or known ones", "NCCL applies this file whatever the environment says: keep it equal on all nodes, or remove it"
		f.Evidence = evidence("/"+file, f.Got)
		out = append(out, f)
	}
	if out == nil {
		out = []reports.Finding{finding("nccl-conf", "NCCL's files", reports.Pass, "none sets anything")}
	}
	return out
}
