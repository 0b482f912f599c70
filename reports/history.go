package reports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// PastRun is what a folder's index says of one results file.
type PastRun struct {
	File     string    `json:"file"` // name in the folder
	Size     int64     `json:"size"` // bytes of the file, with Changed what tells a stale entry
	Changed  time.Time `json:"changed"`
	Time     time.Time `json:"time"` // of the first record; of the file, where records have none
	Runs     []string  `json:"runs"`
	Ops      []string  `json:"ops"`
	Source   string    `json:"source"`
	Records  int       `json:"records"`
	Launches int       `json:"launches"`
	Ranks    int       `json:"ranks"` // of all groups together, the most
	Nodes    int       `json:"nodes"`
	Least    int64     `json:"least_bytes"`
	Most     int64     `json:"most_bytes"`
	Best     *float64  `json:"best_busbw_gb_per_s,omitempty"`
	BestIs   string    `json:"best_is,omitempty"` // the case of the best busbw
	Wrong    int       `json:"wrong"`             // records with wrong data
	Failed   int       `json:"failed"`            // records without a result
	Planned  int       `json:"planned,omitempty"` // records that its last run is to have; 0: not known
	Cut      bool      `json:"cut,omitempty"`     // its end is missing: killed, or still running
	Problem  string    `json:"problem,omitempty"` // why the file could not be read
}

// indexFile is the name of a folder's index. It saves reading: it is made anew
// for files that it does not have, and nothing is lost with it.
const indexFile = "index.json"

// History lists the results files of a folder, newest first. It reads those
// that the folder's index does not have as they are, and keeps the index where
// the folder can be written.
func History(dir string) ([]PastRun, error) {
	names, err := resultFiles(dir)
	if err != nil {
		return nil, err
	}
	known := map[string]PastRun{}
	for _, e := range readIndex(dir) {
		known[e.File] = e
	}
	var all []PastRun
	fresh := len(names) != len(known)
	for _, n := range names {
		info, err := os.Stat(filepath.Join(dir, n))
		if err != nil {
			continue // pruned meanwhile
		}
		e, ok := known[n]
		if !ok || e.Size != info.Size() || !e.Changed.Equal(info.ModTime()) {
			e, fresh = describeFile(dir, n, info), true
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b PastRun) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.File, b.File)) })
	if fresh {
		writeIndex(dir, all)
	}
	return all, nil
}

func resultFiles(dir string) (names []string, err error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no folder %s: busbw run makes it, or name another", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("results folder: %w", err)
	}
	for _, e := range list {
		if e.Type().IsRegular() && (strings.HasSuffix(e.Name(), ".jsonl") || strings.HasSuffix(e.Name(), ".jsonl.zst")) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func describeFile(dir, file string, info fs.FileInfo) PastRun {
	e := PastRun{File: file, Size: info.Size(), Changed: info.ModTime(), Time: info.ModTime()}
	results, warnings, err := ReadFile(filepath.Join(dir, file))
	e.Cut = slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, cutOff) })
	if err != nil {
		e.Problem = err.Error()
	}
	launches, sized := map[string]bool{}, false
	for i, r := range results {
		if !r.Time.IsZero() && (i == 0 || r.Time.Before(e.Time)) {
			e.Time = r.Time
		}
		e.Runs, e.Ops = appendNew(e.Runs, r.Run), appendNew(e.Ops, r.Op)
		launches[fmt.Sprintf("%s %d", r.Run, r.Launch)] = true
		e.Records++
		e.Source, e.Planned = r.Source, r.Planned
		e.Ranks, e.Nodes = max(e.Ranks, r.Ranks*max(r.Groups, 1)), max(e.Nodes, r.Nodes)
		if r.sized() && (!sized || r.asked() < e.Least) {
			e.Least, sized = r.asked(), true
		}
		e.Most = max(e.Most, r.asked())
		if r.Wrong != nil && *r.Wrong > 0 {
			e.Wrong++
		}
		if r.Error != "" {
			e.Failed++
		}
	}
	e.Launches = len(launches)
	for _, f := range Figures(results) {
		if bus, ok := f.Busbw(); ok && (e.Best == nil || bus > *e.Best) {
			e.Best, e.BestIs = &bus, strings.Join([]string{f.Op, sizeText(f.asked()), f.Scope, f.Algorithm}, " ")
		}
	}
	return e
}

func readIndex(dir string) (all []PastRun) {
	info, err := os.Stat(filepath.Join(dir, indexFile))
	if err != nil || info.Size() > maxLine {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, indexFile))
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil // it is only a shortcut
	}
	return all
}

