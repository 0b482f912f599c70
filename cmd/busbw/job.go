package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"busbw/coordinator"
	"busbw/reports"
)

// run measures the request and prints the comparison. Whatever was measured
// before an error or an interruption is kept in the results file and shown.
func (f *runFlags) run(ctx context.Context, out, errs io.Writer, req *coordinator.Request) error {
	id := newID()
	return f.measuring(ctx, errs, id, func(ctx context.Context, errs io.Writer) (*cluster, error) {
		for _, n := range req.Notes {
			fmt.Fprintln(errs, "busbw: note:", n)
		}
		return f.gather(ctx, errs)
	}, func(c *cluster, file *resultFile) error { return f.on(ctx, c, file, id, req, out, errs) })
}

// on measures the request on workers that are there.
func (f *runFlags) on(ctx context.Context, c *cluster, file *resultFile, id string, req *coordinator.Request, out, errs io.Writer) error {
	if len(file.kept) > 0 {
		id = file.kept[0].Run // --resume: it is one run
	}
	nodes, err := coordinator.PlanNodes(c.members, f.ranks)
	if err != nil {
		return err
	}
	if len(file.kept) > 0 {
		if err := coordinator.Resumes(file.kept[0], nodes, req.Settings); err != nil {
			return usageError{fmt.Errorf("cannot resume %s: %w; leave out --resume to start a new run", file.path, err)}
		}
	}
	cases, _, err := req.Cases(nodes)
	if err != nil {
		return usageError{err}
	}
	req.Planned = len(cases) * f.launches
	show := newScreen(out, errs, f)
	all := file.kept
	for launch := 0; launch < f.launches && err == nil; launch++ {
		var got []reports.Result
		got, err = measure(ctx, c, nodes, req, launch, id, file, show)
		all = append(all, got...)
	}
	return show.finish(all, file, err)
}

// keeper is where the records of a launch go as they come.
type keeper interface {
	has(key string) bool // measured already
	write(reports.Result) error
}

// measure is one launch: a fresh runner on every node, and every case on it.
func measure(ctx context.Context, c *cluster, nodes []coordinator.PlanNode, req *coordinator.Request, launch int, id string, file keeper, show *screen) (got []reports.Result, err error) {
	token := make([]byte, 32)
	rand.Read(token)
	cases, notes, err := req.Cases(nodes)
	if err != nil {
		return nil, usageError{err}
	}
	var session *coordinator.Session
	var sweep *coordinator.Sweep
	start := func() (facts []string, err error) {
		session, err = c.Start(ctx, c.members, coordinator.Plan{Run: id, Launch: launch, Nodes: nodes, Settings: req.Settings, NCCL: req.NCCL})
		if err != nil {
			return nil, err
		}
		sweep = &coordinator.Sweep{Run: id, Launch: launch, Nodes: nodes, Source: "busbw " + version, Token: token, Known: c.known}
		return sweep.Open(ctx, session, req)
	}
	facts, err := start()
	defer func() {
		if session == nil {
			return
		}
		if err == nil {
			c.known = sweep.Known // limits of the machines, not of the launch
		}
		if cerr := session.Close(); err == nil {
			err = cerr
		}
	}()
	if err != nil {
		return nil, err
	}
	hung := 0
	show.start(nodes, append(facts, notes...), launch, len(cases))
	for _, cs := range cases {
		if file.has(coordinator.Key(sweep.Blank(cs))) {
			show.skip()
			continue
		}
		res, err := sweep.Measure(ctx, cs)
		if err != nil && cs.OnNCCL() && ctx.Err() == nil && hung < maxHung {
			// The library hangs or fails in ways that only its process's end
			// mends: this size is lost, the others go on in a fresh one.
			hung++
			res.Error, res.Seconds = err.Error(), nil
			if err = session.Close(); err == nil {
				_, err = start()
			}
		}
		if err != nil {
			return got, sizeError(cs, err)
		}
		got = append(got, res)
		show.row(res)
		if err := file.write(res); err != nil {
			return got, err
		}
	}
	return got, nil
}

// maxHung is how many sizes of a launch NCCL may lose before the run ends.
const maxHung = 3

// sizeError adds what was being measured to the message that ends a run.
func sizeError(cs coordinator.Case, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %w", cs, err)
}

// resultFile is where a run's results go as they come.
type resultFile struct {
	path string
	w    *reports.Writer
	kept []reports.Result // with --resume: what the file held already
	seen map[string]bool
	n    int // records in it
}

func (f *runFlags) openResults(id string) (*resultFile, error) {
	r := &resultFile{path: f.output, seen: map[string]bool{}}
	if f.resume != "" {
		if f.output != "" && f.output != f.resume {
			return nil, usageError{fmt.Errorf("--resume goes on writing to the file it reads: leave out --output")}
		}
		kept, _, err := reports.ReadFile(f.resume)
		if err != nil {
			return nil, err
		}
		if err := coordinator.Resumable(kept); err != nil {
			return nil, usageError{fmt.Errorf("cannot resume %s: %w; leave out --resume to start a new run", f.resume, err)}
		}
		r.path, r.kept, r.n = f.resume, kept, len(kept)
		for _, k := range kept {
			r.seen[coordinator.Key(k)] = k.Error == ""
		}
	}
	if r.path == "" {
		r.path = filepath.Join("results", time.Now().Format("20060102-150405")+"-"+id+".jsonl.zst")
	}
	open := reports.Create
	if f.resume != "" {
		open = reports.Append
	}
	w, err := open(r.path)
	if err != nil {
		return nil, err
	}
	r.w = w
	return r, nil
}

func (r *resultFile) has(key string) bool { return r.seen[key] }

func (r *resultFile) write(res reports.Result) error {
	if err := r.w.Write(res); err != nil {
		return err
	}
	r.n++
	return nil
}

// Close leaves no file behind that holds nothing.
func (r *resultFile) Close() error {
	err := r.w.Close()
	if r.n == 0 {
		err = errors.Join(err, os.Remove(r.path))
	}
	return err
}

// newID names a run.
func newID() string {
	var b [4]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
