package reports

import (
	"fmt"
	"io"
	"math"
	"os"

	"golang.org/x/term"
)

// cells is a figure as people read it, for live lines and tables alike.
type cells struct {
	scope, algorithm, time, spread, tail, least, most, outliers, algbw, busbw, limit, share, predicted, wrong string
}

func cellsOf(f *Figure, colour bool) cells {
	c := cells{
		scope: name(f.Scope), algorithm: name(f.Algorithm), time: none, spread: none, tail: none, least: none, most: none, outliers: none,
		algbw: rateText(f.Algbw()), busbw: rateText(f.Busbw()), limit: none, share: shareText(f.Share()), predicted: none, wrong: none,
	}
	if f.Limit != nil {
		c.limit = rateText(f.Limit.GBps, true)
	}
	if f.Predicted != nil {
		c.predicted = timeText(*f.Predicted)
	}
	c.wrong = f.wrongText()
	switch {
	case f.Void():
		c.time = alarm("WRONG", colour)
	case !f.Timed && len(f.Faults) > 0:
		c.time = alarm("FAILED", colour)
	case f.Timed:
		s := &f.Stats
		c.time = timeText(s.Median)
		if least, most := f.extremes(); least != nil || most != nil {
			c.least, c.most = timeOr(least), timeOr(most)
			c.tail = c.most
		}
		if n := f.outliers(); n != nil {
			c.outliers = fmt.Sprint(*n)
		}
		if p := f.p99(); p != nil {
			c.tail = timeText(*p)
		}
		if s.Interval != nil && s.Median > 0 {
			// The interval is not symmetric: its further end is shown.
			c.spread = shareText(math.Max(s.Interval[1]-s.Median, s.Median-s.Interval[0])/s.Median, true)
		}
	}
	return c
}

func timeOr(seconds *float64) string {
	if seconds == nil {
		return none
	}
	return timeText(*seconds)
}

// alarm is a word in bold red (ECMA-48 SGR) where colour is wanted.
func alarm(word string, colour bool) string {
	if !colour {
		return word
	}
	return "\x1b[1;31m" + word + "\x1b[0m"
}

// colours says whether w is a terminal whose user has not asked for plain
// text (https://no-color.org).
func colours(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// sentences are what is to be said of a figure beside its numbers.
func (f *Figure) sentences() []string {
	var all []string
	if !f.Timed {
		for _, err := range f.Faults {
			all = append(all, prose(err.Error()))
		}
	}
	for _, r := range f.Remarks() {
		all = append(all, prose(r))
	}
	return all
}
