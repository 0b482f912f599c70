package collectives

import (
	"errors"
	"fmt"
	"math"

	"busbw/collectives/reduce"
)

// Buffers are what one run of a program works on. In is only read, unless the
// case is in place; all three may change from run to run.
type Buffers struct {
	In, Out, Work []byte
}

// opcode is what an instruction does.
type opcode uint8

const (
	doTask     opcode = iota // combine or copy, in memory
	awaitSteps               // until the cell's rank has done want steps of this run
	awaitNote                // until the cell's rank has written letter note
	postNote                 // write a chunk into letter note
	wireSend                 // post a chunk to peer
	wireSent                 // until all chunks to peer but the latest n may be rewritten
	wireRecv                 // receive a chunk from peer
	wireReduce               // receive a chunk from peer and combine it with operand a
)

// spot is where bytes are: in a buffer of the rank of a cell, or, with
// where = mail, in its letter number off.
type spot struct {
	off   int64
	cell  int32
	where Where
}

const mail = Work + 1

// task is one pass over memory: read every source once, write every
// destination once. Whoever waits for its owner may take some of its blocks.
type task struct {
	p      *Program
	src    int32 // sources are p.spots[src:dst], in rank order
	dst    int32 // destinations are p.spots[dst:end]
	end    int32
	size   int64 // bytes of the chunk
	block  int64 // bytes of a block; 0: the owner does it all
	stream bool  // nobody reads the destinations soon: bypass the caches
	finish bool  // the result holds every rank's contribution
}

// instr is one instruction of a program. Programs run without a map, an
// allocation or, but for the wire, an interface call.
type instr struct {
	code   opcode
	mark   bool // tell the others that steps are done
	finish bool
	cell   int32
	peer   int32 // team rank that it concerns, −1: none
	chunk  int32
	note   int32
	want   int32
	steps  int32 // of the schedule that are done after it
	task   int32
	next   int32  // see lookAhead: the chunk of the task that this is, or comes before; −1: none
	n      uint64 // wireSent: how many of the latest sends to peer need not have left
	size   int64
	at, a  spot
}

// Program is a schedule compiled for one rank and one size: what remains are
// offsets and the points in time to wait for.
type Program struct {
	c       Case
	ranks   int
	kernels *reduce.Kernels // nil unless the operation reduces
	code    []instr
	tasks   []task
	spots   []spot
	need    [Work + 1]int64 // bytes of each buffer
	readers []int32         // cells that read this rank's letters
	posts   bool
	quiet   bool // nobody looks at this rank's steps or buffers: only at its letters
	most    int  // sources or destinations of a task, at most
	landing []landing
	passes  bool // others wait for what it does after it has waited itself
	shared  bool // tasks are large enough to be shared with those who wait
}

// Needs is how many bytes the program reads of In and writes of Out and Work.
func (p *Program) Needs() (in, out, work int64) { return p.need[In], p.need[Out], p.need[Work] }

// Steps is the number of instructions, for those who report on a program.
func (p *Program) Steps() int { return len(p.code) }

// Compile translates the case for this rank. It takes time and memory in
// proportion to the steps of this rank and of its peers in the process, so it
// belongs outside what is timed. All members must compile equal cases and run
// the programs in the same order.
func (r *Rank) Compile(c Case) (*Program, error) {
	p, err := r.compile(c)
	if err != nil {
		return nil, fmt.Errorf("rank %d: compile %s of %d × %s: %w", r.team.Global[r.team.Me], c.Op, c.Count, c.Dtype, err)
	}
	r.hands.grow(p.most)
	return p, nil
}

// lookAhead tells each instruction of the next task, where chunks pass in a line.
func (p *Program) lookAhead(line bool) {
	next := int32(-1)
	for i := len(p.code) - 1; i >= 0; i-- {
		if p.code[i].code == doTask && line {
			next = p.code[i].chunk
		}
		p.code[i].next = next
	}
}

// passesOn says whether anybody waits for something that comes after a wait of
// the program's own.
func (p *Program) passesOn() bool {
	waited := false
	for i := range p.code {
		switch p.code[i].code {
		case awaitSteps, awaitNote:
			waited = true
		case postNote:
			if waited {
				return true
			}
		}
	}
	return waited && !p.quiet
}

// check says what is wrong with the case for a team of n ranks.
func (c *Case) check(n int) error {
	if c.Schedule == nil {
		return errors.New("no schedule")
	}
	s := c.Schedule.Shape()
	switch {
	case s.Ranks != n:
		return fmt.Errorf("the schedule is for %d ranks, the team has %d", s.Ranks, n)
	case s.Blocks < 1 || s.Pieces < 1 || s.Chunks() > math.MaxInt32:
		return fmt.Errorf("the schedule cuts %d blocks into %d pieces", s.Blocks, s.Pieces)
	case c.Root < 0 || c.Root >= n:
		return fmt.Errorf("root %d is not one of %d ranks", c.Root, n)
	case c.Count < 0 || c.Count > math.MaxInt64/64/int64(c.Dtype.Size()):
		return fmt.Errorf("%d elements cannot be counted in bytes", c.Count)
	case c.Op.Blocked() && c.Count%int64(n) != 0:
		return fmt.Errorf("%d elements do not divide into %d blocks", c.Count, n)
	case c.InPlace && !c.Op.HasInPlace():
		return errors.New("the operation has no in-place form")
	}
	for rank := range n {
		if s := c.Schedule.Len(rank); s < 0 || s >= finished {
			return fmt.Errorf("rank %d has %d steps", rank, s)
		}
	}
	return nil
}
