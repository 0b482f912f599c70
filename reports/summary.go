package reports

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// period is when a run's first and last records were begun; zero where no
// record tells.
func period(run []Result) (first, last time.Time) {
	for i := range run {
		t := run[i].Time
		if t.IsZero() || t.Unix() == 0 {
			continue
		}
		if first.IsZero() || t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}
	return first, last
}

// summary is the head of a run's tables; all adds how it was measured.
func summary(b *bytes.Buffer, run []Result, all bool) {
	first, last := period(run)
	launches := map[int]bool{}
	var hosts, sources []string
	warm := [2]int{run[0].Warmup, run[0].Warmup}
	iters := [2]int{}
	settled, failed, wrong, foretold, untimed := 0, 0, 0, 0, 0
	var skews []float64
	timed := 0
	for _, r := range run {
		launches[r.Launch] = true
		if len(sources) < maxKinds {
			sources = appendNew(sources, r.Source)
		}
		if len(r.Hosts) > len(hosts) {
			hosts = r.Hosts
		}
		if r.Wrong != nil && *r.Wrong > 0 {
			wrong++
		}
		if r.Foretold() {
			foretold++
			continue
		}
		if r.Error != "" {
			failed++
			continue
		}
		if len(r.Seconds) == 0 {
			untimed++
			continue
		}
		if timed++; timed == 1 {
			warm, iters = [2]int{r.Warmup, r.Warmup}, [2]int{len(r.Seconds), len(r.Seconds)}
		}
		warm = [2]int{min(warm[0], r.Warmup), max(warm[1], r.Warmup)}
		iters = [2]int{min(iters[0], len(r.Seconds)), max(iters[1], len(r.Seconds))}
		if r.Settled {
			settled++
		}
		if r.Skew != nil {
			skews = append(skews, *r.Skew)
		}
	}
	row := func(head, format string, args ...any) {
		fmt.Fprintf(b, "%-10s %s\n", head, fmt.Sprintf(format, args...))
	}
	when := "at an unknown time"
	if !first.IsZero() {
		when = first.UTC().Format(time.DateTime) + " to " + last.UTC().Format("15:04:05 UTC")
	}
	row("run", "%s, %s, by %s", clean(run[0].Run, 80), when, prose(strings.Join(sources, ", ")))
	if run[0].Nodes > 0 {
		row("nodes", "%d%s", run[0].Nodes, hostList(hosts))
	}
	if foretold > 0 {
		row("predicted", "%d, none of them measured", foretold)
	}
	if foretold == len(run) {
		settings(b, run)
		for _, n := range common(run) {
			row("note", "%s", prose(n))
		}
		return
	}
	if all || failed > 0 || wrong > 0 || len(launches) > 1 {
		text := fmt.Sprintf("%d in %d launch%s; %d failed, %d with wrong data", len(run), len(launches), map[bool]string{true: "", false: "es"}[len(launches) == 1], failed, wrong)
		if untimed > 0 {
			text += fmt.Sprintf(", %d without a time", untimed)
		}
		row("results", "%s", text)
	}
	if all && timed > 0 && run[0].Stated == nil {
		row("iterations", "%s, after a warm-up of %s; the warm-up settled in %d of %d", span(iters), span(warm), settled, timed)
	}
	if s, ok := Describe(skews); ok && all {
		row("skew", "%s between a group's first and last start (median), at most %s", timeText(s.Median), timeText(s.Max))
	} else if all && timed > 0 && run[0].Stated == nil {
		row("skew", "not measured")
	}
	if all || run[0].Stated != nil {
		settings(b, run)
	}
	for _, n := range common(run) {
		row("note", "%s", prose(n))
	}
}

// settings are those that all results share, by name; the others stand over
// the tables that they belong to.
func settings(b *bytes.Buffer, run []Result) {
	config := redact(run[0].Config)
	varies := varying(run)
	var set []string
	for _, k := range sortedKeys(config) {
		if !slices.Contains(varies, k) {
			set = append(set, setting(k, config[k]))
		}
	}
	// Wrapped to the width of the tables.
	text := "settings  "
	for _, s := range set {
		if len(text)+1+len(s) > 110 {
			fmt.Fprintln(b, text)
			text = strings.Repeat(" ", 10)
		}
		text += " " + s
	}
	if len(set) > 0 {
		fmt.Fprintln(b, text)
	}
}

func setting(key, value string) string {
	if value == "" {
		return name(key) + `=""`
	}
	return name(key) + "=" + name(value)
}

// varying lists the settings whose values differ between a run's results on
// one engine; each engine has settings of its own.
func varying(run []Result) []string {
	differ := map[string]string{}
	first := map[string]map[string]string{} // by engine
	for _, r := range run {
		had, ok := first[r.Engine]
		if !ok {
			first[r.Engine] = r.Config
			continue
		}
		for k := range r.Config {
			if v, ok := had[k]; !ok || v != r.Config[k] {
				differ[k] = ""
			}
		}
		for k := range had {
			if _, ok := r.Config[k]; !ok {
				differ[k] = ""
			}
		}
	}
	return sortedKeys(differ)
}

// common are the notes that every result of a run has.
func common(run []Result) []string {
	var notes []string
	for _, n := range run[0].Notes {
		if !slices.ContainsFunc(run, func(r Result) bool { return !slices.Contains(r.Notes, n) }) {
			notes = append(notes, n)
		}
	}
	return notes
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func span(r [2]int) string {
	if r[0] == r[1] {
		return fmt.Sprint(r[0])
	}
	return fmt.Sprintf("%d to %d", r[0], r[1])
}

// hostList is at most eight names.
func hostList(hosts []string) string {
	if len(hosts) == 0 {
		return ""
	}
	var names []string
	for i, h := range hosts {
		if i == 8 {
			names = append(names, fmt.Sprintf("and %d more", len(hosts)-i))
			break
		}
		names = append(names, name(h))
	}
	return ": " + strings.Join(names, ", ")
}
