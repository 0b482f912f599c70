package judge

import (
	"fmt"
	"slices"

	"busbw/reports"
)

// most is the highest rate, Gb/s, that any card of a type has (hca_type is the
// PCI device id, pci.ids; a card of the type may be sold for less, so that
// less than this is no fault by itself).
var most = []struct {
	kind string
	gbps float64
}{
	{"MT4099", 56}, {"MT4103", 56}, {"MT4113", 56}, {"MT4115", 100}, {"MT4117", 50}, {"MT4119", 100}, {"MT4121", 100}, {"MT4123", 200}, {"MT4124", 200},
	{"MT4125", 200}, {"MT4126", 200}, {"MT4127", 50}, {"MT4129", 400}, {"MT4131", 800}, {"MT41682", 100}, {"MT41686", 200}, {"MT41692", 400},
}

func capable(kind string) float64 {
	for _, m := range most {
		if m.kind == kind {
			return m.gbps
		}
	}
	return 0
}

// Rates compares the rate of every active port with the wanted one (Gb/s; 0:
// none is known), with the other ports of its kind (cards for storage are of
// another board, and may run slower), of all nodes, and with
// what its type can do. The rate of a port that is not active is stale, and no
// fault.
func Rates(ports []Port, want float64) []reports.Finding {
	peers := map[string][]float64{} // layer, type, board → rates of the active ports
	kin := func(p Port) string { return p.Layer + " " + p.Type + " " + p.Board }
	for _, p := range ports {
		if p.active() && p.Gbps > 0 {
			peers[kin(p)] = append(peers[kin(p)], p.Gbps)
		}
	}
	var out []reports.Finding
	for _, p := range ports {
		out = append(out, rate(p, want, peers[kin(p)]))
	}
	return out
}

func rate(p Port, want float64, peers []float64) reports.Finding {
	f := reports.Finding{ID: "rdma-port-rate", Node: p.Node, Subject: p.Subject(), Verdict: reports.Pass}
	if !p.active() {
		f.Verdict, f.Got = reports.NA, "the port is not active: what its rate says is stale"
		if p.State == 0 {
			f.Verdict, f.Got = reports.Unknown, "the port's state is not told"
		}
		return f
	}
	if p.Gbps == 0 {
		f.Verdict, f.Got = reports.Unknown, "the rate is not told"
		return f
	}
	f.Got = number(p.Gbps) + " Gb/s"
	if p.Width > 0 {
		f.Got += fmt.Sprintf(", %d lanes", p.Width)
	}
	f.Evidence = append(f.Evidence, p.of("rate", f.Got))
	if p.Type != "" {
		f.Evidence = append(f.Evidence, p.of("hca_type", p.Type))
	}
	const remedy = "reseat or replace the cable or module, compare the speeds enabled at both ends (mlxlink), then the firmware"
	best := slices.Max(append([]float64{p.Gbps}, peers...))
	fast := 0 // ports that run at the best rate
	for _, r := range peers {
		if r >= best*0.99 {
			fast++
		}
	}
	can := capable(p.Type)
	switch {
	case want > 0 && p.Gbps < want*0.99:
		f.Verdict, f.Want, f.Remedy = reports.Fail, number(want)+" Gb/s", remedy
	case p.ib() && p.Width == 1 && (want == 0 || p.Gbps < want):
		f.Verdict, f.Want, f.Remedy = reports.Fail, "4 lanes", remedy
		f.Got += ": three lanes are lost"
	case p.ib() && p.Gbps <= 10 && can >= 40:
		f.Verdict, f.Want, f.Remedy = reports.Fail, fmt.Sprintf("up to %s Gb/s (type %s)", number(can), p.Type), remedy
		f.Got += ": the link fell back to the lowest speed"
	case p.ib() && p.Gbps <= 10 && can == 0 && want == 0:
		f.Verdict, f.Want, f.Remedy = reports.Warn, "more than the lowest speed of InfiniBand", remedy+" (kernels older than the card show this too)"
	case p.Gbps < best*0.99 && fast*2 > len(peers):
		f.Verdict, f.Remedy = reports.Fail, remedy
		f.Want = fmt.Sprintf("%s Gb/s, as %d of %d ports of its kind", number(best), fast, len(peers))
	case p.Gbps < best*0.99:
		f.Verdict, f.Remedy = reports.Warn, remedy
		f.Want = fmt.Sprintf("%s Gb/s, as %d of %d ports of its kind", number(best), fast, len(peers))
	case want == 0 && can >= p.Gbps*3.9:
		f.Verdict, f.Want, f.Remedy = reports.Warn, fmt.Sprintf("up to %s Gb/s (type %s)", number(can), p.Type), "a quarter or less of what the type can do: right only if switch or cable are that slow; "+remedy
	case want == 0 && can > p.Gbps*1.01:
		f.Want = fmt.Sprintf("up to %s Gb/s (type %s): less is right if card, cable or switch are made for less", number(can), p.Type)
	}
	return f
}

// MTUs judges the MTU in use: what a small one costs is known from the size of
// the headers (26 B a packet on InfiniBand, 82 B on RoCE v2).
func MTUs(ports []Port) []reports.Finding {
	var out []reports.Finding
	for _, p := range ports {
		f := reports.Finding{ID: "rdma-mtu", Node: p.Node, Subject: p.Subject(), Verdict: reports.Pass, Want: "4096 B"}
		mtu := p.MTU
		switch {
		case !p.active():
			continue
		case mtu > 0:
			f.Evidence = append(f.Evidence, p.of("active_mtu", mtu))
		case p.ethernet() && p.NetMTU > 0:
			f.Evidence = append(f.Evidence, reports.Evidence{From: "/sys/class/net/" + or(p.Netdev, "?") + "/mtu", Value: fmt.Sprint(p.NetMTU)})
			for _, m := range []int{256, 512, 1024, 2048, 4096} {
				if m+82-24 <= p.NetMTU { // preamble, gap and frame check do not count
					mtu = m
				}
			}
		}
		f.Got = fmt.Sprintf("%d B", mtu)
		header := 26
		if p.ethernet() {
			header = 82
		}
		share := 100 * float64(mtu) / float64(mtu+header)
		switch {
		case mtu == 0:
			f.Verdict, f.Got = reports.Unknown, "the MTU in use is not among the kernel's files and no network interface tells it (ibv_devinfo shows active_mtu)"
		case mtu >= 4096, p.MaxMTU > 0 && mtu >= p.MaxMTU:
		case mtu == 2048 && p.ib():
			f.Got += fmt.Sprintf(" (%.1f %% of the rate can be payload)", share)
		default:
			f.Verdict = reports.Warn
			f.Got += fmt.Sprintf(": headers leave %.1f %% of the rate", share)
			f.Remedy = "set the MTU of the interface to 4200 or more on every node and switch in the path"
			if p.ib() {
				f.Remedy = "set the MTU of the partition in the subnet manager to 4096 (mtu=5)"
			}
		}
		out = append(out, f)
	}
	return out
}
