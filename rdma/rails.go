package rdma

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Place is where a rank's device, or the processor that stands for it, lies.
type Place struct {
	Path string // PCI path below /sys/devices, as HCA.Path; "" for a rank without a device
	NUMA *int   // nil where it is not known
}

// Nearest chooses the rail of a node's local-th rank: the one whose PCI path
// parts latest from that of the rank's device, else one of its NUMA node, else
// any. Ranks that have the same choice take turns.
func Nearest(rails []Rail, at Place, local int) Rail {
	var best []Rail
	most := -1
	for _, r := range rails {
		score := 2 * common(r.HCA.Path, at.Path)
		if r.HCA.NUMA != nil && at.NUMA != nil && *r.HCA.NUMA == *at.NUMA {
			score++
		}
		if score > most {
			best, most = nil, score
		}
		if score == most {
			best = append(best, r)
		}
	}
	return best[local%len(best)]
}

// common is how many elements two PCI paths share from the root on.
func common(a, b string) int {
	if a == "" || b == "" {
		return 0
	}
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

// Named is the rail of a node's local-th rank where the user lists rails:
// NAME or NAME:PORT, used in turn.
func Named(rails []Rail, names []string, local int) (Rail, error) {
	want := names[local%len(names)]
	i := slices.IndexFunc(rails, func(r Rail) bool { return r.String() == want || r.HCA.Name == want })
	if i < 0 {
		return Rail{}, fmt.Errorf("%w: rail %q (--rails) is no active RDMA port here; the active ones are %v", ErrSetting, want, rails)
	}
	return rails[i], nil
}

// PlaceOf is where a processor lies.
func PlaceOf(root fs.FS, cpu int) Place {
	names, _ := list(root, "sys/devices/system/cpu/cpu"+strconv.Itoa(cpu)) // a machine that does not say has no places
	for _, n := range names {
		if s, ok := strings.CutPrefix(n, "node"); ok {
			if node, err := strconv.Atoi(s); err == nil {
				return Place{NUMA: &node}
			}
		}
	}
	return Place{}
}
