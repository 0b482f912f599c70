package reports

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// The elements of JUnit XML that continuous-integration servers read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"timestamp,attr,omitempty"`
		Host     string      `xml:"hostname,attr,omitempty"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string    `xml:"classname,attr"`
		Name    string    `xml:"name,attr"`
		Seconds string    `xml:"time,attr,omitempty"`
		Failure *junitMsg `xml:"failure"`
		Error   *junitMsg `xml:"error"`
		Skipped *junitMsg `xml:"skipped"`
		Out     string    `xml:"system-out,omitempty"`
	}
	junitMsg struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junit writes a test case for each figure. Wrong data and a busbw above the
// rated limit of a link fail; a size that could not be measured is an error.
func junit(b *bytes.Buffer, results []Result, _ bool) error {
	all := junitSuites{Name: "busbw report"}
	for _, run := range runs(results) {
		suite := junitSuite{Name: "busbw " + clean(run[0].Run, 80)}
		if t := run[0].Time; !t.IsZero() {
			suite.Time = t.UTC().Format(time.RFC3339)
		}
		if hosts := run[0].Hosts; len(hosts) > 0 {
			suite.Host = name(hosts[0])
		}
		figures := Figures(run)
		for i := range figures {
			c := figures[i].junit()
			suite.Tests++
			if c.Failure != nil {
				suite.Failures++
			}
			if c.Error != nil {
				suite.Errors++
			}
			suite.Cases = append(suite.Cases, c)
		}
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Errors += suite.Errors
		all.Suites = append(all.Suites, suite)
	}
	b.WriteString(xml.Header)
	e := xml.NewEncoder(b)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	b.WriteByte('\n')
	return nil
}

func (f *Figure) junit() junitCase {
	place, size := "", "unknown size"
	if f.InPlace {
		place = "in place"
	}
	if f.sized() {
		size = f.size()
	}
	many := func(n int, what string) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	c := junitCase{
		Class: strings.Join(strings.Fields(strings.Join([]string{"busbw", name(f.Op), name(f.Scope)}, " ")), "."),
		Name:  strings.Join(strings.Fields(strings.Join([]string{size, place, name(f.wanted()), name(f.Dtype), name(f.Redop), many(f.Ranks, "rank"), many(f.Nodes, "node")}, " ")), " "),
	}
	if f.Timed {
		c.Seconds = decimal(&f.Stats.Median)
	}
	share, limited := f.Share()
	switch {
	case f.Void():
		c.Failure = &junitMsg{Type: "wrong data", Message: f.wrongElements()}
	case !f.Timed && len(f.Faults) > 0:
		c.Error = &junitMsg{Type: "not measured", Message: prose(f.Faults[0].Error())}
	case limited && share > limitBound && strings.Contains(f.Limit.Name, "rate"):
		c.Failure = &junitMsg{Type: "above the limit", Message: fmt.Sprintf("busbw is %s of %s (%s GB/s): the result cannot be right", shareText(share, true), name(f.Limit.Name), rateText(f.Limit.GBps, true))}
	}
	var out []string
	if bus, ok := f.Busbw(); ok {
		line := "busbw " + rateText(bus, true) + " GB/s"
		if limited {
			line += fmt.Sprintf(", %s of %s (%s GB/s)", shareText(share, true), name(f.Limit.Name), rateText(f.Limit.GBps, true))
		}
		out = append(out, line)
	}
	c.Out = strings.Join(append(out, f.sentences()...), "\n")
	return c
}
