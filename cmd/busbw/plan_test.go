package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/coordinator/plan"
	"busbw/reports"
)

// planned runs busbw plan in this process.
func planned(t *testing.T, args ...string) (out string, code int, err error) {
	t.Helper()
	root := rootCommand()
	var b, errs bytes.Buffer
	root.SetOut(&b)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"plan"}, args...))
	err = root.ExecuteContext(context.Background())
	return b.String(), exitCode(err), err
}

func describeIn(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

const fourNodes = "name: four\nnodes: 4\ngpus_per_node: 4\nnvlink: {gb_per_s: 400}\nnic: {gb_per_s: 50}\n"

func TestPlanTables(t *testing.T) {
	c := describeIn(t, fourNodes)
	out, code, err := planned(t, c, "--sizes", "1M,16M", "--nodes", "2,4", "--algo", "ring,hierarchical")
	if code != exitFine || strings.Count(out, "hierarchical") != 4 || !strings.Contains(out, "NIC") || !strings.Contains(out, "BETWEEN") {
		t.Errorf("%d %v\n%s", code, err, out)
	}
	two := describeIn(t, strings.Replace(fourNodes, "nic:", "nics_per_node: 2\nnic:", 1))
	out, code, err = planned(t, c, "--what-if", two, "--sizes", "64M", "--algo", "hierarchical")
	if code != exitFine || !strings.Contains(out, "B/A") || !strings.Contains(out, "×1.") {
		t.Errorf("%d %v\n%s", code, err, out)
	}
	pod := describeIn(t, "name: pod\nnodes: 8\ngpus_per_node: 2\nnvlink: {domain: 8, gb_per_s: 400}\nnic: {gb_per_s: 50}\n")
	out, code, err = planned(t, c, "--what-if", pod, "--sizes", "64M", "--algo", "hierarchical")
	if code != exitFine || !strings.Contains(out, "4, 8") || strings.Contains(out, "different numbers of ranks") {
		t.Errorf("each with its own nodes: %d %v\n%s", code, err, out)
	}
	out, code, err = planned(t, c, "--what-if", pod, "--sizes", "64M", "--algo", "hierarchical", "--nodes", "4")
	if code != exitFine || !strings.Contains(out, "16, 8") || !strings.Contains(out, "different numbers of ranks") {
		t.Errorf("as many nodes: %d %v\n%s", code, err, out)
	}
	out, code, err = planned(t, c, "--step-bytes", "64M", "--compute", "3ms", "--overlap", "0.5", "--algo", "rails")
	if code != exitFine || !strings.Contains(out, "EXPOSED") {
		t.Errorf("%d %v\n%s", code, err, out)
	}
}

// Predictions are records that the report takes.
func TestPlanRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.jsonl.zst")
	if _, code, err := planned(t, describeIn(t, fourNodes), "--sizes", "1M", "--algo", "ring", "--output", file); code != exitFine {
		t.Fatal(err)
	}
	got, _, err := reports.ReadFile(file)
	if err != nil || len(got) != 1 || !got[0].Foretold() || got[0].Config["cluster"] != "four" || !strings.HasPrefix(got[0].Source, "predicted by busbw") {
		t.Errorf("%+v, %v", got, err)
	}
	var b bytes.Buffer
	if err := reports.Render(&b, "table", got); err != nil || !strings.Contains(b.String(), "predicted, not measured") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestPlanWrongUse(t *testing.T) {
	c := describeIn(t, fourNodes)
	for _, x := range []struct {
		want string
		args []string
	}{
		{"needs a description", nil},
		{"takes one description", []string{c, c}},
		{"nodes is -3", []string{describeIn(t, "nodes: -3\ngpus_per_node: 8\n")}},
		{`unknown field "nodez"`, []string{describeIn(t, "nodez: 3\n")}},
		{"nic.gb_per_s is missing", []string{describeIn(t, "nodes: 3\ngpus_per_node: 8\nnvlink: {gb_per_s: 400}\n"), "--sizes", "1M"}},
		{"want whole numbers, with commas", []string{c, "--nodes", "1,x"}},
		{"--nodes 0", []string{c, "--nodes", "0"}},
		{"unknown algorithm", []string{c, "--algo", "rnig"}},
		{"unknown operation", []string{c, "--op", "gossip"}},
		{"an overlap of 2", []string{c, "--step-bytes", "1M", "--overlap", "2"}},
		{"go with --step-bytes", []string{c, "--compute", "1s"}},
		{"--check needs results", []string{c, "--check"}},
		{"unknown format", []string{c, "--format", "xml"}},
		{"leave out", []string{c, "--what-if", c, "--format", "csv"}},
	} {
		if _, code, err := planned(t, x.args...); code != exitUsage || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: exit %d, %v; want %q", x.args, code, err, x.want)
		}
	}
	if _, code, _ := planned(t, filepath.Join(t.TempDir(), "none.yaml")); code != exitFail {
		t.Errorf("a file that is not there: exit %d", code)
	}
	if out, code, _ := planned(t, "--example"); code != exitFine || out != plan.Example {
		t.Errorf("--example: exit %d", code)
	}
}
