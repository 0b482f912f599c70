package reports

import "fmt"

// limitBound is the share of a measured limit that noise explains. Data that
// stays in caches goes beyond a limit that was measured in memory.
const limitBound = 1.05

// limitTrust is the share of a measured limit beyond which it tells nothing
// about the figure: something else used the machine while it was measured, or
// the data never left the caches.
const limitTrust = 2

// Measured says that the program measures such a limit, so that a disturbance
// makes it too low and a cache may exceed it; every other limit is a rating.
func (l *Limit) Measured() bool { return l.Name == "memory bandwidth" || l.Name == "loopback stream" }

// looser is the greater of the limits that launches of one case measured: what
// disturbs a limit makes it lower.
func looser(a, b *Limit) *Limit {
	if a == nil || b != nil && a.Measured() && b.Measured() && b.GBps > a.GBps {
		return b
	}
	return a
}

// loosest gives figures of one run that have one limit, whatever their size and
// algorithm, the greatest that was measured for any of them.
func loosest(figures []Figure) {
	of := func(f *Figure) string {
		return fmt.Sprintf("%q", []string{f.Run, f.Op, f.Scope, f.Memory, fmt.Sprint(f.Ranks, f.Nodes, f.Groups)})
	}
	most := map[string]*Limit{}
	for i := range figures {
		if f := &figures[i]; f.Limit != nil {
			most[of(f)] = looser(most[of(f)], f.Limit)
		}
	}
	for i := range figures {
		if f := &figures[i]; f.Limit != nil {
			f.Limit = looser(f.Limit, most[of(f)])
		}
	}
}

// unreliable says why a figure's limit tells nothing about it; "" where it may.
func (f *Figure) unreliable() string {
	bus, ok := f.Busbw()
	if !ok || f.Limit == nil || !f.Limit.Measured() || f.Limit.GBps <= 0 || bus <= limitTrust*f.Limit.GBps {
		return ""
	}
	why := "something else used the machine while it was measured"
	if f.Limit.Name == "memory bandwidth" {
		why = "this data stays in caches, or " + why
	}
	return fmt.Sprintf("limit unreliable: %s GB/s by %s, which this is %.1f times: %s", rateText(f.Limit.GBps, true), f.Limit.Name, bus/f.Limit.GBps, why)
}

// Bounds is the limit that a figure can be held against; nil where there is
// none or it is unreliable.
func (f *Figure) Bounds() *Limit {
	if f.unreliable() != "" {
		return nil
	}
	return f.Limit
}

// Share is Busbw over the limit; ok is false where there is no reliable one.
func (f *Figure) Share() (share float64, ok bool) {
	bus, ok := f.Busbw()
	l := f.Bounds()
	if !ok || l == nil || l.GBps <= 0 {
		return 0, false
	}
	return bus / l.GBps, true
}
