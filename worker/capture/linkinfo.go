package capture

import (
	"regexp"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	linkHead = regexp.MustCompile(`^\s*(CA|Switch):\s*(.*?):?\s*$`)
	linkRow  = regexp.MustCompile(`^\s*(?:(0x[0-9a-fA-F]+|"[^"]*")\s+)?(\d+)\s+(\d+)\[\s*\]\s*==\(\s*(.*?)\)\s*==>\s*(?:(\d+)\s+(\d+)\s*)?\[\s*\]\s*"([^"]*)"\s*\((.*)\)\s*$`)
	linkForm = regexp.MustCompile(`(?i)(\d{1,2})X\s+([\d.]+)\s*Gbps\s+(\w+)\s*/\s*(\w+)`)
	linkDown = regexp.MustCompile(`(?i)(\w+)\s*/\s*(\w+)\s*$`)
	could    = regexp.MustCompile(`(?i)could be [^)"]*`)
)

// readLinkInfo reads iblinkinfo.
func readLinkInfo(s section) []reports.Finding {
	var lanes []judge.Lane
	from, isSwitch := "", false
	for _, l := range s.lines {
		m := linkRow.FindStringSubmatch(l)
		if m == nil {
			if h := linkHead.FindStringSubmatch(l); h != nil {
				from, isSwitch = h[2], h[1] == "Switch"
				if g, name, ok := strings.Cut(from, " "); ok && strings.HasPrefix(g, "0x") {
					from = name
				}
			}
			continue
		}
		lane := judge.Lane{Origin: "iblinkinfo", From: from, Switch: isSwitch, Guid: m[1], To: strings.TrimSpace(m[7]), Could: strings.TrimSpace(could.FindString(m[8]))}
		lane.LID = whole(m[2])
		lane.Port = whole(m[3])
		if f := linkForm.FindStringSubmatch(m[4]); f != nil {
			lane.Width = whole(f[1])
			lane.Gbps = decimal(f[2])
			lane.State, lane.Phys = f[3], f[4]
		} else if f := linkDown.FindStringSubmatch(m[4]); f != nil {
			lane.State, lane.Phys = f[1], f[2]
		}
		if strings.EqualFold(lane.State, "Down") {
			lane.Width = 0
		}
		if len(lanes) < 1<<18 {
			lanes = append(lanes, lane)
		}
	}
	if len(lanes) == 0 {
		return nil
	}
	return judge.Subnet(lanes)
}
