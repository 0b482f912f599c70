package imports

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"busbw/collectives"
	"busbw/reports"
)

// record turns one world's share of a group into a World and its records.
func (s *stream) record(g *group, sh *share, beside int) error {
	w := World{Run: s.run(), Tool: "nccl-tests", Rows: len(sh.rows), Line: g.line, Groups: 1, Beside: beside}
	if g.version["tests"] == "rccl-tests" {
		w.Tool = "rccl-tests"
	}
	if sh.label != "" {
		w.pasted = true
		w.Notes = append(w.Notes, fmt.Sprintf("not a table as nccl-tests prints it: the column %q before the size is kept as a label, %s", strings.Join(g.layout.lead[:g.layout.labels()], " "), sh.label))
	}
	if sh.how != "" {
		w.Notes = append(w.Notes, sh.how)
	}
	c := look(sh.rows, &g.layout)
	listed := w.devices(sh.devices)
	op, known := w.operation(g, &c, listed)
	w.ranks(g, sh, &c, op, known, listed)
	w.summary(g, sh)
	w.state(s, g, sh)
	w.remarks(sh, &c)
	base := s.base(g, sh, &w)
	if err := s.rows(base, g, sh, &c, &w); err != nil {
		return err
	}
	s.world(w)
	return nil
}

// devices reads the list of ranks and returns how many it tells of, 0: none.
func (w *World) devices(list []device) (ranks int) {
	groups := map[int64]bool{}
	for _, d := range list {
		ranks = max(ranks, int(d.rank)+1)
		groups[d.group] = true
		if d.host != "" && len(w.Hosts) < maxKept*64 && !slices.Contains(w.Hosts, d.host) {
			w.Hosts = append(w.Hosts, d.host)
		}
	}
	if ranks == 0 {
		return 0
	}
	w.Groups = max(len(groups), 1)
	w.RanksFrom = "listed"
	if len(list) < ranks {
		w.RanksFrom = fmt.Sprintf("from the last rank listed, of %d here", len(list))
	}
	if ranks%w.Groups == 0 {
		ranks /= w.Groups
	}
	return ranks
}

// operation is the test's, from the text's words or from its numbers.
func (w *World) operation(g *group, c *clues, listed int) (op collectives.Op, known bool) {
	w.Op, w.OpFrom = g.op, "named in the text"
	if w.Op == "" && g.cmd.op != "" {
		w.Op, w.OpFrom = g.cmd.op, "from the command line"
	}
	if w.Op != "" {
		op, err := collectives.ParseOp(w.Op)
		return op, err == nil
	}
	w.OpFrom = ""
	if w.Rows == 0 {
		return 0, false
	}
	op, why, maybe := c.guess(listed)
	if len(maybe) != 1 {
		var names []string
		for _, m := range maybe {
			names = append(names, m.String())
		}
		if len(names) == 0 {
			names = []string{"none that busbw knows"}
		}
		w.Notes = append(w.Notes, "the text does not name the operation; by its numbers it may be "+strings.Join(names, ", "))
		return 0, false
	}
	w.Op, w.OpFrom = op.String(), "by its numbers: "+why
	w.Notes = append(w.Notes, fmt.Sprintf("the text does not name the operation; %s, by its numbers (%s)", op, why))
	return op, true
}

// ranks settles how many ranks there were, and says where numbers disagree.
func (w *World) ranks(g *group, sh *share, c *clues, op collectives.Op, known bool, listed int) {
	lo, hi := 0, 0
	if known {
		lo, hi = c.ranks(op)
	}
	switch {
	case listed > 0:
		w.Ranks = [2]int{listed, listed}
		if listed > 1 && known && c.told && !c.fits(op, listed) {
			f, _ := op.BusFactor(listed)
			w.Notes = append(w.Notes, fmt.Sprintf("busbw/algbw is %.4g, but %s of %d ranks has %.4g%s", c.factor.lo, op, listed, f, rankRange(", which fits ", lo, hi)))
		}
	case lo > 0:
		w.Ranks = [2]int{lo, hi}
		w.RanksFrom = "by busbw/algbw"
		if op.Blocked() && c.perRank > 1 {
			w.RanksFrom = "by size/count"
		}
		w.Notes = append(w.Notes, fmt.Sprintf("the ranks are not listed;%s %s", rankRange(" ", lo, hi), w.RanksFrom))
	case len(g.banners) > 0 && g.banners[0].gpus > 0 && w.Rows > 0 && allZero(sh.rows):
		// One rank has no bandwidth; tiny sizes print 0.00 too.
		if len(sh.rows) > 0 && sh.rows[len(sh.rows)-1].size >= 1<<20 {
			w.Ranks, w.RanksFrom = [2]int{1, 1}, "busbw is 0 at every size"
		}
	}
	for _, d := range sh.devices {
		if d.name == "NVIDIA Graphics Device" {
			w.Notes = append(w.Notes, "the driver did not know the GPU's product name: NVIDIA Graphics Device")
			break
		}
	}
	if last := len(sh.devices) - 1; last >= 0 && len(sh.devices) < listed {
		if per := int(sh.devices[last].index) + 1; len(w.Hosts) == 1 && listed%per == 0 {
			w.Notes = append(w.Notes, fmt.Sprintf("%d of %d ranks are listed; with %d devices on each there are %d hosts", len(sh.devices), listed, per, listed/per))
		}
	}
	if w.Ranks[0] == 1 && w.Rows > 0 {
		w.Notes = append(w.Notes, "one rank: a test of function, not a bandwidth; nothing crosses a bus")
	}
}

