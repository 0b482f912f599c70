package accept

import (
	"fmt"
	"slices"
	"strings"

	"busbw/coordinator/pairs"
	"busbw/reports"
)

// portName is the RDMA port that a rail of a node was measured over,
// "mlx5_0:1"; "" where that is not known.
func (in *Input) portName(node string, rail int) string {
	for i := len(in.Results) - 1; i >= 0; i-- {
		r := &in.Results[i]
		k := slices.Index(r.Hosts, node)
		if r.Scope != pairs.Scope || r.Verbs == nil || k < 0 || len(r.Verbs.Rails)%len(r.Hosts) != 0 {
			continue
		}
		per := len(r.Verbs.Rails) / len(r.Hosts)
		if rail >= per {
			return ""
		}
		name, _, _ := strings.Cut(r.Verbs.Rails[k*per+rail], " ")
		return name
	}
	return ""
}

// own is what the port of a culprit reached against itself, and what is said of
// that; nil where it is not one port, or was not tested.
func (in *Input) own(c *pairs.Culprit) (*reports.Result, *reports.Finding) {
	rail := 0
	if len(c.Rails) == 1 {
		rail = c.Rails[0]
	} else if len(c.Rails) > 1 || c.Kind != pairs.Port {
		return nil, nil
	}
	name := in.portName(c.Nodes[0], rail)
	for i := range in.Results {
		r := &in.Results[i]
		if r.Scope != deviceScope || r.Op != "nic_loopback" || r.Config["device"] != name || inGPU(r.Memory) != inGPU(in.memory()) || !slices.Contains(r.Hosts, c.Nodes[0]) || deviceGBps(r) == 0 {
			continue
		}
		for _, f := range Devices(in.Profile, in.Results) {
			if f.Node == c.Nodes[0] && f.Subject == deviceOf(r) {
				return r, &f
			}
		}
	}
	return nil, nil
}

// acquits says whether a port that is fast against itself clears slot, card and
// memory of what pairs saw.
func acquits(r *reports.Result, f *reports.Finding, c *pairs.Culprit) bool {
	return f != nil && f.Verdict == reports.Pass && deviceGBps(r) > 1.15*c.GBps
}

// ownFault: the port is slow with nothing but itself, so that nothing outside
// the node is to blame.
func (in *Input) ownFault(d *Diagnosis, r *reports.Result, f *reports.Finding, c *pairs.Culprit) bool {
	if f == nil || f.Verdict == reports.Pass || f.Verdict == reports.Unknown || deviceGBps(r) > 1.15*c.GBps {
		return false
	}
	d.Because = append(d.Because, say(*f))
	d.Not = append(d.Not, "not the cable, the peer or the switch: the port is slow against itself, too")
	if in.slotFault(c, d, c.GBps*8) {
		return true
	}
	d.Cause, d.Sure, d.Do = in.deviceCause(r, f)
	return true
}

// deviceCause is why a device is slow by itself, by its figure and the node's
// PCIe findings.
func (in *Input) deviceCause(r *reports.Result, f *reports.Finding) (cause, sure, do string) {
	gbps := 8 * deviceGBps(r)
	do = "read speed and width of the device's link and of every bridge above it, under load; then payload size, IOMMU, NUMA node; then swap the card with a good twin's"
	at, _, _ := strings.Cut(in.addressOf(r), ".") // functions of a card have one slot
	for _, x := range in.of(f.Node, "pcie-link") {
		if s, ok := slotIn(x.Got); ok && (at != "" && strings.Contains(x.Subject, at) || alike(gbps, s.gbps)) {
			return fmt.Sprintf("PCIe slot: %s runs as %s, which carries %.0f Gb/s", x.Subject, s.name, s.gbps), "high", x.Remedy
		}
	}
	if name := lesserSlot(gbps, in.twinGbps(r)); name != "" {
		return fmt.Sprintf("probably the PCIe slot: %.0f Gb/s is what %s carries", gbps, name), "medium", do
	}
	for _, id := range []string{"pcie-shared", "pcie-iommu", "pcie-transfers", "numa"} {
		if xs := in.of(f.Node, id); len(xs) > 0 {
			return "the node's own side: " + xs[0].Subject + ": " + xs[0].Got, "medium", xs[0].Remedy
		}
	}
	return "the device, its slot or the way to memory: nothing outside the node takes part in this test", "medium", do
}

// twinGbps is what such a device should reach: its line rate, or the median of
// its twins.
func (in *Input) twinGbps(r *reports.Result) float64 {
	if r.Limit != nil {
		return 8 * r.Limit.GBps
	}
	var vs []float64
	for i := range in.Results {
		if x := &in.Results[i]; x.Scope == deviceScope && twin(x) == twin(r) {
			vs = append(vs, 8*deviceGBps(x))
		}
	}
	want := reports.Median(vs)
	if l := deviceLimit(in.Profile, r); l != nil {
		want = max(want, 8*l.value())
	}
	return want
}

// addressOf is the PCI address of the device that a result is of; "" where it
// is not known.
func (in *Input) addressOf(r *reports.Result) string {
	device := r.Config["device"]
	if strings.HasPrefix(device, "GPU ") {
		if i, j := strings.LastIndex(device, ", "), strings.LastIndex(device, ")"); i >= 0 && j > i {
			return strings.ToLower(device[i+2 : j])
		}
		return ""
	}
	name, _, _ := strings.Cut(device, ":")
	for _, t := range in.Topologies {
		for _, n := range t.NICs {
			if slices.Contains(r.Hosts, t.Node) && n.Name == name {
				return n.PCI
			}
		}
	}
	return ""
}

// slowDevices explains devices that are slow by themselves, except ports that
// pair tests accuse, of which slowPorts speaks.
func (in *Input) slowDevices() (out []Diagnosis) {
	said := map[string]bool{}
	if in.Pairs != nil {
		for i := range in.Pairs.Culprits {
			c := &in.Pairs.Culprits[i]
			if len(c.Nodes) != 1 || c.OneMachine || c.Verdict == reports.Unknown || c.Kind != pairs.Port && c.Kind != pairs.Node {
				continue
			}
			if _, f := in.own(c); f != nil {
				said[f.Node+f.Subject] = true
			}
		}
	}
	findings := Devices(in.Profile, in.Results)
	for i := range in.Results {
		r := &in.Results[i]
		if r.Scope != deviceScope || len(r.Hosts) != 1 || deviceGBps(r) == 0 {
			continue
		}
		k := slices.IndexFunc(findings, func(f reports.Finding) bool { return f.Node == r.Hosts[0] && f.Subject == deviceOf(r) })
		if k < 0 || findings[k].Verdict != reports.Fail && findings[k].Verdict != reports.Warn || said[findings[k].Node+findings[k].Subject] {
			continue
		}
		if v := deviceGBps(r); r.Limit == nil && v > 0.93*in.twinGbps(r)/8 { // a remark only
			continue
		}
		f := &findings[k]
		d := Diagnosis{Node: f.Node, Subject: f.Subject, Because: []string{say(*f)}, Not: []string{"no cable, peer or switch takes part in it"}}
		d.Cause, d.Sure, d.Do = in.deviceCause(r, f)
		out = append(out, d)
	}
	return out
}
