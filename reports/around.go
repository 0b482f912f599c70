package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Around is what is known of nodes beside what they measured.
type Around struct {
	Accepted   []Acceptance
	Findings   []Finding  // of checks
	Topologies []Topology // by node
	Odd        []string   // what a node's topology has that the others have not
}

// Empty says that nothing is known.
func (a *Around) Empty() bool {
	return len(a.Findings)+len(a.Topologies)+len(a.Odd)+len(a.Accepted) == 0
}

// Add puts together what several files tell.
func (a *Around) Add(b Around) {
	a.Accepted = append(a.Accepted, b.Accepted...)
	a.Findings = append(a.Findings, b.Findings...)
	a.Topologies = append(a.Topologies, b.Topologies...)
	a.Odd = append(a.Odd, b.Odd...)
}

// Bounds of a document of findings, those of some thousand nodes: its text, and
// what may come of it, as "{}" becomes a finding of a hundred bytes.
const (
	maxAround   = 64 << 20
	maxFindings = 1 << 19
	maxValues   = 1 << 22
)

// IsAround says whether a text begins as the JSON of busbw check, topo and
// accept does, or may; ReadAround tells.
func IsAround(head []byte) bool {
	t := bytes.TrimLeft(head, " \t\r\n")
	if len(t) == 0 || t[0] != '{' || bytes.HasPrefix(t, []byte(`{"format":`)) {
		return false
	}
	return bytes.Contains(head, []byte(`"findings"`)) || bytes.Contains(head, []byte(`"paths"`)) || bytes.Contains(head, []byte(`"gpus"`)) && bytes.Contains(head, []byte(`"nics"`))
}

// ReadAround reads the JSON that busbw check, busbw topo and busbw accept
// write; name stands for it in messages.
func ReadAround(r io.Reader, name string) (a Around, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxAround+1))
	if err != nil {
		return a, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > maxAround {
		return a, fmt.Errorf("%s: more than %d MiB of findings", name, maxAround>>20)
	}
	if bytes.Count(text, []byte("{")) > maxFindings || bytes.Count(text, []byte(",")) > maxValues {
		return a, fmt.Errorf("%s: more than %d findings or %d values: give it in parts", name, maxFindings, maxValues)
	}
	var doc struct {
		Verdict  Verdict           `json:"verdict"` // of accept
		Gaps     []string          `json:"not_established"`
		Findings []Finding         `json:"findings"`
		Set      []Finding         `json:"set"` // of accept: of all nodes together
		Nodes    []json.RawMessage `json:"nodes"`
		Odd      []string          `json:"odd"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return a, fmt.Errorf("%s: want what busbw check, topo or accept write as JSON: %w", name, err)
	}
	a.Findings, a.Odd = append(doc.Findings, doc.Set...), doc.Odd
	accepted := Acceptance{Verdict: doc.Verdict, Gaps: doc.Gaps}
	for i, raw := range doc.Nodes {
		var node struct {
			Topology
			Node     string    `json:"node"`
			Verdict  Verdict   `json:"verdict"` // of accept
			Findings []Finding `json:"findings"`
		}
		if err := json.Unmarshal(raw, &node); err != nil {
			return a, fmt.Errorf("%s: node %d: %w", name, i, err)
		}
		if node.Verdict != "" {
			accepted.Nodes = append(accepted.Nodes, NodeVerdict{node.Node, node.Verdict})
		}
		for _, f := range node.Findings {
			if f.Node == "" {
				f.Node = node.Node
			}
			a.Findings = append(a.Findings, f)
		}
		if t := node.Topology; len(t.Paths) > 0 || t.NoGPUs != "" || t.NoNICs != "" {
			if t.Node = node.Node; t.Check() != nil {
				return a, fmt.Errorf("%s: the topology of node %s: %w", name, printable(node.Node), t.Check())
			}
			a.Topologies = append(a.Topologies, t)
		}
	}
	if doc.Verdict != "" && len(accepted.Nodes) > 0 {
		if err := accepted.check(); err != nil {
			return a, fmt.Errorf("%s: %w", name, err)
		}
		a.Accepted = append(a.Accepted, accepted)
	}
	for i := range a.Findings {
		if !slices.Contains(verdicts, a.Findings[i].Verdict) {
			return a, fmt.Errorf("%s: finding %d has the verdict %q: want one of %v", name, i, printable(string(a.Findings[i].Verdict)), verdicts)
		}
	}
	if a.Empty() {
		return a, fmt.Errorf("%s: no finding and no topology in it", name)
	}
	return a, nil
}

// ShowsAround says whether a format has a place for findings and topologies
// beside results.
func ShowsAround(format string) bool {
	return slices.Contains([]string{"table", "detail", "html"}, format)
}

// ErrNoPlace says that a format cannot show findings and topologies.
var ErrNoPlace = errors.New("the format has no place for what checks found")

// RenderWith is Render with what is known of the nodes beside, in the formats
// that show it; in others it is the results alone, which must be there then.
// junit shows either.
func RenderWith(w io.Writer, name string, results []Result, a Around) error {
	switch {
	case a.Empty(), !ShowsAround(name) && len(results) > 0:
		return Render(w, name, results)
	case !ShowsAround(name) && name != "junit":
		return fmt.Errorf("%w: %s has none; html, table, detail and junit do", ErrNoPlace, name)
	case name == "html":
		var b bytes.Buffer
		if err := writePage(&b, results, a); err != nil {
			return fmt.Errorf("format html: %w", err)
		}
		_, err := w.Write(b.Bytes())
		return err
	case len(results) > 0:
		if err := Render(w, name, results); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if name != "junit" {
		for i := range a.Accepted {
			fmt.Fprintln(w, a.Accepted[i].text())
		}
	}
	if len(a.Findings) > 0 {
		if name == "junit" {
			return WriteFindings(w, "junit", a.Findings)
		}
		shown := slices.DeleteFunc(slices.Clone(a.Findings), func(f Finding) bool { return f.Verdict == Pass || f.Verdict == NA })
		fmt.Fprintf(w, "checks: %s\n", Tally(a.Findings))
		if len(shown) > 0 {
			if err := WriteFindings(w, "table", shown); err != nil {
				return err
			}
		}
	}
	for _, t := range a.Topologies {
		fmt.Fprintf(w, "%s: %d GPUs, %d network adapters; --format html draws how they are joined\n", printable(t.Node), len(t.GPUs), len(t.NICs))
	}
	for _, odd := range a.Odd {
		fmt.Fprintf(w, "odd: %s\n", printable(strings.TrimSpace(odd)))
	}
	return nil
}
