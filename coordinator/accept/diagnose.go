package accept

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"busbw/coordinator/pairs"
	"busbw/reports"
)

// Diagnosis is what most likely is wrong with something that is slow.
type Diagnosis struct {
	ID      string   `json:"id"` // of the rule
	Node    string   `json:"node,omitempty"`
	Subject string   `json:"subject"`
	Cause   string   `json:"cause"`
	Sure    string   `json:"sure"` // "high", "medium", "low"
	Because []string `json:"because"`
	Not     []string `json:"not,omitempty"` // what it is not, and why
	Do      string   `json:"do"`
}

// NotKnown is the cause of what nothing explains.
const NotKnown = "not known: nothing that was read explains it"

// rule is one way in which evidence joins.
type rule struct {
	id, doc string
	run     func(*Input) []Diagnosis
}

// rules is every rule, in the order in which they speak.
func rules() []rule {
	return []rule{
		{"slow-port", "a node, NIC or cable that pair tests accuse: slot, port rate, errors, NUMA, half of the width", (*Input).slowPorts},
		{"slow-device", "a port that is slow against itself, a GPU whose copies are slow: its slot, by the figure and by sysfs", (*Input).slowDevices},
		{"all-alike", "every pair is below the limit: the figure tells what they have in common", (*Input).allAlike},
		{"gdr", "GPU memory is slow where host memory is fast over the same NICs", (*Input).gdr},
		{"nvlink-unused", "a node with NVLink that is many times too slow inside", (*Input).nvlinkUnused},
		{"slow-rank", "one rank's iterations are slow and its neighbours' are not", (*Input).slowRank},
		{"impossible", "a figure above what the wire carries is no figure", (*Input).impossible},
	}
}

// Diagnose joins findings and measurements. It is a pure function.
func Diagnose(in Input) (out []Diagnosis) {
	for _, r := range rules() {
		for _, d := range r.run(&in) {
			d.ID = r.id
			out = append(out, d)
		}
	}
	return out
}

// slot is what a PCIe link carries of RDMA payload, Gb/s: 24 B of overhead for
// each packet of 256 B, and 3 % for link management.
type slot struct {
	name string
	gts  float64
	lane int
	gbps float64
}

func slots() []slot {
	return []slot{
		{"Gen3 x4", 8, 4, 28}, {"Gen3 x8", 8, 8, 56}, {"Gen3 x16", 8, 16, 112}, {"Gen4 x4", 16, 4, 56}, {"Gen4 x8", 16, 8, 112}, {"Gen4 x16", 16, 16, 223},
		{"Gen5 x4", 32, 4, 112}, {"Gen5 x8", 32, 8, 223}, {"Gen5 x16", 32, 16, 447},
	}
}

// alike says whether a rate is what slots of that payload carry.
func alike(gbps, slot float64) bool { return math.Abs(gbps-slot) <= 0.07*slot }

var linkText = regexp.MustCompile(`(?i)(?:(\d+(?:\.\d+)?)\s*GT/s|Gen\s?(\d))[^x×]{0,40}[x×]\s*(\d+)`)

// slotIn is the PCIe link that a text names: "16.0 GT/s PCIe x8", "Gen4 x8".
func slotIn(text string) (slot, bool) {
	m := linkText.FindStringSubmatch(text)
	if m == nil {
		return slot{}, false
	}
	gts, _ := strconv.ParseFloat(m[1], 64)
	if m[2] != "" {
		gen, _ := strconv.Atoi(m[2])
		gts = map[int]float64{1: 2.5, 2: 5, 3: 8, 4: 16, 5: 32, 6: 64}[gen]
	}
	width, _ := strconv.Atoi(m[3])
	for _, s := range slots() {
		if s.gts == gts && s.lane == width {
			return s, true
		}
	}
	return slot{}, false
}

// of are a node's findings of some checks that found something.
func (in *Input) of(node string, ids ...string) (out []reports.Finding) {
	for _, f := range in.Findings {
		if f.Node != node || f.Verdict != reports.Fail && f.Verdict != reports.Warn {
			continue
		}
		if slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(f.ID, id) }) {
			out = append(out, f)
		}
	}
	return out
}

// say is a finding as evidence.
func say(f reports.Finding) string {
	s := fmt.Sprintf("%s: %s is %s", f.ID, f.Subject, f.Got)
	if f.Want != "" {
		s += ", wanted " + f.Want
	}
	for _, e := range f.Evidence[:min(1, len(f.Evidence))] {
		s += fmt.Sprintf(" (%s: %s)", e.From, e.Value)
	}
	return s
}

