package worker

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/checks.md anew")

const checksDoc = "../docs/checks.md"

// TestChecksDoc pins docs/checks.md to the list of checks.
func TestChecksDoc(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Checks

What ` + "`busbw check`" + ` asks of a node, in this order. Generated from the list in worker/check.go (go test ./worker -run ChecksDoc -update).

A finding is *pass*, *warn*, *fail*, *unknown* (could not be read: not a pass) or *n/a* (no such hardware, or by design). Exit status 3: something failed.
The same rules (worker/judge) judge a node's files, what GPU drivers say, and captured output of other programs (` + "`--from`" + `).

| check | asks |
|---|---|
`)
	names := map[string]bool{}
	for _, c := range Checks() {
		if names[c.Name] || c.Doc == "" {
			t.Errorf("check %q: named twice, or without a line", c.Name)
		}
		names[c.Name] = true
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, c.Doc)
	}
	if *update {
		if err := os.WriteFile(checksDoc, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(checksDoc)
	if err != nil || string(have) != b.String() {
		t.Errorf("%s is not what the checks say (go test ./worker -run ChecksDoc -update): %v", checksDoc, err)
	}
}
