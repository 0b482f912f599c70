package coordinator

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Limits are a job's patience.
type Limits struct {
	Silence time.Duration // a node that says nothing for so long is lost
	Settle  time.Duration // from the first error that is a cause to the verdict, for witnesses
	Grace   time.Duration // from the first consequence to the verdict, for its cause
}

// DefaultLimits fit agents that speak twice a second.
var DefaultLimits = Limits{Silence: 5 * time.Second, Settle: 250 * time.Millisecond, Grace: 1500 * time.Millisecond}

// kindAbort is what a Job commands when it has a verdict: stop the runner.
const kindAbort = "abort"

// Job follows the runners of a launch. It has no clock and no socket: the time
// since the launch started comes in with every call, and what is to be sent
// goes out as Commands. One command is under way at a time.
type Job struct {
	nodes    []PlanNode
	limits   Limits
	last     time.Duration // of the latest call
	heard    []time.Duration
	progress []*Progress
	gone     []bool

	seq      uint64
	kind     string
	timeout  time.Duration
	deadline time.Duration
	waiting  []bool
	left     int
	answers  []json.RawMessage

	faults  []Fault
	judgeAt time.Duration
	verdict error
}

// NewJob follows a launch on these nodes.
func NewJob(nodes []PlanNode, l Limits) *Job {
	n := len(nodes)
	return &Job{
		nodes: nodes, limits: l, heard: make([]time.Duration, n), progress: make([]*Progress, n),
		gone: make([]bool, n), waiting: make([]bool, n), answers: make([]json.RawMessage, n),
	}
}

// Ask gives every runner a command; the caller adds the bodies.
func (j *Job) Ask(at time.Duration, kind string, timeout time.Duration) []Command {
	out := j.Tick(at)
	if j.verdict != nil || j.left > 0 {
		return out
	}
	j.seq++
	j.kind, j.timeout, j.deadline, j.left = kind, timeout, at+timeout, len(j.nodes)
	for i := range j.nodes {
		j.waiting[i], j.answers[i] = true, nil
		if len(j.faults) == 0 { // else the answer will be the verdict
			out = append(out, Command{Node: i, Seq: j.seq, Kind: kind})
		}
	}
	return out
}

// Answers are those of the last Ask, by node, once all are there.
func (j *Job) Answers() ([]json.RawMessage, bool) {
	return j.answers, j.left == 0 && j.seq > 0 && j.verdict == nil
}

// Err is the verdict: what went wrong, once that is decided.
func (j *Job) Err() error { return j.verdict }

// Step takes what a node says.
func (j *Job) Step(at time.Duration, e Event) []Command {
	out := j.Tick(at)
	if e.Node < 0 || e.Node >= len(j.nodes) || j.verdict != nil || j.gone[e.Node] {
		return out
	}
	j.heard[e.Node] = at
	if e.Progress != nil {
		j.progress[e.Node] = e.Progress
	}
	switch e.Kind {
	case EventOK:
		if e.Seq == j.seq && j.waiting[e.Node] {
			j.waiting[e.Node], j.answers[e.Node] = false, e.Body
			j.left--
		}
	case EventFailed, EventLost:
		f := Fault{Rank: -1, Peer: -1, Text: "it gave no reason"}
		if e.Error != nil {
			f = *e.Error
		}
		f.Node = e.Node
		if e.Kind == EventLost {
			j.gone[e.Node] = true
			// A runner that reported an error and then ended is one error.
			f.Consequence = f.Consequence || slices.ContainsFunc(j.faults, func(o Fault) bool { return o.Node == e.Node })
		}
		j.accuse(at, f)
	}
	return append(out, j.judge(at)...)
}

// Tick lets time pass.
func (j *Job) Tick(at time.Duration) []Command {
	if gap := at - j.last; gap > j.limits.Silence/2 {
		// This process did not run (stopped, or its machine slept): nobody
		// else is to blame for that.
		for i := range j.heard {
			j.heard[i] += gap
		}
		j.deadline += gap
	}
	j.last = at
	if j.verdict != nil {
		return nil
	}
	for i, h := range j.heard {
		if !j.gone[i] && at-h >= j.limits.Silence {
			j.gone[i] = true
			j.accuse(at, Fault{Node: i, Rank: -1, Peer: -1, Text: fmt.Sprintf("no sign of life for %s (machine down, worker stopped, or network cut)", (at - h).Round(100*time.Millisecond))})
		}
	}
	if j.left > 0 && at >= j.deadline && len(j.faults) == 0 {
		return j.decide(j.late())
	}
	return j.judge(at)
}

// Cancel ends the job because its user wants it to end.
func (j *Job) Cancel(at time.Duration, why error) []Command {
	j.last = at
	if j.verdict != nil {
		return nil
	}
	return j.decide(why)
}

// accuse keeps a fault and sets the time of the verdict: soon after the first
// cause, somewhat later while there are only consequences.
func (j *Job) accuse(at time.Duration, f Fault) {
	if len(j.faults) >= 4*len(j.nodes)+16 {
		return // enough witnesses
	}
	due := at + j.limits.Settle
	if f.Consequence {
		due = at + j.limits.Grace
	}
	if len(j.faults) == 0 || due < j.judgeAt {
		j.judgeAt = due
	}
	j.faults = append(j.faults, f)
}

// judge decides when it is time, or nobody is left to be heard.
func (j *Job) judge(at time.Duration) []Command {
	if j.verdict != nil || len(j.faults) == 0 {
		return nil
	}
	all := true
	for i := range j.nodes {
		all = all && slices.ContainsFunc(j.faults, func(f Fault) bool { return f.Node == i })
	}
	if at < j.judgeAt && !all {
		return nil
	}
	return j.decide(j.culprit())
}

// decide ends the job: runners that may still live are stopped.
func (j *Job) decide(why error) (out []Command) {
	j.verdict = why
	for i := range j.nodes {
		if !j.gone[i] {
			out = append(out, Command{Node: i, Kind: kindAbort})
		}
	}
	return out
}

// during is the command under way, or nothing.
func (j *Job) during() string {
	if j.left == 0 {
		return ""
	}
	return j.kind
}

func (j *Job) nodeOf(rank int) int {
	if rank < 0 {
		return -1
	}
	return NodeOf(j.nodes, rank)
}

// before orders progress; none at all is least.
func (p *Progress) before(q *Progress) bool {
	if p == nil || q == nil {
		return p == nil && q != nil
	}
	if p.Iteration != q.Iteration {
		return p.Iteration < q.Iteration
	}
	return p.Step < q.Step
}
