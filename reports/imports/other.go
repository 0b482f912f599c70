package imports

// keep adds a row of numbers to a table of another tool, within what all tests
// that are open may hold.
func (s *stream) keep(rows *[][]number, row []number) {
	if len(*rows) == maxRows || s.held == maxHeld {
		s.warn(s.Lines, "more than %d rows in one test: this one is left out", len(*rows))
		return
	}
	s.held++
	*rows = append(*rows, row)
}

// others gives a line to the readers of other tools' texts.
func (s *stream) others(t []byte) (taken bool, err error) {
	if t[0] >= '0' && t[0] <= '9' && s.perf == nil && s.gloo == nil && s.table == nil && s.csv == nil {
		return false, nil // no row of theirs comes without a header
	}
	if taken, err := s.perftest(t); taken || err != nil {
		return taken, err
	}
	if taken, err := s.gloobench(t); taken || err != nil {
		return taken, err
	}
	if taken, err := s.csvTable(t); taken || err != nil {
		return taken, err
	}
	return s.pastedTable(t)
}
