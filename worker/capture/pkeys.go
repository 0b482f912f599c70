package capture

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	sysPKey   = regexp.MustCompile(`/?sys/class/infiniband/([\w.-]+)/ports/(\d{1,3})/pkeys/(\d{1,5})[:=\s]\s*(0x[0-9a-fA-F]{1,4})\b`)
	namedPKey = regexp.MustCompile(`(?i)\bpkey(?:s)?\s+(?:for|of|on)\s+(\S+?):?\s+(0x[0-9a-f]{1,4})\b`)
	devPKey   = regexp.MustCompile(`(?i)^\s*pkey\[\s*(\d{1,5})\s*\]:?\s*(0x[0-9a-f]{1,4})\b`)
	pkeyIndex = regexp.MustCompile(`--pkey_index[= ](\d{1,5})`)
	pkeyEnv   = regexp.MustCompile(`NCCL_IB_PKEY(?:=| set by environment to )(\d{1,5})`)
)

// readPKeys reads partition tables, and the row that a test was told to use.
func readPKeys(s section) []reports.Finding {
	var tables []*judge.PKeys
	at := func(subject string, from judge.Origin) *judge.PKeys {
		for _, t := range tables {
			if t.Subject == subject {
				return t
			}
		}
		t := &judge.PKeys{Origin: from, Node: s.node, Subject: subject, Keys: map[int]uint16{}, Chosen: -1}
		if len(tables) < 4096 {
			tables = append(tables, t)
		}
		return t
	}
	chosen, tested, line := -1, -1, ""
	for _, l := range s.lines {
		if m := sysPKey.FindStringSubmatch(l); m != nil {
			i := whole(m[3])
			at(m[1]+" port "+m[2], judge.Origin("/sys/class/infiniband/"+m[1]+"/ports/"+m[2])).Keys[i] = key(m[4])
		} else if m := namedPKey.FindStringSubmatch(l); m != nil {
			t := at(m[1], "message")
			t.Keys[len(t.Keys)] = key(m[2])
		} else if m := devPKey.FindStringSubmatch(l); m != nil {
			i := whole(m[1])
			at("port", "table").Keys[i] = key(m[2])
		}
		if m := pkeyEnv.FindStringSubmatch(l); m != nil {
			chosen = whole(m[1])
		}
		if m := pkeyIndex.FindStringSubmatch(l); m != nil {
			tested = whole(m[1])
			line = l
		}
	}
	var out []reports.Finding
	for _, t := range tables {
		t.Chosen = chosen
		out = append(out, judge.PKeyTable(*t)...)
	}
	if tested > 0 && chosen != tested {
		out = append(out, reports.Finding{ID: "rdma-pkey-index", Node: s.node, Subject: "partition row", Verdict: reports.Warn,
			Got: fmt.Sprintf("the test used row %d of the partition table; NCCL uses row 0 unless told", tested), Want: "one row for every test",
			Evidence: []reports.Evidence{{From: "command", Value: shorten(line)}},
			Remedy:   fmt.Sprintf("set NCCL_IB_PKEY=%d (a row, not a key); without it connections time out or hang while the other test passes", tested)})
	}
	return out
}

func key(s string) uint16 {
	n, _ := strconv.ParseUint(strings.ToLower(s), 0, 16)
	return uint16(n)
}
