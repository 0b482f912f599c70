package capture

import (
	"regexp"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	gpuHead   = regexp.MustCompile(`^\s*GPU\s+(\d{1,3}):\s*(\S.*?)\s*(?:\(UUID:\s*([^)]*)\))?\s*$`)
	linkState = regexp.MustCompile(`^\s*Link\s+(\d{1,2}):\s*(?:(<?[Ii]n-?[Aa]ctive>?)|(\d+(?:\.\d+)?)\s*GB/s)`)
	linkError = regexp.MustCompile(`^\s*Link\s+(\d{1,2}):\s*(Replay|Recovery|CRC FLIT|CRC|ECC)[A-Za-z ]*?:\s*(\d+)`)
	allDark   = regexp.MustCompile(`(?i)all links are in-?active`)
	ellipsis  = regexp.MustCompile(`^\s*(\.{3,}|…|\[\.{3}\]|<snip>|\[snip\])\s*$`)
)

// readNVLinks reads nvidia-smi nvlink -s and -e.
func readNVLinks(s section) []reports.Finding {
	var gpus []reports.GPU
	cut := map[int]bool{}
	var cur *reports.GPU
	at := func(index int, name string) *reports.GPU {
		for i := range gpus {
			if gpus[i].Index == index {
				return &gpus[i]
			}
		}
		if len(gpus) >= 256 {
			return &reports.GPU{}
		}
		gpus = append(gpus, reports.GPU{Index: index, Name: name, Vendor: "nvidia"})
		return &gpus[len(gpus)-1]
	}
	link := func(n int) *reports.NVLink {
		for i := range cur.NVLinks {
			if cur.NVLinks[i].Link == n {
				return &cur.NVLinks[i]
			}
		}
		cur.NVLinks = append(cur.NVLinks, reports.NVLink{Link: n})
		return &cur.NVLinks[len(cur.NVLinks)-1]
	}
	seen := false
	for _, l := range s.lines {
		if m := gpuHead.FindStringSubmatch(l); m != nil {
			n := whole(m[1])
			cur = at(n, m[2])
			continue
		}
		if cur == nil {
			continue
		}
		if ellipsis.MatchString(l) {
			cut[cur.Index] = true
		}
		if m := linkState.FindStringSubmatch(l); m != nil {
			n := whole(m[1])
			x := link(n)
			up := m[3] != ""
			x.Up = &up
			if up {
				f := decimal(m[3])
				x.GBps = &f
			}
			seen = true
		}
		if m := linkError.FindStringSubmatch(l); m != nil {
			n := whole(m[1])
			v, _ := strconv.ParseUint(m[3], 10, 64)
			x := link(n)
			if x.Errors == nil {
				x.Errors = map[string]uint64{}
			}
			x.Errors[strings.ReplaceAll(strings.ToLower(m[2]), " ", "_")] = v
		}
		if allDark.MatchString(l) {
			up := false
			link(0).Up, seen = &up, true
		}
	}
	var out []reports.Finding
	if seen {
		out = judge.NVLinks(gpus, "nvidia-smi nvlink -s", s.node, cut)
	}
	return append(out, judge.NVLinkErrors(gpus, "nvidia-smi nvlink -e", s.node)...)
}
