package capture

import (
	"regexp"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	deviceLine = regexp.MustCompile(`^\s*(?:CA\s+['"]([^'"]{1,64})['"]|(?i:infiniband device)\s+['"]([^'"]{1,64})['"](?:\s+port\s+(\d{1,3}))?|hca_id:\s*(\S{1,64}))`)
	portLine   = regexp.MustCompile(`^\s*(?i:port)\s*:?\s*(\d{1,3})\s*:?\s*$`)
	keyLine    = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z _/]{1,40}?)\s*:\s*(.*)$`)
	rdmaLink   = regexp.MustCompile(`^\s*(?:\d+/\d+:\s*|link\s+)([\w.-]+)/(\d{1,3})[: ].*\bstate (\S+)(?: physical_state (\S+))?(?:.*netdev (\S+))?`)
	sysPort    = regexp.MustCompile(`/?sys/class/infiniband/([\w.-]+)/ports/(\d{1,3})/([\w/]+)[:=\s]\s*(\S.*)$`)
	rateForm   = regexp.MustCompile(`^\s*(\d+(?:\.\d+)?)\s*(?:G|$)`)
	lanesForm  = regexp.MustCompile(`\b(\d{1,2})[Xx]\b`)
	firstInt   = regexp.MustCompile(`0[xX][0-9a-fA-F]+|\d+`)
)

// ports collects the ports that ibstat, ibstatus, ibv_devinfo, rdma link and
// files of /sys/class/infiniband show.
type ports struct {
	s     section
	list  []*judge.Port
	guids map[string]string // device → port GUID
	kind  map[string]string // device → type
	board map[string]string // device → board
}

func (p *ports) at(device string, num int, from judge.Origin) *judge.Port {
	for _, x := range p.list {
		if x.Device == device && x.Num == num {
			return x
		}
	}
	x := &judge.Port{Origin: from, Node: p.s.node, Device: device, Num: num}
	if len(p.list) < 4096 {
		p.list = append(p.list, x)
	}
	return x
}

func collectPorts(s section) *ports {
	p := &ports{s: s, guids: map[string]string{}, kind: map[string]string{}, board: map[string]string{}}
	device, from := "", judge.Origin("")
	var cur *judge.Port
	for _, l := range s.lines {
		if m := sysPort.FindStringSubmatch(l); m != nil {
			n := whole(m[2])
			if sysFields[m[3]] {
				set(p.at(m[1], n, judge.Origin("/sys/class/infiniband/"+m[1]+"/ports/"+m[2])), m[3], m[4])
			}
			continue
		}
		if m := rdmaLink.FindStringSubmatch(l); m != nil {
			n := whole(m[2])
			x := p.at(m[1], n, "rdma link")
			set(x, "state", m[3])
			set(x, "physstate", m[4])
			if x.Netdev = m[5]; x.Netdev != "" {
				x.Layer = "Ethernet"
			}
			continue
		}
		if m := deviceLine.FindStringSubmatch(l); m != nil {
			device, cur = m[1]+m[2]+m[4], nil
			switch {
			case m[1] != "":
				from = "ibstat"
			case m[4] != "":
				from = "ibv_devinfo"
			default:
				from = "ibstatus"
				n := whole(m[3])
				cur = p.at(device, max(n, 1), from)
			}
			continue
		}
		if device == "" {
			continue
		}
		if m := portLine.FindStringSubmatch(l); m != nil {
			n := whole(m[1])
			cur = p.at(device, n, from)
			continue
		}
		m := keyLine.FindStringSubmatch(l)
		if m == nil {
			if t := strings.TrimSpace(l); t != "" && l == t && !strings.HasPrefix(t, "#") && !strings.HasPrefix(t, "GID") {
				device, cur = "", nil // another program's output
			}
			continue
		}
		key := strings.NewReplacer(" ", "", "_", "", "/", "").Replace(strings.ToLower(m[1]))
		switch {
		case key == "catype":
			p.kind[device] = m[2]
		case key == "vendorpartid":
			p.kind[device] = "MT" + m[2]
		case key == "boardid":
			p.board[device] = m[2]
		case cur == nil:
		case key == "portguid":
			p.guids[device] = m[2]
		default:
			set(cur, key, m[2])
		}
	}
	for _, x := range p.list {
		x.Type, x.Board = p.kind[x.Device], p.board[x.Device]
	}
	return p
}

// sysFields are the files of a port that set knows.
var sysFields = map[string]bool{"state": true, "phys_state": true, "rate": true, "lid": true, "sm_lid": true, "link_layer": true}

// set takes one field, its name without blanks and underscores.
func set(p *judge.Port, key, v string) {
	v = strings.TrimSpace(v)
	switch strings.ReplaceAll(key, "_", "") {
	case "state":
		p.State = stateOf(v, []string{"down", "init", "arm", "activ"})
		if strings.Contains(strings.ToLower(v), "defer") {
			p.State = 5
		}
	case "physstate", "physicalstate":
		p.Phys = stateOf(v, []string{"sleep", "poll", "disab", "train", "linkup", "recover"})
	case "rate":
		if m := rateForm.FindStringSubmatch(v); m != nil {
			p.Gbps = decimal(m[1])
		}
		if m := lanesForm.FindStringSubmatch(v); m != nil {
			p.Width = whole(m[1])
		}
	case "activewidth":
		if m := lanesForm.FindStringSubmatch(v); m != nil {
			p.Width = whole(m[1])
		}
	case "activespeed": // of a lane
		if m := rateForm.FindStringSubmatch(v); m != nil && p.Width > 0 {
			lane := decimal(m[1])
			p.Gbps = lane * float64(p.Width)
		}
	case "lid", "baselid", "portlid":
		p.LID = integer(v)
	case "smlid":
		p.SMLID = integer(v)
	case "linklayer":
		switch l := strings.ToLower(v); {
		case strings.HasPrefix(l, "eth"):
			p.Layer = "Ethernet"
		case strings.HasPrefix(l, "inf"), l == "ib":
			p.Layer = "InfiniBand"
		}
	case "activemtu":
		if n := integer(v); n != nil {
			p.MTU = *n
		}
	case "maxmtu":
		if n := integer(v); n != nil {
			p.MaxMTU = *n
		}
	}
}

// stateOf finds a state's word; names are in the order of their numbers, from
// 1 on. "4: ACTIVE", "PORT_ACTIVE (4)", "Active" are the same.
func stateOf(v string, names []string) int {
	l := strings.NewReplacer("_", "", " ", "").Replace(strings.ToLower(v))
	for i, n := range names {
		if strings.Contains(l, n) {
			return i + 1
		}
	}
	if n := integer(v); n != nil && *n >= 1 && *n <= len(names) {
		return *n
	}
	return 0
}

func integer(v string) *int {
	n, err := strconv.ParseInt(strings.ToLower(firstInt.FindString(v)), 0, 32)
	if err != nil {
		return nil
	}
	i := int(n)
	return &i
}

// readPorts judges the ports; their rates are compared when those of all
// nodes are known.
func readPorts(s section) (list []judge.Port, out []reports.Finding) {
	p := collectPorts(s)
	for _, x := range p.list {
		list = append(list, *x)
	}
	if list == nil {
		return nil, nil
	}
	out = judge.States(list)
	for _, f := range judge.MTUs(list) {
		if f.Verdict != reports.Unknown {
			out = append(out, f)
		}
	}
	return list, append(out, judge.SharedPorts(p.guids, s.node)...)
}
