package capture

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"busbw/reports"
)

var (
	cudaFail  = regexp.MustCompile(`^\s*(?:\[\d+,(\d+)\]<std(?:out|err)>:)?\s*(\S*?):? ?Test CUDA failure \S+ '([^']*)'`)
	tooFew    = regexp.MustCompile(`Invalid number of GPUs: (\d+) requested but only (\d+) were found`)
	procName  = regexp.MustCompile(`Process name: \[\[\d+,\d+\],(\d+)\]`)
	exitCode  = regexp.MustCompile(`Exit code:\s+(\d+)`)
	closedBy  = regexp.MustCompile(`^(?:.*?\s)?(\S+?):\d+:\d+ .*Connection closed by remote peer (\S+?)<`)
	badWC     = regexp.MustCompile(`^(?:.*?\s)?(\S+?):\d+:\d+ .*Got completion from peer ([0-9a-fA-F:.]+)(?:<\d+>)? with status=(\d+).*?(?:vendor err (\d+))?(?:.*remoteGids?:? ?(\S+))?`)
	lossWC    = regexp.MustCompile(`with status=(\d+)`)
	speaker   = regexp.MustCompile(`^(?:\[\S+\] ?)?([\w.-]+):\d+:\d+ \[\d+\]`)
	commented = regexp.MustCompile(`^\s*#`)
)

// readLaunch finds why ranks could not begin: no GPU for them.
func readLaunch(s section) []reports.Finding {
	type key struct{ host, what string }
	ranks := map[key][]int{}
	var order []key
	lines := map[key]string{}
	first := -1
	code := ""
	var out []reports.Finding
	for _, l := range s.lines {
		if m := cudaFail.FindStringSubmatch(l); m != nil {
			host := m[2]
			if _, err := strconv.Atoi(host); err == nil {
				host = "host " + host
			}
			k := key{host, m[3]}
			if _, ok := ranks[k]; !ok && len(order) < 1024 {
				order = append(order, k)
				lines[k] = l
				ranks[k] = []int{}
			}
			if r, err := strconv.Atoi(m[1]); err == nil {
				ranks[k] = append(ranks[k], r)
			}
		}
		if m := procName.FindStringSubmatch(l); m != nil {
			first = whole(m[1])
		}
		if m := exitCode.FindStringSubmatch(l); m != nil {
			code = m[1]
		}
		if m := tooFew.FindStringSubmatch(l); m != nil {
			out = append(out, reports.Finding{ID: "gpu-count", Node: s.node, Subject: "GPUs", Verdict: reports.Fail, Got: m[2] + " found", Want: m[1] + " (requested)",
				Evidence: []reports.Evidence{{From: "message", Value: shorten(l)}}, Remedy: "start as many ranks on a node as it has GPUs (ranks × GPUs for each)"})
		}
	}
	for _, k := range order {
		f := reports.Finding{ID: "gpu-count", Node: s.node, Subject: or(k.host, "a node"), Verdict: reports.Fail, Want: "a GPU for every rank on the node", Evidence: []reports.Evidence{{From: "message", Value: shorten(lines[k])}}}
		who := "a rank"
		if rs := ranks[k]; len(rs) > 0 {
			slices.Sort(rs)
			who = "ranks " + strings.Trim(fmt.Sprint(rs[:min(len(rs), 16)]), "[]")
		} else if first >= 0 {
			who = fmt.Sprintf("rank %d", first)
			if code != "" {
				who += " (exit code " + code + ")"
			}
		}
		switch {
		case strings.Contains(k.what, "ordinal"):
			f.Got = who + " asked for a GPU that the node does not have: more ranks were placed on it than it has GPUs"
			f.Remedy = "look at how ranks were placed on nodes (slots, hosts, ranks for each node), not at the GPU"
		case strings.Contains(k.what, "no CUDA-capable"):
			f.Got = who + " saw no GPU at all: the node shows 0 GPUs"
			f.Remedy = "nvidia-smi on that node: driver, container's GPU access (--gpus), CUDA_VISIBLE_DEVICES"
		default:
			f.Got = who + ": " + k.what
			f.Remedy = "nvidia-smi and the kernel log of that node"
		}
		out = append(out, f)
	}
	return out
}
