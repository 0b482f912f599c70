package coordinator

import (
	"strings"
	"testing"

	"busbw/reports"
)

func TestResumable(t *testing.T) {
	rec := func(verb, run string) reports.Result { return reports.Result{Verb: verb, Run: run, Source: "busbw 1"} }
	for want, kept := range map[string][]reports.Result{
		"":             {rec("run", "a"), rec("run", "a")},
		"sweep":        {rec("sweep", "a")},
		"accept":       {rec("run", "a"), rec("accept", "a")},
		"several runs": {rec("run", "a"), rec("run", "b")},
		"source":       {rec("", "a")},
	} {
		if err := Resumable(kept); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
