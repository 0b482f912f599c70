package pairs

import (
	"fmt"
	"slices"
)

// marks says of each remark that stands beside some values whether it explains
// which are slow.
func (t *Table) marks(lv Level) (notes []string) {
	var names []string
	for _, s := range t.Bandwidth {
		if s.Mark != "" && !slices.Contains(names, s.Mark) && len(names) < 10 {
			names = append(names, s.Mark)
		}
	}
	for _, m := range names {
		var with, without *Sample // fast with it, slow without it
		marked, slow := 0, 0
		for i := range t.Bandwidth {
			s := &t.Bandwidth[i]
			if s.Way != lv.Way {
				continue
			}
			if s.Mark == m {
				if marked++; s.Value < lv.Slow {
					slow++
				}
			}
			switch {
			case s.Mark == m && s.Value >= lv.Slow:
				with = s
			case s.Mark != m && s.Value < lv.Slow:
				without = s
			}
		}
		pair := func(s *Sample) string {
			return fmt.Sprintf("%s – %s (%s)", t.Nodes[s.A], t.Nodes[s.B], rate(s.Value))
		}
		switch {
		case marked == 0 || slow == 0 && without == nil:
		case with != nil && without != nil:
			notes = append(notes, fmt.Sprintf("%.60q is not the cause: %s has it and is fast, %s has it not and is slow", m, pair(with), pair(without)))
		case with == nil && without == nil:
			notes = append(notes, fmt.Sprintf("every slow pair is marked %.60q and no fast one is: it may be the cause", m))
		case with == nil:
			notes = append(notes, fmt.Sprintf("all that is marked %.60q is slow, but so are others: %s", m, pair(without)))
		}
	}
	return notes
}
