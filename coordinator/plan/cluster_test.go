package plan

import (
	"errors"
	"strings"
	"testing"
)

func mustRead(t testing.TB, text string) *Cluster {
	t.Helper()
	c, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The example is a description, and its defaults are those of an absent field.
func TestExample(t *testing.T) {
	c := mustRead(t, Example)
	if c.NIC.GBps != (Range{Low: 50, High: 50}) || !c.NIC.Rails || c.Leaf.Nodes != 32 {
		t.Errorf("%+v", c)
	}
	var lines []string
	for _, l := range strings.Split(Example, "\n") {
		if !strings.Contains(l, "default") || strings.Contains(l, "oversubscription") {
			lines = append(lines, l)
		}
	}
	if d := mustRead(t, strings.Join(lines, "\n")); *d != *c {
		t.Errorf("without the fields that are said to be defaults: %+v\nwith them: %+v", d, c)
	}
}

func TestAbsurdDescriptionsNameTheField(t *testing.T) {
	const good = "nodes: 4\ngpus_per_node: 8\nnvlink:\n  gb_per_s: 450\nnic:\n  gb_per_s: 50\n"
	mustRead(t, good)
	mustRead(t, good+"sharp: no\n")
	for text, want := range map[string]string{
		"":                                      "the file is empty",
		"nodes: 4\n":                            "gpus_per_node is missing",
		"nodes: 0\ngpus_per_node: 8\n":          "nodes is missing, or 0: want 1 to 1048576",
		"nodes: 1.5\ngpus_per_node: 8\n":        "nodes is 1.5: want a whole number",
		good + "sharp: yes\n":                   "sharp: reductions in switches are not modelled",
		good + "sharp: maybe\n":                 "sharp is maybe: want no",
		good + "leaf: {oversub: 2}\n":           `did you mean "oversubscription"?`,
		"nodse: 4\n":                            `unknown field "nodse"`,
		"nodes: four\n":                         `nodes is "four": want a whole number`,
		"nodes: 4\nnodes: 5\n":                  `"nodes" already defined`,
		"nodes: -1\ngpus_per_node: 8\n":         "nodes is -1",
		"nodes: 1000000\ngpus_per_node: 1000\n": "at most 1048576 GPUs",
		good + "nics_per_node: 3\n":             "nics_per_node is 3 for 8 GPUs",
		good + "nics_per_node: 12\n":            "nics_per_node is 12 for 8 GPUs",
		good + "sharp: true\n":                  "sharp: reductions in switches are not modelled",
		good + "leaf:\n  oversubscription: 2\n": "leaf.nodes is missing",
		good + "leaf:\n  nodes: 4\n  oversubscription: 0.5\n":      "leaf.oversubscription is 0.5",
		good + "leaf:\n  nodes: -4\n":                              "leaf.nodes is -4",
		good + "leaf:\n  nodes: 4\n  oversubscription: .nan\n":     "leaf.oversubscription is NaN",
		good + "combine_gb_per_s: -1\n":                            "combine_gb_per_s is -1",
		good + "channels: 65\n":                                    "channels is 65: want 1 to 64",
		good + "chunk_bytes: -1\n":                                 "chunk_bytes is -1",
		"nodes: 4\ngpus_per_node: 8\nnvlink:\n  domain: 12\n":      "nvlink.domain is 12 GPUs",
		"nodes: 40\ngpus_per_node: 4\nnvlink:\n  domain: 72\n":     "whole NVLink domains of 18 nodes",
		"nodes: 4\ngpus_per_node: 8\nnic:\n  gb_per_s: [60, 50]\n": "nic.gb_per_s is [60, 50]: want 0.001 to 1e+06, the lower end first",
		"nodes: 4\ngpus_per_node: 8\nnic:\n  gb_per_s: .inf\n":     "nic.gb_per_s is +Inf",
		"nodes: 4\ngpus_per_node: 8\nnic:\n  gb_per_s: .nan\n":     "nic.gb_per_s is NaN",
		"nodes: 4\ngpus_per_node: 8\nnic:\n  gb_per_s: fast\n":     "nic.gb_per_s is fast: want a number or [low, high]",
		"nodes: 4\ngpus_per_node: 8\nnic:\n  gb_per_s: 1e309\n":    "nic.gb_per_s is",
		"nodes: 4\ngpus_per_node: 8\nnic:\n  gb_per_s: 1e308\n":    "nic.gb_per_s is",
		"nodes: 4\ngpus_per_node: 8\nnic:\n  efficiency: 1.2\n":    "nic.efficiency is 1.2: want 0.01 to 1",
		"nodes: 4\ngpus_per_node: 8\nnic:\n  latency_us: -1\n":     "nic.latency_us is -1",
		good + "combine_gb_per_s: [1, fast]\n":                     "combine_gb_per_s is [1 fast]: want a number or [low, high]",
		good + "combine_gb_per_s: [1, 2, 3]\n":                     "want a number or [low, high]",
		"nodes: 1\nnvlink:\n  latency_us: !x\n  gb_per_s: 1\n":     "",
		strings.Repeat("[", 2000):                                  "",
		good + "---\nnodes: 5\n":                                   "more than one document",
		strings.Repeat("# much\n", 3000):                           "longer than 16384 bytes",
	} {
		_, err := Read(strings.NewReader(text))
		if want == "" { // it ends, and with no other error
			if err != nil && !errors.Is(err, ErrDescription) {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if !errors.Is(err, ErrDescription) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error %v, want %q", text, err, want)
		}
	}
}

// Whatever is read, what is accepted can be built, and sizes are bounded first.
func FuzzRead(f *testing.F) {
	f.Add(Example)
	f.Add("nodes: 4\ngpus_per_node: 8\nnics_per_node: 4\nnvlink: {gb_per_s: [1, 2]}\nnic: {gb_per_s: 50}\nleaf: {nodes: 3, oversubscription: 4}\n")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Read(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, ErrDescription) {
				t.Fatalf("%v is not ErrDescription", err)
			}
			return
		}
		if c.Nodes*c.GPUs > 1<<16 {
			return
		}
		m := c.Described()
		for _, e := range []end{best, middle, worst} {
			if _, err := m.fabric(0, "ring", c.Nodes, e); err != nil && !errors.Is(err, ErrDescription) {
				t.Fatal(err)
			}
		}
	})
}
