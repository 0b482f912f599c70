package capture

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"busbw/rdma"
	"busbw/worker/judge"
)

var (
	showGID = regexp.MustCompile(`^\s*(\S+)\s+(\d{1,3})\s+(\d{1,3})\s+([0-9a-fA-F:.]{3,45})\s+(?:(\d+\.\d+\.\d+\.\d+)\s+)?(?:RoCE )?[vV]?([12])\b(?:\s+(\S+))?`)
	devGID  = regexp.MustCompile(`GID\[\s*(\d{1,3})\]:?\s*([0-9a-fA-F:.]{3,45})(?:\s*,\s*(.*))?$`)
	sysGID  = regexp.MustCompile(`/?sys/class/infiniband/([\w.-]+)/ports/(\d{1,3})/(?:gids/(\d{1,3})|gid_attrs/types/(\d{1,3}))[:=\s]\s*(\S.*)$`)
	gidEnv  = regexp.MustCompile(`NCCL_IB_GID_INDEX(?:=| set by environment to )(\d{1,3})`)
)

// gidTables collects GID tables: of show_gids (device, port, row), of
// ibv_devinfo -v (rows only: one that counts back begins the next table), and
// of files.
type gidTables struct {
	node string
	list []*judge.GIDs
	ib   map[*judge.GIDs]bool // told to be InfiniBand
}

func (g *gidTables) at(subject string, from judge.Origin) *judge.GIDs {
	for _, t := range g.list {
		if t.Subject == subject {
			return t
		}
	}
	t := &judge.GIDs{Origin: from, Node: g.node, Subject: subject, Chosen: -1}
	if len(g.list) < 4096 {
		g.list = append(g.list, t)
	}
	return t
}

// add takes a row that is not zero.
func add(t *judge.GIDs, index int, addr, kind string) {
	a, err := netip.ParseAddr(strings.ToLower(addr))
	if err != nil || !a.Is6() || a.IsUnspecified() || len(t.Rows) >= 1024 {
		return
	}
	t.Rows = append(t.Rows, rdma.GID{Index: index, Raw: a.As16(), Addr: a.Unmap(), Type: gidType(kind)})
}

// gidType is a RoCE version in the kernel's words.
func gidType(s string) string {
	s = strings.ToLower(s)
	switch {
	case strings.Contains(s, "v2") || s == "2":
		return "RoCE v2"
	case strings.Contains(s, "v1") || s == "1":
		return "IB/RoCE v1"
	}
	return ""
}

func readGIDs(s section) []judge.GIDs {
	g := &gidTables{node: s.node, ib: map[*judge.GIDs]bool{}}
	device, port, last, n := "", "1", 99999, 0
	chosen := -1
	var cur *judge.GIDs
	layer := ""
	for _, l := range s.lines {
		if m := gidEnv.FindStringSubmatch(l); m != nil {
			chosen = whole(m[1])
		}
		if m := deviceLine.FindStringSubmatch(l); m != nil {
			device, cur, layer = m[1]+m[2]+m[4], nil, ""
		}
		if m := portLine.FindStringSubmatch(l); m != nil {
			port, cur = m[1], nil
		}
		if m := keyLine.FindStringSubmatch(l); m != nil && strings.HasPrefix(strings.ToLower(m[1]), "link") {
			layer = strings.ToLower(m[2])
		}
		switch {
		case devGID.MatchString(l):
			m := devGID.FindStringSubmatch(l)
			i := whole(m[1])
			if cur == nil || i <= last {
				subject := device + " port " + port
				if device == "" {
					n++
					subject = fmt.Sprintf("table %d", n)
				}
				cur = g.at(subject, "ibv_devinfo")
			}
			last = i
			g.ib[cur] = strings.HasPrefix(layer, "inf")
			add(cur, i, m[2], m[3])
		case sysGID.MatchString(l):
			m := sysGID.FindStringSubmatch(l)
			t := g.at(m[1]+" port "+m[2], judge.Origin("/sys/class/infiniband/"+m[1]+"/ports/"+m[2]))
			if m[3] != "" {
				i := whole(m[3])
				add(t, i, m[5], "")
				continue
			}
			i := whole(m[4])
			for k := range t.Rows {
				if t.Rows[k].Index == i {
					t.Rows[k].Type = gidType(m[5])
				}
			}
		case showGID.MatchString(l):
			m := showGID.FindStringSubmatch(l)
			i := whole(m[3])
			add(g.at(m[1]+" port "+m[2], "show_gids"), i, m[4], m[6])
		}
	}
	var out []judge.GIDs
	for _, t := range g.list {
		// Rows without a version and without an IPv4 address are those of an InfiniBand port.
		for _, r := range t.Rows {
			t.Ethernet = t.Ethernet || r.Type != "" && r.Version() == 2 || r.Addr.Is4()
		}
		if t.Ethernet = t.Ethernet && !g.ib[t]; !t.Ethernet || len(t.Rows) == 0 {
			continue
		}
		t.Chosen = chosen
		out = append(out, *t)
	}
	return out
}
