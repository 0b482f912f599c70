package topo

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Place is where a rank's thread belongs: on the Turn-th of these processors,
// counted round; on any where CPUs is nil.
type Place struct {
	CPUs []int
	Turn int
	Next string // to which device: "GPU3", "mlx5_0"; "" where it belongs nowhere
}

// Places puts the n ranks of a node next to their devices: the GPU of the same
// number, counted round, or, where there is none, the RDMA device. Ranks next
// to the same processors take one each while there are enough. first is the
// node's first rank of all, so that several nodes of one machine do not meet
// on the same processors.
func Places(root fs.FS, first, n int) []Place {
	var at []Place
	if gpus, err := GPUs(root); err == nil {
		for i, g := range gpus {
			at = append(at, beside(g.CPUs, fmt.Sprintf("GPU%d", i)))
		}
	}
	if len(at) == 0 {
		adapters, _, _ := nics(root)
		for _, a := range adapters {
			if a.RDMA && a.Up != nil && *a.Up {
				at = append(at, beside(a.CPUs, a.Name))
			}
		}
	}
	turns := map[string]int{}
	out := make([]Place, n)
	for i := range out {
		if len(at) > 0 {
			out[i] = at[i%len(at)]
		}
		key := fmt.Sprint(out[i].CPUs)
		out[i].Turn = first + turns[key]
		turns[key]++
	}
	return out
}

func beside(list, device string) Place {
	cpus, err := ParseCPUs(list)
	if err != nil || len(cpus) == 0 {
		return Place{}
	}
	return Place{CPUs: cpus, Next: device}
}

// maxCPUs is what Linux can be built for, and more.
const maxCPUs = 1 << 14

// ParseCPUs reads a kernel list, "0-3,8".
func ParseCPUs(list string) (cpus []int, err error) {
	if list = strings.TrimSpace(list); list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err1 := strconv.Atoi(from)
		b, err2 := a, error(nil)
		if isRange {
			b, err2 = strconv.Atoi(to)
		}
		if err1 != nil || err2 != nil || a < 0 || b < a || b >= maxCPUs {
			return nil, fmt.Errorf("processor list %.40q: %q is not a number below %d or a range", list, part, maxCPUs)
		}
		if len(cpus)+b-a >= maxCPUs {
			return nil, fmt.Errorf("processor list %.40q: more than %d processors", list, maxCPUs)
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}
