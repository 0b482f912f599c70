package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/reports/imports"
)

// readSide reads FILE, DIR or -, with "label=" before it or not.
func readSide(errs io.Writer, arg string) (s reports.Side, err error) {
	label, path := "", arg
	if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) {
		if l, p, ok := strings.Cut(arg, "="); ok && l != "" {
			label, path = l, p
		}
	}
	s.Label = label
	if label == "" {
		if s.Label = filepath.Base(path); s.Label == "." || s.Label == ".." {
			if whole, err := filepath.Abs(path); err == nil {
				s.Label = filepath.Base(whole)
			}
		}
		for _, suffix := range []string{".zst", ".jsonl", ".json"} {
			s.Label = strings.TrimSuffix(s.Label, suffix)
		}
	}
	var warnings []string
	load := func(name string) ([]reports.Result, []string, error) {
		l, err := imports.Load(name)
		return l.Results, l.Warnings, err
	}
	switch info, serr := os.Stat(path); {
	case path == "-":
		if label == "" {
			s.Label = "stdin"
		}
		s.Results, warnings, err = load("-")
	case serr == nil && info.IsDir():
		s.Results, warnings, err = readFolder(path, nil)
	case serr != nil:
		file, n, ok, nerr := numbered(path)
		if nerr != nil {
			return s, nerr
		}
		if ok {
			s.Results, warnings, err = load(file)
			runs := runOf(s.Results, n)
			if err == nil && len(s.Results) > 0 && len(runs) == 0 {
				err = fmt.Errorf("%s: it holds fewer than %d runs", file, n)
			}
			s.Results = runs
			break
		}
		fallthrough
	default:
		s.Results, warnings, err = load(path)
	}
	for _, w := range warnings {
		fmt.Fprintln(errs, "busbw: warning:", w)
	}
	if err == nil && len(s.Results) == 0 {
		err = fmt.Errorf("%s: no results in it", path)
	}
	return s, err
}

// numbered reads FILE#N. A FILE that is there and an N that is no number of a
// run are wrong use.
func numbered(path string) (file string, n int, ok bool, err error) {
	at := strings.LastIndexByte(path, '#')
	if at < 0 {
		return "", 0, false, nil
	}
	file = path[:at]
	if n, err = strconv.Atoi(path[at+1:]); err == nil && n > 0 {
		return file, n, true, nil
	}
	if _, err := os.Stat(file); err == nil || file == "-" {
		return "", 0, false, usageError{fmt.Errorf("%s: want the number of a run in the file after #, from 1", path)}
	}
	return "", 0, false, nil
}

// runOf are the results of the n-th run among them, from 1.
func runOf(all []reports.Result, n int) (out []reports.Result) {
	seen := map[string]int{}
	for _, r := range all {
		if _, ok := seen[r.Run]; !ok {
			seen[r.Run] = len(seen) + 1
		}
		if seen[r.Run] == n {
			out = append(out, r)
		}
	}
	return out
}

// history is --baseline: every results file of the folder but those that are
// compared with it.
func (f *compareFlags) history(errs io.Writer, args []string) (s reports.Side, err error) {
	var skip []os.FileInfo
	for _, a := range args {
		_, tail, _ := strings.Cut(a, "=")
		for _, p := range []string{a, tail} {
			if info, err := os.Stat(p); err == nil {
				skip = append(skip, info)
			}
		}
	}
	s.Label = "baseline"
	var warnings []string
	s.Results, warnings, err = readFolder(f.baseline, skip)
	for _, w := range warnings {
		fmt.Fprintln(errs, "busbw: warning:", w)
	}
	return s, err
}

// readFolder reads the results files of a folder, by name.
func readFolder(dir string, skip []os.FileInfo) (all []reports.Result, warnings []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("folder of results: %w", err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".jsonl") && !strings.HasSuffix(e.Name(), ".jsonl.zst") {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || slices.ContainsFunc(skip, func(s os.FileInfo) bool { return os.SameFile(s, info) }) {
			continue
		}
		rs, ws, err := reports.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, warnings, err
		}
		all, warnings = append(all, rs...), append(warnings, ws...)
	}
	if len(all) == 0 {
		return nil, warnings, fmt.Errorf("%s: no results in it (want .jsonl or .jsonl.zst files)", dir)
	}
	return all, warnings, nil
}

// distinct gives sides of one name as many of their folders as tell them apart,
// and numbers those that have the same after that. from is the argument of each.
func distinct(sides []reports.Side, from []string) {
	same := map[string][]int{}
	for i, s := range sides {
		same[s.Label] = append(same[s.Label], i)
	}
	for _, at := range same {
		if len(at) > 1 {
			byFolder(sides, from, at)
		}
	}
	seen := map[string]int{}
	for i := range sides {
		l := sides[i].Label
		if seen[l]++; seen[l] > 1 {
			sides[i].Label = fmt.Sprintf("%s (%d)", l, seen[l])
		}
	}
}

// byFolder names the sides at these places by their last folders, as few as
// tell all apart; as they are where no number does.
func byFolder(sides []reports.Side, from []string, at []int) {
	folders := make([][]string, len(at))
	most := 0
	for k, i := range at {
		whole, err := filepath.Abs(from[i])
		if err != nil || !strings.HasPrefix(filepath.Base(whole), sides[i].Label) {
			return // named by the user, or standard input
		}
		folders[k] = strings.Split(strings.Trim(filepath.ToSlash(filepath.Dir(whole)), "/"), "/")
		most = max(most, len(folders[k]))
	}
	for n := 1; n <= most; n++ {
		labels := map[string]bool{}
		var named []string
		for k, i := range at {
			l := strings.Join(folders[k][max(len(folders[k])-n, 0):], "/") + "/" + sides[i].Label
			named, labels[l] = append(named, l), true
		}
		if len(labels) == len(at) {
			for k, i := range at {
				sides[i].Label = named[k]
			}
			return
		}
	}
}

// once writes each text that it is given a single time.
type once struct {
	out  io.Writer
	said map[string]bool
}

func (o *once) Write(p []byte) (int, error) {
	if o.said[string(p)] {
		return len(p), nil
	}
	o.said[string(p)] = true
	return o.out.Write(p)
}
