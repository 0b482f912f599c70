package judge

import (
	"fmt"

	"busbw/rdma"
	"busbw/reports"
)

// GIDs is the GID table of a port; rows that are zero are left out.
type GIDs struct {
	Origin
	Node, Subject string
	Ethernet      bool
	Rows          []rdma.GID
	Chosen        int // NCCL_IB_GID_INDEX as a job used it; −1: not told
}

// row finds a row by its index.
func (t GIDs) row(index int) (rdma.GID, bool) {
	for _, g := range t.Rows {
		if g.Index == index {
			return g, true
		}
	}
	return rdma.GID{}, false
}

// Best is the row that queue pairs should use: RoCE v2, IPv4, routable.
func (t GIDs) Best() (rdma.GID, error) {
	s, _, err := rdma.ParseSettings(nil)
	if err != nil {
		return rdma.GID{}, err
	}
	layer := "InfiniBand"
	if t.Ethernet {
		layer = "Ethernet"
	}
	return rdma.PickGID(t.Subject, rdma.Port{LinkLayer: layer, GIDs: t.Rows}, s)
}

// GIDTable names the row to use and judges what it can do, then the row that
// a job did use.
func GIDTable(t GIDs) []reports.Finding {
	f := reports.Finding{ID: "rdma-gid", Node: t.Node, Subject: t.Subject, Verdict: reports.Pass}
	if !t.Ethernet {
		f.Verdict, f.Got = reports.NA, "InfiniBand routes by LID"
		return []reports.Finding{f}
	}
	f.Want = "a RoCE v2 row with an IPv4 or global IPv6 address"
	best, err := t.Best()
	if err != nil {
		f.Verdict, f.Got = reports.Fail, "no GID: the network interface has no address"
		f.Remedy = "give the interface of the port an address and bring it up"
		return []reports.Finding{f}
	}
	f.Got = "row " + best.String()
	f.Evidence = append(f.Evidence, t.of(fmt.Sprintf("gids/%d", best.Index), best.String()))
	switch {
	case best.Addr.IsLinkLocalUnicast():
		f.Verdict = reports.Warn
		f.Got += ": link-local, ends at the first router"
		f.Remedy = "give the interface an IPv4 address; link-local rows only reach nodes of the same segment"
	case best.Version() == 1:
		f.Verdict = reports.Warn
		f.Got += ": RoCE v1, ends at the first router"
		f.Remedy = "switch the interface to RoCE v2 (cma_roce_mode, or the driver's configuration)"
	case best.Version() == 0:
		f.Verdict = reports.Unknown
		f.Got += "; the table does not tell RoCE versions"
	}
	out := []reports.Finding{f}
	if t.Chosen >= 0 {
		out = append(out, t.used(best))
	}
	return out
}

// used judges a row that was named.
func (t GIDs) used(best rdma.GID) reports.Finding {
	f := reports.Finding{ID: "rdma-gid-index", Node: t.Node, Subject: t.Subject, Verdict: reports.Pass, Want: "row " + best.String()}
	f.Evidence = []reports.Evidence{{From: "NCCL_IB_GID_INDEX", Value: fmt.Sprint(t.Chosen)}}
	f.Remedy = fmt.Sprintf("leave NCCL_IB_GID_INDEX unset, or set it to %d on this node", best.Index)
	g, ok := t.row(t.Chosen)
	f.Got = "row " + g.String()
	switch {
	case !ok:
		f.Verdict, f.Got = reports.Fail, fmt.Sprintf("row %d is empty", t.Chosen)
	case g.Addr.IsLinkLocalUnicast() && !best.Addr.IsLinkLocalUnicast():
		f.Verdict = reports.Fail
		f.Got += ": link-local, cannot be routed: queue pairs time out between subnets"
	case g.Version() == 1 && best.Version() == 2:
		f.Verdict = reports.Fail
		f.Got += ": RoCE v1, works only inside one segment"
	default:
		f.Remedy = ""
	}
	return f
}

// GIDAgreement compares the rows to use of several tables: one
// NCCL_IB_GID_INDEX for all nodes works only where they agree.
func GIDAgreement(tables []GIDs) []reports.Finding {
	index, differ, chosen := -1, false, -1
	f := reports.Finding{ID: "rdma-gid-equal", Subject: "GID rows of all ports", Verdict: reports.Pass, Want: "the same row everywhere"}
	for _, t := range tables {
		best, err := t.Best()
		if !t.Ethernet || err != nil {
			continue
		}
		chosen = max(chosen, t.Chosen)
		differ = differ || index >= 0 && best.Index != index
		index = best.Index
		f.Evidence = append(f.Evidence, reports.Evidence{From: t.Node + " " + t.Subject, Value: "row " + best.String()})
	}
	if len(f.Evidence) < 2 {
		return nil
	}
	f.Got = fmt.Sprintf("row %d", index)
	if differ {
		f.Verdict, f.Got = reports.Warn, "GID tables differ: the row to use is not the same everywhere"
		f.Remedy = "leave NCCL_IB_GID_INDEX unset, so that each node picks its own; one index for all cannot work"
		if chosen >= 0 {
			f.Verdict = reports.Fail
		}
	}
	return []reports.Finding{f}
}
