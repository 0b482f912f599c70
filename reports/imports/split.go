package imports

import (
	"math"
	"slices"
	"sort"
)

// part is what belongs to one world of a group.
type share struct {
	rows    []row
	devices []device
	bounds  *bounds
	mean    *mean
	period  int    // rows of one sweep, where it was run several times (-N); else 0
	label   string // of a table that people made from several runs
	how     string // how rows were told apart, where they are mixed
}

// finish ends the group: its rows become records of one world or of several.
func (s *stream) finish() error {
	g := s.group
	if g == nil {
		return nil
	}
	s.group = nil
	defer s.release(g)
	shares := g.split()
	for i := range shares {
		if err := s.record(g, &shares[i], len(shares)); err != nil {
			return err
		}
	}
	clear(s.nccl.env)
	return nil
}

// split tells the worlds of a group apart.
func (g *group) split() []share {
	if labels := g.labels(); len(labels) > 1 {
		return labels
	}
	n := g.worlds()
	period := g.period()
	if n == 1 && period == 0 {
		n = g.copies()
	}
	lists := g.lists()
	n = max(n, len(lists))
	shares := make([]share, n)
	if n == 1 {
		shares[0] = share{rows: g.rows, period: period}
		if len(lists) > 0 {
			shares[0].devices = lists[0]
		}
		shares[0].summary(g, 0)
		return shares
	}
	for w, rows := range assign(g.rows, n) {
		shares[w].rows = rows
		shares[w].summary(g, w)
		if len(rows) > 0 {
			shares[w].how = "rows are told from those of the other worlds by position and rate"
			if len(g.rows) < n {
				shares[w].how = "whose rows these are, the text does not tell"
			}
		}
	}
	g.hosts(shares, lists)
	return shares
}

func (s *share) summary(g *group, w int) {
	if w < len(g.bounds) {
		s.bounds = &g.bounds[w]
	}
	if w < len(g.means) {
		s.mean = &g.means[w]
	}
}

// labels splits the rows of a table with a column of its own before the size:
// rows that somebody pasted together.
func (g *group) labels() []share {
	if g.layout.labels() == 0 {
		return nil
	}
	at := map[string]int{}
	var out []share
	for _, r := range g.rows {
		i, ok := at[r.label]
		if !ok {
			i = len(out)
			at[r.label] = i
			out = append(out, share{label: r.label})
		}
		out[i].rows = append(out[i].rows, r)
	}
	return out
}

// key is the same for rows that one sweep prints once.
type rowKey struct {
	size         int64
	dtype, redop string
	root         int64
}

func (r *row) key() rowKey {
	return rowKey{r.size, r.dtype, r.redop, r.root}
}

// cycles is how often the sweep was run.
func (s *share) cycles() int {
	if s.period == 0 {
		return 1
	}
	return (len(s.rows) + s.period - 1) / s.period
}

// period is after how many rows they repeat as a whole (-N), 0 where they do not.
func (g *group) period() int {
	at := slices.IndexFunc(g.rows, func(r row) bool { return r.size > 0 }) // those of size 0 repeat by themselves
	if at < 0 {
		return 0
	}
	period := 1 + slices.IndexFunc(g.rows[at+1:], func(r row) bool { return r.key() == g.rows[at].key() })
	if period == 0 || period == 1 && (len(g.banners) == 0 || g.banners[0].min != g.banners[0].max) {
		return 0
	}
	for i := period; i < len(g.rows); i++ {
		if g.rows[i].key() != g.rows[i-period].key() {
			return 0
		}
	}
	return period
}

// copies is how often the most frequent row comes: more than once where the
// lines of several tests are mixed. Rows of size 0 repeat by themselves.
func (g *group) copies() int {
	grows := true
	for i := 1; i < len(g.rows) && grows; i++ {
		grows = g.rows[i].size > g.rows[i-1].size
	}
	if grows {
		return 1
	}
	count := map[rowKey]int{}
	most := 1
	for i := range g.rows {
		if r := &g.rows[i]; r.size > 0 {
			count[r.key()]++
			most = max(most, count[r.key()])
		}
	}
	if most > 64 {
		return 1
	}
	return most
}

// lists sorts the device lines into one list for each world: a rank comes once
// in each; of several lists that lack it, one of the same process or host takes it.
func (g *group) lists() [][]device {
	type list struct {
		devices []device
		has     map[int64]bool
	}
	var all []list
	for _, d := range g.devices {
		best, score := -1, -1
		for i := range all {
			if all[i].has[d.rank] {
				continue
			}
			last := all[i].devices[len(all[i].devices)-1]
			points := 0
			if last.host == d.host {
				points++
			}
			if last.host == d.host && last.pid == d.pid {
				points++
			}
			if points > score {
				best, score = i, points
			}
		}
		if best < 0 {
			if len(all) == 64 {
				continue
			}
			all = append(all, list{has: map[int64]bool{}})
			best = len(all) - 1
		}
		all[best].devices = append(all[best].devices, d)
		all[best].has[d.rank] = true
	}
	var out [][]device
	for _, l := range all {
		sort.SliceStable(l.devices, func(i, j int) bool { return l.devices[i].rank < l.devices[j].rank })
		out = append(out, l.devices)
	}
	return out
}

