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
	if f.Wrong != nil {
		c.wrong = fmt.Sprint(*f.Wrong)
	}
	switch {
	case f.Void():
		c.time = alarm("WRONG", colour)
	case !f.Timed && len(f.Faults) > 0:
		c.time = alarm("FAILED", colour)
	case f.Timed:
		s := &f.Stats
		c.time = timeText(s.Median)
		c.tail, c.least, c.most = timeText(s.Max), timeText(s.Min), timeText(s.Max)
		c.outliers = fmt.Sprint(s.Outliers)
		if s.P99 != nil {
			c.tail = timeText(*s.P99)
		}
		if s.Interval != nil && s.Median > 0 {
			// The interval is not symmetric: its further end is shown.
			c.spread = shareText(math.Max(s.Interval[1]-s.Median, s.Median-s.Interval[0])/s.Median, true)
		}
	}
	return c
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
