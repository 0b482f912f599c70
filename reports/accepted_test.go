package reports

import (
	"bytes"
	"strings"
	"testing"
)

const acceptedJSON = `{"verdict":"fail","nodes":[
 {"node":"gpu000","verdict":"pass","findings":[{"id":"x","verdict":"pass","subject":"y"}]},
 {"node":"gpu001","verdict":"fail","findings":[{"id":"x","verdict":"fail","subject":"y","got":"slow"}]},
 {"node":"gpu002","verdict":"unknown","findings":[]},
 {"node":"gpu003","verdict":"warn","findings":[{"id":"x","verdict":"warn","subject":"y"}]}],
 "not_established":["pairs of gpu002 <b>","rails"],"stages":[]}`

// The report of an acceptance begins with its verdict and the nodes by theirs,
// on the page and in the terminal, with results beside or not.
func TestReportBeginsWithAcceptance(t *testing.T) {
	a, err := ReadAround(strings.NewReader(acceptedJSON), "report.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Accepted) != 1 || a.Verdict() != Fail || a.Empty() {
		t.Fatalf("%+v", a)
	}
	for _, results := range [][]Result{nil, page2x2()} {
		var page, text bytes.Buffer
		if err := RenderWith(&page, "html", results, a); err != nil {
			t.Fatal(err)
		}
		last := 0
		for _, want := range []string{"<h1>Not accepted</h1>", "2 of 4 nodes may go into service as far as they were tested; not established: pairs of gpu002 &lt;b&gt;; and 1 more.", "Acceptance <small>Not accepted", "1 node: gpu001", "1 node: gpu003", "1 node: gpu002", "1 node: gpu000", "<li>rails</li>", "Checks <small>"} {
			at := strings.Index(page.String(), want)
			if at < last {
				t.Errorf("%q is at %d, after %d", want, at, last)
			}
			last = at
		}
		if err := RenderWith(&text, "table", results, a); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"acceptance: FAIL: 2 of 4 nodes", "  fail     gpu001\n", "  unknown  gpu002\n", "  pass     gpu000\n"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in\n%s", want, text.String())
			}
		}
	}
	// Wrong data beside an acceptance that passed is not hidden by it.
	v := (&Around{Accepted: []Acceptance{{Verdict: Pass, Nodes: []NodeVerdict{{"a", Pass}}}}}).judged(verdict{"bad", "Wrong data", "x"})
	if v.Class != "bad" || v.Word != "Accepted; wrong data" {
		t.Errorf("%+v", v)
	}
	for _, bad := range []string{`{"verdict":"perhaps","nodes":[{"node":"a","verdict":"pass","findings":[]}]}`, `{"verdict":"pass","nodes":[{"node":"a","verdict":"perhaps","findings":[]}]}`} {
		if a, err := ReadAround(strings.NewReader(bad), "f"); err == nil {
			t.Errorf("%s: %+v", bad, a)
		}
	}
}
