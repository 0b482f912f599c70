package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"busbw/coordinator"
	"busbw/coordinator/pairs"
	"busbw/reports"
)

// pairRun is a pair test of a cluster on its way: what it runs on, and what is
// known so far.
type pairRun struct {
	*launcher
	flags  *pairFlags
	req    *coordinator.Request
	limits func(link, memory string) pairs.Limits
	file   *resultFile
	until  time.Time

	own    *deviceRun       // nil: nodes' own devices are not tested
	alone  []reports.Result // of nodes' own devices
	all    []reports.Result // of the last launch
	table  *pairs.Table
	report *pairs.Report
}

// run measures the pairs of a cluster and reports on them.
func (f *pairFlags) run(ctx context.Context, out, errs io.Writer) error {
	req, err := f.request()
	if err != nil {
		return usageError{err}
	}
	id := newID()
	return f.measuring(ctx, errs, id, f.gather, func(c *cluster, file *resultFile) error { return f.on(ctx, c, file, id, req, out, errs) })
}

// on measures the pairs of workers that are there.
func (f *pairFlags) on(ctx context.Context, c *cluster, file *resultFile, id string, req *coordinator.Request, out, errs io.Writer) error {
	l := &launcher{cluster: c, errs: errs, id: id, ranks: f.ranks}
	p := &pairRun{launcher: l, flags: f, req: req, limits: func(_, _ string) pairs.Limits { return f.limits() }, file: file, until: time.Now().Add(f.budget),
		own: &deviceRun{bytes: int(f.bytes), time: f.time}}
	_, end := p.measure(ctx, c.members)
	if p.report == nil {
		return end
	}
	if file.n > 0 {
		fmt.Fprintf(errs, "%s kept in %s; busbw pairs --from FILE judges again\n", plural(file.n, "result"), file.path)
	}
	found, err := f.show(out, p.table, p.report, append(p.alone, p.all...), p.lost)
	if err != nil {
		return err
	}
	switch {
	case errors.Is(end, context.Canceled):
		return errors.New("interrupted: this is what was measured until then")
	case end != nil:
		return end
	case found:
		return errFound
	}
	return nil
}

// measure runs pair tests on members, and returns who took part.
func (p *pairRun) measure(ctx context.Context, members []coordinator.Member) ([]coordinator.Member, error) {
	return p.launch(ctx, members, p.req, p.pairs)
}

// pairs is one launch: nodes' own devices where that is asked for, all rounds,
// then the suspects again. What was measured is judged, however the launch ends.
func (p *pairRun) pairs(ctx context.Context, sweep *coordinator.Sweep) error {
	nodes := sweep.Nodes
	if len(nodes) < 2 {
		return fmt.Errorf("pairs need two nodes, and %d can be measured", len(nodes))
	}
	var hosts []string
	for _, n := range nodes {
		hosts = append(hosts, n.Host)
	}
	if p.own != nil {
		p.alone = nil
		err := p.own.measure(ctx, sweep, func(r reports.Result) error {
			p.alone = append(p.alone, r)
			return p.file.write(r)
		})
		if err != nil {
			return err
		}
	}
	rounds := p.flags.rounds
	if rounds == 0 && len(nodes) > manyNodes {
		rounds = 12
	}
	fmt.Fprintf(p.errs, "pairs of %s: %s\n", plural(len(nodes), "node"), plural(len(pairs.Rounds(len(nodes), rounds)), "round"))
	bar := p.bar()
	done := 0
	test := &coordinator.PairRounds{
		Sweep: sweep, Request: p.req, Bytes: int64(p.flags.bytes), Rounds: rounds, Limits: p.limits, Leaf: p.flags.leavesOf(hosts), Until: p.until,
		Keep: func(r reports.Result, expected int) error {
			if done++; bar != nil {
				bar.ChangeMax(expected)
				bar.Set(done)
			}
			return p.file.write(r)
		},
	}
	all, err := test.Measure(ctx)
	if err != nil && !errors.Is(err, coordinator.ErrBudget) {
		return errors.Join(err, p.judgeSome(all, test.Leaf))
	}
	var rerr error
	p.table, p.report, p.all, rerr = test.Settle(ctx, all)
	if p.report != nil && err != nil {
		p.report.Notes = append(p.report.Notes, err.Error())
	}
	if bar != nil {
		bar.Clear()
	}
	return rerr
}

// judgeSome judges what an interrupted launch measured, if it is enough.
func (p *pairRun) judgeSome(all []reports.Result, leaf []string) error {
	t, notes, err := pairs.FromResults(all)
	if errors.Is(err, pairs.ErrNoPairs) {
		return nil
	}
	if err != nil {
		return err
	}
	t.Leaf, p.all = leaf, all
	r, err := pairs.Judge(t, p.limits(all[0].Link, all[0].Memory))
	if err != nil {
		return err
	}
	r.Notes = append(r.Notes, notes...)
	p.table, p.report = t, r
	return nil
}

func (p *pairRun) bar() *progressbar.ProgressBar {
	f, ok := p.errs.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return progressbar.NewOptions(1, progressbar.OptionSetWriter(p.errs), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetDescription("pairs"), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true))
}

// judge reads figures that exist and reports on them.
func (f *pairFlags) judge(in io.Reader, out, errs io.Writer) error {
	t, results, notes, err := readPairs(f.from, in)
	if err != nil {
		return err
	}
	t.Leaf = f.leavesOf(t.Nodes)
	l := f.limits()
	r, err := pairs.Judge(t, l)
	if err != nil {
		return err
	}
	r.Notes = append(r.Notes, notes...)
	found, err := f.show(out, t, r, results, nil)
	if err == nil && found {
		return errFound
	}
	return err
}

// readPairs reads a results file or a text table, which has no results.
func readPairs(name string, in io.Reader) (*pairs.Table, []reports.Result, []string, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("--from: %w", err)
		}
		defer file.Close()
		in = file
	}
	head := bufio.NewReader(in)
	first, _ := head.Peek(4)
	if !bytes.Equal(first, []byte{0x28, 0xb5, 0x2f, 0xfd}) && !bytes.HasPrefix(first, []byte("{")) { // zstd, or JSON
		t, notes, err := pairs.Read(head)
		if err != nil {
			err = fmt.Errorf("--from %s: %w", name, err)
		}
		return t, nil, notes, err
	}
	if name == "-" {
		return nil, nil, nil, errors.New("--from -: standard input takes a text table; give a results file by its name")
	}
	results, warnings, err := reports.ReadFile(name)
	if err != nil {
		return nil, nil, nil, err
	}
	t, notes, err := pairs.FromResults(results)
	if err != nil {
		err = fmt.Errorf("--from %s: %w", name, err)
	}
	return t, results, append(warnings, notes...), err
}
