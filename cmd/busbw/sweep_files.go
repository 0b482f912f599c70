package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"busbw/coordinator"
	"busbw/reports"
)

// manifest is sweep.json: what a sweep is, so that it can go on. Its launches
// are numbered in their order, those of A/A first.
type manifest struct {
	Format   int                   `json:"format"`
	Engine   string                `json:"engine,omitempty"` // absent: native
	Run      string                `json:"run"`
	Seed     uint64                `json:"seed"`
	Variants []coordinator.Variant `json:"variants"`
	Launches int                   `json:"launches"` // of each variant
	Twice    int                   `json:"aa"`
	Budget   string                `json:"budget,omitempty"` // that it began with
	Flags    map[string][]string   `json:"flags"`
	Hosts    []string              `json:"hosts"`
	Version  string                `json:"version"`
	Began    time.Time             `json:"began"`
}

const manifestName = "sweep.json"

func readManifest(dir string) (*manifest, error) {
	text, err := readSmall(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s holds no sweep (no %s)", dir, manifestName)
	}
	if err != nil {
		return nil, err
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	if m.Format != 1 || len(m.Variants) < 2 || m.Launches < 1 || m.Launches > 1000 || m.Twice < 0 || m.Twice > 1000 {
		return nil, fmt.Errorf("%s is not one that this busbw wrote", filepath.Join(dir, manifestName))
	}
	if m.Engine != "" && !slices.Contains(coordinator.SweptEngines(), m.Engine) {
		return nil, fmt.Errorf("%s: unknown engine %.40q; the engines are %s", filepath.Join(dir, manifestName), m.Engine, strings.Join(coordinator.SweptEngines(), ", "))
	}
	for i, v := range m.Variants {
		if m.Variants[i].Settings, err = coordinator.EffectiveSettings(m.Engine, v.Settings); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", filepath.Join(dir, manifestName), v.Name, err)
		}
	}
	return &m, nil
}

func (m *manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	part := filepath.Join(dir, manifestName+".part")
	if err := os.WriteFile(part, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return os.Rename(part, filepath.Join(dir, manifestName))
}

// anew are the flags that a sweep does not keep: what they said is in the
// manifest, or is for a resumed one to say again.
var anew = map[string]bool{"resume": true, "output": true, "budget": true, "format": true, "json": true, "launches": true, "aa": true, "seed": true,
	"env": true, "matrix": true, "file": true, "engine": true}

// margin is the least difference that the sweep was begun to claim.
func (m *manifest) margin() string {
	if v := m.Flags["margin"]; len(v) == 1 {
		return v[0]
	}
	return defaultMargin
}

// given are the flags that say what a sweep measures, as they were given.
func given(fl *pflag.FlagSet) map[string][]string {
	out := map[string][]string{}
	fl.Visit(func(f *pflag.Flag) {
		if anew[f.Name] {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			out[f.Name] = list.GetSlice()
			return
		}
		out[f.Name] = []string{f.Value.String()}
	})
	return out
}

// restore sets the flags that were given when the sweep began; those of this
// command line win.
func (m *manifest) restore(fl *pflag.FlagSet) error {
	for name, values := range m.Flags {
		f := fl.Lookup(name)
		if f == nil || anew[name] || len(values) == 0 {
			return fmt.Errorf("%s: flag %q makes no sense there", manifestName, name)
		}
		if f.Changed {
			continue
		}
		f.Changed = true
		if list, ok := f.Value.(pflag.SliceValue); ok {
			if err := list.Replace(values); err != nil {
				return fmt.Errorf("--%s: %w", name, err)
			}
			continue
		}
		if err := f.Value.Set(values[0]); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return nil
}

// trialFile holds the launches of one variant.
type trialFile struct {
	results []reports.Result
	done    map[int]bool // launches
	w       *reports.Writer
}

// trialPaths names a results file for every variant, and the last for A/A.
func trialPaths(dir string, variants []coordinator.Variant) (paths []string) {
	for i, v := range variants {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%02d-%s.jsonl.zst", i, slug(v.Name))))
	}
	return append(paths, filepath.Join(dir, "aa.jsonl.zst"))
}

// readTrials reads the launches that a file keeps; none where there is no file yet.
func readTrials(path string) (*trialFile, error) {
	t := &trialFile{done: map[int]bool{}}
	kept, _, err := reports.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, r := range kept {
		t.results = append(t.results, r)
		t.done[r.Launch] = true
	}
	return t, nil
}

// openTrials opens the files of a sweep to add to what they keep.
func openTrials(dir string, variants []coordinator.Variant) (files []*trialFile, err error) {
	for _, path := range trialPaths(dir, variants) {
		t, err := readTrials(path)
		if err != nil {
			return files, err
		}
		if t.w, err = reports.Append(path); err != nil {
			return files, err
		}
		files = append(files, t)
	}
	return files, nil
}

// slug makes a name fit for a file.
func slug(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '=', c == '.':
			return c
		}
		return '-'
	}, strings.ReplaceAll(s, "NCCL_", ""))
	return strings.Trim(s[:min(len(s), 60)], "-.")
}

// add keeps a whole launch.
func (t *trialFile) add(launch int, results []reports.Result) error {
	for _, r := range results {
		if err := t.w.Write(r); err != nil {
			return err
		}
	}
	t.results, t.done[launch] = append(t.results, results...), true
	return nil
}
