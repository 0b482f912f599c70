package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"busbw/coordinator"
	"busbw/reports"
)

// screen shows a run while it lasts. Rows and tables go to out; progress and
// remarks go to errs, so that out can be piped.
type screen struct {
	out, errs io.Writer
	live      *reports.Live // rows as sizes finish; nil unless the format is for people
	format    string
	bar       *progressbar.ProgressBar // nil unless errs is a terminal
	cases     int                      // of this launch, and how many are done
	done      int
	launch    int
	told      time.Time // when the last plain line of progress was written
}

func newScreen(out, errs io.Writer, f *runFlags) *screen {
	s := &screen{out: out, errs: errs, format: f.format}
	if f.format == "table" && f.perIter {
		s.format = "detail" // which has the columns of -I
	}
	if f.format == "table" || f.format == "detail" {
		s.live = reports.NewLive(out, f.perIter)
	}
	return s
}

// start shows what a launch runs on.
func (s *screen) start(nodes []coordinator.PlanNode, facts []string, launch, cases int) {
	if launch == 0 {
		for i, n := range nodes {
			fmt.Fprintf(s.errs, "node %d: %s (%s), %s\n", i, n.Host, n.Addr, plural(n.Ranks, "rank"))
		}
		for _, f := range facts {
			fmt.Fprintln(s.errs, f)
		}
	}
	s.cases, s.done, s.launch, s.told = cases, 0, launch, time.Now()
	if f, ok := s.errs.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.bar = progressbar.NewOptions(cases, progressbar.OptionSetWriter(s.errs), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription(fmt.Sprintf("launch %d", launch)), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true))
	}
}

// row shows a finished size.
func (s *screen) row(r reports.Result) {
	if s.bar != nil {
		s.bar.Clear()
	}
	if s.live != nil {
		s.live.Row(r)
	}
	s.skip()
}

// skip counts a case that is not shown again.
func (s *screen) skip() {
	s.done++
	if s.bar != nil {
		s.bar.Add(1)
		return
	}
	// Rows are progress enough where they are shown.
	if s.live == nil && time.Since(s.told) > 10*time.Second {
		s.told = time.Now()
		fmt.Fprintf(s.errs, "launch %d: %d of %s\n", s.launch, s.done, plural(s.cases, "size"))
	}
}

// finish prints the final tables of what was measured, says where it is kept,
// and turns wrong data into its exit code. err is what ended the run, if it
// did not end by itself.
func (s *screen) finish(all []reports.Result, file *resultFile, err error) error {
	if s.bar != nil {
		s.bar.Clear()
	}
	if len(all) > 0 {
		if rerr := reports.Render(s.out, s.format, all); rerr != nil {
			return rerr
		}
		if file.n > 0 {
			fmt.Fprintf(s.errs, "%s kept in %s\n", plural(file.n, "result"), file.path)
		}
	}
	switch {
	case errors.Is(err, context.Canceled) && file.n == 0:
		return errors.New("interrupted: nothing was measured")
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted: go on with --resume %s", file.path)
	case err != nil:
		return err
	case reports.Found(all):
		return errFound
	}
	return failed(all)
}

// failed is the error of a run that ended by itself but could not measure
// some sizes.
func failed(all []reports.Result) error {
	n, first := 0, ""
	for _, r := range all {
		if r.Error != "" {
			if n++; first == "" {
				first = r.Error
			}
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s could not be measured: %s", n, plural(len(all), "size"), first)
}
