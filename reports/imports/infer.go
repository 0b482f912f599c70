package imports

import (
	"fmt"
	"math"
	"strings"

	"busbw/collectives"
)

// span is an interval of numbers.
type span struct{ lo, hi float64 }

func (s span) empty() bool            { return s.lo > s.hi }
func (s span) has(v float64) bool     { return v >= s.lo && v <= s.hi }
func (s span) with(o span) span       { return span{math.Max(s.lo, o.lo), math.Min(s.hi, o.hi)} }
func (s span) scaled(by float64) span { return span{s.lo * by, s.hi * by} }
func (n number) span() span           { return span{n.low(), n.high()} }
func over(a span, b span) (q span)    { return span{a.lo / b.hi, a.hi / b.lo} }
func ratesOf(size int64, t span) span { return over(span{float64(size), float64(size)}, t) }

// slop is what the arithmetic of a tool may differ by.
const slop = 1e-6

func (s span) wide() span { return span{s.lo * (1 - slop), s.hi * (1 + slop)} }

// clues are what the numbers of a world's rows tell of it.
type clues struct {
	factor     span  // busbw / (size/time); lo 0, hi ∞ where no row tells
	told       bool  // some row bounds the factor
	odd        *row  // the first row that contradicts those before it
	perRank    int64 // size / (count × element), where it is the same in all rows; 0: not
	unit       float64
	misfit     *row // the first row whose algbw is not size/time
	scaledAlg  bool // algbw is not size/time but has a factor in it already
	inPlaceNA  bool // every in-place #wrong is N/A while the other half has one
	checked    bool // some half has a count
	redop      string
	root       bool
	oldHeading bool
}

// look reads the clues. unit is what a printed time must be multiplied with to
// be in µs: 1, or 1000 for the layout of 2017.
func look(rows []row, l *layout) (c clues) {
	c = clues{factor: span{0, math.Inf(1)}, unit: 1, oldHeading: l.delta, inPlaceNA: true}
	if l.ms || inMillis(rows) {
		c.unit = 1000
	}
	both := false
	for i := range rows {
		r := &rows[i]
		if r.redop != "" && r.redop != "none" {
			c.redop = r.redop
		}
		c.root = c.root || r.root >= 0
		if size := dtypes[r.dtype]; r.count > 0 && r.size > 0 {
			n := int64(0)
			if per := r.count * size; per > 0 && r.size%per == 0 {
				n = r.size / per
			}
			switch {
			case c.perRank == 0:
				c.perRank = n
			case n != c.perRank:
				c.perRank = -1
			}
		}
		for h := range r.halves {
			x := &r.halves[h]
			if !x.there {
				continue
			}
			if h == 1 && r.halves[0].there {
				both = true
				c.inPlaceNA = c.inPlaceNA && !x.wrong.ok && r.halves[0].wrong.ok
			}
			c.checked = c.checked || x.wrong.ok
			c.figure(r, x)
		}
	}
	c.inPlaceNA = c.inPlaceNA && both
	c.perRank = max(c.perRank, 0)
	return c
}

// figure adds what one half tells.
func (c *clues) figure(r *row, x *half) {
	if r.size == 0 || !x.time.ok || !x.alg.ok || !x.bus.ok || x.time.v <= 0 {
		return
	}
	rate := ratesOf(r.size, x.time.span().scaled(c.unit*1e-6)).scaled(1e-9).wide()
	alg := rate.with(x.alg.span().wide())
	if alg.empty() {
		// The layout of 2019 has the factor of all_gather inside algbw.
		if x.alg.v < rate.lo && x.alg.v > 0.45*rate.lo && c.oldHeading {
			c.scaledAlg = true
		} else if c.misfit == nil {
			c.misfit = r
		}
		alg = rate
	}
	if x.bus.v < 0.05 || alg.lo <= 0 {
		return
	}
	f := over(x.bus.span(), alg).wide()
	if both := c.factor.with(f); !both.empty() {
		c.factor, c.told = both, true
	} else if c.odd == nil {
		c.odd = r
	}
}

