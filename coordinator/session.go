package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Session is a launch: one runner on every node, and the loop that follows
// them. Do and Close may be called from any goroutine; commands go one by one.
type Session struct {
	id      string // of the job
	nodes   []PlanNode
	remotes []*remote
	started []bool // whether the node accepted the job
	began   time.Time

	one    sync.Mutex // held by Do
	events chan Event
	asks   chan *question
	ctx    context.Context // of everything in flight; ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	once   sync.Once
}

// question is a command of the user on its way through the loop.
type question struct {
	kind    string
	bodies  []json.RawMessage
	timeout time.Duration
	cancel  error // not nil: give up instead
	done    chan answer
}

type answer struct {
	replies []json.RawMessage
	err     error
}

// loop owns the Job.
func (s *Session) loop() {
	job := NewJob(s.nodes, DefaultLimits)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var now *question
	for {
		var out []Command
		select {
		case <-s.ctx.Done():
			if now != nil {
				now.done <- answer{err: errClosed}
			}
			return
		case e := <-s.events:
			out = job.Step(time.Since(s.began), e)
		case a := <-s.asks:
			if a.cancel != nil {
				out = job.Cancel(time.Since(s.began), a.cancel)
				break
			}
			now, out = a, job.Ask(time.Since(s.began), a.kind, a.timeout)
		case <-tick.C:
			out = job.Tick(time.Since(s.began))
		}
		for _, c := range out {
			if c.Kind != kindAbort {
				c.Body = now.bodies[c.Node]
			}
			s.work.Go(func() { s.order(c) })
		}
		if now == nil {
			continue
		}
		replies, ok := job.Answers()
		if err := job.Err(); err != nil || ok {
			now.done <- answer{append([]json.RawMessage(nil), replies...), err}
			now = nil
		}
	}
}

var errClosed = errors.New("the launch was closed")

// Do gives a command to the runner of every node and returns their answers by
// node, or the one error that says who is to blame. After an error the session
// answers nothing but that error; Close it.
func (s *Session) Do(ctx context.Context, kind string, body func(node int) any, timeout time.Duration) ([]json.RawMessage, error) {
	s.one.Lock()
	defer s.one.Unlock()
	a := &question{kind: kind, timeout: timeout, bodies: make([]json.RawMessage, len(s.nodes)), done: make(chan answer, 1)}
	for i := range a.bodies {
		b, err := json.Marshal(body(i))
		if err != nil {
			return nil, fmt.Errorf("command %q: %w", kind, err)
		}
		if len(b) > MaxBody/2 {
			return nil, fmt.Errorf("command %q: %d bytes are too many", kind, len(b))
		}
		a.bodies[i] = b
	}
	if err := s.submit(ctx, a); err != nil {
		return nil, err
	}
	select {
	case r := <-a.done:
		return r.replies, r.err
	case <-ctx.Done():
		s.submit(context.Background(), &question{cancel: ctx.Err()})
		r := <-a.done
		return r.replies, r.err
	}
}

func (s *Session) submit(ctx context.Context, a *question) error {
	select {
	case s.asks <- a:
		return nil
	case <-s.ctx.Done():
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
