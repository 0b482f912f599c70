package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImportsGoOneWay pins which packages of the module each may use
// (docs/design.md), so that what is pure stays pure.
func TestImportsGoOneWay(t *testing.T) {
	may := map[string][]string{
		"busbw/collectives/reduce":   {},
		"busbw/collectives":          {"busbw/collectives/reduce"},
		"busbw/collectives/linktest": {"busbw/collectives", "busbw/collectives/reduce"},
		"busbw/reports":              {"busbw/collectives", "busbw/collectives/reduce"},
		"busbw/reports/imports":      {"busbw/collectives", "busbw/collectives/reduce", "busbw/reports"},
		"busbw/rdma":                 {"busbw/collectives", "busbw/collectives/reduce"},
		"busbw/worker/gpu":           {"busbw/collectives", "busbw/collectives/reduce"},
		"busbw/coordinator/pairs":    {"busbw/collectives", "busbw/collectives/reduce", "busbw/reports"},
		"busbw/coordinator/document": {},
		"busbw/coordinator/accept":   {"busbw/coordinator/document", "busbw/collectives", "busbw/collectives/reduce", "busbw/coordinator/pairs", "busbw/reports"},
		"busbw/coordinator":          {"busbw/coordinator/document", "busbw/collectives", "busbw/collectives/reduce", "busbw/coordinator/pairs", "busbw/reports"},
		"busbw/coordinator/plan":     {"busbw/coordinator/document", "busbw/collectives", "busbw/collectives/reduce", "busbw/reports"},
		"busbw/worker/nvml":          {"busbw/collectives", "busbw/collectives/reduce", "busbw/reports"},
		"busbw/worker/topo":          {"busbw/collectives", "busbw/collectives/reduce", "busbw/rdma", "busbw/reports", "busbw/worker/judge"},
		"busbw/worker/judge":         {"busbw/collectives", "busbw/collectives/reduce", "busbw/rdma", "busbw/reports"},
		"busbw/worker/capture":       {"busbw/collectives", "busbw/collectives/reduce", "busbw/rdma", "busbw/reports", "busbw/worker/judge", "busbw/worker/topo"},
		"busbw/worker/nccl":          {"busbw/collectives", "busbw/collectives/reduce"},
		"busbw/worker": {"busbw/collectives", "busbw/collectives/reduce", "busbw/coordinator", "busbw/coordinator/document", "busbw/coordinator/pairs", "busbw/rdma", "busbw/reports", "busbw/reports/imports",
			"busbw/worker/judge", "busbw/worker/capture", "busbw/worker/gpu", "busbw/worker/nccl", "busbw/worker/nvml", "busbw/worker/topo"},
	}
	for pkg, allowed := range may {
		out, err := exec.Command("go", "list", "-deps", pkg).Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", pkg, err)
		}
		for dep := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(dep, "busbw/") && dep != pkg && !slices.Contains(allowed, dep) {
				t.Errorf("%s uses %s; it may use %v", pkg, dep, allowed)
			}
		}
	}
}
