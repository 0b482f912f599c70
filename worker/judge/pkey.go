package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbw/reports"
)

// PKeys is a port's partition table; index → key, 0 where the row is empty.
type PKeys struct {
	Origin
	Node, Subject string
	Ethernet      bool // there every port has the one default key
	Keys          map[int]uint16
	Chosen        int // NCCL_IB_PKEY, where it is known; −1: not told
}

// PKeyTable wants a full membership (bit 15), first in the table: NCCL and
// busbw use row 0 unless told otherwise. Two limited members of a partition
// cannot talk to each other (InfiniBand specification 10.9).
func PKeyTable(t PKeys) []reports.Finding {
	f := reports.Finding{ID: "rdma-pkey", Node: t.Node, Subject: t.Subject, Verdict: reports.Pass, Want: "a full member's key (0x8000 set) in row 0"}
	if t.Ethernet {
		f.Verdict, f.Got, f.Want = reports.NA, "RoCE has no partitions to manage", ""
		return []reports.Finding{f}
	}
	full, rows := -1, []string{}
	for _, i := range slices.Sorted(maps.Keys(t.Keys)) {
		k := t.Keys[i]
		rows = append(rows, fmt.Sprintf("%d: %#04x", i, k))
		if k&0x8000 != 0 && k&0x7fff != 0 && full < 0 {
			full = i
		}
		if k != 0 {
			f.Evidence = append(f.Evidence, t.of(fmt.Sprintf("pkeys/%d", i), fmt.Sprintf("%#04x", k)))
		}
	}
	used := max(t.Chosen, 0)
	row, told := t.Keys[used]
	switch {
	case len(f.Evidence) == 0:
		f.Verdict, f.Got = reports.Unknown, "the table is empty or not told"
	case full < 0:
		f.Verdict, f.Got = reports.Fail, "limited member only ("+strings.Join(trimRows(rows), ", ")+"): limited members cannot talk to each other"
		f.Remedy = "make the port a full member of its partition in the subnet manager (partitions.conf: GUID=full)"
	case told && row&0x8000 != 0 && row&0x7fff != 0:
		f.Got = fmt.Sprintf("full member of partition %#04x (row %d)", row&0x7fff, used)
	case !told && t.Chosen < 0 && full != 0:
		f.Verdict, f.Got = reports.Unknown, fmt.Sprintf("row 0 is not told; row %d is a full member", full)
	default:
		f.Verdict, f.Got = reports.Warn, fmt.Sprintf("row %d is %#04x; the full member's key is in row %d", used, row, full)
		f.Remedy = fmt.Sprintf("set NCCL_IB_PKEY=%d (a row, not a key) and use the same row in every other test (perftest: --pkey_index=%d)", full, full)
	}
	return []reports.Finding{f}
}

func trimRows(rows []string) []string {
	if len(rows) > 4 {
		return append(rows[:4:4], "…")
	}
	return rows
}
