package imports

import "bytes"

// Headers and ranks' lines that a narrow terminal has wrapped.

// header takes a table's name line, or keeps the beginning of one.
func (s *stream) header(f [][]byte, t []byte) bool {
	l, ok := header(f)
	if ok && (len(l.half) == 2 && len(l.half[0]) == len(l.half[1])) {
		s.pending(s.open(onHeader).header(l))
		return true
	}
	i := 0
	if len(f) > 0 && string(f[0]) == "#" {
		i = 1
	}
	if ok || len(f) > i+1 && (string(f[i]) == "size" || string(f[i]) == "bytes") && len(f[i+1]) > 0 && bytes.HasPrefix([]byte("count"), f[i+1]) {
		s.head = append(s.head[:0], t...)
		return true
	}
	return false
}

// joinHeader goes on with a header; false where the line is none of it.
func (s *stream) joinHeader(t []byte) bool {
	f := fields(t, nil)
	last := fields(s.head, nil)
	between := " "
	if a, b := last[len(last)-1], f[0]; !headerWords[string(a)] || !headerWords[string(b)] && string(b) != "#" {
		between = ""
		if headerWords[string(a)] {
			between = " " // what follows is no part of a word
		}
	}
	whole := append(append(append([]byte(nil), s.head...), between...), t...)
	names := fields(whole, nil)
	extends := len(whole) < 400 && t[0] != '(' && string(f[0]) != "#"
	for _, n := range names[1:] {
		extends = extends && partOfName(n)
	}
	l, ok := header(names)
	switch {
	case extends && ok && len(l.half) == 2 && len(l.half[0]) == len(l.half[1]):
		s.head = nil
		s.pending(s.open(onHeader).header(l))
		return true
	case extends:
		s.head = whole
		return true
	}
	head := s.head
	s.head = nil
	if l, ok := header(fields(head, nil)); ok {
		s.pending(s.open(onHeader).header(l))
	}
	return false
}

// partOfName says whether a word is a column's name or the beginning of one.
func partOfName(w []byte) bool {
	for name := range headerWords {
		if len(w) > 0 && len(w) <= len(name) && name[:len(w)] == string(w) {
			return true
		}
	}
	return false
}

// cutRank says that a line is the beginning of a rank's.
func cutRank(t []byte) bool {
	return bytes.Contains(t, []byte("Rank ")) && bytes.Contains(t, []byte(" on ")) && !bytes.Contains(t, []byte("] ")) && !bytes.HasSuffix(t, []byte("]")) && len(t) < 400
}

// joinRank puts a rank's line together where the line goes on with it.
func (s *stream) joinRank(t []byte) []byte {
	part := s.rank
	s.rank = nil
	seps := []string{"", " "}
	if bytes.HasPrefix(t, []byte("device")) {
		seps = []string{" ", ""}
	}
	for _, sep := range seps {
		whole := append(append(append([]byte(nil), part...), sep...), t...)
		if _, ok := parseDevice(whole); ok {
			return whole
		}
	}
	return t
}