func writeIndex(dir string, all []PastRun) {
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return
	}
	f, err := os.CreateTemp(dir, indexFile+".*.part")
	if err != nil {
		return // a folder of somebody else's
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, indexFile))
	}
	if err != nil {
		os.Remove(f.Name())
	}
}

// Find is the file of a folder whose name or run begins with what.
func Find(dir, what string) (string, error) {
	all, err := History(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range all {
		if e.File == what || slices.Contains(e.Runs, what) {
			return filepath.Join(dir, e.File), nil
		}
		if strings.HasPrefix(e.File, what) || slices.ContainsFunc(e.Runs, func(r string) bool { return strings.HasPrefix(r, what) }) {
			found = append(found, e.File)
		}
	}
	switch len(found) {
	case 1:
		return filepath.Join(dir, found[0]), nil
	case 0:
		return "", fmt.Errorf("%s has %w %q; busbw results lists them", dir, ErrNoRun, what)
	}
	return "", fmt.Errorf("%q may be %s; give more of the name", what, strings.Join(found[:min(len(found), 5)], ", "))
}

// ErrNoRun says that a folder has no such run or file.
var ErrNoRun = errors.New("no run or file")

// Archive compresses a plain results file with zstd and takes it away once the
// archive holds every line. It returns the archive's name, and what it saves.
func Archive(dir, file string) (archive string, saved int64, err error) {
	from := filepath.Join(dir, file)
	in, err := os.Open(from)
	if err != nil {
		return "", 0, fmt.Errorf("archive: %w", err)
	}
	defer in.Close()
	w, err := Create(from + ".zst")
	if err != nil {
		return "", 0, err
	}
	err = eachLine(in, from, func(n int, line []byte, _ bool) error {
		if string(line) == longLine {
			return fmt.Errorf("%s:%d: a line %s, which an archive would lose", from, n, longLine)
		}
		return w.line(line)
	})
	if err = errors.Join(err, w.Close()); err != nil {
		os.Remove(from + ".zst")
		return "", 0, err
	}
	before, err1 := os.Stat(from)
	after, err2 := os.Stat(from + ".zst")
	if err := errors.Join(err1, err2); err != nil {
		return "", 0, fmt.Errorf("archive: %w", err)
	}
	if err := os.Chtimes(from+".zst", before.ModTime(), before.ModTime()); err != nil {
		return "", 0, fmt.Errorf("archive: %w", err)
	}
	if err := os.Remove(from); err != nil {
		return "", 0, fmt.Errorf("archive: %w", err)
	}
	return file + ".zst", before.Size() - after.Size(), nil
}

// recordsText is how many results there are, of how many where some are missing.
func (e *PastRun) recordsText() string {
	s := fmt.Sprint(e.Records)
	if e.Records < e.Planned {
		s += fmt.Sprintf(" of %d", e.Planned)
	}
	if e.Cut {
		s += ", not ended"
	}
	return s
}

// HistoryTable writes entries for people.
func HistoryTable(all []PastRun) (string, error) {
	var b bytes.Buffer
	heads := []string{"WHEN (UTC)", "RUN", "OPERATIONS", "SIZES", "RANKS", "NODES", "RESULTS", "BEST BUSBW", "WRONG", "FAILED", "FILE"}
	var rows [][]string
	for _, e := range all {
		run, best := none, none
		if len(e.Runs) > 0 {
			if run = clean(e.Runs[0], 24); len(e.Runs) > 1 {
				run += fmt.Sprintf(" +%d", len(e.Runs)-1)
			}
		}
		if e.Best != nil {
			best = rateText(*e.Best, true) + " GB/s"
		}
		ops := clean(strings.Join(e.Ops, ","), 30)
		if e.Problem != "" {
			ops = "unreadable: " + clean(e.Problem, 60)
		}
		sizes := none
		if e.Records > 0 && (e.Most > 0 || e.Failed < e.Records) {
			if sizes = sizeText(e.Least); e.Most != e.Least {
				sizes += " to " + sizeText(e.Most)
			}
		}
		rows = append(rows, []string{e.Time.UTC().Format("2006-01-02 15:04"), run, ops, sizes, count(e.Ranks), count(e.Nodes), e.recordsText(), best, fmt.Sprint(e.Wrong), fmt.Sprint(e.Failed), clean(e.File, 60)})
	}
	if err := draw(&b, heads, "llllrrrrrrl", rows, nil); err != nil {
		return "", err
	}
	return b.String(), nil
}
