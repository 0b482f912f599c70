package capture

import (
	"fmt"
	"regexp"
	"strings"

	"busbw/reports"
)

var (
	nhcFail   = regexp.MustCompile(`nhc:\s+Health check failed:\s+(\w+):\s*(.*?)(?:\s*FaultCode:.*)?$`)
	nhcPass   = regexp.MustCompile(`nhc:\s+Health check passed:\s+(\w+):\s*(.*?)(?:\s*FaultCode:.*)?$`)
	expected  = regexp.MustCompile(`expected >=? ?([\d.]+) GB/s, but measured ([\d.]+) GB/s`)
	lessThan  = regexp.MustCompile(`Bandwidth ([\d.]+) is less than ([\d.]+)`)
	ibName    = regexp.MustCompile(`IB=(\S+?),?\s+(?:IB )?BW=([\d.]+) ?Gbps`)
	inactive  = regexp.MustCompile(`GPU (\d+) has nvlinks inactive`)
	linkOff   = regexp.MustCompile(`(?i)Link (\d+): inactive`)
	topoFile  = regexp.MustCompile(`NCCL_TOPO_FILE=(\S+)`)
	noResolve = regexp.MustCompile(`sudo: unable to resolve host (\S+)`)
)

// readHealth reads the lines of node health checks. What they call a failure
// is judged anew: a limit made for another product is no fault of the node.
func readHealth(s section) []reports.Finding {
	var out []reports.Finding
	topo := ""
	for _, l := range s.lines {
		if m := topoFile.FindStringSubmatch(l); m != nil {
			topo = m[1]
		}
	}
	for i, l := range s.lines {
		if m := noResolve.FindStringSubmatch(l); m != nil {
			out = append(out, reports.Finding{ID: "health-check", Node: s.node, Subject: "host name", Verdict: reports.NA, Got: m[1] + " does not resolve inside the container: harmless, and no name for a node", Evidence: []reports.Evidence{{From: "message", Value: shorten(l)}}})
		}
		if m := nhcPass.FindStringSubmatch(l); m != nil {
			f := reports.Finding{ID: "health-check", Node: s.node, Subject: m[1], Verdict: reports.Pass, Got: shorten(m[2]), Evidence: []reports.Evidence{{From: "nhc", Value: shorten(l)}}}
			if b := ibName.FindStringSubmatch(m[2]); b != nil {
				f.Subject, f.Got = m[1]+" "+b[1], b[2]+" Gb/s"
			}
			out = append(out, f)
		}
		m := nhcFail.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		f := reports.Finding{ID: "health-check", Node: s.node, Subject: m[1], Verdict: reports.Fail, Got: shorten(m[2]), Evidence: []reports.Evidence{{From: "nhc", Value: shorten(l)}}, Remedy: "look at what the check names"}
		switch {
		case expected.MatchString(m[2]):
			b := expected.FindStringSubmatch(m[2])
			want := decimal(b[1])
			got := decimal(b[2])
			f.Got, f.Want = b[2]+" GB/s", b[1]+" GB/s"
			if got > 0 && want/got > 5 {
				f.Verdict = reports.Unknown
				f.Got += fmt.Sprintf(": %.0f times too little is the mark of NVLink not being used, not of a broken link (which costs a few percent to a half)", want/got)
				f.Remedy = "the test itself is in doubt: run it again without NCCL_TOPO_FILE, NCCL_P2P_DISABLE and NCCL_P2P_LEVEL"
				if topo != "" {
					f.Evidence = append(f.Evidence, reports.Evidence{From: "NCCL_TOPO_FILE", Value: topo})
					f.Remedy = "the test itself is in doubt: run it again without NCCL_TOPO_FILE (" + topo + " is made for another machine)"
				}
			}
		case lessThan.MatchString(m[2]):
			b := lessThan.FindStringSubmatch(m[2])
			want := decimal(b[2])
			got := decimal(b[1])
			f.Got, f.Want = b[1]+" GB/s", b[2]+" GB/s"
			if got > want/2 {
				f.Verdict = reports.Unknown
				f.Got += ": the product is not told, and the limit may be another one's (boards with 12 of 18 links reach two thirds)"
				f.Remedy = "compare with the limit of the exact product (nvidia-smi -L)"
			}
		case inactive.MatchString(m[2]):
			off := linkOff.FindAllStringSubmatch(m[2], 32)
			for _, n := range s.lines[i+1 : min(i+33, len(s.lines))] {
				if !linkOff.MatchString(n) {
					break
				}
				off = append(off, linkOff.FindAllStringSubmatch(n, 32)...)
			}
			var names []string
			for _, o := range off {
				names = append(names, o[1])
			}
			f.Subject = "GPU " + inactive.FindStringSubmatch(m[2])[1] + " NVLink"
			f.Got = "links inactive: " + strings.Join(names, ", ")
			f.Verdict = reports.Unknown
			f.Got += ": the product is not told; PCIe and NVL boards have six of 18 inactive by design"
			f.Remedy = "show the product and all links (nvidia-smi -L; nvidia-smi nvlink -s)"
		}
		out = append(out, f)
	}
	return out
}
