package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"busbw/coordinator"
	"busbw/reports"
)

// tuned judges the launches of a sweep that are kept, a file for each setting
// and one for A/A; nil where the base has none. wrong says that wrong data is
// among them.
func tuned(m *manifest, files []*trialFile, margin float64) (t *reports.Tuning, wrong bool, err error) {
	if len(files[0].results) == 0 {
		return nil, false, nil
	}
	var trials []reports.Trial
	for i, v := range m.Variants {
		trials = append(trials, reports.Trial{Name: v.Name, Lines: coordinator.ExportsOf(cmp.Or(m.Engine, "native"), v.Settings), Results: files[i].results})
		wrong = wrong || reports.Found(files[i].results)
	}
	t, err = reports.Tune(trials, files[len(m.Variants)].results, margin)
	return t, wrong, err
}

// showSweep renders what the sweep in a folder has shown so far, and says how
// to go on with it. Nothing is written there: it may still be running.
func showSweep(out, errs io.Writer, dir, format string) error {
	m, err := readManifest(dir)
	if err != nil {
		return err
	}
	margin, err := percent(m.margin())
	if err != nil {
		return fmt.Errorf("%s: its margin: %w", dir, err)
	}
	var files []*trialFile
	done := 0
	for _, path := range trialPaths(dir, m.Variants) {
		t, err := readTrials(path)
		if err != nil {
			return err
		}
		files, done = append(files, t), done+len(t.done)
	}
	t, wrong, err := tuned(m, files, margin)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	case t != nil:
		if err := t.Render(out, format); err != nil {
			return err
		}
	}
	planned := m.Twice + m.Launches*len(m.Variants)
	switch {
	case done < planned:
		fmt.Fprintf(errs, "%d of %s kept: busbw sweep --resume %s goes on with it, unless it is still running\n", done, plural(planned, "launch"), plainName(dir))
	default:
		fmt.Fprintf(errs, "all %s kept; busbw compare and report take the files in %s\n", plural(planned, "launch"), plainName(dir))
	}
	switch {
	case t == nil:
		return fmt.Errorf("%s: no launch of the base is kept yet, so that there is nothing to show", dir)
	case wrong:
		return errFound
	}
	return nil
}

// sweepFormat says whether a sweep has a report of its own in a format; in the
// others its launches are shown as those of runs are.
func sweepFormat(format string) bool { return slices.Contains(reports.TuningFormats(), format) }
