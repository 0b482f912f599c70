package reports

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// formats lists what Render can write; the first is the default.
func formats() []format {
	return []format{
		{"table", table},
		{"detail", detail},
		{"planner", planner},
		{"nccl", ncclTests},
		{"csv", csvText},
		{"json", jsonLines},
		{"html", htmlPage},
		{"md", markdownReport},
		{"junit", junit},
		{"prom", prometheus},
	}
}

type format struct {
	name string
	run  func(b *bytes.Buffer, results []Result, colour bool) error
}

// Formats lists what Render takes.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// Render writes results in a format: "table" for people, "detail" the same with
// all figures, "nccl" as nccl-tests
// prints, "csv" one row a record, "json" the records as they are in a file.
func Render(w io.Writer, name string, results []Result) error {
	i := slices.Index(Formats(), name)
	if i < 0 {
		return fmt.Errorf("unknown format %q; the formats are %s", name, strings.Join(Formats(), ", "))
	}
	var b bytes.Buffer
	if err := formats()[i].run(&b, results, colours(w)); err != nil {
		return fmt.Errorf("format %s: %w", name, err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func jsonLines(b *bytes.Buffer, results []Result, _ bool) error {
	for _, r := range results {
		line, err := encode(r)
		if err != nil {
			return err
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return nil
}