// inMillis says that times are in ms: then size over time is 1000 times algbw.
func inMillis(rows []row) bool {
	for i := range rows {
		for h := range rows[i].halves {
			x := &rows[i].halves[h]
			if x.time.ok && x.alg.ok && x.time.v > 0 && x.alg.v > 1 && rows[i].size > 0 && x.time.slack() < 0.05*x.time.v {
				q := float64(rows[i].size) / (x.time.v * 1e3) / x.alg.v
				return q > 900 && q < 1100
			}
		}
	}
	return false
}

// ranks is the least and most number of ranks that fit the factor of an
// operation; 0, 0 where nothing is told or nothing fits, most −1: no bound.
func (c *clues) ranks(op collectives.Op) (lo, hi int) {
	if op.Blocked() && c.perRank > 1 && c.perRank <= maxRanks {
		return int(c.perRank), int(c.perRank)
	}
	if !c.told {
		return 0, 0
	}
	var n func(f float64) float64
	switch f2, _ := op.BusFactor(2); {
	case op == collectives.AllReduce:
		n = func(f float64) float64 { return 2 / (2 - f) }
	case f2 == 0.5:
		n = func(f float64) float64 { return 1 / (1 - f) }
	default: // the factor is always 1
		return 0, 0
	}
	top := 2.0
	if op != collectives.AllReduce {
		top = 1
	}
	if c.factor.lo >= top {
		return 0, 0
	}
	lo = max(int(math.Ceil(n(c.factor.lo)-1e-6)), 2)
	if c.factor.hi >= top-1e-9 {
		return lo, -1
	}
	hi = int(math.Min(math.Floor(n(c.factor.hi)+1e-6), maxRanks))
	if hi < lo {
		return 0, 0
	}
	return lo, hi
}

// fits says whether an operation of n ranks explains the factor.
func (c *clues) fits(op collectives.Op, n int) bool {
	f, ok := op.BusFactor(n)
	return !ok || !c.told || c.factor.wide().has(f) || math.Abs(f-(c.factor.lo+c.factor.hi)/2) < 0.002
}

// guess is the operation that the rows are of, where only one explains them,
// and why; else those that may be. ranks is what the text lists, 0: nothing.
func (c *clues) guess(ranks int) (op collectives.Op, why string, maybe []collectives.Op) {
	blocked := c.perRank > 1
	var all []collectives.Op
	for _, o := range collectives.Ops() {
		switch {
		case c.perRank == 1 && o.Blocked() && ranks != 1, blocked && !o.Blocked():
		case o.Rooted() != c.root && !(c.oldHeading && o.Blocked()):
		case o.Reduces() != (c.redop != "") && o != collectives.SendRecv:
		case o == collectives.SendRecv && c.redop == "" && !c.oldHeading:
		case o == collectives.SendRecv && c.checked && !c.inPlaceNA, o == collectives.AllToAll && c.checked && !c.inPlaceNA && !c.oldHeading:
		case c.inPlaceNA && o != collectives.SendRecv && o != collectives.AllToAll:
		case c.told && ranks > 1 && !c.fits(o, ranks):
		case c.told && ranks == 0 && !c.some(o):
		default:
			all = append(all, o)
		}
	}
	if len(all) != 1 {
		return 0, "", all
	}
	var reasons []string
	if blocked {
		reasons = append(reasons, "count × element is a share of the size")
	}
	if c.redop != "" {
		reasons = append(reasons, "redop "+c.redop)
	} else {
		reasons = append(reasons, "no redop")
	}
	if c.inPlaceNA {
		reasons = append(reasons, "#wrong in place is N/A")
	}
	if c.told {
		reasons = append(reasons, fmt.Sprintf("busbw/algbw is %.4g", (c.factor.lo+math.Min(c.factor.hi, 2))/2))
	}
	return all[0], strings.Join(reasons, ", "), all
}

// some says whether an operation explains the factor for some number of ranks.
func (c *clues) some(op collectives.Op) bool {
	if f2, _ := op.BusFactor(2); f2 == 1 && op != collectives.AllReduce {
		return c.factor.wide().has(1)
	}
	lo, _ := c.ranks(op)
	return lo > 0
}
