package pairs

import (
	"fmt"
	"slices"
)

// Limits are what a pair must reach by itself, whatever the others reach.
type Limits struct {
	GBps     float64 // one way; 0: unknown
	BothGBps float64 // each direction while both run; 0: unknown
	Source   string  // where the figure comes from
}

func (l Limits) of(w Way) float64 {
	if w == Both {
		return l.BothGBps
	}
	return l.GBps
}

// What counts as slow among peers: more than 3.5 robust standard deviations
// below the level of the cluster, and at least 5 % below it, since healthy
// clusters scatter by next to nothing (facts of practice: SuperBench takes 5 %,
// ClusterKit 7 %). A level of fewer than five nodes proves nothing.
const (
	deviations = 3.5
	floor      = 0.05
	fewNodes   = 5
	noisy      = 0.25 // a level whose scatter hides more than this is not trusted
	plain      = 0.15 // so far below the level that one measurement is enough to report it
)

// Level is what is normal for a way, and below what a sample counts as slow.
type Level struct {
	Way       Way     `json:"way"`
	Samples   int     `json:"samples"`
	Typical   float64 `json:"typical_gb_per_s"`           // of the healthy samples
	Noise     float64 `json:"noise_gb_per_s"`             // robust standard deviation
	Slow      float64 `json:"slow_gb_per_s"`              // below this is slow
	Odd       float64 `json:"odd_gb_per_s"`               // below this a single pair is: one sample's scatter is no reason to blame a path
	Absolute  float64 `json:"limit_gb_per_s,omitempty"`   // absent: none
	Relative  bool    `json:"relative"`                   // the peers decide too: there are enough of them
	Below     bool    `json:"typical_is_below,omitempty"` // the typical pair is below the limit
	Noisy     bool    `json:"noisy,omitempty"`            // the peers scatter too much to be a measure
	Reasoning string  `json:"slow_is"`                    // how Slow was found
	source    string  // of the limit
	share     float64 // of Typical, below it, that is slow
}

// level finds a way's level. The level of the cluster is that of its healthy
// samples, whichever part of the samples that is: each port's best sample says
// what it can do, so the level is sought around the (upper) median of those.
func (t *Table) level(w Way, l Limits) (Level, bool) {
	best := map[int]float64{}
	var all []float64
	for _, s := range t.Bandwidth {
		if s.Way != w {
			continue
		}
		all = append(all, s.Value)
		for _, u := range t.units(s) {
			best[u] = max(best[u], s.Value)
		}
	}
	if len(all) == 0 {
		return Level{}, false
	}
	var bests []float64
	for _, b := range best {
		bests = append(bests, b)
	}
	slices.Sort(bests)
	around := bests[len(bests)/2]
	var healthy []float64
	for _, v := range all {
		if v >= 0.8*around {
			healthy = append(healthy, v)
		}
	}
	if k := len(healthy); l.of(w) == 0 && t.measured() < fewNodes && 2*k <= len(all) && (2*k < len(all) || k < fewSamples) {
		healthy = all // the best of a handful are no level: they may be what chance put on top
	}
	lv := Level{Way: w, Samples: len(all), Typical: median(healthy), Absolute: l.of(w)}
	lv.Noise = scatter(healthy, lv.Typical)
	lv.Below = lv.Absolute > 0 && lv.Typical < lv.Absolute
	lv.Relative = t.measured() >= fewNodes || lv.Absolute == 0
	lv.source = l.Source
	lv.margin(max(floor, deviations*lv.Noise/lv.Typical))
	return lv, true
}

// margin sets how far below the typical value is slow among peers.
func (lv *Level) margin(share float64) {
	share = min(share, hopeless)
	lv.share = share
	relative := lv.Typical * (1 - share)
	lv.Odd, lv.Slow = relative, relative
	lv.Reasoning = fmt.Sprintf("more than %.0f %% below the typical %s", 100*share, rate(lv.Typical))
	switch {
	case !lv.Relative:
		lv.Odd, lv.Slow = lv.Absolute, lv.Absolute
		lv.Reasoning = fmt.Sprintf("below the limit of %s (%s); fewer than %d nodes are no measure of each other", rate(lv.Absolute), lv.source, fewNodes)
	case lv.Below: // judged against each other; that all are below is said apart
	case lv.Absolute > 0 && lv.Absolute > relative:
		lv.Slow = lv.Absolute
		lv.Reasoning = fmt.Sprintf("below the limit of %s (%s)", rate(lv.Absolute), lv.source)
	}
	lv.Noisy = lv.Relative && share > noisy
}