// slowPorts explains each node or port that pair tests accuse. A slot is looked
// at before a cable: a flat figure that a narrow slot explains is the slot's.
func (in *Input) slowPorts() (out []Diagnosis) {
	if in.Pairs == nil {
		return nil
	}
	for i := range in.Pairs.Culprits {
		c := &in.Pairs.Culprits[i]
		if len(c.Nodes) != 1 || c.Kind != pairs.Node && c.Kind != pairs.Port {
			continue
		}
		if c.OneMachine || c.Verdict == reports.Unknown {
			continue // no card or cable lies between the nodes; or it is not established that anything is slow
		}
		d := in.port(c)
		d.Sure = leastSure(d.Sure, c.Sure)
		out = append(out, d)
	}
	return out
}

func (in *Input) port(c *pairs.Culprit) Diagnosis {
	node := c.Nodes[0]
	gbps := c.GBps * 8
	d := Diagnosis{Node: node, Subject: c.Subject(), Because: []string{fmt.Sprintf("pair tests, %s: %s Gb/s where others reach %s", c.Way, figure(gbps), figure(in.typical(c.Way)*8))}}
	var late, steady bool
	for _, w := range c.Why {
		late = late || strings.Contains(w, "both latency and bandwidth are bad")
		steady = steady || strings.Contains(w, "fixed limit of its own")
		if strings.Contains(w, "latency is normal") {
			d.Not = append(d.Not, "a bad cable is less likely: "+w)
		}
	}
	if steady {
		d.Because = append(d.Because, "the same figure with every partner")
	}
	errors := in.of(node, "rdma-counters")
	alone, own := in.own(c)
	good := acquits(alone, own, c)
	if good {
		d.Not = append(d.Not, fmt.Sprintf("not the slot, the card or memory: the port reaches %s Gb/s against itself", figure(8*deviceGBps(alone))))
	}
	switch {
	case in.ownFault(&d, alone, own, c):
	case !good && in.slotFault(c, &d, gbps):
	case in.rateFault(node, &d):
	case len(errors) > 0:
		d.Cause, d.Sure = "cable, module or peer port: the port counts errors", "medium"
		d.Because = append(d.Because, say(errors[0]))
		d.Do = "swap the cable, then the peer port; read the counters of both ends as differences"
		if late {
			d.Sure = "high"
			d.Because = append(d.Because, "small messages are late, too")
		}
	case in.placeFault(node, &d, c):
	case late:
		d.Cause, d.Sure = "cable or module: both latency and bandwidth are bad (retransmissions or error correction)", "medium"
		d.Do = "read the error counters of both ends as differences under load, then swap the cable"
	case !good && in.flat(&d, c):
	case good && c.Side == "":
		d.Cause, d.Sure = "cable, module or peer port: the port is fast against itself and slow with every partner", "medium"
		d.Do = "swap the cable, then the peer port; compare the rate of both ends of the link"
	case c.Side == "receiving":
		d.Cause, d.Sure = "the receiver's PCIe or memory path: only what arrives is slow", "low"
		d.Do = "look at the slot, payload size, relaxed ordering and NUMA node of that NIC; then at its receive side errors"
	case c.Side == "sending":
		d.Cause, d.Sure = "the sending side of one port or cable: only what leaves is slow", "low"
		d.Do = "look at that port's lanes and the peer's receive errors; then swap the cable"
	case in.part(&d, c):
	default:
		d.Cause, d.Sure = NotKnown, "low"
		d.Do = "run busbw check on the node with its counters over some seconds of load; swap the cable with a good twin's and measure again: if the fault moves, it is the cable"
	}
	return d
}

