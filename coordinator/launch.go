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

// start has every node of the plan start a runner and opens its event stream.
func start(ctx context.Context, id *Identity, self Member, members []Member, plan Plan) (*Session, error) {
	s := &Session{
		id: JobID(plan), nodes: plan.Nodes, began: time.Now(),
		started: make([]bool, len(members)), events: make(chan Event, 4*len(members)), asks: make(chan *question),
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
	for i, a := range accepted {
		s.started[i] = a.Job != ""
	}
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
	switch {
	case failed == 2:
		return fmt.Errorf("%w (and one more node failed)", first)
	case failed > 2:
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

// stopLimit is a little more than a worker takes to stop a runner by force.
const stopLimit = 3 * time.Second

// stop ends a node's runner. One that was asked for without an answer is
// stopped by its worker, because nobody reads its events.
func (s *Session) stop(ctx context.Context, i int) error {
	if !s.started[i] {
		return nil
	}
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
