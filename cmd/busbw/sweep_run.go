package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"busbw/coordinator"
	"busbw/reports"
)

// sweep is a comparison of settings while it runs.
type sweep struct {
	flags    *sweepFlags
	manifest manifest
	variants []coordinator.Variant
	requests []*coordinator.Request // by variant
	notes    []string
	margin   float64

	out, errs io.Writer
	dir       string
	files     []*trialFile // by variant; the last is A/A
	cluster   *cluster
	nodes     []coordinator.PlanNode
	walls     []time.Duration // of launches
	failures  map[int]int     // launches that failed, by variant
	twice     int             // launches of A/A that the budget allows
	bar       *progressbar.ProgressBar
}

// slot is one launch of the sweep.
type slot struct{ file, variant, launch int }

// run measures what is left to measure and shows the report.
func (s *sweep) run(ctx context.Context) (err error) {
	began := time.Now()
	for _, n := range s.notes {
		fmt.Fprintln(s.errs, "busbw: note:", n)
	}
	if s.dir = s.flags.resume; s.dir == "" {
		s.dir = s.flags.output
	}
	if s.dir == "" {
		s.dir = filepath.Join("results", s.manifest.Began.Local().Format("20060102-150405")+"-"+s.manifest.Run+"-sweep")
	}
	if _, err := os.Stat(filepath.Join(s.dir, manifestName)); err == nil && s.flags.resume == "" {
		return usageError{fmt.Errorf("%s holds a sweep already: go on with --resume %s, or choose another --output", s.dir, s.dir)}
	}
	if s.flags.resume != "" {
		if err := s.open(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		if len(s.left()) == 0 {
			return s.report(nil)
		}
		if s.manifest.Budget != "" && s.flags.budget == 0 {
			fmt.Fprintf(s.errs, "busbw: note: the sweep began with --budget %s; without --budget all %s that are left are made, however long they take\n", s.manifest.Budget, plural(len(s.left()), "launch"))
		}
	}
	if s.cluster, err = s.flags.run.gather(ctx, s.errs); err != nil {
		return err
	}
	defer func() {
		if lerr := s.cluster.leave(); err == nil {
			err = lerr
		}
	}()
	if s.nodes, err = coordinator.PlanNodes(s.cluster.members, s.flags.run.ranks); err != nil {
		return err
	}
	if err := s.size(); err != nil {
		return usageError{err}
	}
	if s.files == nil {
		if err := s.open(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
	}
	return s.report(s.measure(ctx, began))
}

// size settles how many launches there are, before the first.
func (s *sweep) size() error {
	cases, notes, err := s.requests[0].Cases(s.nodes)
	if err != nil {
		return err
	}
	for _, n := range notes {
		fmt.Fprintln(s.errs, "busbw: note:", n)
	}
	var hosts []string
	for _, n := range s.nodes {
		hosts = append(hosts, n.Host)
	}
	if s.flags.resume != "" {
		if !slices.Equal(hosts, s.manifest.Hosts) {
			return fmt.Errorf("cannot resume %s: it was measured on %v, and this cluster is %v", s.dir, s.manifest.Hosts, hosts)
		}
		return nil
	}
	tests := (len(s.variants) - 1) * coordinator.Tables(cases) * reports.Bands(s.requests[0].Sizes)
	need := reports.LeastLaunches(tests)
	s.manifest.Hosts, s.manifest.Twice, s.manifest.Launches = hosts, s.flags.twice, s.flags.launches
	if s.manifest.Launches == 0 {
		s.manifest.Launches = need
	}
	s.manifest.Launches += s.manifest.Launches % 2
	fmt.Fprintf(s.errs, "%s, %s each, %s each and %d for A/A, seed %d\n", plural(len(s.variants), "setting"), plural(len(cases), "size"), plural(s.manifest.Launches, "launch"), s.manifest.Twice, s.manifest.Seed)
	if s.manifest.Launches < need {
		fmt.Fprintf(s.errs, "busbw: note: %s: too few to claim anything in %s; %d would do\n", plural(s.manifest.Launches, "launch"), plural(tests, "test"), need)
	}
	return nil
}

func (s *sweep) open() (err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	if err := s.manifest.write(s.dir); err != nil {
		return err
	}
	s.files, err = openTrials(s.dir, s.variants)
	return err
}

func (s *sweep) close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.w.Close())
	}
	return errors.Join(errs...)
}

// left lists the launches that are not kept yet, in order.
func (s *sweep) left() (slots []slot) {
	last := len(s.variants) // the file of A/A
	for i := range s.manifest.Twice {
		slots = append(slots, slot{last, 0, i})
	}
	for i, v := range coordinator.Blocks(len(s.variants), s.manifest.Launches, s.manifest.Seed) {
		slots = append(slots, slot{v, v, s.manifest.Twice + i})
	}
	return slices.DeleteFunc(slots, func(x slot) bool { return s.files[x.file].done[x.launch] })
}

// measure makes all launches that are left and that the budget allows.
func (s *sweep) measure(ctx context.Context, began time.Time) error {
	s.failures, s.twice = map[int]int{}, s.manifest.Twice
	slots := s.left()
	if f, ok := s.errs.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.bar = progressbar.NewOptions(len(slots), progressbar.OptionSetWriter(s.errs), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription("launches"), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true))
		defer s.bar.Clear()
	}
	for i, x := range slots {
		again := x.file == len(s.variants)
		if len(s.walls) == 2 && again || !again && (i == 0 || slots[i-1].file == len(s.variants)) {
			if err := s.fit(began, x); err != nil {
				return err
			}
		}
		if again && x.launch >= s.twice {
			continue // cut by the budget
		}
		if b := s.flags.budget; b > 0 && len(s.walls) > 0 && time.Since(began)+s.typical() > b {
			fmt.Fprintf(s.errs, "busbw: note: the budget of %s is spent; go on with --resume %s\n", b, s.dir)
			return nil
		}
		if x.launch >= s.manifest.Twice+s.manifest.Launches*len(s.variants) || s.failures[x.variant] > 1 {
			continue // cut by the budget, or given up
		}
		if err := s.launch(ctx, x, len(slots)-i); err != nil {
			return err
		}
	}
	return nil
}

