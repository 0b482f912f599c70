package reports

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Live prints a line for each result as it is measured.
type Live struct {
	w      io.Writer
	each   bool // with the extremes of the iterations
	colour bool
	head   string          // of the lines before
	told   map[string]bool // notes of the records before
}

// NewLive prints to w; perIteration adds columns on the single iterations.
func NewLive(w io.Writer, perIteration bool) *Live {
	return &Live{w: w, each: perIteration, colour: colours(w), told: map[string]bool{}}
}

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
		fmt.Fprintln(&b, head+"; ALGBW, BUSBW: GB/s")
		l.line(&b, "SIZE", cells{scope: "SCOPE", algorithm: "ALGORITHM", time: "TIME", spread: "±95 %", tail: "TAIL", least: "MIN", most: "MAX",
			outliers: "OUTLIERS", algbw: "ALGBW", busbw: "BUSBW", share: "SHARE", wrong: "#WRONG"}, "")
	}
	c := cellsOf(&f, l.colour)
	if f.Auto {
		c.algorithm = "auto: " + c.algorithm
	}
	l.line(&b, sizeText(f.asked()), c, strings.Join(f.sentences(), "; "))
	_, err := l.w.Write(b.Bytes())
	return err
}

// line is one live line. Widths count runes; an alarm's colour is not seen.
func (l *Live) line(b *bytes.Buffer, size string, c cells, rest string) {
	pad := 10
	if strings.HasPrefix(c.time, "\x1b") {
		pad += len(alarm("", true))
	}
	s := fmt.Sprintf("%9s  %-6s  %-18s %*s %6s %10s", size, c.scope, c.algorithm, pad, c.time, c.spread, c.tail)
	if l.each {
		s += fmt.Sprintf(" %10s %10s %8s", c.least, c.most, c.outliers)
	}
	s += fmt.Sprintf(" %8s %8s %6s %7s  %s", c.algbw, c.busbw, c.share, c.wrong, rest)
	b.WriteString(strings.TrimRight(s, " "))
	b.WriteByte('\n')
}
