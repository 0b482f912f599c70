package reports

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const good = `{"format":1,"op":"all_reduce","ranks":2,"bytes":8,"seconds":[1e-6]}` + "\n"

func TestBadLines(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		records  int
		warnings []string // each a part of one warning
		err      string
	}{
		"empty":         {"", 0, nil, ""},
		"blank lines":   {"\n  \n" + good + "\n", 1, nil, ""},
		"garbage":       {good + "hello\n" + good, 2, []string{"F:2: passed over"}, ""},
		"no newline":    {good + strings.TrimSpace(good), 2, nil, ""},
		"cut":           {good + good[:20], 1, []string{"F:2: the last record is cut off"}, ""},
		"unknown field": {`{"format":1,"op":"x","ranks":1,"new":{"a":[1]}}` + "\n", 1, nil, ""},
		"other json":    {"{}\n[1]\n3\nnull\n", 0, []string{"F:1: passed over: not a busbw result", "F:2: passed over", "F:3: ", "F:4: "}, ""},
		"no op":         {`{"format":1,"ranks":2}` + "\n", 0, []string{"names no op"}, ""},
		"no ranks":      {`{"format":1,"op":"x"}` + "\n", 0, []string{"0 ranks"}, ""},
		"negative":      {`{"format":1,"op":"x","ranks":1,"bytes":-1}` + "\n", 0, []string{"-1 bytes"}, ""},
		"negative time": {`{"format":1,"op":"x","ranks":1,"seconds":[1,-1]}` + "\n", 0, []string{"seconds[1] is -1"}, ""},
		"huge number":   {`{"format":1,"op":"x","ranks":1,"seconds":[1e999]}` + "\n", 0, []string{"F:1: "}, ""},
		"bad limit":     {`{"format":1,"op":"x","ranks":1,"limit":{"name":"a"}}` + "\n", 0, []string{"limit of 0 GB/s"}, ""},
		"newer":         {good + `{"format":2}` + "\n" + good, 1, nil, "F:2: newer record format: 2"},
		"newer type":    {`{"format":7,"seconds":{"median":1}}` + "\n", 0, nil, "F:1: newer record format: 7"},
		"long line":     {strings.Replace(good, "all_reduce", strings.Repeat("x", maxLine), 1) + good, 1, []string{"F:1: passed over: longer than 32 MiB"}, ""},
		"no zstd":       {"(\xb5/", 0, []string{"F:1: "}, ""},
		"bad zstd":      {"(\xb5/\xfdgarbage that is no frame", 0, nil, "F: damaged"},
		"deep":          {strings.Repeat("[", 1<<20) + "\n" + good, 1, []string{"F:1: "}, ""},
	} {
		got, warnings, err := Read(strings.NewReader(c.text), "F")
		if len(got) != c.records || len(warnings) != len(c.warnings) {
			t.Errorf("%s: %d records, want %d; warnings %q", name, len(got), c.records, warnings)
			continue
		}
		for i, w := range c.warnings {
			if !strings.Contains(warnings[i], w) {
				t.Errorf("%s: warning %q; want %q in it", name, warnings[i], w)
			}
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v; want %q", name, err, c.err)
		}
	}
	if _, _, err := Read(strings.NewReader(`{"format":9}`), "F"); !errors.Is(err, ErrNewer) {
		t.Errorf("not ErrNewer: %v", err)
	}
}

func TestWarningsAreBounded(t *testing.T) {
	got, warnings, err := Read(strings.NewReader(strings.Repeat("?\n", 5000)+good), "F")
	if err != nil || len(got) != 1 || len(warnings) != maxWarnings+1 || !strings.Contains(warnings[maxWarnings], "4980 more") {
		t.Errorf("%d records, %d warnings, last %q, %v", len(got), len(warnings), warnings[len(warnings)-1], err)
	}
}

