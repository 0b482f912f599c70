package coordinator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// absent says which ranks have not arrived at a call of NCCL that others wait in,
// and the first of them; "" where none of that is known.
func (j *Job) absent() (text string, first int) {
	var calls []call
	rank, known := 0, 0
	for i, n := range j.nodes {
		if p := j.progress[i]; p != nil && len(p.Arrived) == n.Ranks && len(p.Finished) == n.Ranks {
			known++
			for l := range n.Ranks {
				if p.Arrived[l] >= 0 {
					calls = append(calls, call{rank + l, p.Arrived[l], p.Finished[l]})
				}
			}
		}
		rank += n.Ranks
	}
	if known < len(j.nodes) || len(calls) == 0 {
		return "", -1
	}
	most := slices.MaxFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) }).at
	var missing, waiting, done []int
	for _, c := range calls {
		switch {
		case c.at < most:
			missing = append(missing, c.rank)
		case c.done < most:
			waiting = append(waiting, c.rank)
		default:
			done = append(done, c.rank)
		}
	}
	switch {
	case most == 0:
		return "no rank has come back from its first call of NCCL", -1
	case missing != nil:
		return fmt.Sprintf("%s not arrived at call %d of NCCL, which %s", has(missing), most, ended(waiting, done)), missing[0]
	case waiting != nil && done != nil:
		return fmt.Sprintf("all ranks have arrived at call %d of NCCL, which %s", most, ended(waiting, done)), waiting[0]
	case waiting != nil:
		return fmt.Sprintf("all ranks have arrived at call %d of NCCL, which ends on none of them", most), -1
	}
	return "", -1
}

// call is how far a rank is.
type call struct {
	rank     int
	at, done int64
}

func has(ranks []int) string { return those(ranks, "has", "have") }

func ended(waiting, done []int) string {
	var both []string
	if waiting != nil {
		both = append(both, those(waiting, "waits in", "wait in"))
	}
	if done != nil {
		both = append(both, those(done, "has ended", "have ended"))
	}
	return strings.Join(both, " and ")
}

// those is ranks with a verb.
func those(ranks []int, one, many string) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d %s", ranks[0], one)
	}
	return "ranks " + few(ranks) + " " + many
}

// few lists ranks, not more than a message holds.
func few(ranks []int) string {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(ranks[:min(len(ranks), 16)]), " ", ", "), "[]")
	if n := len(ranks) - 16; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
