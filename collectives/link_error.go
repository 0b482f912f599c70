package collectives

import (
	"errors"
	"fmt"
)

// ErrPeerClosed is what a rank sees of a peer whose process ended or gave up:
// the cause is at the peer.
var ErrPeerClosed = errors.New("closed the connection")

// LinkError is a failure of one rank's link to one peer.
type LinkError struct {
	Rank, Peer int    // global; Peer is −1 where no single peer is meant
	Link       string // "tcp", "verbs"
	Addr       string // of the peer, as this rank reaches it
	Err        error
}

func (e *LinkError) Error() string {
	switch {
	case e.Peer < 0:
		return fmt.Sprintf("rank %d: %s: %v", e.Rank, e.Link, e.Err)
	case e.Addr == "":
		return fmt.Sprintf("rank %d: %s: peer rank %d: %v", e.Rank, e.Link, e.Peer, e.Err)
	case e.Err == ErrPeerClosed: // reads as a sentence
		return fmt.Sprintf("rank %d: %s: peer rank %d (%s) %v", e.Rank, e.Link, e.Peer, e.Addr, e.Err)
	}
	return fmt.Sprintf("rank %d: %s: peer rank %d (%s): %v", e.Rank, e.Link, e.Peer, e.Addr, e.Err)
}

func (e *LinkError) Unwrap() error { return e.Err }

// Consequence says whether the error follows from another one, at the peer or
// anywhere in the run, and so is not what a user should read first.
func (e *LinkError) Consequence() bool {
	return errors.Is(e.Err, ErrPeerClosed) || errors.Is(e.Err, ErrAborted)
}
