package capture

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	lspciHead = regexp.MustCompile(`^\s*((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+(\S.*)$`)
	linkWords = regexp.MustCompile(`Lnk(Cap|Sta):\s*(.*)$`)
	speedWord = regexp.MustCompile(`Speed (\d+(?:\.\d+)?) ?GT/s( ?\(downgraded\)| ?\(strange\))?`)
	widthWord = regexp.MustCompile(`Width x(\d{1,2})( ?\(downgraded\)| ?\(strange\))?`)
	busWord   = regexp.MustCompile(`secondary=([0-9a-fA-F]{2}), ?subordinate=([0-9a-fA-F]{2})`)
	acsWord   = regexp.MustCompile(`ACSCtl:\s*(\S.*)$`)
	payload   = regexp.MustCompile(`MaxPayload (\d+) bytes`)
	readReq   = regexp.MustCompile(`MaxReadReq (\d+) bytes`)
	sysPCI    = regexp.MustCompile(`/?sys/(?:bus/pci/devices|devices/pci\S*)/([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])/(current_link_speed|max_link_speed|current_link_width|max_link_width)[:=\s]\s*(\S.*)$`)
	nicName   = regexp.MustCompile(`(?i)mellanox|connectx|bluefield|infiniband|BCM57[45678]|E810|pensando|elastic fabric|omni-path|cornelis|thor`)
	gpuName   = regexp.MustCompile(`(?i)(3D controller|VGA compatible controller|Display controller|Processing accelerators).*(nvidia|amd|advanced micro|instinct|intel.*(?:max|flex|ponte))`)
	noGPU     = regexp.MustCompile(`(?i)aspeed|matrox|virtio|cirrus|qxl|vmware`)
)

// tree collects the devices of lspci, and of files of /sys.
type tree struct {
	node    string
	list    []*judge.PCI
	buses   map[*judge.PCI][2]int64 // bridge → buses below it
	flagged map[*judge.PCI]bool     // "(downgraded)" without a capability line
}

func (t *tree) new(addr, name string, from judge.Origin) *judge.PCI {
	d := &judge.PCI{Origin: from, Node: t.node, Addr: strings.ToLower(addr), Name: name}
	switch {
	case strings.Contains(name, "PCI bridge"), strings.Contains(name, "PCIe Switch"):
		d.Kind = judge.Bridge
	case noGPU.MatchString(name):
	case gpuName.MatchString(name):
		d.Kind = judge.GPU
	case nicName.MatchString(name):
		d.Kind = judge.NIC
	}
	if len(t.list) < 4096 {
		t.list = append(t.list, d)
	}
	return d
}

func (t *tree) at(addr string, from judge.Origin) *judge.PCI {
	for _, d := range t.list {
		if d.Addr == strings.ToLower(addr) {
			return d
		}
	}
	return t.new(addr, "", from)
}

func readPCI(s section) []reports.Finding {
	t := &tree{node: s.node, buses: map[*judge.PCI][2]int64{}, flagged: map[*judge.PCI]bool{}}
	var cur *judge.PCI
	var acs []*judge.PCI
	for i, l := range s.lines {
		if m := sysPCI.FindStringSubmatch(l); m != nil {
			d := t.at(m[1], judge.Origin("/sys/bus/pci/devices/"+m[1]))
			v := strings.Fields(m[3])[0]
			f := decimal(v)
			switch {
			case strings.HasSuffix(m[2], "width") && f > 32:
			case m[2] == "current_link_speed":
				d.Speed = f
			case m[2] == "max_link_speed":
				d.MaxSpeed = f
			case m[2] == "current_link_width":
				d.Width = int(f)
			default:
				d.MaxWidth = int(f)
			}
			continue
		}
		if m := lspciHead.FindStringSubmatch(l); m != nil {
			cur = t.new(m[1], m[2], "lspci")
			if a := acsWord.FindStringSubmatch(m[2]); a != nil { // of grep: address and line in one
				cur.Kind, cur.Name = judge.Bridge, ""
			}
		}
		if m := linkWords.FindStringSubmatch(l); m != nil && cur != nil {
			t.link(cur, m[1], m[2])
		}
		if m := acsWord.FindStringSubmatch(l); m != nil {
			d := cur
			if d == nil || d.ACS != nil { // lines without their devices
				d = t.new("", "", judge.Origin(fmt.Sprintf("lspci line %d", i+1)))
				d.Kind = judge.Bridge
			}
			v := acsBits(m[1])
			d.ACS = &v
			acs = append(acs, d)
		}
		if cur != nil {
			t.rest(cur, l)
		}
	}
	t.paths()
	return t.judge(acs)
}

func (t *tree) link(d *judge.PCI, which, text string) {
	sp, w := speedWord.FindStringSubmatch(text), widthWord.FindStringSubmatch(text)
	if sp == nil || w == nil {
		return
	}
	speed := decimal(sp[1])
	width := whole(w[1])
	if which == "Cap" {
		d.MaxSpeed, d.MaxWidth = speed, width
		return
	}
	if d.Speed, d.Width = speed, width; width == 0 {
		d.Kind = judge.Other // an empty slot
	}
	t.flagged[d] = sp[2]+w[2] != ""
}

