package pairs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"busbw/reports"
)

// Scope is what results of pair tests say they are of.
const Scope = "pairs"

// ErrNoPairs is a results file without pair tests.
var ErrNoPairs = errors.New("no pair tests among the results: busbw pairs writes them")

// small is the most bytes of a message whose time counts as latency.
const small = 4096

// FromResults makes a table of the pair tests among results: those of the last
// launch, since one that lost a node was begun again without it. Failed and
// wrong ones are left out, with a note.
func FromResults(results []reports.Result) (*Table, []string, error) {
	t := &Table{Rails: 1}
	var notes []string
	var last *reports.Result
	for i := range results {
		if results[i].Scope == Scope && len(results[i].Pairs) > 0 {
			last = &results[i]
		}
	}
	for _, r := range results {
		if r.Scope != Scope || len(r.Pairs) == 0 || r.Run != last.Run || r.Launch != last.Launch {
			continue
		}
		if t.Nodes == nil {
			t.Nodes = names(r.Hosts)
			t.OneMachine = r.OneMachine && !strings.Contains(r.Link, "verbs")
		}
		switch {
		case len(r.Hosts) != len(t.Nodes):
			return nil, notes, fmt.Errorf("pair tests of %d and of %d nodes: judge one cluster at a time", len(t.Nodes), len(r.Hosts))
		case r.Error != "":
			notes = append(notes, "left out: "+r.Error)
			continue
		case r.Wrong != nil && *r.Wrong > 0:
			notes = append(notes, fmt.Sprintf("wrong data between pairs (%d elements): their times mean nothing and are left out", *r.Wrong))
			continue
		case len(r.RankP50) != 2*len(r.Pairs):
			continue
		}
		for i, p := range r.Pairs {
			seconds := max(r.RankP50[2*i], r.RankP50[2*i+1])
			if p.Rail >= MaxRails || seconds <= 0 {
				continue
			}
			s := Sample{A: p.A, B: p.B, Rail: p.Rail, Way: Both, Alone: len(r.Pairs) == 1}
			if r.Root != nil {
				if s.Way = OneWay; *r.Root == 1 {
					s.A, s.B = s.B, s.A
				}
			}
			t.Rails = max(t.Rails, p.Rail+1)
			if r.Bytes <= small {
				s.Value = seconds
				t.Latency = append(t.Latency, s)
			} else {
				s.Value = float64(r.Bytes) / seconds / 1e9
				t.Bandwidth = append(t.Bandwidth, s)
			}
		}
	}
	if len(t.Bandwidth) == 0 {
		return nil, notes, ErrNoPairs
	}
	return t, notes, t.Check()
}

// names are host names made different where two are the same.
func names(hosts []string) []string {
	out := slices.Clone(hosts)
	for i, h := range hosts {
		if slices.Index(hosts, h) != i || slices.Contains(hosts[i+1:], h) {
			out[i] = fmt.Sprintf("%s#%d", h, i)
		}
	}
	return out
}