// hosts gives each world the list of devices whose host NCCL named just before
// the world's summary; where nothing tells, no world gets a list.
func (g *group) hosts(shares []share, lists [][]device) {
	taken := map[int]bool{}
	for w := range shares {
		if shares[w].mean == nil || shares[w].mean.host == "" {
			continue
		}
		found := -1
		for i, l := range lists {
			if !taken[i] && slices.ContainsFunc(l, func(d device) bool { return d.host == shares[w].mean.host }) {
				if found >= 0 {
					found = -2
					break
				}
				found = i
			}
		}
		if found >= 0 {
			shares[w].devices, taken[found] = lists[found], true
		}
	}
	// One world and one list left over belong together.
	var lone []int
	for w := range shares {
		if shares[w].devices == nil {
			lone = append(lone, w)
		}
	}
	if len(lone) == 1 && len(lists) == len(shares) {
		for i := range lists {
			if !taken[i] {
				shares[lone[0]].devices = lists[i]
			}
		}
	}
	if len(lone) > 1 {
		for _, w := range lone { // all lists have as many ranks: that much is known
			if n := ranksOf(lists); n > 0 {
				shares[w].devices = anonymous(n)
			}
		}
	}
}

// ranksOf is the number of ranks of every list, 0 where they differ.
func ranksOf(lists [][]device) int {
	if len(lists) == 0 {
		return 0
	}
	for _, l := range lists {
		if len(l) != len(lists[0]) {
			return 0
		}
	}
	return len(lists[0])
}

// anonymous are n ranks of which nothing is known.
func anonymous(n int) []device {
	d := make([]device, n)
	for i := range d {
		d[i].rank, d[i].index, d[i].pid = int64(i), -1, -1
	}
	return d
}

// assign tells the rows of n mixed tests apart. The tests run the same sweep,
// and their summaries come in the order of the worlds: what comes after the
// k-th summary is of a later world, and a world's last row is before its
// summary. Rows of one size go to the worlds whose rate at the next size is
// nearest in order.
func assign(rows []row, n int) [][]row {
	out := make([][]row, n)
	bySize := map[rowKey][]int{}
	var order []rowKey
	for i := range rows {
		k := rows[i].key()
		if bySize[k] == nil {
			order = append(order, k)
		}
		bySize[k] = append(bySize[k], i)
	}
	sort.SliceStable(order, func(a, b int) bool { return order[a].size > order[b].size })
	rate := make([]float64, n) // of each world at the size above; 0: none yet
	for _, k := range order {
		at := bySize[k]
		worlds := make([]int, n)
		for w := range worlds {
			worlds[w] = w
		}
		for len(at) > n { // more rows than worlds: the rest cannot be placed
			at = at[:n]
		}
		var place map[int]int
		if rate[0] == 0 {
			place = byPosition(rows, at, n)
		} else {
			place = byRate(rows, at, worlds, rate)
		}
		for i, w := range place {
			out[w] = append(out[w], rows[i])
			if v := speed(&rows[i]); v > 0 {
				rate[w] = v
			}
		}
		if rate[0] == 0 {
			continue
		}
		for w := range rate { // a world without this row keeps the rate above
			if rate[w] == 0 {
				rate[w] = rate[0]
			}
		}
	}
	for w := range out {
		sort.SliceStable(out[w], func(a, b int) bool { return out[w][a].line < out[w][b].line })
	}
	return out
}

// byPosition places the rows of the largest size: in their order, each in a
// world whose summary has not come yet.
func byPosition(rows []row, at []int, n int) map[int]int {
	place, next := map[int]int{}, 0
	for _, i := range at {
		w := max(next, rows[i].after)
		if w >= n {
			break
		}
		place[i] = w
		next = w + 1
	}
	return place
}

// byRate places rows in the worlds with the nearest rates, in order of rate.
func byRate(rows []row, at, worlds []int, rate []float64) map[int]int {
	sorted := slices.Clone(at)
	sort.SliceStable(sorted, func(a, b int) bool { return speed(&rows[sorted[a]]) < speed(&rows[sorted[b]]) })
	ws := slices.Clone(worlds)
	sort.SliceStable(ws, func(a, b int) bool { return rate[ws[a]] < rate[ws[b]] })
	place := map[int]int{}
	if len(sorted) == len(ws) {
		for i, r := range sorted {
			place[r] = ws[i]
		}
		return place
	}
	for _, r := range sorted { // fewer rows than worlds: the nearest free one
		best := -1
		for i, w := range ws {
			if w < rows[r].after {
				continue
			}
			if best < 0 || apart(speed(&rows[r]), rate[w]) < apart(speed(&rows[r]), rate[ws[best]]) {
				best = i
			}
		}
		if best < 0 {
			continue
		}
		place[r] = ws[best]
		ws = slices.Delete(ws, best, best+1)
	}
	return place
}

func apart(a, b float64) float64 { return math.Abs(math.Log((a + 1e-12) / (b + 1e-12))) }

// speed is a row's size over its time, in any unit.
func speed(r *row) float64 {
	for _, h := range r.halves {
		if h.time.ok && h.time.v > 0 {
			return float64(r.size) / h.time.v
		}
	}
	return 0
}
