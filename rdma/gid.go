package rdma

import (
	"fmt"
	"strings"
)

// PickGID chooses the row of a port's GID table that its queue pairs use.
// InfiniBand ports route by LID and have one GID that matters, row 0. On RoCE
// the row must be of the wanted version; among those an address of the wanted
// family comes first, then one that can be routed, and link-local ones last,
// for they end at the first router. A row named by the user is taken as it is.
func PickGID(device string, p Port, s Settings) (GID, error) {
	where := fmt.Sprintf("%s port %d", device, p.Num)
	if s.GIDIndex >= 0 {
		for _, g := range p.GIDs {
			if g.Index == s.GIDIndex {
				return g, nil
			}
		}
		return GID{}, fmt.Errorf("%w: %s has nothing in GID row %d (NCCL_IB_GID_INDEX); its rows are %s", ErrSetting, where, s.GIDIndex, rows(p.GIDs))
	}
	best, most := GID{}, -1
	for _, g := range p.GIDs {
		if p.LinkLayer == "InfiniBand" {
			return g, nil
		}
		if s.Range.IsValid() && !s.Range.Contains(g.Addr) {
			continue
		}
		score := 0
		if g.Version() == s.RoCEVersion {
			score = 4
		}
		if g.Addr.Is4() == (s.Family == 4) {
			score++
		}
		if !g.Addr.IsLinkLocalUnicast() {
			score += 2
		}
		// Where the kernel does not tell versions, rows come in pairs, version 1 first.
		if score > most || score == most && g.Version() == 0 {
			best, most = g, score
		}
	}
	if most < 0 {
		if s.Range.IsValid() {
			return GID{}, fmt.Errorf("%w: %s has no GID in %s (NCCL_IB_ADDR_RANGE); its rows are %s", ErrSetting, where, s.Range, rows(p.GIDs))
		}
		return GID{}, fmt.Errorf("%s has no GID: its network interface has no address", where)
	}
	return best, nil
}

// Version is the RoCE version of a GID; 0 where the machine does not say.
func (g GID) Version() int {
	switch {
	case g.Type == "RoCE v2":
		return 2
	case strings.HasSuffix(g.Type, "v1"):
		return 1
	}
	return 0
}

func (g GID) String() string {
	s := fmt.Sprintf("%d: %s", g.Index, g.Addr)
	if v := g.Version(); v > 0 {
		s += fmt.Sprintf(" v%d", v)
	}
	return s
}

func rows(gs []GID) string {
	if len(gs) == 0 {
		return "all empty"
	}
	var b []string
	for _, g := range gs {
		b = append(b, g.String())
	}
	return strings.Join(b, ", ")
}
