package imports

// others gives a line to the readers of other tools' texts.
func (s *stream) others(t []byte) (taken bool, err error) {
	if taken, err := s.perftest(t); taken || err != nil {
		return taken, err
	}
	if taken, err := s.gloobench(t); taken || err != nil {
		return taken, err
	}
	return s.pastedTable(t)
}
