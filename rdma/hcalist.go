package rdma

import (
	"fmt"
	"strconv"
	"strings"
)

// HCAList is a choice of devices in NCCL_IB_HCA's syntax: names separated by
// commas, each with an optional ":port". A name stands for every device that
// begins with it, unless the list begins with "=", which asks for exact names.
// "^" in front of all ("^mlx5_3", "^=mlx5_3") takes everything but the list.
type HCAList struct {
	Exclude, Exact bool
	Entries        []HCAEntry
}

// HCAEntry is one name of a list; Port 0 stands for all of its ports.
type HCAEntry struct {
	Name string
	Port int
}

// maxHCAs is how many entries NCCL takes (NCCL user guide, NCCL_IB_HCA).
const maxHCAs = 32

// ParseHCAList reads a list. An empty one chooses every device.
func ParseHCAList(s string) (HCAList, error) {
	var l HCAList
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), "^")
	l.Exclude = ok
	rest, l.Exact = strings.CutPrefix(rest, "=")
	if rest == "" {
		if l.Exclude || l.Exact {
			return HCAList{}, fmt.Errorf("NCCL_IB_HCA=%q names no device", s)
		}
		return l, nil
	}
	for item := range strings.SplitSeq(rest, ",") {
		e := HCAEntry{}
		var port string
		e.Name, port, ok = strings.Cut(strings.TrimSpace(item), ":")
		if ok {
			n, err := strconv.Atoi(port)
			if err != nil || n < 1 || n > 255 {
				return HCAList{}, fmt.Errorf("NCCL_IB_HCA=%q: port %q of %q is not a number from 1 to 255", s, port, e.Name)
			}
			e.Port = n
		}
		if e.Name == "" || strings.ContainsAny(e.Name, "^=/ ") {
			return HCAList{}, fmt.Errorf("NCCL_IB_HCA=%q: %q is no device name (\"^\" and \"=\" stand in front of the whole list)", s, item)
		}
		if len(l.Entries) == maxHCAs {
			return HCAList{}, fmt.Errorf("NCCL_IB_HCA names more than %d devices", maxHCAs)
		}
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

// Match says whether the list chooses a device's port.
func (l HCAList) Match(device string, port int) bool {
	if len(l.Entries) == 0 {
		return true
	}
	for _, e := range l.Entries {
		name := e.Name == device || !l.Exact && strings.HasPrefix(device, e.Name)
		if name && (e.Port == 0 || e.Port == port) {
			return !l.Exclude
		}
	}
	return l.Exclude
}

// Rail is a port that a rank may use.
type Rail struct {
	HCA  HCA
	Port Port
}

func (r Rail) String() string { return fmt.Sprintf("%s:%d", r.HCA.Name, r.Port.Num) }

// Rails lists the active ports that the settings choose, in the order of their
// names, and says why each of the others is passed over. An included list of
// exact names that finds nothing active is the caller's error to report.
func Rails(hcas []HCA, s Settings) (rails []Rail, passed []string) {
	for _, h := range hcas {
		for _, p := range h.Ports {
			switch r := (Rail{h, p}); {
			case !s.HCA.Match(h.Name, p.Num):
				passed = append(passed, r.String()+": not in NCCL_IB_HCA")
			case p.State != PortActive:
				passed = append(passed, r.String()+": "+portTrouble(p))
			default:
				rails = append(rails, r)
			}
		}
	}
	return rails, passed
}

// portTrouble says why a port is not active, and whose fault that is.
func portTrouble(p Port) string {
	ib := p.LinkLayer == "InfiniBand"
	switch {
	case p.Phys == PhysUp && p.State == 1 && ib && p.SMLID != 0:
		return "down although its link is up and a subnet manager is known: the subnet manager has not activated this (virtual) port (virtualization in the SM, GUIDs of the VF)"
	case p.Phys == PhysUp && p.State == 2 && ib:
		return "initializing: no subnet manager has configured it"
	case p.Phys == 2:
		return "down, polling: no partner at the other end of the cable"
	case p.Phys == 3:
		return "disabled by an administrator"
	}
	return fmt.Sprintf("not active (state %d, physical state %d)", p.State, p.Phys)
}
