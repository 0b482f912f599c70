package reports

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
)

var someFindings = []Finding{
	{ID: "a", Verdict: Pass, Node: "n1", Subject: "x"},
	{ID: "b", Verdict: Fail, Node: "n1", Subject: "mlx5_0 port 1", Got: "DOWN\x1b[2J <&>", Want: "ACTIVE", Evidence: []Evidence{{"/sys/x", "1: DOWN"}}, Remedy: "look at the cable"},
	{ID: "c", Verdict: Unknown, Node: "n2", Subject: "y", Got: "not told"},
	{ID: "d", Verdict: NA, Node: "n2", Subject: "z"},
	{ID: "e", Verdict: Warn, Node: "n2", Subject: "w", Got: "odd"},
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		fs   []Finding
		want Verdict
	}{{nil, Unknown}, {someFindings, Fail}, {someFindings[:1], Pass}, {someFindings[2:4], Unknown}, {someFindings[3:4], NA}, {someFindings[2:], Warn}} {
		if got := Worst(c.fs); got != c.want {
			t.Errorf("%d findings: %s, want %s", len(c.fs), got, c.want)
		}
	}
	if got := Tally(someFindings); got != "1 fail, 1 warn, 1 unknown, 1 pass, 1 n/a" {
		t.Error(got)
	}
}

func TestWriteFindings(t *testing.T) {
	out := map[string]string{}
	for _, format := range FindingFormats() {
		var b bytes.Buffer
		if err := WriteFindings(&b, format, someFindings); err != nil {
			t.Fatal(format, err)
		}
		out[format] = b.String()
		if strings.Contains(b.String(), "\x1b") && format != "json" {
			t.Errorf("%s lets a control character through", format)
		}
	}
	if at := strings.Index(out["table"], "mlx5_0"); at < 0 || at > strings.Index(out["table"], "n2") || !strings.Contains(out["table"], "do: look at the cable") || !strings.Contains(out["table"], "evidence: /sys/x: 1: DOWN") {
		t.Errorf("table, which begins with the worst and ends with what to do:\n%s", out["table"])
	}
	var j struct {
		Verdict  Verdict
		Findings []Finding
	}
	if err := json.Unmarshal([]byte(out["json"]), &j); err != nil || j.Verdict != Fail || len(j.Findings) != 5 || j.Findings[1].Got != someFindings[1].Got {
		t.Errorf("json: %v, %+v", err, j)
	}
	var x junitSuites
	if err := xml.Unmarshal([]byte(out["junit"]), &x); err != nil || x.Tests != 5 || x.Failures != 1 || x.Skipped != 2 || len(x.Suites) != 2 || x.Suites[0].Failures != 1 {
		t.Errorf("junit: %v, %+v", err, x)
	}
	if err := WriteFindings(&bytes.Buffer{}, "xml", nil); err == nil || !strings.Contains(err.Error(), "junit") {
		t.Errorf("an unknown format: %v", err)
	}
}
