package imports

import "bytes"

// group is the worlds of one process's text that print at the same time: one,
// unless a launcher mixed the lines of several tests.
type group struct {
	line    int
	banners []banner
	devices []device
	rank0   int // lines of rank 0
	starts  int // "Collective test starting"
	using   int // "Using devices"
	heads   int
	layout  layout
	op      string // from the text's own words, not from a command line
	mode    string
	title   string
	bounds  []bounds
	means   []mean
	rows    []row
	cut     bool   // a row was cut off
	held    int    // rows and lines that it keeps
	err     string // "# error: …"
	cmd     command
	version map[string]string
}

type bounds struct {
	wrong   int64
	failed  bool
	rowsYet int
}

type mean struct {
	value number
	low   bool   // less than the test was told to want (NCCL_TESTS_MIN_BW)
	host  string // of NCCL's last line before it
	title string
}

// worlds is how many tests print into the group, by the lines of which each
// prints one.
func (g *group) worlds() int {
	return max(len(g.banners), g.rank0, g.heads, g.starts, len(g.means), len(g.bounds), 1)
}

// closed says that all worlds have printed their summary.
func (g *group) closed() bool { return max(len(g.means), len(g.bounds)) >= g.worlds() }

// opening is a line that each world prints once; another one may begin a new group.
type opening int

const (
	onRow opening = iota
	onBanner
	onStart
	onUsing
	onRank0
	onHeader
)

// seen is how often the group has had such a line.
func (g *group) seen(o opening) int {
	switch o {
	case onBanner:
		return len(g.banners)
	case onStart:
		return g.starts
	case onUsing:
		return g.using
	case onRank0:
		return g.rank0
	case onHeader:
		return g.heads
	}
	return 0
}

// open is the group that the next line belongs to, a new one where all worlds
// of the last have printed their summaries, and where a line comes again after
// rows although no other world waits for it: then the last test was cut off.
func (s *stream) open(o ...opening) *group {
	if g := s.group; g != nil && len(o) == 1 {
		again := o[0] != onRow && g.seen(o[0]) >= g.worlds() && len(g.rows) > 0
		if g.closed() || again {
			s.pending(s.finish())
		}
	}
	if s.group == nil {
		s.pending(s.endOthers())
		s.group = &group{line: s.Lines, layout: noHeader(), cmd: s.cmd, version: s.version, title: s.title, rows: s.spare}
		s.version, s.spare = map[string]string{}, nil
	}
	return s.group
}

// hold says whether a group may keep one more row, rank or line: all groups
// that are open at once share maxHeld.
func (s *stream) hold(g *group) bool {
	if s.held == maxHeld {
		return false
	}
	s.held++
	g.held++
	return true
}

// release gives back what an ended group held.
func (s *stream) release(g *group) {
	s.held -= g.held
	if cap(g.rows) > cap(s.spare) {
		s.spare = g.rows[:0]
	}
}

// header takes the name line of a table.
func (g *group) header(l layout) error {
	g.heads++
	g.layout = l
	return nil
}

// add takes a row.
func (s *stream) add(r row) error {
	g := s.open(onRow)
	if len(g.rows) == maxRows || !s.hold(g) {
		s.warn(s.Lines, "more than %d rows in one test: those that follow count as another", len(g.rows))
		layout := g.layout
		if err := s.finish(); err != nil {
			return err
		}
		g = s.open()
		g.layout = layout
		s.hold(g)
	}
	r.after = max(len(g.bounds), len(g.means))
	g.rows = append(g.rows, r)
	return nil
}

// heading takes the lines around tables; false for any other line.
func (s *stream) heading(t []byte) bool {
	if b, ok := parseBanner(t); ok {
		g := s.open(onBanner)
		if s.hold(g) {
			g.banners = append(g.banners, b)
		}
		return true
	}
	if d, ok := parseDevice(t); ok {
		g := s.group
		if d.rank == 0 {
			g = s.open(onRank0)
			g.rank0++
		} else if g == nil || g.closed() {
			g = s.open(onRow)
		}
		if len(g.devices) < maxRanks && s.hold(g) {
			g.devices = append(g.devices, d)
		}
		return true
	}
	if cutRank(t) {
		s.rank = append(s.rank[:0], t...)
		return true
	}
	if m := outOfBounds.FindSubmatch(t); m != nil {
		if s.group != nil && len(s.group.bounds) >= s.group.worlds() && s.group.closed() {
			s.pending(s.finish())
		}
		g := s.open()
		n, _ := integer(m[1])
		if s.hold(g) {
			g.bounds = append(g.bounds, bounds{n, string(m[2]) == "FAILED", len(g.rows)})
		}
		return true
	}
	if m := average.FindSubmatch(t); m != nil {
		if s.group != nil && len(s.group.means) >= s.group.worlds() {
			s.pending(s.finish())
		}
		g := s.open()
		n, _ := parse(m[1])
		if s.unfinished && bytes.HasSuffix(t, m[1]) {
			n = number{} // the rest of it may be missing
		}
		if s.hold(g) {
			g.means = append(g.means, mean{n, string(m[2]) == "FAILED", s.nccl.last, s.title})
		}
		return true
	}
	if m := starting.FindSubmatch(t); m != nil {
		g := s.open(onStart)
		g.starts++
		g.op = opName(string(m[1]))
		return true
	}
	switch {
	case bytes.Contains(t, []byte("Using devices")):
		s.open(onUsing).using++
		return true
	case bytes.Contains(t, []byte("Collective test concluded")):
		return true
	case bytes.HasPrefix(t, []byte("# error: ")):
		if s.group != nil {
			s.group.err = string(t[9:min(len(t), 300)])
		}
		return true
	case bytes.Contains(t, []byte("rccl-tests:")) || bytes.HasPrefix(t, []byte("RCCL version")):
		s.keepVersion("tests", "rccl-tests")
	}
	if m := blocking(t); m != "" && s.group != nil {
		s.group.mode = m
		return true
	}
	if m := testVersion.FindSubmatch(t); m != nil {
		lib, _ := integer(m[3])
		s.keepVersion("nccl_tests", string(m[1]))
		s.keepVersion("nccl_version", versionText(lib))
		return true
	}
	if m := libVersion.FindSubmatch(t); m != nil {
		s.keepVersion(map[string]string{"NCCL": "nccl_version", "RCCL": "rccl_version"}[string(m[1])], string(m[2]))
		return true
	}
	if c, ok := parseCommand(t); ok {
		if s.group != nil && (s.group.closed() || len(s.group.rows) > 0 && t[0] != '#') {
			s.pending(s.finish())
		}
		s.cmd = c
		if s.group != nil && len(s.group.rows) == 0 {
			s.group.cmd = c
		}
		s.title = ""
		return true
	}
	return false
}

// keepVersion keeps what is told of a library for the test that runs, or the
// one that comes.
func (s *stream) keepVersion(name, v string) {
	if len(v) > 80 {
		return
	}
	if name == "nccl_version" {
		s.nccl.version = v
	}
	if s.group != nil && !s.group.closed() {
		s.group.version[name] = v
		return
	}
	s.version[name] = v
}

// pending keeps an error of a record's receiver until the line is over.
func (s *stream) pending(err error) {
	if err != nil && s.log.stuck == nil {
		s.log.stuck = err
	}
}
