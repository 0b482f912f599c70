package collectives

import (
	"errors"
	"strings"
	"testing"

	"busbw/collectives/reduce"
)

// solo makes one rank's side of a team whose members all live in its process,
// for looking at programs.
func solo(t *testing.T, n, me int) *Rank {
	t.Helper()
	abort := new(Abort)
	r, err := NewRank(Team{Global: ranksTo(n), Me: me}, NewHub(n, abort), nil, abort)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func count(p *Program, code opcode) int {
	n := 0
	for i := range p.code {
		if p.code[i].code == code {
			n++
		}
	}
	return n
}

// TestTwoShotIsOnePass: the two-shot all-reduce reads each input once and writes
// each result once, and a rank waits for each other one twice.
func TestTwoShotIsOnePass(t *testing.T) {
	for _, n := range []int{2, 4, 7} {
		for _, inPlace := range []bool{false, true} {
			p := compiled(t, solo(t, n, 1), Case{Op: AllReduce, Dtype: reduce.Float, Redop: reduce.Avg, Count: 1 << 20, InPlace: inPlace}, "direct", Params{})
			if len(p.tasks) != 1 || count(p, awaitSteps) != 2*(n-1) || len(p.code) != 2*(n-1)+1 {
				t.Errorf("n=%d: %d tasks, %d waits, %d instructions", n, len(p.tasks), count(p, awaitSteps), len(p.code))
				continue
			}
			k := p.tasks[0]
			if k.dst-k.src != int32(n) || k.end-k.dst != int32(n) || !k.finish || k.stream == inPlace {
				t.Errorf("n=%d in place %t: task %+v", n, inPlace, k)
			}
			for i := range int32(n) { // in rank order, which fixes the bits of the result
				if s := p.spots[k.src+i]; s.cell != i || s.where != In {
					t.Errorf("n=%d: source %d is %+v", n, i, s)
				}
			}
		}
	}
}

// TestDirectBroadcast is one pass of the root over its input, also where it has
// a result of its own to make; with two ranks the receiver fetches.
func TestDirectBroadcast(t *testing.T) {
	c := Case{Op: Broadcast, Dtype: reduce.Float, Count: 1 << 16}
	p := compiled(t, solo(t, 4, 0), c, "direct", Params{})
	if len(p.tasks) != 1 || p.tasks[0].end-p.tasks[0].dst != 4 || p.tasks[0].block == 0 {
		t.Errorf("root of 4: %+v", p.tasks)
	}
	if p := compiled(t, solo(t, 4, 2), c, "direct", Params{}); len(p.tasks) != 0 || count(p, awaitSteps) != 1 {
		t.Errorf("receiver of 4: %d tasks, %d waits", len(p.tasks), count(p, awaitSteps))
	}
	if p := compiled(t, solo(t, 2, 1), c, "direct", Params{}); len(p.tasks) != 1 {
		t.Errorf("receiver of 2: %d tasks", len(p.tasks))
	}
}

// TestLetters: tiny chunks need no rendezvous and no acknowledgement.
func TestLetters(t *testing.T) {
	p := compiled(t, solo(t, 4, 1), Case{Op: AllReduce, Dtype: reduce.Float, Count: 2}, "oneshot", Params{})
	if !p.quiet || count(p, postNote) != 1 || count(p, awaitNote) != 3 || count(p, awaitSteps) != 0 || len(p.tasks) != 1 {
		t.Errorf("%+v", p.code)
	}
	// 57 bytes do not fit a letter.
	p = compiled(t, solo(t, 4, 1), Case{Op: AllReduce, Dtype: reduce.Uint8, Count: letterBytes + 1}, "oneshot", Params{})
	if p.quiet || count(p, postNote) != 0 {
		t.Errorf("%+v", p.code)
	}
}

// TestExchangeDodges: ranks that exchange the chunk they combine must not wait
// for each other to have read it.
func TestExchangeDodges(t *testing.T) {
	for _, algo := range []string{"doubling", "oneshot"} {
		p := compiled(t, solo(t, 4, 1), Case{Op: AllReduce, Dtype: reduce.Float, Count: 1000, InPlace: true}, algo, Params{})
		if _, _, work := p.Needs(); work < 4000 {
			t.Errorf("%s in place works in %d bytes beside its result", algo, work)
		}
	}
	p := compiled(t, solo(t, 4, 1), Case{Op: AllReduce, Dtype: reduce.Float, Count: 1000}, "ring", Params{})
	if _, _, work := p.Needs(); work != 0 {
		t.Errorf("ring needs %d bytes of work", work)
	}
}

// TestStreams: only results that nobody reads again bypass the caches.
func TestStreams(t *testing.T) {
	c := Case{Op: AllReduce, Dtype: reduce.Float, Count: 1 << 20}
	p := compiled(t, solo(t, 4, 1), c, "ring", Params{})
	streams := 0
	for i := range p.tasks {
		if p.tasks[i].stream {
			streams++
		}
	}
	// Of the blocks of a ring of 4 one rank passes all on but those it gets last.
	if streams == 0 || streams == len(p.tasks) {
		t.Errorf("%d of %d tasks stream", streams, len(p.tasks))
	}
	c.Count = 1 << 10
	for _, k := range compiled(t, solo(t, 4, 1), c, "ring", Params{}).tasks {
		if k.stream {
			t.Error("4 KiB bypass the caches")
		}
	}
}

// TestBeyond32Bits: offsets and sizes of buffers past 2^32 bytes.
func TestBeyond32Bits(t *testing.T) {
	c := Case{Op: AllReduce, Dtype: reduce.Float, Count: 3<<30 + 5}
	for _, algo := range []string{"ring", "tree", "direct"} {
		p := compiled(t, solo(t, 4, 3), c, algo, Params{Pieces: 16})
		in, out, _ := p.Needs()
		if in != 4*c.Count || out != 4*c.Count {
			t.Errorf("%s needs %d and %d bytes of %d", algo, in, out, 4*c.Count)
		}
		last := int64(0)
		for _, s := range p.spots {
			last = max(last, s.off)
		}
		if last < 2*c.Count || last >= 4*c.Count {
			t.Errorf("%s: the last chunk starts at %d", algo, last)
		}
	}
}

// TestCompileRefuses says who and what.
func TestCompileRefuses(t *testing.T) {
	good, err := New(AllReduce, "ring", Params{Ranks: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		c    Case
		want string
	}{
		{Case{Op: AllReduce, Count: 1}, "no schedule"},
		{Case{Op: AllReduce, Count: -1, Schedule: good}, "-1 elements"},
		{Case{Op: AllReduce, Count: 1 << 62, Schedule: good}, "cannot be counted"},
		{Case{Op: AllReduce, Count: 1, Root: 2, Schedule: good}, "root 2"},
		{Case{Op: AllGather, Count: 3, Schedule: good}, "do not divide"},
		{Case{Op: AllToAll, Count: 2, InPlace: true, Schedule: good}, "no in-place form"},
		{Case{Op: AllReduce, Count: 9, Schedule: wrong{good, Step{Send, 5, 0}}}, "peer 5"},
		{Case{Op: AllReduce, Count: 9, Schedule: wrong{good, Step{Combine, 0, 77}}}, "chunk 77"},
		{Case{Op: AllReduce, Count: 9, Schedule: wrong{good, Step{Combine, 0, 0}}}, "does not"},
	} {
		_, err := solo(t, 2, 1).Compile(x.c)
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "rank 1: compile") {
			t.Errorf("%+v: %v", x.c, err)
		}
	}
	if _, err := solo(t, 3, 1).Compile(Case{Op: AllReduce, Count: 1, Schedule: good}); err == nil || !strings.Contains(err.Error(), "for 2 ranks") {
		t.Error(err)
	}
}

// wrong is a schedule whose rank 1 begins with another step.
type wrong struct {
	Schedule
	step Step
}

func (w wrong) Step(rank, i int) Step {
	if rank == 1 && i == 0 {
		return w.step
	}
	return w.Schedule.Step(rank, i)
}

// TestRunRefuses buffers that are too small or overlap; nobody is left waiting.
func TestRunRefuses(t *testing.T) {
	mem := make([]byte, 8000)
	for _, x := range []struct {
		b    Buffers
		want string
	}{
		{Buffers{In: mem[:3999], Out: mem[4000:]}, "in holds 3999 bytes, the program needs 4000"},
		{Buffers{In: mem[:4000], Out: mem[4001:]}, "out holds"},
		{Buffers{In: mem[:4000], Out: mem[3000:]}, "overlap"},
	} {
		abort := crew(t, 2, func(r *Rank) error {
			p := compiled(t, r, Case{Op: AllReduce, Dtype: reduce.Float, Count: 1000}, "ring", Params{})
			if r.team.Me == 0 {
				err := r.Run(p, x.b)
				if err == nil || !strings.Contains(err.Error(), x.want) {
					t.Errorf("%v, want %q", err, x.want)
				}
				return err
			}
			if err := r.Run(p, Buffers{In: make([]byte, 4000), Out: make([]byte, 4000)}); !errors.Is(err, ErrAborted) {
				t.Errorf("the other rank: %v", err)
			}
			return nil
		})
		if abort.Err() == nil {
			t.Error("no error")
		}
	}
}

// TestTeamRefuses and TestPeers are about who needs whom.
func TestTeamRefuses(t *testing.T) {
	abort := new(Abort)
	for _, x := range []struct {
		t    Team
		want string
	}{
		{Team{}, "does not exist"},
		{Team{Global: []int{1, 2}, Me: 2}, "does not exist"},
		{Team{Global: []int{1, 1}}, "twice"},
		{Team{Global: []int{1, -1}}, "negative"},
		{Team{Global: []int{1, 2}, Node: []int{0}}, "nodes of 1"},
		{Team{Global: []int{1, 2}, Node: []int{0, 1}}, "no link"},
		{Team{Global: []int{1, 2}}, "no hub"},
	} {
		if _, err := NewRank(x.t, nil, nil, abort); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.t, err, x.want)
		}
	}
}

