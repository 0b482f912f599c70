package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"busbw/reports"
)

// Trial is one measurement under settings, as people write it down.
type Trial struct {
	Name     string            // "r1"; "" where it has none
	Settings map[string]string // by name; "" is unset
	GBps     float64
	Wrong    string  // what says that its data are wrong: "FAILED", "4096"; "" for nothing
	Wire     float64 // GB/s of the one port that carried it; 0: not told
	Line     string  // as it stands, shortened
}

// same is how much two figures may differ and still be called equal: tables of
// one figure each know nothing of their own scatter.
const same = 0.05

// Trials says what a table of trials is evidence for: two of them that differ
// in one setting only. Wrong data and figures above the wire are no figures.
func Trials(ts []Trial, from Origin, node string) (out []reports.Finding) {
	var good []Trial
	for i, t := range ts {
		f := reports.Finding{ID: "settings", Node: node, Subject: t.name(i), Verdict: reports.Fail, Evidence: []reports.Evidence{from.of("", t.Line)},
			Remedy: "leave these settings out, however fast they look; choose among trials whose data were checked"}
		above := t.Wire > 0 && t.GBps > 1.02*t.Wire
		switch {
		case t.Wrong != "":
			f.Got = fmt.Sprintf("wrong data (%s): %s GB/s is no figure", t.Wrong, number(t.GBps))
			if above {
				f.Got += fmt.Sprintf(", and %.1f times what its port carries", t.GBps/t.Wire)
			}
		case above:
			f.Got = fmt.Sprintf("%s GB/s is %.1f times what its port carries (%s GB/s): the data did not all arrive, or went another way", number(t.GBps), t.GBps/t.Wire, number(t.Wire))
			f.Remedy = "check the data (-c 1) and what carried them before believing it"
		default:
			good = append(good, ts[i])
			continue
		}
		out = append(out, f)
	}
	for i := 1; i < len(good); i++ {
		out = append(out, step(good[i-1], good[i], from, node))
	}
	return out
}

func (t Trial) name(i int) string {
	if t.Name != "" {
		return t.Name
	}
	var s []string
	for _, k := range t.names() {
		s = append(s, k+"="+or(t.Settings[k], "(unset)"))
	}
	if s == nil {
		return fmt.Sprintf("trial %d", i+1)
	}
	return list(s)
}

func (t Trial) names() (out []string) {
	for k := range t.Settings {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// step is what two trials after one another say together.
func step(a, b Trial, from Origin, node string) reports.Finding {
	var changed []string
	for _, k := range a.names() {
		if v, ok := b.Settings[k]; ok && v != a.Settings[k] {
			changed = append(changed, fmt.Sprintf("%s %s → %s", k, or(a.Settings[k], "(unset)"), or(v, "(unset)")))
		}
	}
	f := reports.Finding{ID: "settings", Node: node, Subject: a.name(0) + " → " + b.name(0), Verdict: reports.Pass, Evidence: []reports.Evidence{from.of("", a.Line), from.of("", b.Line)}}
	what := strings.Join(changed, ", ")
	figures := fmt.Sprintf("%s → %s GB/s", number(a.GBps), number(b.GBps))
	ratio := b.GBps / a.GBps
	switch {
	case len(changed) == 0:
		f.Got = figures + ": nothing that is written down changed"
		if math.Abs(ratio-1) > same {
			f.Verdict = reports.Unknown
			f.Got += ", and yet the figure did"
		}
	case math.Abs(ratio-1) <= same && len(changed) == 1:
		f.Got = fmt.Sprintf("%s: no difference (%s)", figures, what)
	case math.Abs(ratio-1) <= same:
		f.Got = fmt.Sprintf("%s: no difference, though %d settings changed (%s)", figures, len(changed), what)
	case len(changed) == 1:
		f.Got = fmt.Sprintf("%s, %s: only this changed: %s", figures, times(ratio), what)
	default:
		f.Verdict = reports.Unknown
		f.Got = fmt.Sprintf("%s, %s: %d settings changed at once, and which did it cannot be told: %s", figures, times(ratio), len(changed), what)
		f.Remedy = "measure with one of them changed at a time"
	}
	return f
}

func times(ratio float64) string {
	if ratio >= 1.5 || ratio <= 0.67 {
		return fmt.Sprintf("%.1f times", ratio)
	}
	return fmt.Sprintf("%+.0f %%", 100*(ratio-1))
}
