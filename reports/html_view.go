package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// pageOf turns results into what the page shows.
func pageOf(results []Result, a *Around) (*page, error) {
	p := &page{Title: "busbw report", Accept: acceptsOf(a.Accepted), Checks: checksOf(a.Findings), Odd: cleaned(a.Odd)}
	p.Topologies, p.Layouts = topologiesOf(a.Topologies)
	if len(results) == 0 {
		p.Verdict = judgeWith(verdict{"warn", "Nothing measured", "The files hold no results."}, 0, a)
		return p, nil
	}
	figures := Figures(results)
	p.Verdict = judgeWith(judge(figures), len(figures), a)
	for _, run := range runs(results) {
		p.Runs = append(p.Runs, runPage(run, len(p.Runs)))
	}
	called := p.groupNames()
	for i, r := range p.Runs {
		for j, g := range r.Groups {
			p.Charts = p.Charts || len(g.Chart.Series) > 0 || len(g.Chart.Pairs) > 0
			if l := g.Bars.lead(called[[2]int{i, j}]); l != "" && len(p.Leads) < 6 {
				p.Leads = append(p.Leads, l)
			}
		}
	}
	p.Title = "busbw"
	if at := results[0].Time; !at.IsZero() {
		p.Title += ": " + at.UTC().Format("2006-01-02 15:04")
	}
	if n := results[0].Nodes; n > 0 {
		p.Title += fmt.Sprintf(", %d node%s", n, plural(n))
	}
	return p, nil
}

// groupNames are those of the page's groups, by run and group: the operation,
// with what tells it from others of the same.
func (p *page) groupNames() map[[2]int]string {
	out := map[[2]int]string{}
	for _, more := range []func(r *pageRun, g *pageGroup) string{
		func(_ *pageRun, g *pageGroup) string { return g.Heading },
		func(_ *pageRun, g *pageGroup) string { return ", " + g.Detail },
		func(r *pageRun, _ *pageGroup) string { return ", " + r.Name },
	} {
		seen := map[string]int{}
		for _, n := range out {
			seen[n]++
		}
		for i := range p.Runs {
			for j := range p.Runs[i].Groups {
				if at := [2]int{i, j}; seen[out[at]] != 1 {
					out[at] += more(&p.Runs[i], &p.Runs[i].Groups[j])
				}
			}
		}
	}
	return out
}

// judge is the page's one word.
func judge(figures []Figure) verdict {
	wrong, failed, unsure, checked, timed, foretold := 0, 0, 0, 0, 0, 0
	for i := range figures {
		f := &figures[i]
		switch {
		case f.Void():
			wrong++
		case !f.Timed && len(f.Faults) > 0:
			failed++
		case f.Timed && !f.Foretold() && (f.unsettled() || f.Skewed() || f.Stats.Interval == nil && !f.summarised()):
			unsure++
		}
		if f.Result.Wrong != nil {
			checked++
		}
		if f.Foretold() {
			foretold++
		}
		if f.Timed && !f.Foretold() {
			timed++
		}
	}
	n := len(figures)
	switch {
	case wrong > 0 && failed > 0:
		return verdict{"bad", "Wrong data, and incomplete", fmt.Sprintf("%d of %d measurements delivered wrong elements: their times mean nothing. %d failed; the findings say why.", wrong, n, failed)}
	case wrong > 0:
		return verdict{"bad", "Wrong data", fmt.Sprintf("%d of %d measurements delivered wrong elements: their times mean nothing.", wrong, n)}
	case failed > 0:
		return verdict{"bad", "Incomplete", fmt.Sprintf("%d of %d measurements failed; the findings say why.", failed, n)}
	case timed == 0 && foretold == 0:
		return verdict{"warn", "No times", fmt.Sprintf("The files tell bandwidths at most of the %d measurement%s, and no time.", n, plural(n))}
	case timed == 0:
		return verdict{"warn", "Predicted", fmt.Sprintf("None of the %d figures was measured.", n)}
	case checked == 0:
		return verdict{"warn", "Not checked", "The data of no measurement was checked."}
	case unsure > 0:
		return verdict{"warn", "Data right, some figures unsure", fmt.Sprintf("All data that was checked is right; %d of %d figures are marked as unsure.", unsure, n)}
	}
	return verdict{"good", "Data right", fmt.Sprintf("All %d measurements ran, and the data of %d was checked and is right.", n, checked)}
}

