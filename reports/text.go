package reports

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// cells is a figure as people read it, for live lines and tables alike.
type cells struct {
	scope, algorithm, time, spread, tail, algbw, busbw, limit, share, predicted, wrong string
}

func cellsOf(f *Figure, colour bool) cells {
	c := cells{
		scope: name(f.Scope), algorithm: name(f.Algorithm), time: none, spread: none, tail: none,
		algbw: rateText(f.Algbw()), busbw: rateText(f.Busbw()), limit: none, share: shareText(f.Share()), predicted: none, wrong: none,
	}
	if f.Auto {
		c.algorithm = "auto: " + c.algorithm
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
		c.tail = timeText(s.Max)
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

// Live prints a line for each result as it is measured.
type Live struct {
	w      io.Writer
	colour bool
	head   string          // of the lines before
	told   map[string]bool // notes of the records before
}

// NewLive prints to w.
func NewLive(w io.Writer) *Live { return &Live{w: w, colour: colours(w), told: map[string]bool{}} }

// Row prints one result, under a heading where the operation or its settings
// differ from the row before. What a record notes is said once.
func (l *Live) Row(r Result) error {
	var b bytes.Buffer
	f := merge([]Result{r})
	f.Notes = slices.DeleteFunc(f.Notes, func(n string) bool { return l.told[n] })
	for _, n := range f.Notes {
		l.told[n] = true
	}
	place := "out of place"
	if f.InPlace {
		place = "in place"
	}
	head := fmt.Sprintf("%s %s, %s, %s, launch %d", name(f.Op), strings.TrimSpace(name(f.Dtype)+" "+name(f.Redop)), place, name(f.Mode), f.Launch)
	if head != l.head {
		if l.head != "" {
			b.WriteByte('\n')
		}
		l.head = head
		fmt.Fprintln(&b, head)
		line(&b, "SIZE", cells{"SCOPE", "ALGORITHM", "TIME", "±95 %", "TAIL", "ALGBW", "BUSBW", "", "SHARE", "", "#WRONG"}, "")
	}
	line(&b, sizeText(f.asked()), cellsOf(&f, l.colour), strings.Join(f.sentences(), "; "))
	_, err := l.w.Write(b.Bytes())
	return err
}

// line is one live line. Widths count runes; an alarm's colour is not seen.
func line(b *bytes.Buffer, size string, c cells, rest string) {
	pad := 10
	if strings.HasPrefix(c.time, "\x1b") {
		pad += len(alarm("", true))
	}
	s := fmt.Sprintf("%9s  %-6s  %-18s %*s %6s %10s %8s %8s %6s %7s  %s", size, c.scope, c.algorithm, pad, c.time, c.spread, c.tail, c.algbw, c.busbw, c.share, c.wrong, rest)
	b.WriteString(strings.TrimRight(s, " "))
	b.WriteByte('\n')
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

// remarks says below a table what concerns some of its rows.
func (s *sheet) remarks(b *bytes.Buffer) {
	rows := map[string][]string{}
	var order []string
	for _, f := range s.figures {
		c := cellsOf(f, false)
		row := strings.Join([]string{sizeText(f.asked()), c.scope, c.algorithm}, " ")
		for _, r := range f.sentences() {
			if rows[r] == nil {
				order = append(order, r)
			}
			rows[r] = append(rows[r], row)
		}
	}
	const shown = 3
	for _, r := range order {
		where := rows[r]
		switch n := len(where); {
		case n == len(s.figures) && n > 1:
			where = []string{"all rows"}
		case n > shown:
			where = append(where[:shown:shown], fmt.Sprintf("and %d more", n-shown))
		}
		fmt.Fprintf(b, "  %s: %s\n", r, strings.Join(where, ", "))
	}
	b.WriteString("  TIME: median of the slowest rank; ±95 %: interval of the median; TAIL: p99 of 100 samples or more, else the maximum;\n" +
		"  ALGBW, BUSBW, LIMIT: GB/s (1e9 B/s); SHARE: busbw of the limit; " + none + ": not measured or not applicable (one rank has no bandwidth)\n")
}
