package imports

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
