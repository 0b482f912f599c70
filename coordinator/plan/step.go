package plan

import (
	"errors"
	"fmt"
	"io"
	"time"

	"busbw/collectives"
	"busbw/reports"
)

// Step is a step of training: a computation, and Buckets collectives of Bytes
// together, one after the other.
type Step struct {
	Op      collectives.Op
	Bytes   int64
	Buckets int
	Compute time.Duration
	// Overlap is the share of the communication that can run while the step still
	// computes, 0 to 1; it takes no time as long as the computation lasts.
	Overlap float64
}

// Check says what makes no sense.
func (t Step) Check() error {
	switch {
	case t.Bytes < 1:
		return errors.New("the bytes of a step must be at least 1")
	case t.Buckets < 1 || int64(t.Buckets) > t.Bytes || t.Buckets > 1_000_000:
		return fmt.Errorf("%d buckets: want 1 to 1000000, and a byte for each", t.Buckets)
	case !(t.Overlap >= 0 && t.Overlap <= 1):
		return fmt.Errorf("an overlap of %g: want 0 to 1", t.Overlap)
	case t.Compute < 0:
		return fmt.Errorf("a computation of %v: want a time", t.Compute)
	}
	return nil
}

// Exposed is the part of so much communication that the step waits for.
func (t Step) Exposed(communication float64) float64 {
	hidden := min(t.Overlap*communication, t.Compute.Seconds())
	return communication - hidden
}

// Table is a row for each number of nodes.
func (t Step) Table(w io.Writer, predictions []Prediction) error {
	fmt.Fprintf(w, "training step: %s of %s in %d bucket%s, computation %v, %s of the communication can overlap it\n",
		t.Op, reports.SizeText(t.Bytes), t.Buckets, s(t.Buckets), t.Compute, reports.ShareText(t.Overlap))
	var rows [][]string
	for _, p := range predictions {
		of := func(f func(float64) float64) Range {
			return Range{Low: f(p.Low * float64(t.Buckets)), High: f(p.High * float64(t.Buckets))}
		}
		all := p.Seconds * float64(t.Buckets)
		step := func(c float64) float64 { return t.Compute.Seconds() + t.Exposed(c) }
		share := func(c float64) float64 { return t.Exposed(c) / step(c) }
		rows = append(rows, []string{fmt.Sprint(p.Nodes), fmt.Sprint(p.Ranks), p.Algorithm, reports.TimeText(all) + p.mark(), reports.TimeText(t.Exposed(all)),
			reports.TimeText(step(all)), span(of(step), reports.TimeText), reports.ShareText(share(all)), span(of(share), reports.ShareText), p.bound()})
	}
	heads := []string{"NODES", "RANKS", "ALGORITHM", "COMMUNICATION", "EXPOSED", "STEP", "BETWEEN", "SHARE", "BETWEEN", "BOUND BY"}
	if err := reports.Draw(w, heads, "rrlrrrlrll", rows); err != nil {
		return err
	}
	fmt.Fprintln(w, "EXPOSED: communication that the step waits for. SHARE: of the step's time.")
	return footnotes(w, predictions)
}
