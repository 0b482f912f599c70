package collectives

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestPrintedSchedules compares every schedule for 4 and 5 ranks with its printed
// form in testdata: one file an operation, one line a rank. c→p sends chunk c to
// p, c←p receives, c⊕p combines.
func TestPrintedSchedules(t *testing.T) {
	for _, op := range Ops() {
		var b bytes.Buffer
		for _, name := range Algorithms(op) {
			for _, p := range []Params{{Ranks: 4}, {Ranks: 5, Root: 1, Pieces: 2}} {
				if (name == "hierarchical" || name == "rails") && p.Ranks == 4 {
					p.Nodes = []int{0, 0, 1, 1}
				}
				print(&b, op, name, p, mustNew(t, op, name, p))
			}
		}
		file := filepath.Join("testdata", op.String()+".golden")
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s differs from %s (go test -update rewrites it):\n%s", op, file, b.Bytes())
		}
	}
}

func print(b *bytes.Buffer, op Op, name string, p Params, s Schedule) {
	shape := s.Shape()
	fmt.Fprintf(b, "%s %s: %d ranks, %d blocks of %d pieces", op, name, shape.Ranks, shape.Blocks, shape.Pieces)
	if op.Rooted() {
		fmt.Fprintf(b, ", root %d", p.Root)
	}
	if p.Nodes != nil {
		fmt.Fprintf(b, ", nodes %v", p.Nodes)
	}
	fmt.Fprintln(b)
	for r := range shape.Ranks {
		fmt.Fprintf(b, "%d:", r)
		for i := range s.Len(r) {
			st := s.Step(r, i)
			fmt.Fprintf(b, " %d%s%d", st.Chunk, [...]string{"→", "←", "⊕"}[st.Kind], st.Peer)
		}
		fmt.Fprintln(b)
	}
	fmt.Fprintln(b)
}
