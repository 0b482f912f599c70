package collectives

import "fmt"

// maxInFlight bounds the messages that may be under way at once in a walk, and
// so its memory (some 600 MB). A ring of 10 000 ranks has some 10 000; only
// schedules that start with a block for every rank, n² messages at once, go
// beyond it, from 4000 ranks on.
const maxInFlight = 1 << 24

// walker runs all ranks of a schedule in one goroutine, symbolically: P is what
// a message carries. A rank goes on until it is blocked; since schedules let a
// rank send on only what has arrived, that keeps queues as short as taking turns
// message by message does, in half the time. What each message carries does not
// depend on who goes first: a rank's steps are in order, links are
// first-in-first-out and nothing else is shared.
type walker[P any] struct {
	s       Schedule
	send    func(rank int, st Step) (P, error)
	receive func(rank int, st Step, p P) error
	// synchronous: a send completes only when it is received, and a chunk is
	// rewritten only when all its sends are complete.
	synchronous bool
	// period: ranks that many apart do the same, message for message, so that only
	// the first period of them are walked and each stands for its likes; 0: all
	// are. Chunks are told apart by their piece then.
	period int
	// when says at which time a rank makes a send, and whether that matters: such
	// sends are made in the order of their times. It may be nil.
	when func(rank int, st Step) (at float64, matters bool)

	n, chunks int
	pieces    int32
	ranks     []walkRank
	turns     turns   // ranks with a send that waits for its time
	ready     []int32 // ring buffer of ranks that may have something to do
	first     int
	waiting   int   // entries of ready
	index     table // one more than the link, from rank to rank
	links     []walkLink
	messages  []walkMessage[P]
	free      int32 // list of unused messages
	inFlight  int
	untaken   table // sends not received yet, by rank and chunk; synchronous only
	completed int   // ranks at the end of their program
}

type walkRank struct {
	at, end         int   // step number, program length
	queued          bool  // in ready
	now             bool  // it is time for the send at hand
	blocked         block // why not
	peer            int32 // or chunk, for which it is blocked
	out, in         int32 // links used last
	outPeer, inPeer int32
}

type block uint8

const (
	notBlocked block = iota
	onPeer           // nothing to receive from peer
	onChunk          // a send of the chunk is not taken yet
)

type walkLink struct{ from, to, head, tail int32 }

type walkMessage[P any] struct {
	load        P
	next, chunk int32
}

const none = int32(-1)

// run walks to the end. The error names the rank and step at which the schedule
// breaks the rules: a step that makes no sense, a receive that meets a send of
// another chunk, ranks that wait for ever, or a send that nobody receives.
func (w *walker[P]) run() error {
	shape := w.s.Shape()
	n := shape.Ranks
	w.n, w.chunks, w.pieces = n, shape.Chunks(), int32(shape.Pieces)
	if w.period == 0 {
		w.period = n
	}
	w.ranks, w.ready, w.index, w.free = make([]walkRank, w.period), make([]int32, w.period), newTable(w.period, n), none
	if w.synchronous {
		w.untaken = newTable(n, w.chunks)
	}
	for r := range w.ranks {
		w.ranks[r] = walkRank{end: w.s.Len(r), outPeer: none, inPeer: none}
		w.wake(r)
	}
	for w.waiting > 0 || len(w.turns) > 0 {
		if w.waiting == 0 {
			r := w.turns.pop()
			w.ranks[r].now = true
			w.wake(r)
		}
		r := int(w.ready[w.first])
		if w.first++; w.first == w.period {
			w.first = 0
		}
		w.waiting--
		w.ranks[r].queued = false
		if err := w.turn(r); err != nil {
			return err
		}
	}
	if w.completed < w.period {
		return w.stuck()
	}
	for _, l := range w.links {
		if l.head != none {
			return fmt.Errorf("rank %d sends chunk %d to rank %d, which never receives it", l.from, w.messages[l.head].chunk, l.to)
		}
	}
	return nil
}

func (w *walker[P]) wake(r int) {
	state := &w.ranks[r]
	if state.blocked = notBlocked; state.queued {
		return
	}
	state.queued = true
	at := w.first + w.waiting
	if at >= len(w.ready) {
		at -= len(w.ready)
	}
	w.ready[at] = int32(r)
	w.waiting++
}