func runPage(run []Result, index int) pageRun {
	r := pageRun{Name: clean(run[0].Run, 80), Settings: settingPairs(run), Between: joinedBy(run)}
	r.Facts = facts(run)
	for _, n := range common(run) {
		r.Notes = append(r.Notes, prose(n))
	}
	told := common(run)
	figures := Figures(run)
	for i := range figures {
		figures[i].Notes = slices.DeleteFunc(figures[i].Notes, func(n string) bool { return slices.Contains(told, n) })
	}
	all := map[string][]float64{}
	for i := range run {
		k := run[i].key()
		all[k] = append(all[k], run[i].Seconds...)
	}
	varies := varying(run)
	for i, s := range sheets(figures) {
		g := s.page(varies, all)
		g.ID = fmt.Sprintf("g%d-%d", index, i)
		r.Groups = append(r.Groups, g)
		for _, f := range s.findings(g.Heading) {
			same := slices.IndexFunc(r.Findings, func(o pageFinding) bool { return o.Text == f.Text && o.Class == f.Class })
			if same < 0 {
				r.Findings = append(r.Findings, f)
			} else {
				r.Findings[same].Rows = append(r.Findings[same].Rows, f.Rows...)
			}
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b pageFinding) int {
		order := []string{"bad", "warn", "info"}
		return slices.Index(order, a.Class) - slices.Index(order, b.Class)
	})
	r.Nodes = nodesOf(figures)
	return r
}

// facts say what the run was and how it was measured.
func facts(run []Result) (out [][2]string) {
	row := func(head, format string, args ...any) {
		out = append(out, [2]string{head, fmt.Sprintf(format, args...)})
	}
	first, last := period(run)
	launches := map[int]bool{}
	var sources, engines, links, modes []string
	least, most := math.MaxInt, 0
	for i := range run {
		r := &run[i]
		launches[r.Launch] = true
		sources, engines, links = appendNew(sources, name(r.Source)), appendNew(engines, name(r.Engine)), appendNew(links, name(r.Link))
		modes = appendNew(modes, name(r.Mode))
		if n := int(min(r.iterations(), math.MaxInt32)); n > 0 {
			least, most = min(least, n), max(most, n)
		}
	}
	row("Run", "%s by %s", name(run[0].Run), strings.Join(sources[:min(len(sources), maxKinds)], ", "))
	if first.IsZero() {
		row("When", "unknown")
	} else {
		row("When", "%s to %s", first.UTC().Format(time.DateTime), last.UTC().Format("15:04:05 UTC"))
	}
	if n := run[0].Nodes; n > 0 {
		row("Nodes", "%d", n)
	} else {
		row("Nodes", "unknown")
	}
	row("Engine", "%s", strings.Join(engines, ", "))
	row("Links", "%s", strings.Join(slices.DeleteFunc(links, func(s string) bool { return s == "" }), ", "))
	if most > 0 {
		row("Samples", "%s iterations of each size in %d launch%s, %s", span([2]int{least, most}), len(launches), map[bool]string{true: "", false: "es"}[len(launches) == 1], strings.Join(modes, ", "))
	}
	if slices.ContainsFunc(run, func(r Result) bool { return len(r.Seconds) > 0 }) {
		switch times := timesAre(Figures(run)); times {
		case ownTime:
			row("Time", "of an iteration: the slowest rank's; a figure is the median with its 95 %% order-statistic interval")
		default:
			row("Time", "%s", times)
		}
	}
	return out
}

func settingPairs(run []Result) (out [][2]string) {
	config := redact(run[0].Config)
	varies := varying(run)
	for _, k := range sortedKeys(config) {
		if !slices.Contains(varies, k) {
			out = append(out, [2]string{name(k), name(config[k])})
		}
	}
	return out
}