// A small file that unpacks to more than any results file is refused.
func TestBomb(t *testing.T) {
	var file bytes.Buffer
	z, err := zstd.NewWriter(&file, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	same := bytes.Repeat([]byte{'x'}, 1<<20)
	for range maxText>>20 + 1 {
		if _, err := z.Write(same); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(&file, "F"); err == nil || !strings.Contains(err.Error(), "more than 2 GiB") {
		t.Errorf("%d bytes: %v", file.Len(), err)
	}
}

// A stream that fails is an error, with the records before it.
func TestBrokenStream(t *testing.T) {
	broken := errors.New("cable pulled")
	got, _, err := Read(io.MultiReader(strings.NewReader(good), failing{broken}), "F")
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Whatever a file holds, reading ends, what is read is valid, and rendering
// it in every format does not fail.
func FuzzRead(f *testing.F) {
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		f.Fatal(err)
	}
	z.Write([]byte(good))
	z.Close()
	full, err := encode(sample("cross", "ring", 2, 1<<20, 1e-3, 2e-3))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{[]byte(good), packed.Bytes(), full, append(full, "\n{"...), []byte(`{"format":2}`)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		results, _, _ := Read(bytes.NewReader(data), "F")
		for i := range results {
			if err := results[i].Check(); err != nil {
				t.Fatalf("record %d: %v", i, err)
			}
		}
		for _, format := range Formats() {
			if err := Render(io.Discard, format, results); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
		}
	})
}

// Numbers that would make a figure infinite are no measurement.
func TestAbsurdNumbers(t *testing.T) {
	for _, edit := range []func(*Result){
		func(r *Result) { r.Seconds = []float64{5e-324} },
		func(r *Result) { r.Seconds = []float64{1e308} },
		func(r *Result) { r.Limit = &Limit{Name: "x", GBps: 1e-320} },
		func(r *Result) { r.RankP50 = []float64{1e308} },
		func(r *Result) { r.Skew = new(-1e308) },
		func(r *Result) { r.Predicted = new(1e308) },
	} {
		r := random(rand.New(rand.NewPCG(1, 1)))
		edit(&r)
		if r.Check() == nil {
			t.Errorf("accepted: seconds %v, limit %v, ranks' %v", r.Seconds[:min(3, len(r.Seconds))], r.Limit, r.RankP50)
		}
	}
}

// What a record or a finding says cannot steer a terminal, in any text.
func TestTextsAreClean(t *testing.T) {
	const steer = "\x1b[31m\x07\u202e\u009b2J\r\xff"
	r := random(rand.New(rand.NewPCG(2, 2)))
	r.Source, r.Link, r.Notes, r.Error = steer, steer, []string{steer}, steer
	f := Finding{ID: steer, Verdict: Fail, Node: steer, Subject: steer, Got: steer, Want: steer, Remedy: steer, Evidence: []Evidence{{steer, steer}}}
	around := Around{Findings: []Finding{f}, Odd: []string{steer}, Accepted: []Acceptance{{Fail, []NodeVerdict{{steer, Fail}}, []string{steer}}}}
	texts := map[string]func(*bytes.Buffer) error{
		"findings table": func(b *bytes.Buffer) error { return WriteFindings(b, "table", []Finding{f}) },
		"findings junit": func(b *bytes.Buffer) error { return WriteFindings(b, "junit", []Finding{f}) },
	}
	for _, format := range Formats() {
		if format == "json" {
			continue // gives texts as they are
		}
		with := around
		if !ShowsAround(format) {
			with = Around{}
		}
		texts[format] = func(b *bytes.Buffer) error { return RenderWith(b, format, []Result{r}, with) }
	}
	for name, write := range texts {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(name, err)
		}
		if i := bytes.IndexAny(b.Bytes(), "\x1b\x07\u202e\u009b\r\xff"); i >= 0 {
			t.Errorf("%s: %q", name, b.Bytes()[max(0, i-60):min(b.Len(), i+20)])
		}
	}
}

// endless is a device that gives zeros for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestZerosAreNoResults(t *testing.T) {
	if _, _, err := Read(endless{}, "zero"); err == nil || !strings.Contains(err.Error(), "not a results file") {
		t.Errorf("%v", err)
	}
}
