package topo

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"busbw/reports"
)

// Text writes a node's topology for people.
func Text(out io.Writer, t reports.Topology) error {
	w := &bytes.Buffer{}
	fmt.Fprintf(w, "node %s: %s\n", t.Node, headline(t))
	for _, why := range []string{t.NoGPUs, t.NoNICs} {
		if why != "" {
			fmt.Fprintf(w, "  not known: %s\n", why)
		}
	}
	if t.Virtual > 0 {
		fmt.Fprintf(w, "  left out: %s\n", plural(t.Virtual, "virtual function"))
	}
	if len(t.GPUs)+len(t.NICs) == 0 {
		fmt.Fprintln(w, "  nothing to show: no GPU and no network adapter is seen on the PCI bus")
	} else {
		fmt.Fprintln(w)
		grid(w, t)
		legends(w, t)
	}
	if len(t.GPUs) > 0 {
		fmt.Fprintln(w)
		gpuTable(w, t)
	}
	for i, s := range t.Shared {
		if i == 0 {
			fmt.Fprintln(w, "\none PCIe port carries:")
		}
		fmt.Fprintf(w, "  %s: %s%s\n", s.Port, strings.Join(s.Devices, " "), portRate(s))
	}
	for i, s := range t.Odd {
		if i == 0 {
			fmt.Fprintln(w, "\nodd:")
		}
		fmt.Fprintf(w, "  ! %s\n", s)
	}
	return clean(out, w.String())
}

// clean writes a whole text so that what a file or another machine calls its
// devices cannot steer a terminal. Of a part, a character might be cut in two.
func clean(out io.Writer, text string) error {
	_, err := io.WriteString(out, strings.Map(func(r rune) rune {
		if r != '\n' && (r == utf8.RuneError || !unicode.IsPrint(r)) {
			return '?'
		}
		return r
	}, text))
	return err
}

// Line writes a line in which others may have had a say.
func Line(out io.Writer, format string, args ...any) error {
	return clean(out, fmt.Sprintf(format+"\n", args...))
}

func headline(t reports.Topology) string {
	gpus := "GPUs unknown"
	if t.NoGPUs == "" || len(t.GPUs) > 0 {
		gpus = plural(len(t.GPUs), "GPU")
	}
	kind := "network adapter"
	if len(t.NICs) > 0 && t.NICs[0].RDMA {
		kind = "RDMA device"
	}
	return gpus + ", " + plural(len(t.NICs), kind)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// grid is the matrix as nvidia-smi topo -m lays it out.
func grid(w io.Writer, t reports.Topology) {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	ns := names(t)
	fmt.Fprintf(tw, "\t%s\tCPUs\tNUMA\n", strings.Join(ns, "\t"))
	for i, row := range t.Paths {
		cpus, numa := "", (*int)(nil)
		if i < len(t.GPUs) {
			cpus, numa = t.GPUs[i].CPUs, t.GPUs[i].NUMA
		} else {
			cpus, numa = t.NICs[i-len(t.GPUs)].CPUs, t.NICs[i-len(t.GPUs)].NUMA
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", ns[i], strings.Join(row, "\t"), dash(cpus), number(numa))
	}
	tw.Flush()
}

func dash(s string) string {
	if s == "" {
		return "—"
	}
	return s
}

func number[T any](p *T) string {
	if p == nil {
		return "—"
	}
	return fmt.Sprint(*p)
}

// legends explains the words that the matrix uses, and the adapters.
func legends(w io.Writer, t reports.Topology) {
	used := map[string]bool{}
	for _, row := range t.Paths {
		for _, word := range row {
			if links(word) > 0 {
				word = "NV#"
			}
			used[word] = true
		}
	}
	fmt.Fprintln(w)
	for _, l := range legend {
		if used[l.word] {
			fmt.Fprintf(w, "  %-5s %s\n", l.word, l.means)
		}
	}
	for _, n := range t.NICs {
		facts := []string{dash(n.PCI)}
		if n.Layer != "" {
			facts = append(facts, n.Layer)
		}
		switch {
		case n.Up != nil && !*n.Up:
			facts = append(facts, "down")
		case n.Gbps != nil:
			facts = append(facts, fmt.Sprintf("%g Gb/s", *n.Gbps))
		}
		if len(n.Netdev) > 0 && !slices.Equal(n.Netdev, []string{n.Name}) {
			facts = append(facts, "interface "+strings.Join(n.Netdev, " "))
		}
		fmt.Fprintf(w, "  %s: %s\n", n.Name, strings.Join(facts, ", "))
	}
}

func gpuTable(w io.Writer, t reports.Topology) {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "GPU\tmodel\taddress\tPCIe now (can)\tNVLink up, each way\tfabric\tuse")
	for i, g := range t.GPUs {
		use := "—"
		if i < len(t.Use) && len(t.Use[i].NICs) > 0 {
			use = fmt.Sprintf("%s (%s)", t.NICs[t.Use[i].NICs[0]].Name, t.Use[i].Path)
		}
		state := "—"
		if g.Fabric != nil {
			state = g.Fabric.State
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", i, g.Name, dash(g.PCI), pcie(g), nvlinks(g), state, use)
	}
	tw.Flush()
}

// pcie shows now and most; a GPU that idles runs its link slowly.
func pcie(g reports.GPU) string {
	if g.PCIeWidth == nil {
		return "—"
	}
	return fmt.Sprintf("Gen%s x%s (Gen%s x%s)", number(g.PCIeGen), number(g.PCIeWidth), number(g.PCIeGenMax), number(g.PCIeWidthMax))
}

func nvlinks(g reports.GPU) string {
	if len(g.XGMI) > 0 {
		return fmt.Sprintf("%d XGMI neighbours", len(g.XGMI))
	}
	if len(g.NVLinks) == 0 {
		return "—"
	}
	n, gen, gbps := sum(g, func(reports.NVLink) bool { return true })
	s := fmt.Sprintf("%d of %d", n, len(g.NVLinks))
	if gen > 0 {
		s += fmt.Sprintf(", NVLink %d", gen)
	}
	if gbps != nil {
		s += fmt.Sprintf(", %g GB/s", *gbps)
	}
	return s
}

func portRate(s reports.Shared) string {
	if s.GBps == nil {
		return ""
	}
	return fmt.Sprintf(" (Gen%d x%d, %.1f GB/s each way for all)", s.Gen, s.Lanes, *s.GBps)
}
