package reports

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// keep writes a results file into a folder.
func keep(t *testing.T, dir, name string, results ...Result) {
	t.Helper()
	w, err := Create(filepath.Join(dir, name))
	write(t, w, err, results...)
}

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	old, recent := sample("intra", "ring", 2, 1<<20, 1e-3), sample("cross", "tree", 4, 8, 1e-6)
	old.Run, old.Time = "aaaa1111", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	recent.Run, recent.Time, recent.Nodes = "bbbb2222", time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC), 4
	wrong := recent
	wrong.Launch, wrong.Wrong = 1, new(int64(3))
	keep(t, dir, "old.jsonl", old)
	keep(t, dir, "recent.jsonl.zst", recent, wrong)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := History(dir)
	if err != nil || len(all) != 2 || all[0].File != "recent.jsonl.zst" || all[0].Wrong != 1 || all[0].Launches != 2 || all[0].Nodes != 4 || all[1].Best == nil || all[1].BestIs != "all_reduce 1 MiB intra ring" {
		t.Fatalf("%+v, %v", all, err)
	}
	// The index is enough: a file that is as it was is not read again.
	if err := os.WriteFile(filepath.Join(dir, "old.jsonl"), []byte(strings.Repeat("#", int(all[1].Size))), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "old.jsonl"), all[1].Changed, all[1].Changed); err != nil {
		t.Fatal(err)
	}
	again, err := History(dir)
	if err != nil || !reflect.DeepEqual(again[1].Runs, all[1].Runs) || !again[0].Time.Equal(all[0].Time) {
		t.Errorf("%+v, %v", again, err)
	}
	// One that changed is, and one that went is gone. A damaged index is made anew.
	if err := os.WriteFile(filepath.Join(dir, indexFile), []byte(`[{"file":`), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err = History(dir)
	if err != nil || len(again) != 2 || again[0].File != "old.jsonl" && again[1].Records != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	text, err := HistoryTable(all)
	if err != nil || !strings.Contains(text, "bbbb2222") || !strings.Contains(text, "2.10 GB/s") && !strings.Contains(text, "1.05 GB/s") {
		t.Errorf("%s %v", text, err)
	}
	if file, err := Find(dir, "bbbb"); err != nil || file != filepath.Join(dir, "recent.jsonl.zst") {
		t.Errorf("%s, %v", file, err)
	}
	if _, err := Find(dir, "cccc"); err == nil || !strings.Contains(err.Error(), "cccc") {
		t.Errorf("%v", err)
	}
	if _, err := History(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("%v", err)
	}
}

// An archive holds every line of the file that it takes the place of.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	want := campaign()
	keep(t, dir, "a.jsonl", want...)
	archive, saved, err := Archive(dir, "a.jsonl")
	if err != nil || archive != "a.jsonl.zst" || saved <= 0 {
		t.Fatalf("%s, %d, %v", archive, saved, err)
	}
	got, warnings := read(t, filepath.Join(dir, archive))
	if len(warnings) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d records, %q", len(got), warnings)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.jsonl")); !os.IsNotExist(err) {
		t.Errorf("the plain file is there: %v", err)
	}
	// What would be overwritten is kept.
	keep(t, dir, "a.jsonl", want[:1]...)
	if _, _, err := Archive(dir, "a.jsonl"); err == nil {
		t.Error("an archive was overwritten")
	}
	if got, _ := read(t, filepath.Join(dir, "a.jsonl")); len(got) != 1 {
		t.Errorf("%d records", len(got))
	}
}

// A device is no results file.
func TestCreateOnADevice(t *testing.T) {
	for _, name := range []string{os.DevNull, t.TempDir()} {
		if _, err := Create(name); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "resume") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
