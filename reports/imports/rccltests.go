package imports

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"busbw/collectives"
	"busbw/reports"
)

// table gathers rows that name their columns themselves: the objects and the
// lines of rccl-tests' files (-Z json, -Z csv), and those of other tools that
// rewrite its text. Rows of the same operation and ranks in a row are a world.
type table struct {
	*source
	open bool
	last reports.Result // the first of its world
	at   int            // of the world in the text's list
	word string         // that named the last row's operation,
	op   string         // which it is; "" for none
}

// object takes a row; an object that is none is passed over.
func (t *table) object(o *object) error {
	size, bus := o.num("size", "sizeb", "sizebytes", "bytes", "msgsize"), o.num("busbw", "busbwgbs", "busbandwidth")
	us := o.num("time", "timeus", "timeinus", "latencyus")
	if !size.ok || !us.ok || !bus.ok || size.v < 0 || size.v > 1<<50 || us.v < 0 {
		return nil
	}
	r := reports.Result{Op: "unknown", Engine: "rccl", Memory: "hip", Source: "imported: rccl-tests", Mode: "pipelined", Aggregate: 1, Groups: 1,
		Bytes: int64(size.v), Count: int64(math.Min(max(o.num("count", "numelements", "elements").v, 0), 1<<50)), Dtype: o.word("type") + o.word("dtype"), Redop: o.word("redop"),
		InPlace: o.num("inplace").v != 0}
	h := half{time: us, bus: bus, alg: o.num("algbw", "algbwgbs")}
	wrong := o.num("wrong", "nwrong", "errors")
	h.figures(&r, 1, int64(math.Min(wrong.v, 1<<62)), wrong.ok && wrong.v >= 0)
	if r.Redop == "none" {
		r.Redop = ""
	}
	if n := o.num("numcycle"); n.ok && n.v >= 0 && n.v < maxRanks {
		r.Launch = int(n.v)
	}
	// Its ranks are processes, each with some GPUs.
	n, gpus := o.num("ranks", "nranks", "gpus", "ngpus"), o.num("gpusperrank")
	if all := n.v * max(gpus.v, 1); n.ok && n.v >= 1 && all < maxRanks {
		r.Ranks = int(all)
	}
	if n := o.num("nodes", "nnodes"); n.ok && n.v >= 1 && n.v < maxRanks {
		r.Nodes = int(n.v)
	} else if per := o.num("rankspernode"); per.ok && per.v >= 1 && n.ok {
		r.Nodes = int(math.Min(n.v/per.v, maxRanks))
	}
	switch {
	case r.Nodes == 1:
		r.Scope = "intra"
	case r.Nodes > 1 && r.Nodes == r.Ranks:
		r.Scope = "cross"
	case r.Nodes > 1:
		r.Scope = "global"
	}
	for _, k := range [...]string{"name", "test", "collective", "coll"} {
		if word := o.word(k); word != "" {
			if word != t.word {
				t.word, t.op = strings.Clone(word), ""
				if op, err := collectives.ParseOp(opName(word)); err == nil {
					t.op = op.String()
				}
			}
			if t.op != "" {
				r.Op = t.op
			}
		}
	}
	if t.open && (r.Op != t.last.Op || r.Ranks != t.last.Ranks || r.Nodes != t.last.Nodes) {
		t.open = false
	}
	if !t.open {
		w := World{Run: t.run(), Tool: "rccl-tests", Groups: 1, Beside: 1, State: NoSummary, Line: o.line, Notes: []string{"rows that name their columns, as -Z writes them; there is no summary"}}
		if r.Op != "unknown" {
			w.Op, w.OpFrom = r.Op, "named in the text"
		}
		if r.Ranks > 0 {
			w.Ranks, w.RanksFrom = [2]int{r.Ranks, r.Ranks}, "listed"
		}
		t.open, t.last, t.at = true, r, len(t.Worlds)
		t.last.Run = w.Run
		t.world(w)
	}
	r.Run = t.last.Run
	if t.at < len(t.Worlds) {
		w := &t.Worlds[t.at]
		w.Rows++
		w.Failed = w.Failed || wrong.v > 0
	}
	return t.give(o.line, &r)
}

// csv is rccl-tests' -Z csv.
type csv struct {
	names []string // of the columns, as keys
	cells [][]byte // of the last line
	o     object   // the last row
	table
}

// csvTable takes the lines of a file of rccl-tests: names, then rows.
func (s *stream) csvTable(t []byte) (taken bool, err error) {
	if c := bytes.IndexByte(t, ','); c < 0 || len(t) > 4096 {
		return false, nil
	}
	var cells [][]byte
	if s.csv != nil {
		cells = s.csv.cells[:0]
	}
	for rest, more := t, true; more; {
		var cell []byte
		if cell, rest, more = bytes.Cut(rest, []byte(",")); len(cells) == maxMembers {
			return false, nil
		}
		cells = append(cells, bytes.Trim(cell, "\" \t"))
	}
	if s.csv != nil {
		s.csv.cells = cells
	}
	if bytes.Contains(t, []byte("size")) && bytes.Contains(bytes.ToLower(t), []byte("busbw")) {
		names := make([]string, len(cells))
		for i := range cells {
			names[i] = plainKey(string(cells[i]))
		}
		if !slices.Contains(names, "size") || !slices.Contains(names, "time") || !slices.Contains(names, "busbw") {
			return false, nil
		}
		if err := s.finish(); err != nil {
			return true, err
		}
		err := s.endOthers()
		s.csv = &csv{names: names, table: table{source: s.source}}
		return true, err
	}
	if s.csv == nil {
		return false, nil
	}
	names := s.csv.names
	if len(cells) == len(names)+1 { // versions before 2026 name no column for the nodes
		at := 0
		for i, n := range names {
			if n == "collective" {
				at = i + 1
			}
		}
		names = slices.Insert(slices.Clone(names), at, "nodes")
		s.csv.names = names
	}
	if len(cells) != len(names) {
		s.warn(s.Lines, "%d cells under %d names: left out", len(cells), len(names))
		return true, nil
	}
	o, last := &s.csv.o, s.csv.o.members
	o.line, o.members = s.Lines, last[:0]
	for i, c := range cells {
		m := member{key: names[i]}
		if i < len(last) {
			m.word = last[i].word
		}
		if string(c) != m.word {
			m.word = strings.ToValidUTF8(string(c), "?")
		}
		m.number, _ = parse(c)
		o.members = append(o.members, m)
	}
	return true, s.csv.object(o)
}
