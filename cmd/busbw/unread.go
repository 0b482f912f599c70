package main

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/term"
)

// unreadPipe is an output whose reader may go away, as head does: what is
// printed after that goes nowhere, and the command goes on.
type unreadPipe struct{ file *os.File }

// unread is f, or f as an output whose reader may go away. A terminal stays
// what it is: progress is drawn on one.
func unread(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return f
	}
	return unreadPipe{f}
}

func (p unreadPipe) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		return len(b), nil
	}
	return n, err
}
