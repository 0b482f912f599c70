package accept

import (
	"strings"
	"testing"

	"busbw/coordinator/pairs"
	"busbw/reports"
)

// A diagnosis is never surer than what accuses, compares with what the same
// way of testing reaches elsewhere, and is none where nothing is established
// or no card and cable lie between the nodes.
func TestDiagnosisIsNoSurerThanItsEvidence(t *testing.T) {
	input := func(change func(*pairs.Culprit)) Input {
		c := pairs.Culprit{Kind: pairs.Port, Nodes: []string{"n2"}, Verdict: reports.Warn, Sure: "low", Way: pairs.Both, GBps: 10, Want: 18,
			Why: []string{"both latency and bandwidth are bad"}}
		change(&c)
		return Input{Nodes: []string{"n0", "n1", "n2"}, Findings: []reports.Finding{finding("n2", "pcie-link", "mlx5_0", "16.0 GT/s PCIe x8")}, Pairs: &pairs.Report{
			Levels: []pairs.Level{{Way: pairs.OneWay, Typical: 48}, {Way: pairs.Both, Typical: 20}}, Culprits: []pairs.Culprit{c}}}
	}
	ds := Diagnose(input(func(*pairs.Culprit) {}))
	if len(ds) != 1 || ds[0].Sure != "low" || !strings.Contains(ds[0].Because[0], "both ways: 80 Gb/s where others reach 160") {
		t.Errorf("%+v", ds)
	}
	if ds := Diagnose(input(func(c *pairs.Culprit) { c.Sure = "high" })); len(ds) != 1 || ds[0].Sure == "low" {
		t.Errorf("a sure accusation: %+v", ds)
	}
	for name, change := range map[string]func(*pairs.Culprit){
		"not established": func(c *pairs.Culprit) { c.Verdict = reports.Unknown },
		"one machine":     func(c *pairs.Culprit) { c.OneMachine, c.Kind = true, pairs.Node },
	} {
		if ds := Diagnose(input(change)); len(ds) != 0 {
			t.Errorf("%s: %+v", name, ds)
		}
	}
}
