package reports

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func write(t *testing.T, w *Writer, err error, results ...Result) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) ([]Result, []string) {
	t.Helper()
	got, warnings, err := ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return got, warnings
}

// What is written is read: absent stays absent and zero stays zero.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var want []Result
	for range 300 {
		want = append(want, random(r))
	}
	for _, name := range []string{"new/folder/a.jsonl.zst", "a.jsonl"} {
		name = filepath.Join(t.TempDir(), name)
		w, err := Create(name)
		write(t, w, err, want[:200]...)
		w, err = Append(name)
		write(t, w, err, want[200:]...)
		got, warnings := read(t, name)
		if len(warnings) > 0 || len(got) != len(want) {
			t.Fatalf("%s: %d of %d records, warnings %q", name, len(got), len(want), warnings)
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("record %d\n got %+v\nwant %+v", i, got[i], want[i])
			}
		}
	}
}

// A file cut anywhere gives the records that were whole, and can be resumed.
func TestCutAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	results := []Result{random(r), random(r), random(r), random(r)}
	for _, suffix := range []string{".jsonl", ".jsonl.zst"} {
		name := filepath.Join(t.TempDir(), "a"+suffix)
		w, err := Create(name)
		if err != nil {
			t.Fatal(err)
		}
		var ends []int // file size after each record
		for _, res := range results {
			if err := w.Write(res); err != nil {
				t.Fatal(err)
			}
			info, _ := os.Stat(name)
			ends = append(ends, int(info.Size()))
		}
		write(t, w, nil)
		whole, _ := os.ReadFile(name)
		for cut := range whole {
			near := slices.ContainsFunc(ends, func(e int) bool { return cut-e < 8 && e-cut < 8 })
			if cut%5 > 0 && !near {
				continue
			}
			want := 0
			for _, e := range ends {
				if cut >= e || suffix == ".jsonl" && cut == e-1 { // only the line's end is missing
					want++
				}
			}
			part := filepath.Join(t.TempDir(), "b"+suffix)
			if err := os.WriteFile(part, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			got, warnings := read(t, part)
			if len(got) != want || want > 0 && !reflect.DeepEqual(got, results[:want]) {
				t.Fatalf("%s cut at %d of %d: %d records, want %d", suffix, cut, len(whole), len(got), want)
			}
			if suffix == ".jsonl.zst" && cut > 0 && len(warnings) == 0 {
				t.Fatalf("cut at %d of %d: no warning", cut, len(whole))
			}
			if cut%25 > 0 && len(whole)-cut > 3 { // each resumption waits for the disk
				continue
			}
			w, err := Append(part)
			write(t, w, err, results[3])
			got, warnings = read(t, part)
			if len(got) != want+1 || len(warnings) > 0 || !reflect.DeepEqual(got[want], results[3]) {
				t.Fatalf("%s cut at %d, resumed: %d records, want %d; warnings %q", suffix, cut, len(got), want+1, warnings)
			}
		}
	}
}

// What is absent is not in the file, not even as null or 0.
func TestAbsentIsAbsent(t *testing.T) {
	line, err := encode(Result{Op: "all_reduce", Ranks: 2})
	if err != nil || bytes.Contains(line, []byte("null")) {
		t.Errorf("%s, %v", line, err)
	}
	for _, field := range []string{"seconds", "skew", "wrong", "root", "predicted", "limit", "asked", "error", "config"} {
		if bytes.Contains(line, []byte(`"`+field+`"`)) {
			t.Errorf("%s is in %s", field, line)
		}
	}
}

func TestCreateKeepsWhatIsThere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.jsonl")
	w, err := Create(name)
	write(t, w, err, sample("intra", "ring", 2, 8, 1e-6))
	if _, err := Create(name); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), name) {
		t.Errorf("a second Create: %v", err)
	}
	if got, _ := read(t, name); len(got) != 1 {
		t.Error("the file was touched")
	}
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*")); len(files) != 1 {
		t.Errorf("files left: %q", files)
	}
}

func TestDiskFull(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"a.jsonl", "a.jsonl.zst"} {
		w, err := newWriter(f, name)
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(sample("intra", "ring", 2, 8, 1e-6))
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNotANumber(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.jsonl")
	w, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(sample("intra", "ring", 2, 8, math.NaN())); err == nil || !strings.Contains(err.Error(), "all_reduce ring 8 B") {
		t.Errorf("NaN was written or the error does not name the record: %v", err)
	}
	write(t, w, nil, sample("intra", "ring", 2, 16, 1e-6))
	if got, _ := read(t, name); len(got) != 1 || got[0].Bytes != 16 {
		t.Errorf("want the good record alone: %+v", got)
	}
}

func TestSecretsStayOut(t *testing.T) {
	res := sample("intra", "ring", 2, 8, 1e-6)
	for _, k := range []string{"SECRET", "BUSBW_SECRET_FILE", "aws.session-token", "DB_PASSWORD", "SSL_KEY", "X_API_KEY", "HTTP_AUTHORIZATION", "NCCL_IB_PKEY", "NCCL_ALGO", "MONKEY"} {
		if res.Config == nil {
			res.Config = map[string]string{}
		}
		res.Config[k] = "hunter2"
	}
	name := filepath.Join(t.TempDir(), "a.jsonl")
	w, err := Create(name)
	write(t, w, err, res)
	var csv, table, lines strings.Builder
	for w, format := range map[*strings.Builder]string{&csv: "csv", &table: "detail", &lines: "json"} {
		if err := Render(w, format, []Result{res}); err != nil {
			t.Fatal(err)
		}
	}
	file, _ := os.ReadFile(name)
	for what, text := range map[string]string{"file": string(file), "detail": table.String(), "json": lines.String()} {
		if n := strings.Count(text, "hunter2"); n != 3 {
			t.Errorf("%s: %d values shown; want those of NCCL_IB_PKEY, NCCL_ALGO, MONKEY:\n%s", what, n, text)
		}
	}
	if strings.Contains(csv.String(), "hunter2") {
		t.Errorf("csv has settings:\n%s", csv.String())
	}
	if res.Config["SECRET"] != "hunter2" {
		t.Error("the caller's settings were changed")
	}
}
