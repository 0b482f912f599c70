package pairs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// units takes the unit that a heading names.
func (r *reader) units(s string) bool {
	f, ok := unitOf(s)
	switch {
	case ok:
		r.unit, r.times = f, false
	case timeWord.MatchString(s):
		r.times = true
		r.notes = append(r.notes, fmt.Sprintf("passed over: %.60q heads times, and pairs are judged by bandwidth", strings.TrimSpace(s)))
		return true
	}
	return ok
}

// unitOf is the factor to GB/s of the unit that a text names.
func unitOf(s string) (float64, bool) {
	m := unitWord.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	k := strings.ToUpper(m[1])
	f := map[string]float64{"G": 1, "M": 1e-3, "K": 1e-6}[k]
	if m[2] != "" {
		f *= map[string]float64{"G": 1.073741824, "M": 1.048576, "K": 1.024}[k]
	}
	if m[3] == "b" || strings.HasPrefix(strings.ToLower(m[3]), "bit") {
		f /= 8
	}
	return f, true
}

// value is a number with or without its unit.
func (r *reader) value(s string) (float64, bool) {
	m := valued.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	if m[2] == "" {
		return v * r.unit, true
	}
	f, ok := unitOf("x " + m[2])
	return v * f, ok
}

// columns say which field of a line is what, where a heading names them.
type columns struct{ a, b, rail, value, width int }

// head takes a heading that names its columns.
func (r *reader) head(l textLine) bool {
	c := columns{-1, -1, -1, -1, len(l.fields)}
	for i, f := range l.fields {
		f = strings.ToLower(f)
		name := strings.Trim(strings.NewReplacer("_", "", "-", "", "(", " ", ")", " ").Replace(f), " ")
		switch {
		case c.a < 0 && slices.Contains([]string{"a", "src", "source", "from", "sender", "client", "nodea", "node1", "hosta", "host1", "node", "host"}, name):
			c.a = i
		case c.b < 0 && slices.Contains([]string{"b", "dst", "dest", "destination", "to", "receiver", "server", "nodeb", "node2", "hostb", "host2", "peer"}, name):
			c.b = i
		case c.rail < 0 && slices.Contains([]string{"rail", "hca", "nic", "dev", "device"}, name):
			c.rail = i
		case c.value < 0 && (strings.Contains(name, "bw") || strings.Contains(name, "bandwidth") || strings.Contains(name, "gb") || strings.Contains(name, "value")):
			c.value = i
		}
	}
	if c.a < 0 || c.b < 0 || c.value < 0 || slices.ContainsFunc(l.fields, valued.MatchString) {
		return false
	}
	r.columns = &c
	r.units(l.text)
	return true
}
