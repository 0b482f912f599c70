package coordinator

import (
	"net/netip"
	"strings"
)

// Bounds on what a node may say that its settings came to.
const (
	maxEffective = 32 // names
	maxValue     = 100
)

// onHost says of settings for GPU memory that they do not apply: buffers are host
// memory. It tells only of those that are set.
func onHost(values map[string]string) map[string]string {
	out := map[string]string{}
	for _, s := range settings() {
		if v := values[s.name]; v != s.def && (strings.HasPrefix(s.name, "NCCL_P2P_") || strings.HasPrefix(s.name, "NCCL_NET_GDR_")) {
			out[s.name] = "does not apply: buffers are in host memory"
		}
	}
	return out
}

// joined adds what a node says to what the nodes before it said: "1/2" where
// two do not agree.
func joined(all, more map[string]string) map[string]string {
	for k, v := range more {
		k, v = clean(k, maxValue), clean(v, maxValue)
		old, ok := all[k]
		switch {
		case !ok && len(all) >= maxEffective:
		case !ok:
			if all == nil {
				all = map[string]string{}
			}
			all[k] = v
		case !strings.Contains("/"+old+"/", "/"+v+"/") && len(old) < maxValue:
			all[k] = old + "/" + v
		}
	}
	return all
}

// overNetwork is what NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY came to.
func overNetwork(r OpenReply) map[string]string {
	out := map[string]string{}
	if r.Iface != "" {
		out["interface"] = r.Iface
	}
	if a, err := netip.ParseAddrPort(r.Addr); err == nil {
		out["address family"] = "IPv6"
		if a.Addr().Unmap().Is4() {
			out["address family"] = "IPv4"
		}
	}
	return out
}