func TestPeers(t *testing.T) {
	const n = 12
	team := Team{}
	for i := range n {
		team.Global = append(team.Global, 100+i)
		team.Node = append(team.Node, i/3)
	}
	for _, algo := range []string{"ring", "tree", "direct", "hierarchical", "rails"} {
		s, err := New(AllReduce, algo, Params{Ranks: n, Nodes: team.Node})
		if err != nil {
			t.Fatal(err)
		}
		peers := make([]map[int]bool, n)
		for me := range n {
			team.Me = me
			peers[me] = map[int]bool{}
			for _, g := range team.Peers(s) {
				peers[me][g-100] = true
			}
			if algo == "ring" && me%3 == 1 && len(peers[me]) != 0 {
				t.Errorf("rank %d is inside its node, but connects to %v", me, peers[me])
			}
		}
		for a := range n {
			for b := range peers[a] {
				if !peers[b][a] || team.local(a, b) {
					t.Errorf("%s: %d connects to %d, local %t, mutual %t", algo, a, b, team.local(a, b), peers[b][a])
				}
			}
		}
	}
}

// Large copies bypass the caches wherever they go: a copy's destination is never
// its source. A combination does so out of place only.
func TestWhatStreams(t *testing.T) {
	for _, c := range []struct {
		op            Op
		inPlace, want bool
	}{{Broadcast, false, true}, {Broadcast, true, true}, {AllGather, true, true}, {AllReduce, false, true}, {AllReduce, true, false}} {
		hub, abort := NewHub(2, &Abort{}), &Abort{}
		streams := false
		for me := range 2 {
			r, err := NewRank(Team{Global: []int{0, 1}, Me: me}, hub, nil, abort)
			if err != nil {
				t.Fatal(err)
			}
			s, err := New(c.op, "direct", Params{Ranks: 2})
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.Compile(Case{Op: c.op, Dtype: reduce.Float, Count: 4 << 20, InPlace: c.inPlace, Schedule: s})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range p.tasks {
				streams = streams || k.stream
			}
		}
		if streams != c.want {
			t.Errorf("%s of 16 MiB, in place %t: streams %t, want %t", c.op, c.inPlace, streams, c.want)
		}
	}
}