// allZero says that no row has a busbw although it has an algbw.
func allZero(rows []row) bool {
	some := false
	for i := range rows {
		for h := range rows[i].halves {
			h := &rows[i].halves[h]
			if h.bus.ok && h.bus.v != 0 {
				return false
			}
			some = some || h.alg.ok && h.alg.v > 1
		}
	}
	return some
}

// rankRange is "n ranks", "n to m ranks", with words before; "" for unknown.
func rankRange(before string, lo, hi int) string {
	switch {
	case lo == 0:
		return ""
	case hi < 0:
		return fmt.Sprintf("%s%d ranks or more", before, lo)
	case lo == hi:
		return fmt.Sprintf("%s%d rank%s", before, lo, map[bool]string{true: "s"}[lo != 1])
	}
	return fmt.Sprintf("%s%d to %d ranks", before, lo, hi)
}

// summary takes what the text's own footer says.
func (w *World) summary(g *group, sh *share) {
	if sh.bounds != nil {
		w.Wrong, w.Failed = &sh.bounds.wrong, sh.bounds.failed || sh.bounds.wrong > 0
	}
	if sh.mean != nil {
		w.Average = sh.mean.value.pointer()
		if w.Low = sh.mean.low; w.Low {
			w.Notes = append(w.Notes, "FAILED: the average busbw is less than 0.9 × NCCL_TESTS_MIN_BW")
		}
	}
	sum, n := 0.0, 0
	for i := range sh.rows {
		for h := range sh.rows[i].halves {
			h := &sh.rows[i].halves[h]
			if h.bus.ok {
				sum += h.bus.v
				n++
			}
		}
	}
	if n > 0 {
		mean := sum / float64(n)
		w.Computed = &mean
	}
}

func (w *World) state(s *stream, g *group, sh *share) {
	failure := s.fails.first()
	if failure == "" && g.err != "" {
		failure = g.err
	}
	switch {
	case w.Rows > 0 && (sh.bounds != nil || sh.mean != nil):
		w.State = Complete
	case w.Rows > 0:
		w.State = NoSummary
	case sh.mean != nil:
		w.State = Summary
	case failure != "":
		w.State, w.Error = Failed, "no row; the first error: "+failure
	case g.cut:
		w.State = NoSummary
		w.Notes = append(w.Notes, "no whole row")
	case w.Beside > 1:
		w.State = NoSummary
		w.Notes = append(w.Notes, "no row of it is in the text")
	default:
		w.State, w.Error = Hang, "header and no row: the first collective never ended, or the job was killed; suspect the path between GPUs first (ACS and IOMMU on PCIe: try 2 ranks with NCCL_P2P_DISABLE=1), then the network"
	}
	if w.Rows > 0 && w.State == NoSummary && failure != "" {
		w.Notes = append(w.Notes, "ended by: "+failure)
	}
	if g.err != "" && w.State == Complete {
		w.Notes = append(w.Notes, "the test says: "+g.err)
	}
}

