package collectives

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// program is a schedule written out, so that a test can damage it.
type program struct {
	shape Shape
	steps [][]Step
}

func (p program) Shape() Shape          { return p.shape }
func (p program) Len(rank int) int      { return len(p.steps[rank]) }
func (p program) Step(rank, i int) Step { return p.steps[rank][i] }

func written(s Schedule) program {
	p := program{shape: s.Shape(), steps: make([][]Step, s.Shape().Ranks)}
	for r := range p.steps {
		for i := range s.Len(r) {
			p.steps[r] = append(p.steps[r], s.Step(r, i))
		}
	}
	return p
}

// with replaces the steps [i, i+cut) of a rank.
func (p program) with(rank, i, cut int, by ...Step) program {
	steps := append([][]Step(nil), p.steps...)
	steps[rank] = append(append(append([]Step(nil), steps[rank][:i]...), by...), steps[rank][i+cut:]...)
	return program{p.shape, steps}
}

// damaged calls f with every way to drop, double, re-aim or change one step.
func damaged(p program, f func(what string, m program)) {
	n, chunks := p.shape.Ranks, p.shape.Chunks()
	for r, steps := range p.steps {
		for i, st := range steps {
			name := func(what string) string {
				return fmt.Sprintf("rank %d step %d %s %d chunk %d: %s", r, i, st.Kind, st.Peer, st.Chunk, what)
			}
			f(name("dropped"), p.with(r, i, 1))
			f(name("doubled"), p.with(r, i, 1, st, st))
			for peer := range n {
				if other := (Step{st.Kind, int32(peer), st.Chunk}); other != st {
					f(name(fmt.Sprint("peer ", peer)), p.with(r, i, 1, other))
				}
			}
			for c := range chunks {
				if other := (Step{st.Kind, st.Peer, int32(c)}); other != st {
					f(name(fmt.Sprint("chunk ", c)), p.with(r, i, 1, other))
				}
			}
			for k := Send; k <= Combine+1; k++ {
				if k != st.Kind {
					f(name(fmt.Sprint("kind ", k)), p.with(r, i, 1, Step{k, st.Peer, st.Chunk}))
				}
			}
		}
	}
}

// Every single damage to a step is found: no schedule has a step too many, nor
// one whose kind, peer or chunk does not matter.
func TestCheckFindsEveryDamage(t *testing.T) {
	each(func(op Op, name string) {
		for _, p := range []Params{{Ranks: 2, Pieces: 2}, {Ranks: 3, Pieces: 2, Channels: 2, Root: 1}, {Ranks: 4, Root: 3}, {Ranks: 5, Root: 2}} {
			if (name == "hierarchical" || name == "rails") && p.Ranks == 4 {
				p.Nodes = []int{0, 1, 0, 1}
			}
			s := written(mustNew(t, op, name, p))
			damaged(s, func(what string, m program) {
				if Check(op, m, p.Root) == nil {
					t.Errorf("%s %s %+v: not found: %s", op, name, p, what)
				}
			})
		}
	})
}

// Exchanging two neighbouring steps of a rank is damage unless they concern
// different chunks and do not both send to, or both receive from, one rank.
func TestCheckFindsReorderedSteps(t *testing.T) {
	each(func(op Op, name string) {
		p := Params{Ranks: 5, Root: 1, Pieces: 2}
		s := written(mustNew(t, op, name, p))
		for r, steps := range s.steps {
			for i := 1; i < len(steps); i++ {
				a, b := steps[i-1], steps[i]
				sameLink := a.Peer == b.Peer && (a.Kind == Send) == (b.Kind == Send) && a.Chunk != b.Chunk
				dependent := a.Chunk == b.Chunk && (a.Kind == Send) != (b.Kind == Send)
				err := Check(op, s.with(r, i-1, 2, b, a), p.Root)
				if err == nil && (sameLink || dependent) {
					t.Errorf("%s %s: not found: rank %d steps %d and %d exchanged (%v, %v)", op, name, r, i-1, i, a, b)
				}
			}
		}
	})
}

// A step dropped or doubled in larger schedules.
func TestCheckFindsRandomDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	each(func(op Op, name string) {
		for range 30 {
			n := 6 + rng.IntN(20)
			p := Params{Ranks: n, Root: rng.IntN(n), Pieces: 1 + rng.IntN(3)}
			s := written(mustNew(t, op, name, p))
			r := rng.IntN(n)
			if len(s.steps[r]) == 0 {
				continue
			}
			i := rng.IntN(len(s.steps[r]))
			st := s.steps[r][i]
			for name, m := range map[string]program{"dropped": s.with(r, i, 1), "doubled": s.with(r, i, 0, st)} {
				if Check(op, m, p.Root) == nil {
					t.Errorf("%s %s %+v: not found: rank %d step %d %s", op, name, p, r, i, name)
				}
			}
		}
	})
}

