package capture

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/reports"
)

var update = flag.Bool("update", false, "write what is found into the fixtures")

// TestFixtures reads captures from the field. The head of each lists what
// must be found, all of it and nothing else: verdict | check | node | subject | found.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, input, ok := strings.Cut(string(b), "-- input --\n")
			if !ok {
				t.Fatal("no \"-- input --\" line")
			}
			var got strings.Builder
			for _, f := range Judge(input, 0) {
				fmt.Fprintf(&got, "%s | %s | %s | %s | %s\n", f.Verdict, f.ID, f.Node, f.Subject, f.Got)
				if (f.Verdict == reports.Fail || f.Verdict == reports.Warn) && (len(f.Evidence) == 0 || f.Remedy == "") {
					t.Errorf("%s %s: no evidence or no remedy", f.ID, f.Subject)
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()+"-- input --\n"+input), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != want {
				t.Errorf("found\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}
