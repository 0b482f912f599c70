package worker

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"busbw/reports"
)

// archive reads a machine from lines "path: text", "path -> target" and
// "path = offset=hex …" (a binary file of 4096 bytes), and its GPUs from JSON
// lines "gpu {…}". \n in a text is a line's end.
func archive(t *testing.T, text string) *Node {
	t.Helper()
	m := fstest.MapFS{}
	n := &Node{Root: m, NoGPUs: "no driver"}
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if g, ok := strings.CutPrefix(l, "gpu "); ok {
			var gpu reports.GPU
			if err := json.Unmarshal([]byte(g), &gpu); err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			n.GPUs, n.NoGPUs = append(n.GPUs, gpu), ""
		} else if name, to, ok := strings.Cut(l, " -> "); ok {
			m[name] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
		} else if name, spec, ok := strings.Cut(l, " = "); ok {
			m[name] = &fstest.MapFile{Data: config(t, spec)}
		} else if name, v, ok := strings.Cut(l, ": "); ok && !strings.HasPrefix(l, "#") {
			m[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(v, `\n`, "\n") + "\n")}
		}
	}
	return n
}

func config(t *testing.T, spec string) []byte {
	t.Helper()
	b := make([]byte, 4096)
	for w := range strings.FieldsSeq(spec) {
		at, bytes, _ := strings.Cut(w, "=")
		off, err := strconv.ParseInt(at, 16, 32)
		v, err2 := hex.DecodeString(bytes)
		if err != nil || err2 != nil || int(off)+len(v) > len(b) {
			t.Fatalf("configuration space: %q", w)
		}
		copy(b[off:], v)
	}
	return b
}

// TestNodes checks machines kept as files. The head of each lists what must
// be found: every failure, warning and unknown, and nothing else of the kind.
func TestNodes(t *testing.T) {
	files, err := filepath.Glob("testdata/nodes/*.txt")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d machines, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, machine, ok := strings.Cut(string(b), "-- machine --\n")
			if !ok {
				t.Fatal(`no "-- machine --" line`)
			}
			var got strings.Builder
			for _, f := range RunChecks(t.Context(), archive(t, machine), CheckOptions{}) {
				if f.Verdict != reports.Pass && f.Verdict != reports.NA {
					fmt.Fprintf(&got, "%s | %s | %s | %s\n", f.Verdict, f.ID, f.Subject, f.Got)
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()+"-- machine --\n"+machine), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != want {
				t.Errorf("found\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

// TestThisMachine: whatever this machine is, a laptop or a container, the
// checks end and none of them fails without a reason that names a file.
func TestThisMachine(t *testing.T) {
	n, err := ReadNode("", "/")
	if err != nil {
		t.Fatal(err)
	}
	found, facts := Inspect(t.Context(), n, CheckOptions{KernelLog: KernelLog()})
	if len(facts) == 0 || len(found) < 10 {
		t.Errorf("%d findings, facts %v", len(found), facts)
	}
	for _, f := range found {
		if f.Verdict == reports.Fail && (len(f.Evidence) == 0 || f.Remedy == "") {
			t.Errorf("failed without evidence or remedy: %+v", f)
		}
	}
	for _, format := range reports.FindingFormats() {
		var b bytes.Buffer
		if err := reports.WriteFindings(&b, format, found); err != nil || b.Len() == 0 {
			t.Errorf("%s: %d bytes, %v", format, b.Len(), err)
		}
	}
	// A machine without any file has nothing wrong with it.
	if v := reports.Worst(RunChecks(t.Context(), &Node{Root: fstest.MapFS{}}, CheckOptions{})); v == reports.Fail {
		t.Error("an empty machine fails")
	}
}