// So many chunks that Check walks them in parts: the last one counts too.
func TestCheckInParts(t *testing.T) {
	if testing.Short() {
		t.Skip("millions of states: not in -short")
	}
	const n = 260
	if n*n*n <= maxStates {
		t.Fatal("one part is enough")
	}
	s := mustNew(t, AllToAll, "direct", Params{Ranks: n})
	if err := Check(AllToAll, s, 0); err != nil {
		t.Fatal(err)
	}
	m := written(s)
	const last = n*n - 2 // the last rank's block for the last but one
	for i, st := range m.steps[n-2] {
		if st.Chunk == last {
			m.steps[n-2][i].Kind = Combine
		}
	}
	if err := Check(AllToAll, m, 0); err == nil || !strings.Contains(err.Error(), "rank 258 step") {
		t.Errorf("combining the last chunk: %v", err)
	}
}

// A table behaves the same whether it fits an array or not.
func TestTables(t *testing.T) {
	for _, width := range []int{100, maxDense} {
		x := newTable(100, width)
		x.set(99, 7, 5)
		x.set(7, 99, 3)
		x.set(7, 99, 0)
		if x.get(99, 7) != 5 || x.get(7, 99) != 0 || x.get(0, 0) != 0 || len(x.sparse) > 1 {
			t.Errorf("width %d: %d %d", width, x.get(99, 7), x.get(7, 99))
		}
	}
}

// What a failed Check says.
func TestCheckMessages(t *testing.T) {
	one := Shape{Ranks: 2, Blocks: 1, Pieces: 1, Channels: 1}
	send := func(peer, chunk int32) Step { return Step{Send, peer, chunk} }
	recv := func(peer, chunk int32) Step { return Step{Recv, peer, chunk} }
	combine := func(peer, chunk int32) Step { return Step{Combine, peer, chunk} }
	two := one
	two.Pieces = 2
	buffered := one
	buffered.Buffered = true
	three := Shape{Ranks: 3, Blocks: 1, Pieces: 1, Channels: 1}
	for _, c := range []struct {
		op    Op
		shape Shape
		steps [][]Step
		want  string
	}{
		{AllReduce, one, [][]Step{{combine(1, 0)}, {send(0, 0)}}, "all_reduce: rank 1 chunk 0 holds rank 0's input 0 times, wants once"},
		{AllReduce, one, [][]Step{{combine(1, 0), send(1, 0)}, {send(0, 0), combine(0, 0)}}, "rank 1 chunk 0 holds rank 1's input 2 times, wants once"},
		{AllReduce, one, [][]Step{{recv(1, 0)}, {send(0, 0)}}, "rank 0 chunk 0 holds rank 0's input 0 times, wants once"},
		{Broadcast, three, [][]Step{{send(1, 0)}, {recv(0, 0)}, nil}, "rank 2 chunk 0 holds rank 0's input 0 times, wants once"},
		{AllGather, Shape{Ranks: 2, Blocks: 2, Pieces: 1, Channels: 1}, [][]Step{{send(1, 0), recv(1, 1)}, {send(0, 1), combine(0, 0)}}, "rank 1 step 1: combine chunk 0 from rank 0: the rank does not hold the chunk"},
		{Broadcast, one, [][]Step{nil, {send(0, 0)}}, "rank 1 step 0: send chunk 0 to rank 0: the rank does not hold the chunk"},
		{Broadcast, two, [][]Step{{send(1, 0), send(1, 1)}, {recv(0, 1), recv(0, 0)}}, "rank 1 step 0: recv chunk 1 from rank 0 meets a send of chunk 0"},
		{Broadcast, one, [][]Step{{send(1, 0), send(1, 0)}, {recv(0, 0)}}, "rank 0 sends chunk 0 to rank 1, which never receives it"},
		{Broadcast, one, [][]Step{{}, {recv(0, 0)}}, "rank 1 step 0: recv chunk 0 waits for rank 0, which has ended"},
		{AllReduce, one, [][]Step{{combine(1, 0), send(1, 0)}, {combine(0, 0), send(0, 0)}}, "rank 0 step 0: combine chunk 0 waits for rank 1, which itself waits at step 0: a deadlock"},
		{AllReduce, one, [][]Step{{send(1, 0), combine(1, 0)}, {send(0, 0), combine(0, 0)}}, "rank 0 step 1: combine chunk 0 waits until rank 1 takes what it was sent of the chunk, which itself waits at step 1: a deadlock"},
		{AllReduce, buffered, [][]Step{{send(1, 0), combine(1, 0)}, {send(0, 0), combine(0, 0)}}, ""},
		{Broadcast, one, [][]Step{{send(0, 0)}, nil}, "rank 0 step 0: send chunk 0: peer 0 is not another of the 2 ranks"},
		{Broadcast, one, [][]Step{{send(1, 7)}, nil}, "rank 0 step 0: send chunk 7: there are only 1 chunks"},
		{Broadcast, one, [][]Step{{{Kind: 9}}, nil}, "rank 0 step 0: kind 9 is none of send, recv, combine"},
		{Broadcast, Shape{Ranks: 1}, nil, "is not a shape"},
		{AllGather, one, [][]Step{nil, nil}, "all_gather of 2 ranks cannot have 1 blocks"},
	} {
		err := Check(c.op, program{c.shape, c.steps}, 0)
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %v: %v, want %q", c.op, c.steps, err, c.want)
		}
	}
	if err := Check(Broadcast, program{one, [][]Step{nil, nil}}, 2); err == nil {
		t.Error("root 2 of 2 ranks passed")
	}
}
