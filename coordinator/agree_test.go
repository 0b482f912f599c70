package coordinator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"busbw/reports"
)

func TestFactsAgree(t *testing.T) {
	nodes := func(fact string, values ...string) []NodeFacts {
		var out []NodeFacts
		for i, v := range values {
			n := NodeFacts{Node: fmt.Sprintf("n%d", i), Machine: fmt.Sprint(i), Facts: map[string]string{}}
			if v != "" {
				n.Facts[fact] = v
			}
			out = append(out, n)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		nodes []NodeFacts
		want  string // verdict node, one a finding
	}{
		{"equal", nodes("kernel", "6.1", "6.1", "6.1"), "pass "},
		{"one odd", nodes("firmware of MT4129", "28.39", "28.39", "28.38", "28.39"), "warn n2"},
		{"a GPU less", nodes("GPUs", "8 × H100", "7 × H100", "8 × H100"), "fail n1"},
		{"no majority", nodes("kernel", "6.1", "6.2"), "warn "},
		{"no majority is nobody's failure", nodes("GPUs", "8 × H100", "7 × H100"), "warn "},
		{"not told", nodes("GPUs", "8 × H100", "8 × H100", ""), "unknown n2"},
		{"two odd", nodes("kernel", "6.1", "6.1", "6.1", "6.2", "6.3"), "warn n3, warn n4"},
		{"cloned", nodes("machine id", "a", "b", "a"), "warn "},
		{"own ids", nodes("machine id", "a", "b", "c"), "pass "},
		{"alone", nodes("kernel", "6.1"), ""},
	} {
		var got []string
		for _, f := range Agree(c.nodes) {
			got = append(got, string(f.Verdict)+" "+f.Node)
			if (f.Verdict == reports.Warn || f.Verdict == reports.Fail) && (f.Remedy == "" || len(f.Evidence) == 0) {
				t.Errorf("%s: no remedy or evidence: %+v", c.name, f)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	same := nodes("host name", "gpu1", "gpu1")
	same[1].Machine = same[0].Machine
	if fs := Agree(same); len(fs) != 1 || fs[0].Verdict != reports.NA {
		t.Errorf("two workers of one machine: %+v", fs)
	}
}

func TestClockReading(t *testing.T) {
	for _, c := range []struct {
		ahead, unsure time.Duration
		want          reports.Verdict
	}{
		{time.Millisecond, time.Millisecond, reports.Pass},
		{-2 * time.Second, time.Millisecond, reports.Warn},
		{150 * time.Millisecond, time.Second, reports.Unknown},
		{0, 50 * time.Millisecond, reports.Pass},
	} {
		if f := (clockReading{c.ahead, c.unsure}).finding("n0"); f.Verdict != c.want {
			t.Errorf("%s ±%s: %s, want %s", c.ahead, c.unsure, f.Verdict, c.want)
		}
	}
}
