package coordinator

import (
	"fmt"
	"slices"
	"strings"

	"busbw/collectives"
)

// ncclNames maps NCCL's algorithm names to ours. The others need hardware or
// protocols that the native engine does not have.
var ncclNames = map[string]string{"ring": "ring", "tree": "tree"}
var ncclOnly = []string{"collnetchain", "collnetdirect", "nvls", "nvlstree", "pat"}

// Allowed reads NCCL_ALGO for one operation: the algorithms that auto may
// choose from, nil for all. "Ring,Tree"; "^Tree"; "allreduce:Ring;broadcast:Tree"
// (an operation without an entry is free). As in NCCL since 2.24 nothing falls
// back silently: a value that leaves nothing to run is an error.
func Allowed(value string, op collectives.Op) ([]string, error) {
	list := value
	if strings.ContainsAny(value, ":;") {
		list = ""
		for _, part := range strings.Split(value, ";") {
			if strings.TrimSpace(part) == "" {
				continue
			}
			name, l, ok := strings.Cut(part, ":")
			if !ok {
				return nil, fmt.Errorf("NCCL_ALGO=%q: %q has no operation before it (want allreduce:Ring;broadcast:Tree)", value, part)
			}
			o, err := collectives.ParseOp(strings.TrimSpace(name))
			if err != nil {
				return nil, fmt.Errorf("NCCL_ALGO=%q: %w", value, err)
			}
			if o == op {
				list = l
			}
		}
	}
	list = strings.ToLower(strings.TrimSpace(list))
	if list == "" {
		return nil, nil
	}
	exclude := strings.HasPrefix(list, "^")
	var named []string
	for _, n := range strings.Split(strings.TrimPrefix(list, "^"), ",") {
		n = strings.TrimSpace(n)
		switch {
		case ncclNames[n] != "":
			named = append(named, ncclNames[n])
		case slices.Contains(collectives.Algorithms(op), n):
			named = append(named, n) // our own names are understood too
		case !slices.Contains(ncclOnly, n):
			return nil, fmt.Errorf("NCCL_ALGO=%q: unknown algorithm %q; the native engine has %s", value, n, strings.Join(collectives.Algorithms(op), ", "))
		}
	}
	if !exclude {
		if len(named) == 0 {
			return nil, fmt.Errorf("NCCL_ALGO=%q: none of these runs on the native engine, which has %s", value, strings.Join(collectives.Algorithms(op), ", "))
		}
		return named, nil
	}
	var left []string
	for _, a := range collectives.Algorithms(op) {
		if !slices.Contains(named, a) {
			left = append(left, a)
		}
	}
	if len(left) == 0 {
		return nil, fmt.Errorf("NCCL_ALGO=%q leaves no algorithm for %s", value, op)
	}
	return left, nil
}
