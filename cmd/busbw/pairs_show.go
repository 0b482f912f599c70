package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/term"

	"busbw/coordinator/accept"
	"busbw/coordinator/pairs"
	"busbw/reports"
)

// pairDocument is the JSON of a pair test.
type pairDocument struct {
	Verdict reports.Verdict   `json:"verdict"`
	Nodes   []string          `json:"nodes"`
	Lost    []reports.Finding `json:"lost,omitempty"`    // nodes that could not be measured
	Devices []reports.Finding `json:"devices,omitempty"` // of nodes' own, measured alone
	*pairs.Report
	Diagnoses []accept.Diagnosis `json:"diagnoses,omitempty"`
	Pairs     []pairValue        `json:"pairs"`
}

// pairValue is one measured value.
type pairValue struct {
	A     int       `json:"a"` // by index in nodes
	B     int       `json:"b"`
	Rail  int       `json:"rail"`
	Way   pairs.Way `json:"way"`
	GBps  float64   `json:"gb_per_s"`
	Alone bool      `json:"alone,omitempty"` // nothing else ran
}

// show writes a report in the format that was asked for, and says whether
// something was found.
func (f *pairFlags) show(out io.Writer, t *pairs.Table, r *pairs.Report, results []reports.Result, lost []reports.Finding) (found bool, err error) {
	alone := accept.Devices(nil, results)
	besides := append(lost[:len(lost):len(lost)], alone...)
	bad := func(v reports.Verdict) bool {
		return slices.ContainsFunc(besides, func(f reports.Finding) bool { return f.Verdict == v })
	}
	found = r.Found() || bad(reports.Fail) || bad(reports.Warn)
	why := accept.Diagnose(accept.Input{Nodes: t.Nodes, Table: t, Pairs: r, Results: results})
	why = slices.DeleteFunc(why, func(d accept.Diagnosis) bool { return d.Cause == accept.NotKnown })
	if f.format == "table" {
		if err := r.Text(out, t, colours(out)); err != nil {
			return found, err
		}
		if err := errors.Join(accept.WriteDiagnoses(out, why), accept.WriteDevices(out, results, alone)); err != nil {
			return found, err
		}
		for _, l := range lost {
			fmt.Fprintf(out, "FAIL  %s could not be measured: %s\n", l.Node, l.Evidence[0].Value)
		}
		return found, nil
	}
	if f.format == "junit" {
		return found, reports.WriteFindings(out, f.format, append(accept.OfPairs(t.Nodes, r), besides...))
	}
	d := pairDocument{Verdict: r.Verdict(), Nodes: t.Nodes, Lost: lost, Devices: alone, Report: r, Diagnoses: why, Pairs: []pairValue{}}
	if bad(reports.Fail) {
		d.Verdict = reports.Fail
	}
	for _, s := range t.Bandwidth {
		d.Pairs = append(d.Pairs, pairValue{s.A, s.B, s.Rail, s.Way, s.Value, s.Alone})
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return found, enc.Encode(d)
}

// colours says whether w is a terminal whose user has not asked for plain
// text (https://no-color.org).
func colours(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
