package accept

import (
	"fmt"
	"regexp"
	"strings"

	"busbw/reports"
)

// Hardware says whether a node is what the profile is for, and whole. fits is
// false where it is another kind of node, so that the limits are not its.
func (p *Profile) Hardware(t reports.Topology) (out []reports.Finding, fits bool) {
	fits = true
	add := func(subject string, v reports.Verdict, got, want, remedy string) {
		out = append(out, reports.Finding{ID: "hardware", Verdict: v, Node: t.Node, Subject: subject, Got: got, Want: want,
			Evidence: []reports.Evidence{{From: "busbw topo", Value: got}}, Remedy: remedy})
	}
	if g := p.GPUs; g != nil {
		want := fmt.Sprintf("%d × %s (%s)", g.Count, plainly(g.Product), g.Source)
		product := regexp.MustCompile(g.Product) // check has seen it
		match := 0
		var names []string
		for _, x := range t.GPUs {
			if product.MatchString(x.Name) {
				match++
			}
			names = append(names, x.Name)
		}
		got := tally(names)
		switch {
		case len(t.GPUs) == 0 && t.NoGPUs != "":
			add("GPUs", reports.Unknown, t.NoGPUs, want, "")
		case len(t.GPUs) == 0:
			fits = false
			add("GPUs", reports.Fail, "none", want, "is this the right profile, and is the GPU driver loaded?")
		case match == 0:
			// Limits of one product say nothing about another.
			fits = false
			add("GPUs", reports.Unknown, got, want, "the profile is for another product: busbw profile list")
		case match < g.Count:
			add("GPUs", reports.Fail, got, want, "a GPU is missing: look at the kernel log for XID 79, and at its slot")
		default:
			add("GPUs", reports.Pass, got, want, "")
		}
		if g.NVLinks > 0 {
			p.links(t, product, add)
		}
	}
	if n := p.NICs; n != nil && n.Count > 0 {
		want := fmt.Sprintf("%d active ports of %g Gb/s %s (%s)", n.Count, n.Gbps, n.Link, n.Source)
		fast := 0
		var names []string
		for _, x := range t.NICs {
			if !x.RDMA {
				continue
			}
			text := x.Name + " down"
			if x.Up != nil && *x.Up && x.Gbps != nil {
				text = fmt.Sprintf("%s %g Gb/s", x.Name, *x.Gbps)
				if *x.Gbps >= n.Gbps && (n.Link == "" || x.Layer == n.Link) {
					fast++
				}
			}
			names = append(names, text)
		}
		switch {
		case t.NoNICs != "":
			add("NICs", reports.Unknown, t.NoNICs, want, "")
		case fast < n.Count:
			got := strings.Join(names, ", ")
			if got == "" {
				got = "no RDMA device"
			}
			add("NICs", reports.Fail, got, want, "busbw check tells why a port is down or slow")
		default:
			add("NICs", reports.Pass, fmt.Sprintf("%d ports", fast), want, "")
		}
	}
	return out, fits
}

// plainly is a profile's expression for products as people say it:
// "H100.*(HBM3|SXM)" is "H100 … (HBM3 or SXM)".
func plainly(expression string) string {
	return strings.NewReplacer(".*", " … ", "|", " or ", `\`, "").Replace(expression)
}

// links compares the NVLinks that are up with the product's number.
func (p *Profile) links(t reports.Topology, product *regexp.Regexp, add func(subject string, v reports.Verdict, got, want, remedy string)) {
	for _, x := range t.GPUs {
		if !product.MatchString(x.Name) {
			continue
		}
		up, told := 0, false
		for _, l := range x.NVLinks {
			if l.Up != nil {
				told = true
				if *l.Up {
					up++
				}
			}
		}
		want := fmt.Sprintf("%d links (%s)", p.GPUs.NVLinks, p.GPUs.Source)
		subject := fmt.Sprintf("GPU %d NVLink", x.Index)
		switch {
		case !told:
			add(subject, reports.Unknown, "the driver does not tell", want, "")
		case up < p.GPUs.NVLinks:
			add(subject, reports.Fail, fmt.Sprintf("%d up", up), want, "restart the fabric manager; then reset the GPU; then it is the board")
		default:
			add(subject, reports.Pass, fmt.Sprintf("%d up", up), want, "")
		}
	}
}

// tally counts equal names: "8 × NVIDIA H100 80GB HBM3".
func tally(names []string) string {
	count := map[string]int{}
	var order []string
	for _, n := range names {
		if count[n]++; count[n] == 1 {
			order = append(order, n)
		}
	}
	var s []string
	for _, n := range order {
		s = append(s, fmt.Sprintf("%d × %s", count[n], n))
	}
	return strings.Join(s, ", ")
}