// joinedBy is the longest name of a link of a scope that spans nodes.
func joinedBy(run []Result) (link string) {
	for i := range run {
		if l := name(run[i].Link); run[i].Scope != "intra" && len(l) > len(link) {
			link = l
		}
	}
	return link
}

// findings are the remarks on the sheet's rows.
func (s *sheet) findings(heading string) (out []pageFinding) {
	at := map[string]int{}
	rows := map[string][]string{}
	for _, f := range s.figures {
		class := "warn"
		if f.Void() || !f.Timed && len(f.Faults) > 0 {
			class = "bad"
		}
		for _, text := range f.sentences() {
			if _, ok := at[text]; !ok {
				at[text] = len(out)
				c, remedy := remedyOf(text, class)
				out = append(out, pageFinding{Class: c, Text: text, Remedy: remedy})
			}
			rows[text] = append(rows[text], s.row(f))
		}
		if f.Void() {
			out = append(out, pageFinding{"bad", f.wrongElements(), []string{heading + ": " + s.row(f)},
				"No time of this row counts. Repeat with each link alone (--scope intra, --scope cross) to find which one delivers wrong data."})
		}
	}
	for text, i := range at {
		where := rows[text]
		switch n := len(where); {
		case n == len(s.figures) && n > 1:
			out[i].Rows = []string{heading + ": all rows"}
		case n > 6:
			out[i].Rows = []string{fmt.Sprintf("%s: %s and %d more", heading, strings.Join(where[:6], ", "), n-6)}
		default:
			out[i].Rows = []string{heading + ": " + strings.Join(where, ", ")}
		}
	}
	return out
}

// remedyOf says what to do about the remarks that the program makes itself.
func remedyOf(text, class string) (string, string) {
	for _, k := range []struct{ has, class, remedy string }{
		{"not settled", "warn", "The warm-up's last windows disagreed: look for other load on the nodes, or give it more time (--time)."},
		{"skew >", "warn", "Ranks started too far apart for so short an operation: compare larger sizes, or aggregate several (-m)."},
		{"above the limit", "info", "Something else used the machine while the limit was measured, or this size stays in caches: measure on an idle machine."},
		{"limit unreliable", "info", "No share is shown. Measure on an idle machine."},
		{"too few", "info", "Measure more: -n, --time or --launches."},
		{"predicted, not measured", "info", ""},
	} {
		if strings.Contains(text, k.has) {
			return k.class, k.remedy
		}
	}
	if class == "bad" {
		return class, "Repeat this size alone; --resume goes on with the others."
	}
	return "info", ""
}

// nodesOf places ranks on nodes, from the largest size of the widest scope
// that every rank was timed in.
func nodesOf(figures []Figure) (out []pageNode) {
	var best *Figure
	for i := range figures {
		f := &figures[i]
		if f.Scope == "global" && f.Timed && !f.Void() && len(f.RankP50) == f.Ranks && (best == nil || f.Bytes > best.Bytes) {
			best = f
		}
	}
	if best == nil || len(best.Hosts) == 0 || best.Ranks%len(best.Hosts) != 0 {
		return nil
	}
	each := best.Ranks / len(best.Hosts)
	mid := Median(best.RankP50)
	for i, h := range best.Hosts {
		n := pageNode{Host: name(h)}
		for k := range each {
			rank := i*each + k
			t := best.RankP50[rank]
			class := "r0"
			switch {
			case t > 1.5*mid:
				class = "r3"
			case t > 1.2*mid:
				class = "r2"
			case t > 1.05*mid:
				class = "r1"
			}
			n.Ranks = append(n.Ranks, pageRank{rank, class, fmt.Sprintf("rank %d on %s: %s, %.0f %% of the median rank, in %s of %s", rank, name(h), timeText(t), 100*t/mid, name(best.Op), sizeText(best.asked()))})
		}
		out = append(out, n)
	}
	return out
}
