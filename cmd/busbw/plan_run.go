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

	"busbw/collectives"
	"busbw/coordinator/plan"
	"busbw/reports"
)

// planCase is a row to be.
type planCase struct {
	op        collectives.Op
	algorithm string // or "best"
	bytes     int64
	nodes     int
}

// cases lists the rows, and finds what is not a case at all.
func (f *planFlags) cases(m *plan.Machine) (all []planCase, err error) {
	sizes := []int64{max(1, int64(f.stepBytes)/int64(f.buckets))}
	if f.stepBytes == 0 {
		if sizes, err = f.run.sizeList(); err != nil {
			return nil, err
		}
	}
	nodes := f.nodes
	if nodes == nil {
		nodes = []int{m.Nodes}
	}
	for _, name := range f.ops {
		op, err := collectives.ParseOp(name)
		if err != nil {
			return nil, err
		}
		for _, algo := range f.algos {
			if algo != "best" {
				if algo, err = collectives.Resolve(op, algo); err != nil {
					return nil, err
				}
			}
			for _, n := range nodes {
				if err := m.Size(n); err != nil {
					return nil, fmt.Errorf("--nodes %d: %w", n, err)
				}
				for _, bytes := range sizes {
					if bytes < 1 {
						return nil, fmt.Errorf("size %d: want at least 1 byte", bytes)
					}
					all = append(all, planCase{op, algo, plan.Size(op, bytes, n*m.GPUs), n})
				}
			}
		}
	}
	return all, nil
}

// predictions of the cases; those made before an error or an interruption are
// returned with it.
func predictions(ctx context.Context, errs io.Writer, m *plan.Machine, planned []planCase) (got []plan.Prediction, err error) {
	var bar *progressbar.ProgressBar
	if f, ok := errs.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		bar = progressbar.NewOptions(len(planned), progressbar.OptionSetWriter(errs), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription("simulating"), progressbar.OptionShowCount())
		defer bar.Clear()
	}
	told := map[string]bool{}
	for _, c := range planned {
		if ctx.Err() != nil {
			return got, ctx.Err()
		}
		if bar != nil {
			bar.Describe(fmt.Sprintf("simulating %s %s, %s on %s", c.op, c.algorithm, reports.SizeText(c.bytes), plural(c.nodes, "node")))
			bar.RenderBlank()
		}
		var p plan.Prediction
		var skipped []string
		if c.algorithm == "best" {
			p, skipped, err = m.Fastest(c.op, c.bytes, c.nodes)
		} else {
			p, err = m.Predict(c.op, c.algorithm, c.bytes, c.nodes)
		}
		for _, name := range skipped {
			note := fmt.Sprintf("%s %s on %s takes too many steps to simulate and is left out", c.op, name, plural(c.nodes, "node"))
			if !told[note] {
				told[note] = true
				fmt.Fprintln(errs, "busbw: note:", note)
			}
		}
		if errors.Is(err, plan.ErrDescription) {
			return got, usageError{fmt.Errorf("%s: %w", m.Name, err)}
		}
		if err != nil {
			return got, err
		}
		got = append(got, p)
		if bar != nil {
			bar.Add(1)
		}
	}
	return got, nil
}

// introduce says what will be predicted with, before that takes its time.
func (f *planFlags) introduce(out io.Writer, m *plan.Machine) error {
	if f.format != "table" {
		return nil
	}
	if err := m.Summary(out); err != nil || m.Measured == nil || f.whatIf != "" {
		return err
	}
	return m.Fitted(out)
}

// show prints and keeps what was predicted; err is what ended it early.
func (f *planFlags) show(out, errs io.Writer, m *plan.Machine, got []plan.Prediction, err error) error {
	var records []reports.Result
	run, now := newID(), time.Now()
	for i := range got {
		r := got[i].Record(run, "predicted by busbw "+version, now)
		r.Config = map[string]string{"cluster": m.Name}
		records = append(records, r)
	}
	if len(got) > 0 {
		if serr := f.print(out, got, records); serr != nil {
			return serr
		}
	}
	if f.output != "" && len(got) > 0 {
		if werr := keep(f.output, records); werr != nil {
			return werr
		}
		fmt.Fprintf(errs, "%s kept in %s\n", plural(len(records), "prediction"), f.output)
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: what was predicted before is shown")
	}
	return err
}

func (f *planFlags) print(out io.Writer, got []plan.Prediction, records []reports.Result) error {
	if f.format != "table" {
		return reports.Render(out, f.format, records)
	}
	fmt.Fprintln(out)
	if f.stepBytes == 0 {
		return plan.Table(out, got)
	}
	return plan.Step{Op: got[0].Op, Bytes: int64(f.stepBytes), Buckets: f.buckets, Compute: f.compute, Overlap: f.overlap}.Table(out, got)
}

// keep writes records to a new file.
func keep(name string, records []reports.Result) (err error) {
	w, err := reports.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, r := range records {
		if err := w.Write(r); err != nil {
			return err
		}
	}
	return nil
}