// figure writes a rate without needless digits, and never as 0.
func figure(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// leastSure is the lesser of two degrees: a cause is never surer than that
// there is an effect.
func leastSure(a, b string) string {
	degrees := []string{"low", "medium", "high"}
	return degrees[max(0, min(slices.Index(degrees, a), slices.Index(degrees, b)))]
}

// typical is what pairs reach in that way, each direction, GB/s.
func (in *Input) typical(w pairs.Way) float64 {
	for _, lv := range in.Pairs.Levels {
		if lv.Way == w {
			return lv.Typical
		}
	}
	return 0
}

// slotFault: sysfs tells of a PCIe link below what it could be.
func (in *Input) slotFault(c *pairs.Culprit, d *Diagnosis, gbps float64) bool {
	found := in.of(d.Node, "pcie-link")
	if len(found) == 0 {
		return false
	}
	best := found[0]
	for _, f := range found {
		s, ok := slotIn(f.Got)
		if ok && alike(gbps, s.gbps) {
			d.Cause, d.Sure = fmt.Sprintf("PCIe slot: %s runs as %s, which carries %.0f Gb/s", f.Subject, s.name, s.gbps), "high"
			d.Because = append(d.Because, say(f))
			d.Not = append(d.Not, "not the cable: the slot explains the whole figure")
			d.Do = "reseat the card or move it to a full slot; look at the BIOS's bifurcation and link speed settings"
			return true
		}
		if ok {
			best = f
		}
	}
	d.Because = append(d.Because, say(best))
	d.Do = "set the slot right first, then measure again"
	if s, ok := slotIn(best.Got); ok {
		switch {
		case gbps > s.gbps*1.07:
			d.Because = d.Because[:len(d.Because)-1] // that slot carries more than was needed: another card's
			return false
		case gbps < s.gbps*0.93:
			d.Cause, d.Sure = fmt.Sprintf("PCIe slot (%s carries %.0f Gb/s), and something else: %.0f Gb/s is less than that", s.name, s.gbps, gbps), "medium"
			return true
		}
	}
	d.Cause, d.Sure = "PCIe slot: a link on the way of this node's cards is below what it could be", "medium"
	d.Not = append(d.Not, "no cable is blamed while a slot is wrong")
	return true
}

// rateFault: the port itself trained low.
func (in *Input) rateFault(node string, d *Diagnosis) bool {
	found := in.of(node, "rdma-port-rate", "rdma-port-state", "rdma-rate")
	if len(found) == 0 {
		return false
	}
	d.Cause, d.Sure = "the port's own rate or state: cable, module or firmware", "high"
	d.Because = append(d.Because, say(found[0]))
	d.Do = cmp.Or(found[0].Remedy, "swap the cable, then the module, then compare firmware with a good twin's")
	return true
}

// placeFault: the NIC or the ranks sit on the wrong socket, or the way between
// is redirected.
func (in *Input) placeFault(node string, d *Diagnosis, c *pairs.Culprit) bool {
	share := c.GBps / in.typical(c.Way)
	for _, w := range []struct {
		ids   []string
		cause string
	}{
		{[]string{"numa"}, "NUMA: the NIC, its interrupts or the ranks are on the wrong socket"},
		{[]string{"gpu-nic-distance"}, "placement: GPU and NIC are far apart"},
		{[]string{"pcie-shared"}, "a shared PCIe link: several cards compete for it"},
		{[]string{"pcie-acs", "pcie-iommu"}, "PCIe: peer traffic is redirected through the root (ACS or IOMMU)"},
		{[]string{"pcie-transfers"}, "PCIe: payload or read request size, or relaxed ordering"},
		{[]string{"governor"}, "CPU frequency: the governor saves power"},
	} {
		found := in.of(node, w.ids...)
		if len(found) == 0 || share > 0.97 {
			continue
		}
		d.Cause, d.Sure, d.Do = w.cause, "medium", found[0].Remedy
		d.Because = append(d.Because, say(found[0]))
		return true
	}
	return false
}

// flat: the figure is what a lesser slot carries, though nothing was read of it.
func (in *Input) flat(d *Diagnosis, c *pairs.Culprit) bool {
	gbps := c.GBps * 8
	name := lesserSlot(gbps, in.typical(c.Way)*8)
	if name == "" {
		return false
	}
	d.Cause, d.Sure = fmt.Sprintf("probably the PCIe slot: %.0f Gb/s is what %s carries", gbps, name), "medium"
	d.Not = append(d.Not, "no cable is blamed for a figure that a slot explains")
	d.Do = "read current_link_speed and current_link_width of the NIC and of every bridge above it, under load"
	return true
}

// lesserSlot names the slots that carry just that rate, where the typical one
// is well above it.
func lesserSlot(gbps, typical float64) string {
	var names []string
	for _, s := range slots() {
		if s.gbps >= 50 && alike(gbps, s.gbps) && typical > 1.2*s.gbps {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, " or ")
}

// part: half or a quarter of what others have.
func (in *Input) part(d *Diagnosis, c *pairs.Culprit) bool {
	for _, p := range []struct {
		from, to float64
		name     string
	}{{0.42, 0.60, "about half"}, {0.21, 0.29, "a quarter"}} {
		if s := c.GBps / in.typical(c.Way); s >= p.from && s <= p.to {
			d.Cause, d.Sure = fmt.Sprintf("%s of the width: lanes of a port or a slot, or that share of the NICs, is missing", p.name), "low"
			d.Do = "count the NICs in use; compare lanes of port and slot with a good twin's"
			return true
		}
	}
	return false
}
