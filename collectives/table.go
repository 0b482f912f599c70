package collectives

// maxDense is the largest table that is kept as an array (256 MiB).
const maxDense = 1 << 26

// table maps pairs of small numbers to counts; what was never set is 0. It is an
// array where that fits and a map otherwise, which is some ten times slower but
// no larger than what is in it.
type table struct {
	width  int
	dense  []int32
	sparse map[uint64]int32
}

func newTable(height, width int) table {
	if height <= maxDense/width {
		return table{width: width, dense: make([]int32, height*width)}
	}
	return table{sparse: map[uint64]int32{}}
}

func (t *table) get(a, b int) int32 {
	if t.dense != nil {
		return t.dense[a*t.width+b]
	}
	return t.sparse[uint64(a)<<32|uint64(b)]
}

func (t *table) set(a, b int, v int32) {
	switch {
	case t.dense != nil:
		t.dense[a*t.width+b] = v
	case v == 0:
		delete(t.sparse, uint64(a)<<32|uint64(b))
	default:
		t.sparse[uint64(a)<<32|uint64(b)] = v
	}
}