// turn runs rank r until it is blocked or has ended.
func (w *walker[P]) turn(r int) error {
	state := &w.ranks[r]
	for state.at < state.end {
		st := w.s.Step(r, state.at)
		switch {
		case st.Kind > Combine:
			return fmt.Errorf("rank %d step %d: kind %d is none of send, recv, combine", r, state.at, st.Kind)
		case st.Peer < 0 || int(st.Peer) >= w.n || int(st.Peer) == r:
			return fmt.Errorf("rank %d step %d: %s chunk %d: peer %d is not another of the %d ranks", r, state.at, st.Kind, st.Chunk, st.Peer, w.n)
		case st.Chunk < 0 || int(st.Chunk) >= w.chunks:
			return fmt.Errorf("rank %d step %d: %s chunk %d: there are only %d chunks", r, state.at, st.Kind, st.Chunk, w.chunks)
		}
		if st.Kind == Send {
			if w.when != nil && !state.now {
				if at, matters := w.when(r, st); matters {
					w.turns.push(at, r)
					return nil
				}
			}
			state.now = false
			if err := w.post(r, st); err != nil {
				return fmt.Errorf("rank %d step %d: send chunk %d to rank %d: %w", r, state.at, st.Chunk, st.Peer, err)
			}
			state.at++
			continue
		}
		if w.synchronous && w.untaken.get(r, int(st.Chunk)) > 0 {
			state.blocked, state.peer = onChunk, st.Chunk
			return nil
		}
		l := w.incoming(r, st.Peer)
		m := l.head
		if m == none {
			state.blocked, state.peer = onPeer, st.Peer
			return nil
		}
		if c := w.messages[m].chunk; c != st.Chunk && (w.period == w.n || (c-st.Chunk)%w.pieces != 0) {
			return fmt.Errorf("rank %d step %d: %s chunk %d from rank %d meets a send of chunk %d", r, state.at, st.Kind, st.Chunk, st.Peer, c)
		}
		if err := w.receive(r, st, w.messages[m].load); err != nil {
			return fmt.Errorf("rank %d step %d: %s chunk %d from rank %d: %w", r, state.at, st.Kind, st.Chunk, st.Peer, err)
		}
		w.take(l, m)
		state.at++
	}
	w.completed++
	return nil
}

// post queues a message and wakes a receiver that waits for it.
func (w *walker[P]) post(r int, st Step) error {
	load, err := w.send(r, st)
	if err != nil {
		return err
	}
	m := w.free
	if m != none {
		w.free = w.messages[m].next
	} else {
		if w.inFlight == maxInFlight {
			return fmt.Errorf("more than %d messages are under way at once: too many to follow", maxInFlight)
		}
		m = int32(len(w.messages))
		w.messages = append(w.messages, walkMessage[P]{})
	}
	w.inFlight++
	w.messages[m] = walkMessage[P]{load: load, next: none, chunk: st.Chunk}
	state := &w.ranks[r]
	if state.outPeer != st.Peer {
		state.outPeer, state.out = st.Peer, w.link(r, int(st.Peer))
	}
	l := &w.links[state.out]
	if l.head == none {
		l.head = m
	} else {
		w.messages[l.tail].next = m
	}
	l.tail = m
	if w.synchronous {
		w.untaken.set(r, int(st.Chunk), w.untaken.get(r, int(st.Chunk))+1)
	}
	peer := int(st.Peer)
	if w.period == w.n {
		if to := &w.ranks[peer]; to.blocked == onPeer && int(to.peer) == r {
			w.wake(peer)
		}
		return nil
	}
	like := peer % w.period // the receiver's like, to which this rank's like sends
	if to := &w.ranks[like]; to.blocked == onPeer && int(to.peer) == mod(r+like-peer, w.n) {
		w.wake(like)
	}
	return nil
}

// take removes the link's first message, m.
func (w *walker[P]) take(l *walkLink, m int32) {
	chunk := w.messages[m].chunk
	l.head = w.messages[m].next
	w.messages[m].next = w.free
	w.free = m
	w.inFlight--
	if !w.synchronous {
		return
	}
	left := w.untaken.get(int(l.from), int(chunk)) - 1
	w.untaken.set(int(l.from), int(chunk), left)
	if left > 0 {
		return
	}
	if from := &w.ranks[l.from]; from.blocked == onChunk && from.peer == chunk {
		w.wake(int(l.from))
	}
}

func (w *walker[P]) incoming(r int, peer int32) *walkLink {
	state := &w.ranks[r]
	if state.inPeer != peer {
		from := int(peer)
		if w.period < w.n {
			from %= w.period
		}
		state.inPeer, state.in = peer, w.link(from, mod(r+from-int(peer), w.n))
	}
	return &w.links[state.in]
}

func (w *walker[P]) link(from, to int) int32 {
	l := w.index.get(from, to) - 1
	if l == none {
		l = int32(len(w.links))
		w.links = append(w.links, walkLink{int32(from), int32(to), none, none})
		w.index.set(from, to, l+1)
	}
	return l
}
