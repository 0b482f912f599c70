package coordinator

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestJobScripts plays testdata/job/*.txt. A line that begins with "> " is an
// event; the lines below it are what the Job then commands and decides:
//
//	> nodes HOST:RANKS …                        a new job
//	> AT ask KIND TIMEOUT
//	> AT ok NODE [SEQ]
//	> AT alive NODE [rank=R iter=I step=S arrived=N,… finished=N,…]
//	> AT failed|lost NODE [rank=R peer=P link=L step=S consequence]: TEXT
//	> AT tick | AT cancel
func TestJobScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/job/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s: got\n%s", name, got)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	var b strings.Builder
	var j *Job
	said := false // the verdict
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		in, ok := strings.CutPrefix(line, "> ")
		if !ok {
			if line == "" || strings.HasPrefix(line, "#") {
				fmt.Fprintln(&b, line)
			}
			continue // an output line, made anew
		}
		fmt.Fprintln(&b, line)
		words := strings.Fields(in)
		if words[0] == "nodes" {
			var nodes []PlanNode
			for _, w := range words[1:] {
				host, ranks, _ := strings.Cut(w, ":")
				nodes = append(nodes, PlanNode{Host: host, Ranks: num(t, ranks)})
			}
			j, said = NewJob(nodes, DefaultLimits), false
			continue
		}
		for _, c := range step(t, j, in) {
			fmt.Fprintf(&b, "  node %d: %s", c.Node, c.Kind)
			if c.Seq > 0 {
				fmt.Fprintf(&b, " #%d", c.Seq)
			}
			fmt.Fprintln(&b)
		}
		if answers, ok := j.Answers(); ok {
			fmt.Fprintf(&b, "  answers: %s\n", answers)
		}
		if err := j.Err(); err != nil && !said {
			fmt.Fprintf(&b, "  verdict: %v\n", err)
			said = true
		}
	}
	return b.String()
}

// step feeds one script line to a job.
func step(t *testing.T, j *Job, in string) []Command {
	head, text, _ := strings.Cut(in, ": ")
	words := strings.Fields(head)
	at, err := time.ParseDuration(words[0])
	if err != nil || len(words) < 2 {
		t.Fatalf("script: %q: %v", in, err)
	}
	switch words[1] {
	case "ask":
		limit, err := time.ParseDuration(words[3])
		if err != nil {
			t.Fatal(err)
		}
		return j.Ask(at, words[2], limit)
	case "tick":
		return j.Tick(at)
	case "cancel":
		return j.Cancel(at, errors.New("interrupted"))
	}
	e := Event{Kind: words[1], Node: num(t, words[2])}
	switch e.Kind {
	case EventOK:
		e.Seq, e.Body = j.seq, []byte(words[2])
		if len(words) > 3 {
			e.Seq = uint64(num(t, words[3]))
		}
	case EventAlive:
		if len(words) > 3 {
			e.Progress = &Progress{}
		}
	default:
		e.Error = &Fault{Rank: -1, Peer: -1, Text: text}
	}
	for _, w := range words[3:] {
		key, value, _ := strings.Cut(w, "=")
		switch {
		case key == "consequence":
			e.Error.Consequence = true
		case key == "link":
			e.Error.Link = value
		case key == "peer":
			e.Error.Peer = num(t, value)
		case e.Progress != nil:
			switch key {
			case "rank":
				e.Progress.Rank = num(t, value)
			case "iter":
				e.Progress.Iteration = num(t, value)
			case "step":
				e.Progress.Step = num(t, value)
			case "arrived":
				e.Progress.Arrived = counts(t, value)
			case "finished":
				e.Progress.Finished = counts(t, value)
			}
		case key == "rank":
			e.Error.Rank = num(t, value)
		case key == "step":
			e.Error.Step = "step " + value
		}
	}
	return j.Step(at, e)
}

func counts(t *testing.T, s string) (all []int64) {
	for n := range strings.SplitSeq(s, ",") {
		all = append(all, int64(num(t, n)))
	}
	return all
}

func num(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("script: %v", err)
	}
	return n
}

// TestFailureIsOneLine: what a hostile runner says cannot write on the screen.
func TestFailureIsOneLine(t *testing.T) {
	f := &Failure{Fault: Fault{Node: 7, Rank: 1, Peer: 99, Link: "a\x1b[31m", Step: "x\ny", Text: "a\r\nb\x00\u202ec" + strings.Repeat("z", 9000)}, Suspect: -1}
	got := f.Error()
	if strings.ContainsAny(got, "\n\r\x00\x1b\u202e") || len(got) > 2500 {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
}
