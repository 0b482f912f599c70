package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Session is a launch: one runner on every node, and the loop that follows
// them. Do and Close may be called from any goroutine; commands go one by one.
type Session struct {
	id      string // of the job
	nodes   []PlanNode
	remotes []*remote
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

// start has every node of the plan start a runner and opens its event stream.
func start(ctx context.Context, id *Identity, self Member, members []Member, plan Plan) (*Session, error) {
	s := &Session{
		id: JobID(plan), nodes: plan.Nodes, began: time.Now(),
		events: make(chan Event, 4*len(members)), asks: make(chan *question),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for i, m := range members {
		s.remotes = append(s.remotes, newRemote(id, NodeName(plan.Nodes, i), m))
	}
	accepted := make([]Accepted, len(members))
	err := s.each(ctx, 20*time.Second, func(ctx context.Context, i int) error {
		p := plan
		p.Node = i
		body, err := json.Marshal(p)
		if err != nil {
			return err
		}
		return s.remotes[i].first(ctx, http.MethodPost, PathJob, body, &accepted[i])
	})
	if err == nil {
		err = CheckAddresses(picked(members, accepted), self)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	for i := range s.remotes {
		s.work.Go(func() { s.follow(i) })
		s.work.Go(func() { s.ping(i) })
	}
	s.work.Go(s.loop)
	return s, nil
}

// picked are the members with the data addresses that they chose for a plan.
func picked(members []Member, a []Accepted) []Member {
	out := make([]Member, len(members))
	for i, m := range members {
		m.Data, m.Why = a[i].Data, clean(a[i].Why, maxWhy)
		out[i] = m
	}
	return out
}

// each runs do for all nodes at once and returns the first error by node.
func (s *Session) each(ctx context.Context, limit time.Duration, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	errs := make([]error, len(s.remotes))
	var wg sync.WaitGroup
	for i := range s.remotes {
		wg.Go(func() { errs[i] = do(ctx, i) })
	}
	wg.Wait()
	var first error
	failed := 0
	for _, err := range errs {
		if err != nil {
			first, failed = cmp.Or(first, err), failed+1
		}
	}
	if failed > 1 {
		return fmt.Errorf("%w (and %d more nodes failed)", first, failed-1)
	}
	return first
}

// follow turns a node's stream into events; its end is one, too.
func (s *Session) follow(i int) {
	err := s.remotes[i].events(s.ctx, s.id, func(e Event) {
		e.Node = i // whatever it says
		s.tell(e)
	})
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("its worker ended the connection (killed, or its machine is down)")
	}
	s.lost(i, err)
}

// ping shows a node that the owner of its job lives.
func (s *Session) ping(i int) {
	body, _ := json.Marshal(Command{Kind: KindPing})
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(PingEvery):
		}
		ctx, cancel := context.WithTimeout(s.ctx, OwnerGone)
		// A ping that fails says nothing that the event stream does not.
		_ = s.remotes[i].call(ctx, http.MethodPost, PathJob+"/"+s.id+"/command", body, nil)
		cancel()
	}
}

func (s *Session) lost(i int, err error) {
	s.tell(Event{Node: i, Kind: EventLost, Error: &Fault{Node: i, Rank: -1, Peer: -1, Text: err.Error()}})
}

func (s *Session) tell(e Event) {
	select {
	case s.events <- e:
	case <-s.ctx.Done():
	}
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

// order carries out a command of the Job.
func (s *Session) order(c Command) {
	if c.Kind == kindAbort {
		_ = s.stop(s.ctx, c.Node) // Close does it again and tells
		return
	}
	body, err := json.Marshal(c)
	if err == nil {
		ctx, cancel := context.WithTimeout(s.ctx, 15*time.Second)
		err = s.remotes[c.Node].call(ctx, http.MethodPost, PathJob+"/"+s.id+"/command", body, nil)
		cancel()
	}
	var no *refused
	if errors.As(err, &no) && no.status == http.StatusGone {
		return // the runner has ended: the event stream says how
	}
	if err != nil {
		s.lost(c.Node, err)
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

// stopLimit is a little more than a worker takes to stop a runner by force.
const stopLimit = 3 * time.Second

func (s *Session) stop(ctx context.Context, i int) error {
	return s.remotes[i].call(ctx, http.MethodDelete, PathJob+"/"+s.id, nil, nil)
}

// Close stops the runners and waits for all that was started. A node that
// cannot be reached stops its runner by itself, so that is no error here.
func (s *Session) Close() error {
	s.once.Do(func() {
		_ = s.each(context.Background(), stopLimit, s.stop)
		s.cancel()
		s.work.Wait()
		for _, r := range s.remotes {
			r.close()
		}
	})
	return nil
}