// typical is the median time of a launch. The first measures the machines'
// limits, too, and stands for others only as long as it is alone.
func (s *sweep) typical() time.Duration {
	sorted := slices.Sorted(slices.Values(s.walls[min(1, len(s.walls)-1):]))
	return sorted[len(sorted)/2]
}

// fit cuts the launches to what the budget allows from the next one on, once a
// launch's time is known: those of A/A to what leaves room for a block, and, when
// their turn comes, those of all settings.
func (s *sweep) fit(began time.Time, next slot) error {
	if s.flags.budget == 0 || len(s.walls) == 0 {
		return nil
	}
	room := s.flags.budget - time.Since(began)
	if spare := int(room/s.typical()) - 2*len(s.variants); next.file == len(s.variants) && spare >= 0 {
		if s.twice = min(s.manifest.Twice, next.launch+spare); s.twice < s.manifest.Twice {
			fmt.Fprintf(s.errs, "busbw: note: a launch takes %s, so that the budget of %s holds %d launches for A/A instead of %d\n",
				round(s.typical()), s.flags.budget, s.twice, s.manifest.Twice)
		}
		return nil
	}
	n := coordinator.Fit(room, s.typical(), len(s.variants), s.manifest.Launches)
	switch whole := s.typical() * time.Duration(len(s.variants)); {
	case n == 0:
		return fmt.Errorf("the budget of %s does not hold one block: a launch takes %s, two of each of %d settings %s; give fewer settings or sizes, or go on with --resume %s --budget %s, for which what was measured counts",
			s.flags.budget, round(s.typical()), len(s.variants), round(2*whole), s.dir, (2*whole*5/4 + 10*time.Second).Round(time.Second))
	case n < s.manifest.Launches:
		fmt.Fprintf(s.errs, "busbw: note: a launch takes %s, so that the budget of %s holds %s of each setting instead of %d, which would take %s more\n",
			round(s.typical()), s.flags.budget, plural(n, "launch"), s.manifest.Launches, round(whole*time.Duration(s.manifest.Launches-n)))
		s.manifest.Launches = n
	}
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// launch makes one launch and keeps it whole, or not at all.
func (s *sweep) launch(ctx context.Context, x slot, left int) error {
	req, name := s.requests[x.variant], s.variants[x.variant].Name
	start := time.Now()
	quiet := &screen{out: io.Discard, errs: io.Discard}
	if len(s.walls) == 0 {
		quiet.errs = struct{ io.Writer }{s.errs} // nodes and limits, once
	}
	got, err := measure(ctx, s.cluster, s.nodes, req, x.launch, s.manifest.Run, unkept{}, quiet)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.failures[x.variant]++
		cases, _, cerr := req.Cases(s.nodes)
		if cerr != nil || x.variant == 0 || len(got) > len(cases) {
			return fmt.Errorf("%s, launch %d: %w", name, x.launch, err)
		}
		fmt.Fprintf(s.errs, "busbw: note: %s failed: %v\n", name, err)
		if s.failures[x.variant] > 1 {
			fmt.Fprintf(s.errs, "busbw: note: %s failed twice and is not launched again\n", name)
		}
		got = append(got, req.Failed(s.manifest.Run, x.launch, s.nodes, "busbw "+version, cases[len(got):], err)...)
	}
	s.walls = append(s.walls, time.Since(start))
	if err := s.files[x.file].add(x.launch, got); err != nil {
		return err
	}
	if s.bar != nil {
		s.bar.Add(1)
		return nil
	}
	what := name
	if x.file == len(s.variants) {
		what = "A/A"
	}
	fmt.Fprintf(s.errs, "launch %d: %s, %s; about %s left\n", x.launch, what, round(time.Since(start)), (s.typical() * time.Duration(left-1)).Round(time.Second))
	return nil
}

// report shows what the launches have shown; err is what ended them.
func (s *sweep) report(err error) error {
	canceled := errors.Is(err, context.Canceled)
	t, wrong, terr := tuned(&s.manifest, s.files, s.margin)
	if terr == nil && t != nil {
		terr = t.Render(s.out, s.flags.format)
	}
	fmt.Fprintf(s.errs, "every launch is kept in %s (seed %d)\n", s.dir, s.manifest.Seed)
	switch {
	case canceled:
		return errors.Join(terr, fmt.Errorf("interrupted: go on with busbw sweep --resume %s", s.dir))
	case err != nil, terr != nil:
		return errors.Join(terr, err)
	case wrong:
		return errFound
	case !s.compared():
		return fmt.Errorf("no setting was compared with another: go on with busbw sweep --resume %s and a larger --budget", s.dir)
	}
	return nil
}

// compared says that two settings have launches.
func (s *sweep) compared() bool {
	n := 0
	for i := range s.variants {
		n += min(1, len(s.files[i].results))
	}
	return n > 1
}

// unkept lets a launch's records be kept together when it has ended.
type unkept struct{}

func (unkept) has(string) bool            { return false }
func (unkept) write(reports.Result) error { return nil }
