// Package judge decides what plain facts about a machine mean: each function
// takes values, wherever they were read (files of a machine, captured output
// of other programs), and returns findings. It guesses nothing:
// what was not told is unknown, which is not a pass.
package judge

import (
	"fmt"
	"strings"

	"busbw/reports"
)

// Origin says where facts were read: a directory ("/sys/class/infiniband/mlx5_0/ports/1")
// or a program ("ibstat").
type Origin string

// of is evidence for a field of what was read there.
func (o Origin) of(field string, value any) reports.Evidence {
	from := string(o)
	switch {
	case from == "":
		from = field
	case strings.HasPrefix(from, "/") && field != "":
		from += "/" + field
	case field != "":
		from += " " + field
	}
	return reports.Evidence{From: from, Value: fmt.Sprint(value)}
}

// list is at most eight names, and how many more there are.
func list(names []string) string {
	if len(names) > 8 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:8], ", "), len(names)-8)
	}
	return strings.Join(names, ", ")
}

// number writes a figure without needless zeros: 25.781, 400, 2.5.
func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", v), "0"), ".")
}
