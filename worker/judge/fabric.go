package judge

import (
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// Lane is one end of a link as the fabric's discovery (iblinkinfo) shows it.
type Lane struct {
	Origin
	From, To string // "gpu-node-3 HCA-1", "MF0;switch01:MQM8700/U1"
	Switch   bool   // From is a switch
	Guid     string
	LID      int
	Port     int
	Width    int     // lanes; 0 where the link is down
	Gbps     float64 // of a lane, signalling
	State    string  // "Active"
	Phys     string  // "LinkUp"
	Could    string  // "Could be 53.125 Gbps"
}

// rates of lanes, Gb/s signalled and of data (InfiniBand rate table).
func laneSpeed(gbps float64) (name string, data float64) {
	for _, r := range []struct {
		signal float64
		name   string
		data   float64
	}{{2.5, "SDR", 2.5}, {5, "DDR", 5}, {10, "QDR", 10}, {14.0625, "FDR", 14}, {25.78125, "EDR", 25}, {53.125, "HDR", 50}, {106.25, "NDR", 100}, {212.5, "XDR", 200}} {
		if gbps > r.signal*0.98 && gbps < r.signal*1.02 {
			return r.name, r.data
		}
	}
	return "", gbps
}

func (l Lane) text() string {
	n, d := laneSpeed(l.Gbps)
	if l.Width == 0 {
		return or(l.State, "down") + "/" + or(l.Phys, "?")
	}
	return fmt.Sprintf("%dX %s, %s Gb/s", l.Width, or(n, number(l.Gbps)), number(d*float64(l.Width)))
}

func (l Lane) rate() float64 {
	_, d := laneSpeed(l.Gbps)
	return d * float64(l.Width)
}

// aggregation nodes belong to the switch (in-network reduction).
func (l Lane) aggregation() bool { return strings.Contains(l.From, "Aggregation Node") }

// Fabric judges the links of a subnet: hosts below their peers fail; all
// hosts below their switch is worth a word, no more, for their cards may be
// made for it.
func Subnet(lanes []Lane) []reports.Finding {
	var out []reports.Finding
	var hosts []Lane
	counts := map[float64]int{}
	top := 0.0
	for _, l := range lanes {
		top = max(top, l.rate())
		if !l.Switch && !l.aggregation() && l.Width > 0 {
			hosts = append(hosts, l)
			counts[l.rate()]++
		}
	}
	usual := 0.0
	for r, n := range counts {
		if n > counts[usual] || n == counts[usual] && r > usual {
			usual = r
		}
	}
	for _, l := range lanes {
		f := reports.Finding{ID: "fabric-link", Subject: fmt.Sprintf("%s port %d", strings.TrimSpace(l.From), l.Port), Verdict: reports.Pass, Got: l.text()}
		f.Evidence = []reports.Evidence{l.of(fmt.Sprintf("%s port %d → %s", l.From, l.Port, l.To), fmt.Sprintf("%s %s/%s", l.text(), l.State, l.Phys))}
		host := !l.Switch && !l.aggregation()
		const remedy = "reseat or replace cable or module; compare the speeds enabled at both ends"
		switch {
		case l.Width == 0 && l.Switch && l.To == "": // nothing is plugged in
			continue
		case l.Width == 0:
			f.Verdict, f.Want, f.Remedy = reports.Fail, "up", "look at the cable and the port at the other end"
		case host && l.rate() < usual:
			f.Verdict, f.Want, f.Remedy = reports.Fail, fmt.Sprintf("%s Gb/s, as most hosts", number(usual)), remedy
		case l.Width == 1:
			f.Verdict, f.Want, f.Remedy = reports.Fail, "4X", remedy
		case l.Could != "":
			f.Verdict, f.Remedy = reports.Warn, remedy
			f.Want = l.Could
		case !host:
			continue
		}
		out = append(out, f)
	}
	if len(hosts) > 1 && len(counts) == 1 && usual < top {
		out = append(out, reports.Finding{ID: "fabric-rate", Subject: "all hosts", Verdict: reports.Pass,
			Got:      fmt.Sprintf("%d hosts run at %s Gb/s on a subnet that also runs %s Gb/s: no fault if their cards or cables are made for that (compare active and supported speed of one)", len(hosts), number(usual), number(top)),
			Evidence: []reports.Evidence{hosts[0].of("host links", hosts[0].text()), hosts[0].of("link type", "InfiniBand (LIDs are assigned)")}})
	}
	return append(out, shared(hosts)...)
}

// shared finds cards that show one cable as several devices.
func shared(hosts []Lane) []reports.Finding {
	by := map[int][]string{}
	var lids []int
	for _, h := range hosts {
		if h.LID > 0 && !slices.Contains(by[h.LID], h.From) {
			if by[h.LID] == nil {
				lids = append(lids, h.LID)
			}
			by[h.LID] = append(by[h.LID], h.From)
		}
	}
	var out []reports.Finding
	for _, lid := range lids {
		if len(by[lid]) > 1 {
			out = append(out, oneCable(by[lid], fmt.Sprintf("LID %d", lid)))
		}
	}
	return out
}

func oneCable(names []string, proof string) reports.Finding {
	return reports.Finding{ID: "fabric-shared-port", Subject: strings.Join(names, ", "), Verdict: reports.Pass, Got: "one cable, shown as " + fmt.Sprint(len(names)) + " devices: their rates do not add up",
		Evidence: []reports.Evidence{{From: "same port", Value: proof}}}
}

// SharedPorts finds devices of one node with the same port GUID: a card with
// two PCIe connections (socket direct) has one cable.
func SharedPorts(guids map[string]string, node string) []reports.Finding {
	by := map[string][]string{}
	for dev, g := range guids {
		by[g] = append(by[g], dev)
	}
	var out []reports.Finding
	for g, devs := range by {
		if len(devs) > 1 && strings.Trim(g, "0x:") != "" {
			slices.Sort(devs)
			f := oneCable(devs, "port GUID "+g)
			f.Node = node
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b reports.Finding) int { return strings.Compare(a.Subject, b.Subject) })
	return out
}
