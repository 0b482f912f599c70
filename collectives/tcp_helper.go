package collectives

import (
	"runtime"
	"sync/atomic"
)

// tcpHelper is a thread that drives some of a link's streams.
type tcpHelper struct {
	streams atomic.Pointer[[]*tcpStream] // replaced when peers are added
	asleep  atomic.Bool
	bell    chan struct{} // one place: rung at least once after the last post
	quit    chan struct{}
	done    chan struct{}
}

func newTCPHelper() *tcpHelper {
	h := &tcpHelper{bell: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	h.streams.Store(&[]*tcpStream{})
	go h.run()
	return h
}

// wake is called by the rank's thread after it has posted something.
func (h *tcpHelper) wake() {
	if h.asleep.Load() {
		select {
		case h.bell <- struct{}{}:
		default:
		}
	}
}

func (h *tcpHelper) stop() {
	close(h.quit)
	<-h.done
}

func (h *tcpHelper) run() {
	runtime.LockOSThread()
	defer close(h.done)
	var rest tcpRest
	rest.begin()
	scratch := make([]byte, tcpCarry+tcpScratch)
	for {
		select {
		case <-h.quit:
			return
		default:
		}
		moved, busy := 0, false
		rest.fds = rest.fds[:0]
		for _, s := range *h.streams.Load() {
			m, waits := s.drive(scratch)
			moved += m
			if waits != 0 {
				busy = true
				rest.fds = append(rest.fds, pollFD{fd: int32(s.fd), events: waits})
			}
		}
		switch {
		case moved > 0:
			rest.begin()
		case rest.spin():
		case busy:
			rest.sleep()
		default:
			h.doze()
			rest.begin()
		}
	}
}

// doze sleeps until something is posted. What is posted before the thread has
// said that it sleeps rings no bell, so it looks once more.
func (h *tcpHelper) doze() {
	h.asleep.Store(true)
	defer h.asleep.Store(false)
	for _, s := range *h.streams.Load() {
		if s.fail.Load() == nil && (s.want.Load() || !s.sent(allSpans)) {
			return
		}
	}
	select {
	case <-h.bell:
	case <-h.quit:
	}
}

// drive moves what can be moved, and says which poll(2) events it waits for. A
// stream that has failed is left to the rank's thread, which finds the error.
func (s *tcpStream) drive(scratch []byte) (moved int, waits int16) {
	if s.fail.Load() != nil {
		return 0, 0
	}
	out, left, err := s.push(tcpBurst)
	in := 0
	if err == nil {
		in, err = s.pull(scratch, tcpMost)
	}
	if err != nil {
		s.fail.Store(&err)
		return 0, 0
	}
	if left {
		waits |= pollOut
	}
	if s.want.Load() {
		waits |= pollIn
	}
	return out + in, waits
}

// add gives the helper another stream.
func (h *tcpHelper) add(s *tcpStream) {
	all := append(append([]*tcpStream(nil), *h.streams.Load()...), s)
	h.streams.Store(&all)
}
