package rdma

import "fmt"

// Idle names the variables that are set to other than their defaults and
// cannot have an effect on a port of this link layer ("InfiniBand" or
// "Ethernet"), and why.
func (s Settings) Idle(force map[string]string, linkLayer string) []string {
	ib := linkLayer == "InfiniBand"
	adaptive := s.AdaptiveRouting == 1 || s.AdaptiveRouting < 0 && ib
	var out []string
	for _, x := range []struct {
		name string
		idle bool
		why  string
	}{
		{"NCCL_IB_ROCE_VERSION_NUM", ib, "the ports are InfiniBand"},
		{"NCCL_IB_ADDR_FAMILY", ib, "the ports are InfiniBand"},
		{"NCCL_IB_ADDR_RANGE", ib, "the ports are InfiniBand"},
		{"NCCL_IB_ROCE_VERSION_NUM", !ib && s.GIDIndex >= 0, "NCCL_IB_GID_INDEX names the row"},
		{"NCCL_IB_ADDR_FAMILY", !ib && s.GIDIndex >= 0, "NCCL_IB_GID_INDEX names the row"},
		{"NCCL_IB_ADDR_RANGE", !ib && s.GIDIndex >= 0, "NCCL_IB_GID_INDEX names the row"},
		{"NCCL_IB_AR_THRESHOLD", !adaptive, "adaptive routing is off (NCCL_IB_ADAPTIVE_ROUTING)"},
		{"NCCL_IB_SPLIT_DATA_ON_QPS", s.QPs == 1, "a connection has one queue pair (NCCL_IB_QPS_PER_CONNECTION)"},
	} {
		if x.idle && force[x.name] != defaultOf(x.name) {
			out = append(out, fmt.Sprintf("%s=%s has no effect: %s", x.name, force[x.name], x.why))
		}
	}
	return out
}

// Changed names the variables that are set to other than their defaults.
func Changed(force map[string]string) []string {
	var out []string
	for _, x := range settings() {
		if v := force[x.name]; v != "" && v != x.def {
			out = append(out, x.name)
		}
	}
	return out
}

// Defaults are the variables that ParseSettings reads, with their defaults.
func Defaults() map[string]string {
	out := map[string]string{}
	for _, x := range settings() {
		out[x.name] = x.def
	}
	return out
}

func defaultOf(name string) string { return Defaults()[name] }
