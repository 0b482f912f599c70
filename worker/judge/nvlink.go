package judge

import (
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// links is what an NVLink product has: how many links are wired, and the
// signalling rate, GB/s each direction, as nvidia-smi prints it (NVIDIA
// product documents; nvidia-smi of healthy nodes). Boards with fewer links
// than the chip leave the others inactive by design.
var links = []struct {
	product string // all words must be in the name
	wired   int
	of      int // links that the chip has and nvidia-smi lists
	gbps    float64
}{
	{"V100 SXM", 6, 6, 25.781}, {"V100 PCIE", 0, 0, 0}, {"A100 SXM", 12, 12, 25}, {"A100 SXM4", 12, 12, 25}, {"H100 PCIE", 12, 18, 26.562},
	{"H100 NVL", 12, 18, 26.562}, {"H200 NVL", unwritten, 0, 0}, {"H100 80GB HBM3", 18, 18, 26.562}, {"H100 SXM", 18, 18, 26.562},
	{"H200", 18, 18, 26.562}, {"GB200", 18, 18, 53.125}, {"GB300", 18, 18, 53.125}, {"B200", 18, 18, 53.125}, {"B300", 18, 18, 53.125},
}

// unwritten stands for a product whose wiring is not published.
const unwritten = -1

// Wiring finds a product by its exact words; ok is false for names not known.
func Wiring(product string) (wired, of int, gbps float64, ok bool) {
	words := strings.Fields(strings.ToUpper(strings.NewReplacer("-", " ", "SXM2", "SXM", "SXM3", "SXM", "SXM4", "SXM", "SXM5", "SXM", "SXM6", "SXM").Replace(strings.ToUpper(product))))
	for _, l := range links {
		if !slices.ContainsFunc(strings.Fields(l.product), func(w string) bool { return !slices.Contains(words, w) }) {
			return l.wired, l.of, l.gbps, l.wired != unwritten
		}
	}
	return 0, 0, 0, false
}

// NVLinks judges the links of the GPUs of one node. cut says of which GPUs the
// list is cut short: those stay undecided.
func NVLinks(gpus []reports.GPU, from Origin, node string, cut map[int]bool) []reports.Finding {
	up := func(g reports.GPU) (n int, down []string) {
		for _, l := range g.NVLinks {
			if l.Up != nil && *l.Up {
				n++
			} else if l.Up != nil {
				down = append(down, fmt.Sprint(l.Link))
			}
		}
		return n, down
	}
	usual, total, dark := 0, 0, 0
	for _, g := range gpus {
		n, down := up(g)
		if !cut[g.Index] {
			usual = max(usual, n)
		}
		if len(g.NVLinks) > 0 {
			total++
			if n == 0 && len(down) > 0 {
				dark++
			}
		}
	}
	if total > 1 && dark == total && !Bridged(gpus[0].Name) {
		return []reports.Finding{{ID: "gpu-nvlink", Node: node, Subject: "all GPUs", Verdict: reports.Fail, Got: fmt.Sprintf("every NVLink of %d GPUs is inactive", total), Want: "links up",
			Evidence: []reports.Evidence{from.of("link state", "inactive on all")},
			Remedy:   "start the fabric manager (systemctl status nvidia-fabricmanager, same version as the driver): all links of all GPUs at once are not broken GPUs"}}
	}
	var out []reports.Finding
	for _, g := range gpus {
		f := reports.Finding{ID: "gpu-nvlink", Node: node, Subject: fmt.Sprintf("GPU %d", g.Index), Verdict: reports.Pass}
		n, down := up(g)
		wired, of, gbps, known := Wiring(g.Name)
		f.Got = fmt.Sprintf("%d links up", n)
		if len(down) > 0 {
			f.Got += ", inactive: " + list(down)
		}
		f.Evidence = []reports.Evidence{{From: "product", Value: or(g.Name, "not told")}, from.of("link state", f.Got)}
		slow := slowLinks(g, gbps)
		switch {
		case len(g.NVLinks) == 0 && known && wired == 0:
			f.Verdict, f.Got = reports.NA, "this product has no NVLink"
		case len(g.NVLinks) == 0:
			f.Verdict, f.Got = reports.NA, "no NVLink is reported"
			if known {
				f.Verdict, f.Want = reports.Unknown, fmt.Sprintf("%d links (%s)", wired, g.Name)
			}
		case cut[g.Index] || known && len(g.NVLinks) < wired && len(down) == 0:
			f.Verdict, f.Got = reports.Unknown, fmt.Sprintf("the list is cut short: %d of its links are shown", len(g.NVLinks))
			f.Remedy = "show the whole list (nvidia-smi nvlink -s)"
		case n == 0 && Bridged(g.Name):
			f.Verdict, f.Want = reports.Warn, fmt.Sprintf("%d links (%s), where bridges are fitted", wired, g.Name)
			f.Remedy = "no link of this board is up: is an NVLink bridge fitted, and fully seated?"
		case known && n < wired:
			f.Verdict, f.Want = reports.Fail, fmt.Sprintf("%d links (%s)", wired, g.Name)
			f.Got += fmt.Sprintf(": %.0f %% of its NVLink capacity is lost", 100*float64(wired-n)/float64(wired))
			if slow != "" {
				f.Got += "; slow: " + slow
			}
			f.Remedy = "reset the GPU, then the node; if the links stay down, the GPU, its baseboard or the switch at the other end (nvidia-smi nvlink -R names it) is broken"
		case slow != "":
			f.Verdict, f.Want, f.Remedy = reports.Fail, number(gbps)+" GB/s each ("+g.Name+")", "reset the GPU, then the node; then look at the baseboard"
			f.Got += "; slow: " + slow
		case known && of > wired && len(down) > 0:
			f.Want = fmt.Sprintf("%d links (%s); the other %d are inactive by design", wired, g.Name, of-wired)
		case known:
			f.Want = fmt.Sprintf("%d links (%s)", wired, g.Name)
		case len(down) > 0 && n < usual:
			f.Verdict, f.Want = reports.Fail, fmt.Sprintf("%d links, as other GPUs of this node", usual)
			f.Remedy = "reset the GPU, then the node; then look at the baseboard"
		case len(down) > 0:
			f.Verdict = reports.Unknown
			f.Got += "; how many this product should have is not known, and no other GPU has more"
		default:
			f.Want = "none inactive"
		}
		out = append(out, f)
	}
	return out
}

// slowLinks names links that are up below the product's rate. Effective rates
// are 0.9412 of the signalling rate, so that both forms pass.
func slowLinks(g reports.GPU, want float64) string {
	var best float64
	for _, l := range g.NVLinks {
		if l.GBps != nil {
			best = max(best, *l.GBps)
		}
	}
	if want == 0 {
		want = best
	}
	var slow []string
	for _, l := range g.NVLinks {
		if l.Up != nil && *l.Up && l.GBps != nil && *l.GBps < want*0.93 {
			slow = append(slow, fmt.Sprintf("link %d at %s GB/s", l.Link, number(*l.GBps)))
		}
	}
	return list(slow)
}

// Bridged boards have NVLink over bridges that may not be fitted, and no
// fabric manager.
func Bridged(product string) bool {
	p := strings.ToUpper(product)
	return strings.Contains(p, "PCIE") || strings.Contains(p, "NVL") && !strings.Contains(p, "GB") || strings.Contains(p, "RTX") || strings.Contains(p, "A40")
}