func (t *tree) rest(d *judge.PCI, l string) {
	if m := busWord.FindStringSubmatch(l); m != nil {
		a, _ := strconv.ParseInt(m[1], 16, 64)
		b, _ := strconv.ParseInt(m[2], 16, 64)
		t.buses[d] = [2]int64{a, b}
	}
	if strings.Contains(l, "access denied") {
		d.ACSDenied = true
	}
	if m := payload.FindStringSubmatch(l); m != nil {
		n := whole(m[1])
		if strings.Contains(l, "DevCap") {
			d.MaxPayload = n
		} else {
			d.Payload = n
		}
	}
	if m := readReq.FindStringSubmatch(l); m != nil {
		d.ReadReq = whole(m[1])
	}
	if i := strings.Index(l, "RlxdOrd"); i >= 0 && i+7 < len(l) {
		on := l[i+7] == '+'
		d.Relaxed = &on
	}
}

// acsBits reads "SrcValid+ TransBlk- …".
func acsBits(s string) uint16 {
	v := uint16(0)
	for i, n := range []string{"SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"} {
		if strings.Contains(s, n+"+") {
			v |= 1 << i
		}
	}
	return v
}

// paths finds the bridges above each device from the buses behind them.
func (t *tree) paths() {
	bus := func(addr string) (domain string, n int64) {
		p := strings.Split(addr, ":")
		if len(p) < 2 {
			return "", -1
		}
		n, _ = strconv.ParseInt(p[len(p)-2], 16, 64)
		return strings.Join(p[:len(p)-2], ":"), n
	}
	var bridges []*judge.PCI
	for _, d := range t.list {
		if _, ok := t.buses[d]; ok && len(bridges) < 1024 {
			bridges = append(bridges, d)
		}
	}
	width := func(b *judge.PCI) int64 { return t.buses[b][1] - t.buses[b][0] }
	slices.SortStableFunc(bridges, func(a, b *judge.PCI) int { return int(width(b) - width(a)) })
	for _, d := range t.list {
		domain, n := bus(d.Addr)
		for _, b := range bridges {
			r := t.buses[b]
			if bd, _ := bus(b.Addr); bd == domain && n >= r[0] && n <= r[1] && b != d {
				d.Path = append(d.Path, b.Addr)
			}
		}
	}
}

func (t *tree) judge(acs []*judge.PCI) []reports.Finding {
	var devices, bridges []judge.PCI
	by := map[string]*judge.PCI{}
	above := map[string]bool{}
	denied := false
	for _, d := range t.list {
		if d.Addr == "" || d.Kind == judge.Bridge && d.MaxSpeed == 0 && d.Speed == 0 {
			continue
		}
		devices = append(devices, *d)
		by[d.Subject()] = d
		if d.Kind == judge.NIC || d.Kind == judge.GPU {
			denied = denied || d.ACSDenied
			for _, p := range d.Path {
				above[p] = true
			}
		}
	}
	for _, d := range acs {
		if d.Kind == judge.Bridge && (d.Addr == "" || len(above) == 0 || above[d.Addr]) {
			bridges = append(bridges, *d)
		}
	}
	for _, d := range t.list {
		if d.Kind == judge.Bridge && d.ACS == nil && d.ACSDenied && (len(above) == 0 || above[d.Addr]) {
			bridges = append(bridges, *d)
			denied = false
		}
	}
	var out []reports.Finding
	for _, f := range judge.Links(devices) {
		d := by[f.Subject]
		if f.Verdict == reports.Unknown && d.MaxSpeed == 0 && t.flagged[d] && d.Kind == judge.NIC { // pciutils compared it with the capability that is not shown
			f.Verdict, f.Want = reports.Fail, "what the card can do (its LnkCap line is not shown)"
			f.Got = fmt.Sprintf("%g GT/s x%d (downgraded)", d.Speed, d.Width)
			f.Remedy = "reseat the card and its riser, look at the slot in the BIOS; this limits the slot, not the cable or the fabric"
		}
		if f.Verdict == reports.Unknown && strings.Contains(f.Got, "is not told (usual") {
			continue // an output without link lines is no finding
		}
		out = append(out, f)
	}
	out = append(out, judge.ACSRedirects(bridges)...)
	for _, f := range judge.Transfers(devices) {
		if f.Verdict != reports.Unknown {
			out = append(out, f)
		}
	}
	if denied {
		out = append(out, reports.Finding{ID: "pcie-acs", Node: t.node, Subject: "PCI bridges", Verdict: reports.Unknown, Got: "capabilities: access denied", Remedy: "run lspci -vvv as root",
			Evidence: []reports.Evidence{{From: "lspci", Value: "Capabilities: <access denied>"}}})
	}
	return out
}