// weak says that only a level of few nodes without a limit speaks against
// somebody.
func (t *Table) weak(lv Level) bool { return lv.Absolute == 0 && t.measured() < fewNodes }

// measured counts nodes with samples.
func (t *Table) measured() int {
	seen := map[int]bool{}
	for _, s := range t.Bandwidth {
		seen[s.A], seen[s.B] = true, true
	}
	return len(seen)
}

// side is the direction of a port that a sample tests.
type side uint8

const (
	sends side = iota
	receives
	duplex
	sides
)

func (s side) String() string {
	return [...]string{"sending", "receiving", "sending and receiving at once"}[s]
}

// A unit is one side of one port: a node's NIC on a rail.
func (t *Table) unit(node, rail int, s side) int { return (node*t.Rails+rail)*int(sides) + int(s) }

func (t *Table) ofUnit(u int) (node, rail int, s side) {
	p := u / int(sides)
	return p / t.Rails, p % t.Rails, side(u % int(sides))
}

// units are the two sides that a sample tests.
func (t *Table) units(s Sample) [2]int {
	if s.Way == Both {
		return [2]int{t.unit(s.A, s.Rail, duplex), t.unit(s.B, s.Rail, duplex)}
	}
	return [2]int{t.unit(s.A, s.Rail, sends), t.unit(s.B, s.Rail, receives)}
}

// state is what is known of a unit.
type state uint8

const (
	unmeasured state = iota
	good             // it reached the level, with somebody
	bad              // slow with at least two partners that are good
	suspect          // slow with the one good partner that it was measured with
	dark             // slow, and none of its partners is known to be good
)

// meeting is a sample as one unit sees it.
type meeting struct {
	partner int // unit
	value   float64
	alone   bool
}

// states finds which units are slow. A transfer is as fast as the slowest part
// of its way, so a fast one acquits both of its ends, and a slow one accuses an
// end only where the other is known to be good.
func (t *Table) states(w Way, slow float64) ([]state, [][]meeting) {
	met := make([][]meeting, len(t.Nodes)*t.Rails*int(sides))
	for _, s := range t.Bandwidth {
		if s.Way != w {
			continue
		}
		u := t.units(s)
		met[u[0]] = append(met[u[0]], meeting{u[1], s.Value, s.Alone})
		met[u[1]] = append(met[u[1]], meeting{u[0], s.Value, s.Alone})
	}
	st := make([]state, len(met))
	for u, ms := range met {
		if len(ms) == 0 {
			continue
		}
		var vs []float64
		for _, m := range ms {
			vs = append(vs, m.value)
		}
		slices.Sort(vs)
		st[u] = dark
		if vs[len(vs)-1-len(vs)/4] >= slow { // the best quarter; the best of up to three
			st[u] = good
		}
	}
	for range 20 {
		next := slices.Clone(st)
		for u, ms := range met {
			var vs []float64
			partners := map[int]bool{}
			for _, m := range ms {
				if st[m.partner] == good {
					vs = append(vs, m.value)
					partners[m.partner] = true
				}
			}
			if len(vs) == 0 {
				continue
			}
			slices.Sort(vs)
			switch {
			case vs[len(vs)/2] >= slow:
				next[u] = good
			case len(partners) > 1:
				next[u] = bad
			default:
				next[u] = suspect
			}
		}
		if slices.Equal(next, st) {
			break
		}
		st = next
	}
	return st, met
}

// median of a sample that is left as it is; the upper one of two.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

// fewSamples are too few for their median distance from the middle to say how
// much they scatter: that of three with one far off is next to nothing.
const fewSamples = 5

// scatter is a robust standard deviation. That of a handful of samples comes
// from their range, over the expected range of so many from a normal
// distribution (the control charts' d2).
func scatter(v []float64, middle float64) float64 {
	if len(v) < fewSamples {
		d2 := [fewSamples]float64{1, 1, 1.128, 1.693, 2.059}
		return (slices.Max(v) - slices.Min(v)) / d2[len(v)]
	}
	return 1.4826 * spread(v, middle)
}

// spread is the median distance from the middle.
func spread(v []float64, middle float64) float64 {
	d := make([]float64, len(v))
	for i, x := range v {
		d[i] = max(x-middle, middle-x)
	}
	return median(d)
}