// base is what all records of a world share.
func (s *stream) base(g *group, sh *share, w *World) reports.Result {
	r := reports.Result{
		Time: s.began, Run: w.Run, Op: w.Op, Engine: "nccl", Memory: "cuda", Source: "imported: " + w.Tool, Mode: "pipelined", Aggregate: 1,
		Ranks: w.Ranks[0], Nodes: len(w.Hosts), Groups: w.Groups, Hosts: w.Hosts, Config: map[string]string{}, Link: s.nccl.link(),
	}
	if w.Tool == "rccl-tests" {
		r.Engine, r.Memory = "rccl", "hip"
	}
	if r.Op == "" {
		r.Op = "unknown"
	}
	if w.Ranks[0] != w.Ranks[1] {
		r.Ranks = 0
	}
	if len(sh.devices) > 0 && len(sh.devices) < (w.Ranks[0]*max(w.Groups, 1)) {
		r.Nodes, r.Hosts = 0, nil // not all are listed
	}
	switch {
	case r.Nodes == 1:
		r.Scope = "intra"
	case r.Nodes > 1 && r.Nodes == r.Ranks*r.Groups:
		r.Scope = "cross"
	case r.Nodes > 1:
		r.Scope = "global"
	}
	if g.mode != "" {
		r.Mode = g.mode
	}
	if len(g.banners) > 0 {
		b := g.banners[0]
		r.Warmup, r.Aggregate = int(max(b.warmup, 0)&0xffffff), int(max(b.agg, 1)&0xffffff)
	}
	for k, v := range g.cmd.env {
		r.Config[k] = v
	}
	for k, v := range s.nccl.env {
		r.Config[k] = v
	}
	for k, v := range g.version {
		if k != "tests" {
			r.Config[k] = v
		}
	}
	if r.Config["nccl_version"] == "" && s.nccl.version != "" && r.Engine == "nccl" {
		r.Config["nccl_version"] = s.nccl.version
	}
	if len(sh.devices) > 0 && sh.devices[0].name != "" {
		r.Config["gpu"] = sh.devices[0].name
	}
	if sh.label != "" {
		r.Config[strings.Join(g.layout.lead[:g.layout.labels()], " ")] = sh.label
	}
	headings(&r, sh)
	r.Algorithm = strings.ToLower(r.Config["NCCL_ALGO"])
	return r
}

// headings reads library versions and settings from a heading that somebody
// wrote over a summary: "NCCL 2.20.5, NCCL_ALGO=Ring".
func headings(r *reports.Result, sh *share) {
	if len(sh.rows) > 0 || sh.mean == nil || sh.mean.title == "" {
		return
	}
	r.Config["heading"] = sh.mean.title
	words := strings.FieldsFunc(sh.mean.title, func(c rune) bool { return c == ' ' || c == ',' || c == ';' })
	for i, word := range words {
		if k, v, ok := strings.Cut(word, "="); ok && (strings.HasPrefix(k, "NCCL_") || strings.HasPrefix(k, "RCCL_")) {
			r.Config[k] = v
		}
		if word == "NCCL" && i+1 < len(words) && words[i+1][0] >= '0' && words[i+1][0] <= '9' {
			r.Config["nccl_version"] = words[i+1]
		}
	}
}

// rankTag is a launcher's name for a process: its lines are of one launch.
var rankTag = regexp.MustCompile(`^(?:.*,)?(?:rank|default)?\d{1,7}$`)

// separate says what several worlds of one text are: the tests of one launch
// that never met, or runs one after another.
func (l *log) separate() {
	beside, tags, until := 0, 0, 0
	together := false
	for _, w := range l.Worlds {
		if w.Beside > 1 && strings.HasSuffix(w.Tool, "l-tests") && !w.pasted {
			beside++
		}
	}
	for _, s := range l.order {
		if s.tag != "" && s.tests > 0 {
			tags++
			together = together || s.first < until || rankTag.MatchString(s.tag)
			until = max(until, s.last)
		}
	}
	if !together {
		tags = 0 // names of files, or hosts one after another
	}
	if n := max(beside, tags); n > 1 {
		what := fmt.Sprintf("%d separate worlds ran at the same time", n)
		if r := l.Worlds[0].Ranks; r[0] > 0 && r[0] == r[1] {
			what = fmt.Sprintf("%d separate runs of%s, not one of %d", n, rankRange(" ", r[0], r[0]), n*r[0])
		}
		l.neverMet(reports.Fail, what, fmt.Sprintf("rank 0 comes %d times", n),
			"the ranks never formed one communicator, so nothing was measured between these worlds: build nccl-tests with MPI=1, and start it with the launcher of the same MPI library")
		return
	}
	if n := l.alike(); n > 1 {
		l.neverMet(reports.Warn, fmt.Sprintf("%d runs of the same test one after another, each on a host of its own", n), "each begins with rank 0",
			"if one run over all hosts was meant, the ranks never formed one communicator: build nccl-tests with MPI=1, and start it with the launcher of the same MPI library")
	}
}

func (l *log) neverMet(v reports.Verdict, got, evidence, remedy string) {
	l.Findings = append([]reports.Finding{{ID: "separate-worlds", Verdict: v, Subject: "the launch", Got: got, Want: "one communicator over all ranks",
		Evidence: []reports.Evidence{{From: l.Name, Value: evidence}}, Remedy: remedy}}, l.Findings...)
}

// alike is how many worlds a text holds if all are the same test, each on one
// host that no other has; else 0.
func (l *log) alike() int {
	hosts := map[string]bool{}
	for i := range l.Worlds {
		w, first := &l.Worlds[i], &l.Worlds[0]
		if !strings.HasSuffix(w.Tool, "l-tests") || len(w.Hosts) != 1 || hosts[w.Hosts[0]] || w.Op != first.Op || w.Rows != first.Rows || w.Ranks != first.Ranks {
			return 0
		}
		hosts[w.Hosts[0]] = true
	}
	return len(l.Worlds)
}
