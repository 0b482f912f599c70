package judge

import (
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// Kind is what a PCI device is to a collective.
type Kind int

// The kinds. Other devices and empty slots are nobody's business here.
const (
	Other Kind = iota
	NIC
	GPU
	Bridge
)

// PCI is a device of the PCI tree. Zero speeds and widths, and nil, are not told.
type PCI struct {
	Origin
	Node, Addr, Name   string // "0000:3b:00.0", "Mellanox … [ConnectX-6]"
	Kind               Kind
	Speed, MaxSpeed    float64  // GT/s of a lane
	Width, MaxWidth    int      // lanes; −1: told to be none (an empty slot)
	Path               []string // bridges above it, root first
	Busy               *bool    // a GPU under load
	PortGbps           float64  // of a NIC's ports together; 0: not told
	ACS                *uint16  // ACS control register of a bridge
	ACSDenied          bool     // the register exists but may not be read
	Payload, ReadReq   int      // bytes: max payload size, max read request size
	MaxPayload         int      // bytes that the device could take as payload
	Relaxed            *bool    // relaxed ordering enabled
	Fatal, Correctable *uint64  // AER counts since boot
	NonFatal           *uint64
}

// Subject names the device in findings.
func (d PCI) Subject() string {
	kind := []string{"PCI device", "NIC", "GPU", "PCI bridge"}[d.Kind]
	return kind + " " + or(d.Addr, "at an unknown address")
}

// lane is the rate of one lane, Gb/s, behind its coding (PCI Express base
// specification: 8b/10b up to 5 GT/s, 128b/130b to 32 GT/s, flits from 64 GT/s).
func lane(gts float64) float64 {
	switch {
	case gts <= 5:
		return gts * 0.8
	case gts <= 32:
		return gts * 128 / 130
	}
	return gts * 0.94
}

// Gbps is the raw rate of a link, each direction.
func Gbps(speed float64, width int) float64 { return lane(speed) * float64(width) }

// usable is what is left of the raw rate behind packet headers (24 B for 256 B
// of payload) and link management (3 %).
const usable = 0.97 * 256 / 280

func link(speed float64, width int) string {
	s, w := "? GT/s", "x?"
	if speed > 0 {
		s = number(speed) + " GT/s"
	}
	if width > 0 {
		w = fmt.Sprintf("x%d", width)
	}
	return s + " " + w
}

// Links judges the PCIe links of NICs and GPUs and of the bridges above them.
// Both ends of a link must be able to reach what is wanted of it, so the
// possible speed is the smaller of the two maxima. A NIC does not save power
// on its link; an idle GPU does.
func Links(devices []PCI) []reports.Finding {
	by := map[string]PCI{}
	for _, d := range devices {
		by[d.Node+" "+d.Addr] = d
	}
	var out []reports.Finding
	seen := map[string]bool{}
	for _, d := range devices {
		if d.Kind != NIC && d.Kind != GPU || seen[d.slot()] {
			continue
		}
		seen[d.slot()] = true
		above := PCI{}
		for _, a := range append(slices.Clone(d.Path), d.Addr) {
			x, ok := by[d.Node+" "+a]
			if a == d.Addr {
				x, ok = d, true
			}
			if !ok {
				above = PCI{}
				continue
			}
			// A link is judged at its lower end; the first bridge is a root port, whose lower end comes next.
			if key := d.Node + " " + a; a == d.Addr || above.Addr != "" && !seen[key] {
				seen[key] = true
				if x.Kind == Bridge {
					x.Busy = d.Busy
					if d.Kind == GPU && x.Busy == nil {
						x.Busy = new(bool) // its speed may follow the GPU's
					}
				}
				out = append(out, linkFinding(x, above))
			}
			above = x
		}
	}
	return out
}

// slot is the same for functions of one card, which have one link: it is
// judged once.
func (d PCI) slot() string {
	if n := len(d.Addr); n > 2 && d.Addr[n-2] == '.' {
		return fmt.Sprint("slot ", d.Node, " ", d.Addr[:n-2], " ", d.Kind, d.Speed, d.Width, d.MaxSpeed, d.MaxWidth)
	}
	return "slot " + d.Node + " " + d.Addr + d.Name
}

func linkFinding(d, above PCI) reports.Finding {
	f := reports.Finding{ID: "pcie-link", Node: d.Node, Subject: d.Subject(), Verdict: reports.Pass}
	f.Got, f.Want = link(d.Speed, d.Width), link(d.MaxSpeed, d.MaxWidth)
	f.Evidence = append(f.Evidence, d.of("current_link_speed, current_link_width", f.Got), d.of("max_link_speed, max_link_width", f.Want))
	speed, width, slot := d.MaxSpeed, d.MaxWidth, false
	if above.MaxSpeed > 0 && above.MaxSpeed < speed {
		speed, slot = above.MaxSpeed, true
	}
	if above.MaxWidth > 0 && above.MaxWidth < width {
		width, slot = above.MaxWidth, true
	}
	if slot {
		f.Evidence = append(f.Evidence, above.of("max_link_speed, max_link_width", link(above.MaxSpeed, above.MaxWidth)))
		f.Want = link(speed, width) + " (the port above, " + above.Addr + ", can do no more)"
	}
	cost := func() {
		raw := Gbps(d.Speed, d.Width)
		if raw <= 0 {
			return
		}
		f.Got += fmt.Sprintf(": %.0f Gb/s raw, some %.0f Gb/s usable", raw, raw*usable)
		if d.PortGbps > 0 && raw < d.PortGbps {
			f.Got += fmt.Sprintf(", less than the %s Gb/s of its ports", number(d.PortGbps))
		}
	}
	idle := d.Kind == GPU || d.Kind == Bridge && d.Busy != nil
	slow := d.Speed > 0 && d.Speed < speed*0.99
	switch {
	case d.Speed == 0 || d.Width == 0 || d.MaxSpeed == 0 && d.MaxWidth == 0:
		f.Verdict, f.Got, f.Want = reports.Unknown, "the link is not told (usual in virtual machines): "+f.Got, ""
	case d.Width > 0 && d.Width < width:
		f.Verdict = reports.Fail
		cost()
		f.Remedy = "reseat the card and its riser, look at the slot's wiring and bifurcation in the BIOS; this limits the slot, not the cable or the fabric"
	case slow && idle && (d.Busy == nil || !*d.Busy):
		f.Verdict = reports.Unknown
		f.Got += ": an idle GPU lowers its link's speed to save power"
		f.Remedy = "read current_link_speed again while the GPU copies or computes"
	case slow:
		f.Verdict = reports.Fail
		cost()
		f.Remedy = "reseat the card and its riser, look at the slot's speed in the BIOS; this limits the slot, not the cable or the fabric"
	case slot && d.Kind == NIC && d.PortGbps > 0 && Gbps(d.Speed, d.Width) < d.PortGbps:
		f.Verdict = reports.Warn
		cost()
		f.Remedy = "move the card to a slot that carries its ports"
	case d.MaxSpeed == 0 || d.MaxWidth == 0:
		f.Verdict = reports.Unknown
		f.Got += ": what the device can do is not told"
		f.Want = ""
	}
	return f
}

// Bits of the ACS control register (PCI Express base specification 7.7.11.3).
const (
	acsSource   = 1 << 0
	acsRequest  = 1 << 2
	acsComplete = 1 << 3
	acsUpstream = 1 << 4
)

// ACSRedirects judges the bridges above NICs and GPUs: redirection sends what
// goes from peer to peer up to the root complex and back. Where relevant is
// false the bridges' place is not known and all are judged.
func ACSRedirects(bridges []PCI) []reports.Finding {
	var out []reports.Finding
	for _, b := range bridges {
		f := reports.Finding{ID: "pcie-acs", Node: b.Node, Subject: b.Subject(), Verdict: reports.Pass, Want: "no redirection (ReqRedir, CmpltRedir, UpstreamFwd off)"}
		switch {
		case b.ACS == nil && b.ACSDenied:
			f.Verdict, f.Got = reports.Unknown, "its capabilities may not be read"
			f.Remedy = "read them as root"
		case b.ACS == nil:
			f.Verdict, f.Got, f.Want = reports.NA, "the bridge has no access control services", ""
		case *b.ACS&(acsRequest|acsComplete|acsUpstream) != 0:
			f.Verdict, f.Got = reports.Fail, acsText(*b.ACS)+": traffic between peers is redirected to the root complex (slow, hangs or wrong data with GPU peer access and GPUDirect)"
			f.Remedy = "switch ACS off in the BIOS, or clear the bits at every boot (setpci -s " + or(b.Addr, "BRIDGE") + " ECAP_ACS+0x6.w=0000); in a virtual machine ACS must stay and address translation services (ATS) are the way"
		case *b.ACS&acsSource != 0:
			f.Verdict, f.Got = reports.Warn, acsText(*b.ACS)+": source validation alone does not redirect"
			f.Remedy = "if peers hang all the same, look at the IOMMU's translation (iommu=pt)"
		default:
			f.Got = acsText(*b.ACS)
		}
		if b.ACS != nil {
			f.Evidence = []reports.Evidence{b.of("ACSCtl", acsText(*b.ACS))}
		}
		out = append(out, f)
	}
	return out
}

func acsText(v uint16) string {
	var on []string
	for i, n := range []string{"SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"} {
		if v&(1<<i) != 0 {
			on = append(on, n+"+")
		}
	}
	if on == nil {
		on = []string{"all off"}
	}
	return fmt.Sprintf("%#04x %s", v, strings.Join(on, " "))
}
