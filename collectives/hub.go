package collectives

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A program's place in time is one word: run<<32 | steps of the schedule that
// are done. run counts the programs and barriers of a team, so it is the same
// number on every member, and words only grow. finished stands for "all steps,
// and nobody needs this rank's buffers any more".
const finished = 1<<32 - 1

func moment(run uint64, steps int32) uint64 { return run<<32 | uint64(uint32(steps)) }

const (
	letterBytes = 56 // what fits beside the run number in one cache line
	letters     = 64 // of one program; there are two sets, used in turn
)

// letter carries a chunk so small that copying it costs less than telling the
// reader where it is and waiting until it has been read.
type letter struct {
	run  sign
	data [letterBytes]byte
}

// cell is what the other ranks of its process see of a rank. Each group of
// fields that one side writes and another polls has cache lines of its own; two
// lines, since processors fetch them in pairs.
type cell struct {
	_    [128]byte
	word sign // written by the rank: how far it is
	// base holds the rank's buffers by Where. They are valid from the word's
	// entry into a run until it is finished there.
	base  [Work + 1]unsafe.Pointer
	_     [128]byte
	claim atomic.Uint64 // open task's number << 32 | a bit for each block that nobody has taken
	taken atomic.Uint64 // blocks that helpers have finished, ever
	work  atomic.Pointer[task]
	_     [128]byte
	seat  seat

	_    [144]byte
	mail [2][letters]letter

	// What only the rank itself uses, kept here for when its team is made again.
	mailed [2]mailing
	dev    Device // the rank's, if its buffers are a device's; others read it as base
	_      [176]byte
}

// mailing is who was sent letters, in which run.
type mailing struct {
	run     uint64
	readers []int32
}

// Hub is where the ranks of one process meet. It is made for all of them,
// before any of them runs.
type Hub struct {
	Abort   *Abort
	spins   int  // loads before a waiting rank first gives way to others
	gosch   bool // give way to goroutines rather than to threads
	crowded bool // not every rank has a processor

	mu    sync.Mutex
	meets map[string]*meet
}

// meet is what the members of one team in one process share.
type meet struct {
	cells   []cell // by index in locals
	cpus    []sign // by cell: 2 + the processor that its thread keeps to; 1: none, 0: it is not here yet
	locals  []int  // team ranks
	index   []int32
	replays replays
}

// NewHub returns a hub for that many ranks. A rank's goroutine should be locked
// to a thread; where GOMAXPROCS leaves no processor for each of them (it should
// be ranks + 2) waiting ranks give way through Go's scheduler instead.
func NewHub(ranks int, abort *Abort) *Hub {
	h := &Hub{Abort: abort, meets: map[string]*meet{}}
	h.gosch = runtime.GOMAXPROCS(0) < ranks
	// With a core for each rank, looking is cheaper than a system call; with
	// fewer cores than ranks the awaited rank cannot move until this one gives way.
	if h.spins, h.crowded = 2000, runtime.NumCPU() < ranks; h.crowded {
		h.spins = 10
	}
	return h
}

// join returns the shared part of the team, made by the first member that asks.
// A team that comes again goes on where it stopped.
func (h *Hub) join(t Team) *meet {
	locals := t.locals(t.Me)
	key := fmt.Sprint(t.Global, locals)
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.meets[key]
	if m == nil {
		m = &meet{cells: make([]cell, len(locals)), cpus: make([]sign, len(locals)), locals: locals, index: make([]int32, len(t.Global))}
		for i := range m.index {
			m.index[i] = -1
		}
		for i, q := range locals {
			m.index[q] = int32(i)
		}
		h.meets[key] = m
	}
	return m
}
